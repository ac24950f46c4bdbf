"""Instants as a database keeps them: microseconds since the epoch, in a whole number."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ..refusals import refusal

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND


def to_microseconds(moment: datetime, name: str = "now") -> int:
    """Microseconds since the epoch of an aware datetime, exactly.

    Raises `ValueError` for a naive one, `TypeError` for anything else.
    """
    if not isinstance(moment, datetime):
        raise TypeError(
            f"{refusal(name, moment, 'an aware datetime')}, not {type(moment).__name__}"
        )
    if moment.utcoffset() is None:
        raise ValueError(refusal(name, moment, "aware: it has no time zone"))
    return (moment - _EPOCH) // _MICROSECOND


def from_microseconds(microseconds: int) -> datetime:
    """The aware UTC datetime, exactly; past the year 9999, its last instant."""
    return _EPOCH + timedelta(microseconds=min(microseconds, _LAST))
