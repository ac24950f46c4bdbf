"""The verbs that look: list, show, dead, stats."""

from __future__ import annotations

import sys

from ..readable import aware_instant
from ..schedule_options import whole_number
from .columns import as_json, cell, columns
from .verb import Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable

    from ...delivery import Delivery, Outbox
    from ..parser import Parser

_LIMIT_RULE = "a whole number, 1 or more"


def add_json(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document, for programs")


def add_limit(parser: Parser, default: str) -> None:
    parser.add_argument(
        "--limit", metavar="N", default=default, help=f"at most so many rows, {default} by default"
    )


def tell(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


def _add_list(parser: Parser) -> None:
    parser.add_argument(
        "--state",
        metavar="NAME",
        help="only rows in it: pending, sending, delivered, failed, dead or expired",
    )
    parser.add_argument("--endpoint", metavar="NAME", help="only rows of this endpoint")
    add_limit(parser, "100")
    parser.add_argument("--after", metavar="ID", default="0", help="go on after this row")
    add_json(parser)


def _list(outbox: Outbox, options: Namespace) -> int:
    rows = outbox.list(
        state=options.state,
        endpoint=options.endpoint,
        limit=whole_number(options.limit, "--limit", _LIMIT_RULE),
        after=whole_number(options.after, "--after", "the id of a row"),
    )
    if options.json:
        print(as_json(rows))
        return 0
    header = ("id", "endpoint", "event_id", "state", "attempts", "next_attempt_at", "last")
    tell(
        columns(
            header,
            [
                (
                    *(row.id, row.endpoint, row.event_id, row.state, row.attempts),
                    *(row.next_attempt_at, last_of(row)),
                )
                for row in rows
            ],
        )
    )
    return 0


def last_of(row: Delivery) -> str | None:
    """What came last: the error, else the status, else why it ended."""
    if row.last_error is not None:
        return row.last_error
    return row.reason if row.last_status is None else str(row.last_status)


def _add_show(parser: Parser) -> None:
    parser.add_argument("event_id", nargs="?", metavar="EVENT_ID")
    parser.add_argument("endpoint", nargs="?", metavar="ENDPOINT")
    add_json(parser)


def _show(outbox: Outbox, options: Namespace) -> int:
    if options.event_id is None or options.endpoint is None:
        raise ValueError("which row? Give its EVENT_ID and its ENDPOINT")
    row = outbox.get(options.event_id, options.endpoint)
    if row is None:
        print(
            f"no event {cell(options.event_id)} for the endpoint {cell(options.endpoint)}",
            file=sys.stderr,
        )
        return 1
    tries = outbox.history(options.event_id, options.endpoint)
    if options.json:
        print(as_json({"delivery": row, "tries": tries}))
        return 0
    for name in (
        *("id", "endpoint", "event_id", "type", "state", "reason", "attempts", "redrives"),
        *("created_at", "next_attempt_at", "expires_at", "finished_at", "last_status"),
        "last_error",
    ):
        print(f"{name:<16} {cell(getattr(row, name), 2048)}")
    print(f"{'payload':<16} {len(row.payload)} bytes")
    print()
    header = ("redrive", "try", "started_at", "seconds", "status", "outcome", "error")
    tell(
        columns(
            header,
            [
                (
                    *(each.redrive, each.number, each.started_at, each.seconds, each.status),
                    *(each.outcome, each.error),
                )
                for each in tries
            ],
        )
    )
    return 0


def add_chosen(parser: Parser) -> None:
    """Options that choose among dead letters."""
    group = parser.add_argument_group("which dead letters")
    group.add_argument("--endpoint", metavar="NAME", help="of this endpoint")
    group.add_argument(
        "--since", metavar="INSTANT", help="finished then or later, such as 2026-01-01T09:00Z"
    )
    group.add_argument("--error", metavar="TEXT", help="whose last error is this, word for word")


def _add_dead(parser: Parser) -> None:
    add_chosen(parser)
    add_limit(parser, "20")
    add_json(parser)


def _dead(outbox: Outbox, options: Namespace) -> int:
    letters = outbox.dead_letters(
        endpoint=options.endpoint,
        since=None if options.since is None else aware_instant(options.since, "--since"),
        error=options.error,
        limit=whole_number(options.limit, "--limit", _LIMIT_RULE),
    )
    if options.json:
        print(as_json(letters))
        return 0
    header = ("id", "endpoint", "event_id", "attempts", "finished_at", "reason", "last", "alike")
    rows = []
    for letter in letters:
        row = letter.delivery
        rows.append(
            (
                *(row.id, row.endpoint, row.event_id, row.attempts, row.finished_at, row.reason),
                *(last_of(row), letter.alike),
            )
        )
    tell(columns(header, rows))
    return 0


_LIST = """\
The rows of an outbox, in the order in which they were enqueued.
"""
_LIST_EXAMPLES = """\
examples:
  backoff-schedule outbox --db app.db list --state pending --endpoint acme
"""
_SHOW = """\
One row, and every try of it. Exits with 1 if there is no such row.
"""
_SHOW_EXAMPLES = """\
examples:
  backoff-schedule outbox --db app.db show order-1 acme
"""
_DEAD = """\
Dead and failed rows, the last one to finish first. The column `alike` tells how many of the
same endpoint died of the same since then, the row itself among them.
"""
_DEAD_EXAMPLES = """\
examples:
  backoff-schedule outbox --db app.db dead --endpoint acme --since 2026-01-01T09:00Z
"""

VERBS = {
    "list": Verb("[options]", _LIST, _LIST_EXAMPLES, _add_list, _list),
    "show": Verb("EVENT_ID ENDPOINT [options]", _SHOW, _SHOW_EXAMPLES, _add_show, _show),
    "dead": Verb("[options]", _DEAD, _DEAD_EXAMPLES, _add_dead, _dead),
}
