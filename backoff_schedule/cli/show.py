"""`backoff-schedule show`: the timetable of a schedule, as a table, JSON or CSV."""

from __future__ import annotations

import json
from typing import NamedTuple

from ..durations import to_seconds
from ..instants import moved
from ..refusals import refusal
from ..timetable import MOST_ATTEMPTS, Row, retries_within, rows_of
from .parser import Parser
from .readable import aware_instant
from .schedule_options import add_schedule_options, schedule_from, whole_number
from .table import fits_line, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from datetime import datetime
    from typing import Any

    from ..schedule import Backoff

_DESCRIPTION = """\
Print the timetable of a schedule. A row tells what follows one more failure:

  delay                     the wait before jitter; with --seed or --key the exact one
  lowest, highest           what jitter can make of it
  earliest, middle, latest  all waits so far, if each was the lowest, in the middle of its
                            band, or the highest; the calls' own time is not counted

In a terminal a bar stands beside each row: solid up to the lowest, shaded to the highest.
"""

_EXAMPLES = """\
examples:
  backoff-schedule show --base 1m --max 6h --jitter 0.2
  backoff-schedule show --steps 15s,1m,5m --start 2026-01-01T09:00Z
  backoff-schedule show --preset svix --fits 24h
  backoff-schedule show --preset feed-poll --jitter full --key feed-42 --json
"""

_ATTEMPTS_RULE = f"a whole number from 1 to {MOST_ATTEMPTS}"


class _Request(NamedTuple):
    """What was asked for, checked."""

    schedule: Backoff
    seed: str | None
    key: str | None
    attempts: int
    start: datetime | None
    within: float | None

    def rows(self) -> Iterator[Row]:
        drawn = self.seed is not None or self.key is not None
        return rows_of(self.schedule, self.attempts, drawn=drawn)


def run(arguments: list[str]) -> int:
    parser = _parser()
    options = parser.read(arguments)
    try:
        request = _request(options)
    except (TypeError, ValueError) as refused:
        parser.error(str(refused))
    if options.json:
        print(json.dumps(_document(request), indent=2, allow_nan=False))
    elif options.csv:
        _print_csv(request)
    else:
        _print_table(request)
    return 0


def _parser() -> Parser:
    parser = Parser("show", "[options]", _DESCRIPTION, _EXAMPLES)
    add_schedule_options(parser)
    group = parser.add_argument_group("what to show")
    group.add_argument("--attempts", metavar="N", default="10", help="how many rows, 10 by default")
    group.add_argument(
        "--start",
        metavar="INSTANT",
        help="the instant of the first failure, such as 2026-01-01T09:00Z; the time in all is "
        "shown as instants in its zone",
    )
    group.add_argument("--fits", metavar="TIME", help="say how many retries fit into this time")
    group.add_argument(
        "--json", action="store_true", help="one JSON document: seconds, and null for ever"
    )
    group.add_argument(
        "--csv", action="store_true", help="a header and rows: seconds, and inf for ever"
    )
    return parser


def _request(options: Namespace) -> _Request:
    schedule = schedule_from(options)
    attempts = whole_number(options.attempts, "attempts", _ATTEMPTS_RULE)
    if not 1 <= attempts <= MOST_ATTEMPTS:
        raise ValueError(refusal("attempts", attempts, _ATTEMPTS_RULE))
    if options.json and options.csv:
        raise ValueError("--json and --csv do not go together: choose one form")
    if options.csv and options.fits is not None:
        raise ValueError("--fits does not go with --csv, which holds rows only; --json takes both")
    return _Request(
        schedule,
        options.seed,
        options.key,
        attempts,
        None if options.start is None else aware_instant(options.start, "start"),
        None if options.fits is None else to_seconds(options.fits, "fits"),
    )


def _print_table(request: _Request) -> None:
    print(_caption(request))
    print()
    for line in table(list(request.rows()), request.start):
        print(line)
    if request.within is not None:
        print()
        print(fits_line(request.within, retries_within(request.schedule, request.within)))


def _caption(request: _Request) -> str:
    """The schedule as Python writes it, in ASCII, which every stdout can hold."""
    source = "" if request.seed is None else f", random=SeededRandom({request.seed!a})"
    return repr(request.schedule).removesuffix(")") + f"{source})"


def _print_csv(request: _Request) -> None:
    header = list(Row._fields)
    if request.start is not None:
        header += [f"{name}_at" for name in Row._fields[4:]]
    print(",".join(header))
    for row in request.rows():
        instants = (value or "never" for value in _instants(row, request.start).values())
        print(",".join((*map(str, row), *instants)))


def _document(request: _Request) -> dict[str, Any]:
    document: dict[str, Any] = {"schedule": request.schedule.options}
    if request.seed is not None:
        document["seed"] = request.seed
    if request.key is not None:
        document["key"] = request.key
    document["rows"] = [
        {name: _finite(value) for name, value in row._asdict().items()}
        | _instants(row, request.start)
        for row in request.rows()
    ]
    if request.within is not None:
        fits = retries_within(request.schedule, request.within)._asdict()
        retries = {name: _finite(value) for name, value in fits.items()}
        document["fits"] = {"within": request.within, "retries": retries}
    return document


def _instants(row: Row, start: datetime | None) -> dict[str, str | None]:
    """The instants at which the wait is over, as ISO text; None for one that never comes."""
    if start is None:
        return {}
    return {
        f"{name}_at": None if elapsed == float("inf") else moved(start, elapsed).isoformat()
        for name, elapsed in zip(Row._fields[4:], row[4:], strict=True)
    }


def _finite(value: float | None) -> float | None:
    return None if value == float("inf") else value
