"""What `now` may be, and how an instant moves by elapsed time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from math import isfinite

from .refusals import refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    Instant = TypeVar("Instant", float, datetime)


def epoch_seconds(now: float | datetime, name: str = "now") -> float:
    """`now` as epoch seconds: a finite number, or an aware datetime.

    Raises `ValueError` for a naive datetime, NaN or infinity; `TypeError` for another type.
    """
    if type(now) is float and isfinite(now):
        return now
    if isinstance(now, datetime):
        if now.utcoffset() is None:
            raise ValueError(refusal(name, now, "aware, or epoch seconds: it has no time zone"))
        return now.timestamp()
    return _finite(now, name)


def moved(now: Instant, delay: float) -> Instant:
    """`now` after `delay` seconds have passed, in the kind that `now` has.

    See `Backoff.at`, whose contract this is.
    """
    if not isinstance(now, datetime):
        return _finite(now, "now") + delay
    try:
        elapsed = timedelta(seconds=delay)
    except OverflowError:
        elapsed = timedelta.max
    if now.utcoffset() is None:
        return _moved_plainly(now, elapsed)
    try:
        in_utc = now.astimezone(UTC)
    except OverflowError:
        # Within hours of year 1 or 9999 a zone reaches instants that UTC does not.
        return _moved_plainly(now, elapsed)
    try:
        return (in_utc + elapsed).astimezone(now.tzinfo)
    except OverflowError:
        return _last_instant(now.tzinfo)


def _moved_plainly(now: datetime, elapsed: timedelta) -> datetime:
    try:
        return now + elapsed
    except OverflowError:
        return datetime.max.replace(tzinfo=now.tzinfo)


def _last_instant(zone: tzinfo | None) -> datetime:
    """The last instant that both `zone` and UTC can express, so that it can be stored."""
    try:
        return datetime.max.replace(tzinfo=UTC).astimezone(zone)
    except OverflowError:
        return datetime.max.replace(tzinfo=zone)


def _finite(now: float, name: str) -> float:
    if not isinstance(now, (int, float)) or isinstance(now, bool):
        rule = "epoch seconds or a datetime"
        raise TypeError(f"{refusal(name, now, rule)}, not {type(now).__name__}")
    try:
        seconds = float(now)
    except OverflowError:
        raise ValueError(refusal(name, now, "finite epoch seconds")) from None
    if not float("-inf") < seconds < float("inf"):
        raise ValueError(refusal(name, now, "finite epoch seconds"))
    return seconds
