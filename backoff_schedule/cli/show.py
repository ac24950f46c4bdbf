"""`backoff-schedule show`: the timetable of a schedule, as a table, JSON, CSV or a picture."""

from __future__ import annotations

import json
import sys
from typing import NamedTuple

from ..durations import to_seconds
from ..instants import moved
from ..refusals import refusal
from ..timetable import MOST_ATTEMPTS, Row, retries_within, rows_of
from .labelled import labelled_schedules
from .parser import Parser
from .picture import check_picture, write_picture
from .readable import aware_instant
from .schedule_options import OPTIONS, add_schedule_options, schedule_from, whole_number
from .table import fits_line, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from datetime import datetime
    from typing import Any

    from ..backoff import Backoff

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
  backoff-schedule show --base 1m --max 6h --plot delays.svg
  backoff-schedule show --schedule preset=svix --schedule base=1m,max=6h,label=ours \\
    --plot both.png
"""

_ATTEMPTS_RULE = f"a whole number from 1 to {MOST_ATTEMPTS}"


class _Request(NamedTuple):
    """What was asked for of one schedule, checked."""

    label: str | None
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
        requests = _requests(options)
        if options.plot is not None:
            check_picture(options.plot, requests[0].attempts)
    except (TypeError, ValueError) as refused:
        parser.error(str(refused))
    except ModuleNotFoundError as missing:
        print(f"{parser.prog}: {missing}", file=sys.stderr)
        return 1
    if options.plot is not None:
        _write_picture(requests, options)
    if options.json:
        print(json.dumps(_document(requests[0]), indent=2, allow_nan=False))
    elif options.csv:
        _print_csv(requests[0])
    else:
        _print_tables(requests)
    return 0


def _parser() -> Parser:
    parser = Parser("show", "[options]", _DESCRIPTION, _EXAMPLES)
    add_schedule_options(parser)
    group = parser.add_argument_group("what to show")
    group.add_argument(
        "--schedule",
        metavar="NAME=VALUE,...",
        action="append",
        help="one of several schedules, a table for each: the names are those of the options above "
        "and label, as in steps=15s/1m/5m,jitter=0.8/1.0,label=ours",
    )
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
    group.add_argument(
        "--plot",
        metavar="FILE",
        help="write a picture too: FILE ends in .svg or .png; needs the extra `plot`",
    )
    group.add_argument("--dark", action="store_true", help="draw it for a dark page")
    return parser


def _requests(options: Namespace) -> list[_Request]:
    labelled: dict[str | None, Backoff] = {}
    if options.schedule is None:
        labelled[None] = schedule_from(options)
    else:
        _check_goes_with_schedule(options)
        labelled.update(labelled_schedules(options.schedule))
    attempts = whole_number(options.attempts, "attempts", _ATTEMPTS_RULE)
    if not 1 <= attempts <= MOST_ATTEMPTS:
        raise ValueError(refusal("attempts", attempts, _ATTEMPTS_RULE))
    if options.json and options.csv:
        raise ValueError("--json and --csv do not go together: choose one form")
    if options.csv and options.fits is not None:
        raise ValueError("--fits does not go with --csv, which holds rows only; --json takes both")
    if options.dark and options.plot is None:
        raise ValueError("--dark goes with --plot: it says how the picture looks")
    start = None if options.start is None else aware_instant(options.start, "start")
    within = None if options.fits is None else to_seconds(options.fits, "fits")
    return [
        _Request(label, schedule, options.seed, options.key, attempts, start, within)
        for label, schedule in labelled.items()
    ]


def _check_goes_with_schedule(options: Namespace) -> None:
    for name in (*OPTIONS, "preset", "seed", "key"):
        if getattr(options, name) is not None:
            raise ValueError(
                f"--{name} does not go with --schedule, which says all of its schedule itself"
            )
    if options.json or options.csv:
        raise ValueError("--json and --csv show one schedule; they do not go with --schedule")


def _write_picture(requests: list[_Request], options: Namespace) -> None:
    labelled = {
        request.label: request.schedule for request in requests if request.label is not None
    }
    schedules = labelled or requests[0].schedule
    write_picture(options.plot, schedules, requests[0].attempts, dark=options.dark)


def _print_tables(requests: list[_Request]) -> None:
    for number, request in enumerate(requests):
        if number:
            print()
        _print_table(request)


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
    label = "" if request.label is None else f"{request.label!a}: "
    source = "" if request.seed is None else f", random=SeededRandom({request.seed!a})"
    return f"{label}{repr(request.schedule).removesuffix(')')}{source})"


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
