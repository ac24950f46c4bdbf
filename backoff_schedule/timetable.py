"""What a schedule adds up to: each wait, its band, and the time in all so far.

The time in all counts the waits alone; how long the calls themselves take is not known here.
"""

from __future__ import annotations

from typing import NamedTuple

from .durations import to_milliseconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .backoff import Backoff

# As many rows as a table shows, and as many retries as `retries_within` counts.
MOST_ATTEMPTS = 100_000
# Beyond every free attempt that a command line can name, and past every ceiling.
_FAR = 10**5000


class Row(NamedTuple):
    """One failure: the wait after it, and the time in all when that is over. In seconds."""

    attempt: int
    delay: float
    lowest: float
    highest: float
    earliest: float
    middle: float
    latest: float


class Fits(NamedTuple):
    """How many retries fit into a time: None for more than `MOST_ATTEMPTS`, inf if all do."""

    latest: float | None
    middle: float | None
    earliest: float | None


def rows_of(schedule: Backoff, attempts: int, *, drawn: bool = False) -> Iterator[Row]:
    """The first rows. `delay` is the exact one if `drawn`, else the curve before jitter."""
    shown = schedule if drawn else schedule.replace(jitter=0)
    earliest = middle = latest = 0.0
    for attempt in range(1, attempts + 1):
        lowest, highest = schedule.bounds(attempt)
        # Milliseconds, since three times 0.1 s is not 0.3 s in doubles.
        earliest += to_milliseconds(lowest)
        # Halved before they are added: the sum of two doubles can overflow.
        middle += to_milliseconds(lowest / 2) + to_milliseconds(highest / 2)
        latest += to_milliseconds(highest)
        in_all = map(_seconds, (earliest, middle, latest))
        yield Row(attempt, shown.delay(attempt), lowest, highest, *in_all)


def retries_within(schedule: Backoff, seconds: float) -> Fits:
    """How many retries start within so many seconds of waiting. Bounded, whatever is asked."""
    latest = middle = earliest = 0
    for row in rows_of(schedule, MOST_ATTEMPTS + 1):
        if row.earliest > seconds:
            break
        earliest += 1
        middle += row.middle <= seconds
        latest += row.latest <= seconds
    lowest, highest = schedule.bounds(_FAR)
    return Fits(_counted(latest, highest), _counted(middle, highest), _counted(earliest, lowest))


def _counted(retries: int, far_wait: float) -> float | None:
    if retries <= MOST_ATTEMPTS:
        return retries
    return float("inf") if far_wait == 0.0 else None


def _seconds(milliseconds: float) -> float:
    """Milliseconds as seconds, without the dust of adding them up."""
    if milliseconds < 2.0**43:
        return round(milliseconds * 1e3) / 1e6
    return milliseconds / 1e3
