"""`backoff-schedule outbox`: an outbox from the outside, one verb for each thing to do to it."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import ExitStack
from importlib import import_module

from ...refusals import shown
from ..parser import Parser, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from .verb import Verb

_DESCRIPTION = """\
Operate an outbox in a database.

  migrate        make its tables, or bring them to the newest version
  add-endpoint   make an endpoint, or change what is named of one
  worker         deliver until SIGTERM or SIGINT
  stats          how each endpoint is doing
  list           its rows
  show           one row, with every try of it
  dead           the dead letters, the last one first
  redrive        give dead letters a new budget, one unless told otherwise
  enable         go on with an endpoint that was disabled
  disable        send nothing to an endpoint until it is enabled
  purge          drop rows that were finished long ago

Each has options of its own: backoff-schedule outbox VERB --help
"""

_EXAMPLES = """\
examples:
  backoff-schedule outbox --db app.db migrate
  backoff-schedule outbox --db app.db dead --since 2026-01-01T09:00Z
  backoff-schedule outbox --db postgresql:///shop worker --preset svix --concurrency 100
"""

# In which module each verb is.
VERBS = {
    "migrate": "changing",
    "add-endpoint": "changing",
    "worker": "working",
    "stats": "stats",
    "list": "looking",
    "show": "looking",
    "dead": "looking",
    "redrive": "redriving",
    "enable": "changing",
    "disable": "changing",
    "purge": "redriving",
}


def run(arguments: list[str]) -> int:
    """Read the options, open the outbox and do what the verb says."""
    before = _parser("", "--db URL VERB [options]", _DESCRIPTION, _EXAMPLES)
    given, rest = before.read_before_command(arguments)
    if not rest:
        before.error("a verb is missing, such as list; see --help")
    word = rest[0]
    if word not in VERBS:
        hint = nearest(word, VERBS) or "see --help"
        before.error(f"{shown(word)} is not a verb; {hint}")
    verb: Verb = import_module(f".{VERBS[word]}", __package__).VERBS[word]
    parser = _parser(word, verb.usage, verb.description, verb.examples)
    verb.add(parser)
    options = parser.read(rest[1:])
    for name in ("db", "schema"):
        if getattr(options, name) is None:
            setattr(options, name, getattr(given, name))
    return _acted(parser, options, verb)


def _parser(verb: str, usage: str, description: str, examples: str) -> Parser:
    parser = Parser(f"outbox {verb}".rstrip(), usage, description, examples)
    group = parser.add_argument_group("the outbox")
    group.add_argument(
        "--db",
        metavar="URL",
        help="a SQLite file, or a URL: sqlite:///app.db, postgresql://host/name; else what the "
        "environment says in BACKOFF_SCHEDULE_DB",
    )
    group.add_argument(
        "--schema", metavar="NAME", help="where the tables are in PostgreSQL, if not on its path"
    )
    return parser


def _acted(parser: Parser, options: Namespace, verb: Verb) -> int:
    from .opening import open_outbox

    with ExitStack() as after:
        try:
            outbox = open_outbox(options.db, options.schema, new=verb.makes_tables)
            after.callback(outbox.close)
            return verb.act(outbox, options)
        except (TypeError, ValueError) as refused:
            parser.error(str(refused))
        except (LookupError, RuntimeError, TimeoutError, ImportError) as failed:
            reason = str(failed.args[0] if failed.args else failed)
        except Exception as failed:
            # psycopg may not be installed, so its errors are known by their module.
            kind = type(failed)
            if not (isinstance(failed, sqlite3.Error) or kind.__module__.startswith("psycopg")):
                raise
            reason = str(failed)
            if "no such table" in reason or kind.__name__ == "UndefinedTable":
                reason = "there are no tables of an outbox: has `migrate` been run?"
    print(f"{parser.prog}: {' '.join(reason.split())}", file=sys.stderr)
    return 1
