"""Durations and instants as a person reads and writes them."""

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest

from backoff_schedule.cli.readable import (
    aware_instant,
    readable_duration,
    readable_instant,
    wall_clock,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0s"),
        (0.0005, "0.5ms"),
        (0.0015, "2ms"),
        (951.542, "15m 51.542s"),
        (2.5599999, "2.56s"),
        (59.9999, "1m"),
        (86_400.0, "1d"),
        (86_399_999_913_600.0, "999999999d"),
        (1e15, "1.16e+10d"),
        (1.7e308, "1.97e+303d"),
        (math.inf, "for ever"),
    ],
)
def test_a_duration_is_shown_in_whole_milliseconds(seconds: float, text: str) -> None:
    assert readable_duration(seconds) == text


def test_an_instant_stays_in_its_zone_and_saturates() -> None:
    start = datetime(2026, 1, 1, 9, tzinfo=timezone(timedelta(hours=2)))
    assert readable_instant(start, 90.0) == "2026-01-01T09:01:30+02:00"
    assert readable_instant(start, 0.25) == "2026-01-01T09:00:00.250+02:00"
    assert readable_instant(start, 0.9996) == "2026-01-01T09:00:01+02:00"
    assert readable_instant(start, 1e300).startswith("9999-12-31T")
    assert readable_instant(start, math.inf) == "never"


def test_an_instant_under_a_heading_leaves_its_offset_to_it() -> None:
    start = datetime(2026, 1, 1, 9, tzinfo=timezone(timedelta(hours=2)))
    assert wall_clock(start, 90.0) == "2026-01-01 09:01:30"
    assert wall_clock(start, 0.25) == "2026-01-01 09:00:00.250"
    assert wall_clock(start, math.inf) == "never"


def test_an_instant_is_read_from_iso_text() -> None:
    assert aware_instant("2026-01-01T09:00Z", "start") == datetime(2026, 1, 1, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("soon", "an ISO date and time with a zone, such as 2026-01-01T09:00Z"),
        ("", "an ISO date and time with a zone, such as 2026-01-01T09:00Z"),
        ("2026-02-30T09:00Z", "an ISO date and time with a zone, such as 2026-01-01T09:00Z"),
        ("2026-05-01", "in a time zone, such as 2026-05-01T00:00Z"),
        ("2026-05-01T09:30", "in a time zone, such as 2026-05-01T09:30Z"),
    ],
)
def test_an_instant_without_a_zone_is_refused(text: str, rule: str) -> None:
    with pytest.raises(ValueError, match="needs to be") as refused:
        aware_instant(text, "start")
    assert str(refused.value) == f"start ({text!r}) needs to be {rule}"
