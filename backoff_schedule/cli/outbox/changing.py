"""The verbs that change the outbox itself: migrate, add-endpoint, enable, disable."""

from __future__ import annotations

import json
from pathlib import Path

from ...refusals import refusal
from ..schedule_options import whole_number
from .columns import cell
from .verb import Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from ...delivery import Outbox
    from ..parser import Parser

_ACTOR = "command line"


def _add_migrate(parser: Parser) -> None:
    parser.add_argument(
        "--sql", action="store_true", help="print the statements, and change nothing"
    )


def _migrate(outbox: Outbox, options: Namespace) -> int:
    if options.sql:
        print(outbox.schema_sql(), end="")
        return 0
    outbox.migrate()
    print("the tables are of the newest version")
    return 0


def _add_name(parser: Parser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME")


def _named(options: Namespace) -> str:
    if options.name is None:
        raise ValueError("which endpoint? Give its NAME")
    return str(options.name)


def _add_endpoint_options(parser: Parser) -> None:
    _add_name(parser)
    parser.add_argument("--url", metavar="URL", help="where it is")
    parser.add_argument(
        "--secret",
        metavar="FILE",
        action="append",
        help="a file with a secret to sign with; once more for each older one. They replace those "
        "before",
    )
    parser.add_argument(
        "--policy",
        metavar="JSON",
        help='its own options, over the worker\'s: \'{"timeout": "5 seconds"}\'; null for none',
    )
    parser.add_argument(
        "--max-in-flight",
        metavar="N",
        help="how many sends at once, 8 at first; none for no cap",
    )


def _add_endpoint(outbox: Outbox, options: Namespace) -> int:
    name = _named(options)
    given: dict[str, Any] = {}
    if options.url is not None:
        given["url"] = options.url
    if options.secret is not None:
        # From files, since every user of a machine sees the arguments of its processes.
        given["secrets"] = [_secret(path) for path in options.secret]
    if options.policy is not None:
        given["policy"] = _policy(options.policy)
    if options.max_in_flight is not None:
        rule = "a whole number, 1 or more, or none"
        given["max_in_flight"] = (
            None
            if options.max_in_flight == "none"
            else whole_number(options.max_in_flight, "--max-in-flight", rule)
        )
    outbox.add_endpoint(name, **given)
    print(f"the endpoint {cell(name)} is there")
    return 0


def _secret(path: str) -> str:
    return Path(path).read_text(encoding="utf-8").strip()


def _policy(text: str) -> Any:
    try:
        policy = json.loads(text)
    except ValueError:
        raise ValueError(refusal("--policy", text, "a JSON object, or null")) from None
    if policy is not None and not isinstance(policy, dict):
        raise ValueError(refusal("--policy", text, "a JSON object, or null"))
    return policy


def _add_reason(parser: Parser) -> None:
    _add_name(parser)
    parser.add_argument("--reason", metavar="TEXT", help="why, for those who look later")


def _enable(outbox: Outbox, options: Namespace) -> int:
    name = _named(options)
    outbox.enable(name, reason=options.reason, actor=_ACTOR)
    print(f"the endpoint {cell(name)} is enabled")
    return 0


def _disable(outbox: Outbox, options: Namespace) -> int:
    name = _named(options)
    if options.reason is None:
        raise ValueError("why? Give --reason TEXT")
    outbox.disable(name, reason=options.reason, actor=_ACTOR)
    print(f"the endpoint {cell(name)} is disabled, and its rows wait")
    return 0


_MIGRATE = """\
Make the tables of an outbox, or bring them to the newest version.
"""
_MIGRATE_EXAMPLES = """\
examples:
  backoff-schedule outbox --db app.db migrate
"""
_ADD_ENDPOINT = """\
Make an endpoint, or change what is named of one and keep the rest.
"""
_ADD_ENDPOINT_EXAMPLES = """\
examples:
  backoff-schedule outbox --db app.db add-endpoint acme \\
    --url https://acme.example/hooks --secret acme.secret --max-in-flight 4
"""
_ENABLE = """\
Go on with an endpoint that was disabled. Deadlines of its rows count from now.
"""
_ENABLE_EXAMPLES = """\
examples:
  backoff-schedule outbox --db app.db enable acme --reason 'they are back'
"""
_DISABLE = """\
Send nothing to an endpoint until it is enabled. Its rows wait, and none of them is lost.
"""
_DISABLE_EXAMPLES = """\
examples:
  backoff-schedule outbox --db app.db disable acme --reason 'they asked us to'
"""

VERBS = {
    "migrate": Verb(
        "[options]", _MIGRATE, _MIGRATE_EXAMPLES, _add_migrate, _migrate, makes_tables=True
    ),
    "add-endpoint": Verb(
        "NAME [options]",
        _ADD_ENDPOINT,
        _ADD_ENDPOINT_EXAMPLES,
        _add_endpoint_options,
        _add_endpoint,
    ),
    "enable": Verb("NAME [options]", _ENABLE, _ENABLE_EXAMPLES, _add_reason, _enable),
    "disable": Verb("NAME --reason TEXT", _DISABLE, _DISABLE_EXAMPLES, _add_reason, _disable),
}
