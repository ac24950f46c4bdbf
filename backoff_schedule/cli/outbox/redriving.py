"""The verbs that move many rows: redrive, purge."""

from __future__ import annotations

import sys
import time

from ...durations import to_seconds
from ...refusals import refusal
from ..readable import aware_instant
from ..schedule_options import whole_number
from .columns import as_json
from .looking import add_chosen, add_json
from .verb import Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from ...delivery import Outbox
    from ..parser import Parser

# How often a long piece of work says how far it is, in seconds.
_EVERY = 1.0


def _add_redrive(parser: Parser) -> None:
    add_chosen(parser)
    group = parser.add_argument_group("how many of them")
    group.add_argument("--id", metavar="ID", action="append", help="these rows; may be repeated")
    group.add_argument("--limit", metavar="N", help="at most so many, 1 by default")
    group.add_argument("--all", action="store_true", help="all of them")
    group = parser.add_argument_group("how")
    group.add_argument("--rate", metavar="N", help="so many a second of one endpoint become due")
    group.add_argument("--ttl", metavar="TIME", help="a new one; with it expired rows move too")
    group.add_argument(
        "--fresh-event-id", action="store_true", help="under new ids, which receivers take for new"
    )
    group.add_argument("--dry-run", action="store_true", help="move nothing, and count")
    add_json(parser)


def _redrive(outbox: Outbox, options: Namespace) -> int:
    if options.all and options.limit is not None:
        raise ValueError("--all and --limit do not go together")
    ids = None
    if options.id is not None:
        ids = [whole_number(each, "--id", "the id of a row") for each in options.id]
    limit: int | None = 1
    if options.all:
        limit = None
    elif options.limit is not None:
        limit = whole_number(options.limit, "--limit", "a whole number, 1 or more")
    moved = outbox.redrive(
        ids,
        endpoint=options.endpoint,
        since=None if options.since is None else aware_instant(options.since, "--since"),
        error=options.error,
        limit=limit,
        rate=None if options.rate is None else _rate(options.rate),
        ttl=None if options.ttl is None else to_seconds(options.ttl, "--ttl"),
        fresh_event_id=options.fresh_event_id,
        dry_run=options.dry_run,
        progress=_progress("moved"),
    )
    if options.json:
        print(as_json({"dry_run": options.dry_run, "count": len(moved), "ids": moved}))
    else:
        done = "would be moved" if options.dry_run else "moved"
        print(f"{len(moved)} {'row' if len(moved) == 1 else 'rows'} {done}")
    # Rows that were named and not found are an answer of no.
    return 1 if ids is not None and len(moved) < len(set(ids)) else 0


def _rate(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(refusal("--rate", text, "rows a second, above 0")) from None


def _add_purge(parser: Parser) -> None:
    parser.add_argument("--older-than", metavar="TIME", help="finished so long ago, such as 30d")
    parser.add_argument(
        "--states",
        metavar="NAME,...",
        default="delivered,expired",
        help="delivered,expired by default; dead and failed if they are named",
    )
    add_json(parser)


def _purge(outbox: Outbox, options: Namespace) -> int:
    if options.older_than is None:
        raise ValueError("which rows? Give --older-than TIME, such as --older-than 30d")
    dropped = outbox.purge(
        to_seconds(options.older_than, "--older-than"),
        states=options.states.split(","),
        progress=_progress("dropped"),
    )
    if options.json:
        print(as_json({"count": dropped}))
    else:
        print(f"{dropped} {'row' if dropped == 1 else 'rows'} dropped")
    return 0


def _progress(done: str) -> Callable[[int], None]:
    """Say on stderr how far it is, once a second."""
    told = time.monotonic()

    def tell(count: int) -> None:
        nonlocal told
        if time.monotonic() - told >= _EVERY:
            told = time.monotonic()
            print(f"{count} rows {done} so far", file=sys.stderr, flush=True)

    return tell


_REDRIVE = """\
Give dead and failed rows a new budget, the first to finish first: one, unless --limit, --id
or --all says otherwise. Exits with 1 if a row that --id names is none that can be moved.
"""
_REDRIVE_EXAMPLES = """\
examples:
  backoff-schedule outbox --db app.db redrive --endpoint acme
  backoff-schedule outbox --db app.db redrive --endpoint acme --all --dry-run
  backoff-schedule outbox --db app.db redrive --endpoint acme --all --rate 10
"""
_PURGE = """\
Drop rows that were finished long ago, with their history. An event is recognised as a
duplicate for as long as its row is kept.
"""
_PURGE_EXAMPLES = """\
examples:
  backoff-schedule outbox --db app.db purge --older-than 30d
"""

VERBS = {
    "redrive": Verb("[options]", _REDRIVE, _REDRIVE_EXAMPLES, _add_redrive, _redrive),
    "purge": Verb("--older-than TIME [options]", _PURGE, _PURGE_EXAMPLES, _add_purge, _purge),
}
