from __future__ import annotations

import math
import re
import time
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backoff_schedule.instants import epoch_seconds, moved
from backoff_schedule.refusals import refusal

NEW_YORK = ZoneInfo("America/New_York")
ZONES = [ZoneInfo(name) for name in sorted(available_timezones())]
EASTMOST, WESTMOST = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))
LAST_IN_UTC = datetime.max.replace(tzinfo=UTC)


class NoOffset(tzinfo):
    """A time zone that does not know its offset, which makes a datetime naive."""

    def utcoffset(self, _: datetime | None, /) -> None:
        return None

    def dst(self, _: datetime | None, /) -> None:
        return None

    def tzname(self, _: datetime | None, /) -> None:
        return None


def test_epoch_seconds_move_by_plain_addition() -> None:
    assert moved(1_000.0, 0.25) == 1_000.25
    assert moved(5, 2.0) == 7.0
    assert type(moved(5, 2.0)) is float
    assert moved(-10.0, math.inf) == math.inf


@pytest.mark.parametrize(
    ("start", "seconds", "end"),
    [
        # Clocks go forward on 2026-03-08 at 02:00 and back on 2026-11-01 at 02:00.
        ("2026-03-08T01:30:00-05:00", 3600, "2026-03-08T03:30:00-04:00"),
        ("2026-03-07T12:00:00-05:00", 86400, "2026-03-08T13:00:00-04:00"),
        ("2026-11-01T01:30:00-04:00", 3600, "2026-11-01T01:30:00-05:00"),
        ("2026-10-31T12:00:00-04:00", 86400, "2026-11-01T11:00:00-05:00"),
    ],
)
def test_an_aware_datetime_moves_by_elapsed_time_across_a_clock_change(
    start: str, seconds: int, end: str
) -> None:
    now = datetime.fromisoformat(start).astimezone(NEW_YORK)
    later = moved(now, float(seconds))
    assert later.isoformat() == end
    assert later.tzinfo is NEW_YORK


@given(
    st.sampled_from(ZONES),
    st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)),
    st.integers(0, 10**16).map(lambda microseconds: microseconds / 10**6),
)
def test_in_every_zone_an_instant_moves_as_it_does_in_utc(
    zone: ZoneInfo, start: datetime, delay: float
) -> None:
    now = start.replace(tzinfo=UTC).astimezone(zone)
    later = moved(now, delay)
    assert later.tzinfo is zone
    assert later.astimezone(UTC) == start.replace(tzinfo=UTC) + timedelta(seconds=delay)


def test_a_year_of_hours_in_every_zone_of_the_system_is_a_year_of_hours_in_utc() -> None:
    start = datetime(2026, 1, 1, 0, 30, tzinfo=UTC)
    for zone in ZONES:
        now = start.astimezone(zone)
        for hours in range(1, 365 * 24, 163):
            later = moved(now, hours * 3600.0)
            assert later.tzinfo is zone
            assert later.astimezone(UTC) == start + timedelta(hours=hours)


@given(
    st.sampled_from(ZONES),
    st.sampled_from([datetime.min, datetime.max]),
    st.floats(-1e6, 1e6),
    st.floats(0, allow_nan=False),
)
def test_at_the_ends_of_time_an_instant_never_fails_and_never_goes_back(
    zone: ZoneInfo, end: datetime, offset: float, delay: float
) -> None:
    try:
        now = (end + timedelta(seconds=offset)).replace(tzinfo=zone)
    except OverflowError:
        now = end.replace(tzinfo=zone)
    later = moved(now, delay)
    assert later.tzinfo is zone
    assert later - timedelta(0) >= now


def test_what_lies_past_the_last_instant_of_a_zone_can_still_be_put_into_utc() -> None:
    for zone in ZONES:
        last = moved(datetime(2026, 1, 1, tzinfo=zone), math.inf)
        assert last.tzinfo is zone
        assert last.astimezone(UTC) == LAST_IN_UTC or last.replace(tzinfo=None) == datetime.max


def test_what_lies_past_the_last_instant_saturates_there() -> None:
    for delay in (7.6e11, 1e16, 1e300, math.inf):
        assert moved(datetime(2026, 1, 1, tzinfo=UTC), delay) == LAST_IN_UTC
        assert moved(datetime(2026, 1, 1), delay) == datetime.max
        east = moved(datetime(2026, 1, 1, tzinfo=EASTMOST), delay)
        assert east.replace(tzinfo=None) == datetime.max
        west = moved(datetime(2026, 1, 1, tzinfo=WESTMOST), delay)
        assert west == LAST_IN_UTC
        assert west.utcoffset() == timedelta(hours=-12)


def test_the_last_microsecond_is_reached_and_not_passed() -> None:
    now = LAST_IN_UTC - timedelta(seconds=1)
    assert moved(now, 0.999999) == LAST_IN_UTC - timedelta(microseconds=1)
    assert moved(now, 1.0) == LAST_IN_UTC
    assert moved(now, 1.000001) == LAST_IN_UTC


def test_an_instant_that_utc_cannot_hold_moves_by_its_own_clock() -> None:
    early = datetime.min.replace(tzinfo=EASTMOST)
    assert moved(early, 3600.0) == early + timedelta(hours=1)
    late = datetime(9999, 12, 31, 20, tzinfo=WESTMOST)
    assert moved(late, 3600.0) == late + timedelta(hours=1)
    assert moved(late, 86400.0).replace(tzinfo=None) == datetime.max


def test_the_zone_of_the_process_does_not_shorten_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(9999, 12, 31, 8, tzinfo=timezone(timedelta(hours=-2)))
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "EAST-14")
        time.tzset()
        later = moved(now, 86400.0)
    time.tzset()
    assert later == LAST_IN_UTC
    assert later.utcoffset() == timedelta(hours=-2)


@pytest.mark.parametrize("zone", [None, NoOffset()])
def test_a_naive_datetime_moves_by_its_own_clock_and_stays_naive(zone: tzinfo | None) -> None:
    now = datetime(2026, 3, 8, 1, 30, tzinfo=zone)
    assert moved(now, 3600.0) == datetime(2026, 3, 8, 2, 30, tzinfo=zone)
    assert moved(now, 3600.0).tzinfo is zone


@pytest.mark.parametrize("now", [math.nan, math.inf, -math.inf, 10**400])
def test_a_now_that_is_not_finite_is_refused(now: float) -> None:
    for asked in (epoch_seconds, lambda value: moved(value, 1.0)):
        message = refusal("now", now, "finite epoch seconds")
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            asked(now)


@pytest.mark.parametrize("now", ["2026-01-01", True, None, date(2026, 1, 1), timedelta(1)])
def test_a_now_of_another_type_is_refused(now: Any) -> None:
    for asked in (epoch_seconds, lambda value: moved(value, 1.0)):
        rule = "epoch seconds or a datetime"
        message = f"{refusal('now', now, rule)}, not {type(now).__name__}"
        with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
            asked(now)


def test_an_aware_datetime_is_its_epoch_seconds() -> None:
    assert epoch_seconds(datetime(2026, 7, 24, 14, tzinfo=timezone(timedelta(hours=2)))) == (
        1784894400.0
    )
    assert epoch_seconds(7) == 7.0


@pytest.mark.parametrize("zone", [None, NoOffset()])
def test_a_naive_datetime_has_no_epoch_seconds(zone: tzinfo | None) -> None:
    now = datetime(2026, 1, 1, tzinfo=zone)
    message = refusal("now", now, "aware, or epoch seconds: it has no time zone")
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        epoch_seconds(now)
