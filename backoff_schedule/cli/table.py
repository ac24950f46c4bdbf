"""The timetable as a person reads it: columns, a bar beside each row, and what fits."""

from __future__ import annotations

from ..timetable import MOST_ATTEMPTS
from .bars import bars, width_beside
from .readable import offset, readable_duration, wall_clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from ..timetable import Fits, Row

_HEADER = ("attempt", "delay", "lowest", "highest", "earliest", "middle", "latest")
_GAP = "  "


def table(rows: list[Row], start: datetime | None = None) -> Iterator[str]:
    """The lines of the table; with `start` the last three columns are instants."""
    lines = [_HEADER, *(_cells(row, start) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    elapsed_width = sum(widths[4:]) + 2 * len(_GAP)
    title = " elapsed in total " if start is None else f" next call at, UTC{offset(start)} "
    table_width = sum(widths) + 6 * len(_GAP)
    yield title.center(elapsed_width, "-").rjust(table_width)
    aligned = (_GAP.join(map(str.rjust, cells, widths)) for cells in lines)
    yield next(aligned)
    beside = bars(rows, width_beside(table_width + len(_GAP)))
    for line, bar in zip(aligned, beside, strict=True):
        yield f"{line}{_GAP}{bar}".rstrip()


def fits_line(within: float, fits: Fits) -> str:
    """What fits into a time: retries, and with the first call one more call."""
    name = readable_duration(within)
    if len(set(fits)) == 1:
        return f"{name} holds {_retries(fits.latest)}."
    return (
        f"{name} holds {_retries(fits.latest)} at the latest, {_brief(fits.middle)} "
        f"in the middle and {_brief(fits.earliest)} at the earliest."
    )


def _cells(row: Row, start: datetime | None) -> tuple[str, ...]:
    waits = [readable_duration(wait) for wait in (row.delay, row.lowest, row.highest)]
    in_all = (row.earliest, row.middle, row.latest)
    if start is None:
        return (str(row.attempt), *waits, *map(readable_duration, in_all))
    return (str(row.attempt), *waits, *(wall_clock(start, elapsed) for elapsed in in_all))


def _retries(fitting: float | None) -> str:
    if fitting is None:
        return f"more than {MOST_ATTEMPTS} retries"
    if fitting == float("inf"):
        return "retries without end"
    plural = "retry" if fitting == 1 else "retries"
    calls = "call" if fitting == 0 else "calls"
    return f"{fitting} {plural} ({fitting + 1} {calls} in all)"


def _brief(fitting: float | None) -> str:
    if fitting is None:
        return f"more than {MOST_ATTEMPTS}"
    return "retries without end" if fitting == float("inf") else f"{fitting} ({fitting + 1})"
