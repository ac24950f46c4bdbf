"""What a picture says in words: labels, what a schedule is, and the text for who cannot see it."""

from __future__ import annotations

from collections.abc import Mapping

from ..backoff import Backoff
from ..refusals import refusal
from ..timetable import rows_of
from .time_axis import tick_label

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from ..timetable import Row

    Schedules: TypeAlias = Backoff | Mapping[str, Backoff]

# A picture is some hundred dots wide; more than this many attempts would not be told apart.
MOST_ATTEMPTS = 1000
_LONGEST_LABEL = 60


def checked_schedules(schedules: Schedules) -> dict[str, Backoff]:
    """The schedules by label; one without a mapping has what it is made of for a label."""
    if isinstance(schedules, Backoff):
        return {summary(schedules): schedules}
    rule = "a schedule, or a mapping of labels to schedules"
    if not isinstance(schedules, Mapping):
        raise TypeError(f"{refusal('schedules', schedules, rule)}, not {type(schedules).__name__}")
    if not schedules:
        raise ValueError(refusal("schedules", schedules, f"{rule}, at least one"))
    for label, schedule in schedules.items():
        if not isinstance(label, str):
            raise TypeError(f"{refusal('label', label, 'text')}, not {type(label).__name__}")
        if not isinstance(schedule, Backoff):
            name = f"schedules[{label!r}]"
            raise TypeError(
                f"{refusal(name, schedule, 'a schedule')}, not {type(schedule).__name__}"
            )
    return dict(schedules)


def checked_attempts(attempts: int) -> int:
    rule = f"a whole number from 1 to {MOST_ATTEMPTS} for a picture"
    if not isinstance(attempts, int) or isinstance(attempts, bool):
        raise TypeError(f"{refusal('attempts', attempts, rule)}, not {type(attempts).__name__}")
    if not 1 <= attempts <= MOST_ATTEMPTS:
        raise ValueError(refusal("attempts", attempts, rule))
    return int(attempts)


def printable(label: str) -> str:
    """A label on one line of a bearable length, with nothing in it that SVG cannot hold."""
    shown = "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in label
    )
    return shown if len(shown) <= _LONGEST_LABEL else f"{shown[: _LONGEST_LABEL - 1]}…"


def summary(schedule: Backoff) -> str:
    """What a schedule is made of: `base 1m, max 6h, jitter 0.2`.

    Examples:
        >>> from backoff_schedule import presets
        >>> summary(presets.POSTFLEET)
        'steps 1m 5m 30m 2h 12h, jitter 0.2'
    """
    try:
        options = schedule.options
    except TypeError:
        return "computed"
    parts = []
    if "steps" in options:
        parts.append("steps " + " ".join(map(wait_text, options["steps"])))
    else:
        parts.append(f"base {wait_text(options['base'])}")
        if options["growth"] != "exponential":
            parts.append(options["growth"])
        elif options["factor"] != 2.0:
            parts.append(f"factor {options['factor']:g}")
        if options["max"] is not None:
            parts.append(f"max {wait_text(options['max'])}")
    if options["free"]:
        parts.append(f"free {options['free']}")
    if options["jitter"] != 0.0:
        jitter = options["jitter"]
        parts.append(f"jitter {' to '.join(map(str, jitter)) if type(jitter) is list else jitter}")
    return ", ".join(parts)


def alt_text(schedules: Schedules, *, attempts: int = 12) -> str:
    """The picture that `plot` makes of the same arguments, as one paragraph of text.

    Raises as `plot` does.

    Examples:
        >>> from backoff_schedule import create_backoff
        >>> told = alt_text(create_backoff(base="1m", max="6h", jitter=0.2), attempts=3)
        >>> told.partition("; ")[2]
        'all waits take 5m 36s to 8m 24s.'
    """
    attempts = checked_attempts(attempts)
    failures = "1 failure" if attempts == 1 else f"{attempts} failures in a row"
    sentences = [f"Two charts over {failures}: the delay after each, and all waits so far."]
    for label, schedule in checked_schedules(schedules).items():
        rows = list(rows_of(schedule, attempts))
        sentences.append(f"{printable(label)}: {_told(rows[0], rows[-1])}")
    return " ".join(sentences)


def _told(first: Row, last: Row) -> str:
    start = _band(first.lowest, first.highest)
    if first == last:
        return f"the delay is {start}."
    end = _band(last.lowest, last.highest)
    in_all = _band(last.earliest, last.latest)
    return (
        f"the delay is {start} after failure 1 and {end} after failure {last.attempt}; "
        f"all waits take {in_all}."
    )


def _band(lowest: float, highest: float) -> str:
    if lowest == highest:
        return wait_text(lowest)
    return f"{wait_text(lowest)} to {wait_text(highest)}"


def wait_text(seconds: float) -> str:
    """A wait, in whole milliseconds from one of them on; inf is `for ever`."""
    if seconds == float("inf"):
        return "for ever"
    return tick_label(seconds if seconds < 0.001 else round(seconds, 3))
