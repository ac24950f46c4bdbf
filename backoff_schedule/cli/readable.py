"""Durations and instants as a person reads them, and instants as a person writes them."""

from __future__ import annotations

from datetime import datetime, timedelta

from ..durations import format_duration
from ..instants import moved
from ..refusals import refusal

_LONGEST_SPELLED_OUT = timedelta.max.total_seconds()


def readable_duration(seconds: float) -> str:
    """Seconds as `format_duration` shows them, in whole milliseconds.

    Below a millisecond nothing is rounded, since nothing would be left. What is longer than
    any timedelta, 2.7 million years, is a power of ten of days, and inf is `for ever`.
    """
    if seconds == float("inf"):
        return "for ever"
    if seconds > _LONGEST_SPELLED_OUT:
        return f"{seconds / 86_400:.3g}d"
    return format_duration(seconds if seconds < 0.001 else round(seconds, 3))


def readable_instant(start: datetime, elapsed: float) -> str:
    """The instant after so many seconds, as ISO text in whole milliseconds; inf is `never`."""
    if elapsed == float("inf"):
        return "never"
    instant = moved(start, round(elapsed, 3))
    return instant.isoformat(timespec="milliseconds" if instant.microsecond else "seconds")


def wall_clock(start: datetime, elapsed: float) -> str:
    """The same instant for a column whose heading tells the `offset` of its clock."""
    return readable_instant(start, elapsed).removesuffix(offset(start)).replace("T", " ")


def offset(start: datetime) -> str:
    """How far the clock of an aware instant is from UTC: `+00:00`."""
    return start.isoformat()[len(start.replace(tzinfo=None).isoformat()) :]


def aware_instant(text: str, name: str) -> datetime:
    """The instant that ISO text names. Raises `ValueError` for other text and without a zone."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        rule = "an ISO date and time with a zone, such as 2026-01-01T09:00Z"
        raise ValueError(refusal(name, text, rule)) from None
    if instant.utcoffset() is None:
        rule = f"in a time zone, such as {instant.isoformat(timespec='minutes')}Z"
        raise ValueError(refusal(name, text, rule))
    return instant
