"""The timetable as a person reads it."""

import math
from datetime import UTC, datetime

import pytest

from backoff_schedule import create_backoff
from backoff_schedule.cli.table import fits_line, table
from backoff_schedule.timetable import Fits, rows_of


def test_the_columns_are_aligned() -> None:
    schedule = create_backoff(base="30s", jitter=0.5)
    assert list(table(list(rows_of(schedule, 2)))) == [
        "                                 --- elapsed in total ---",
        "attempt  delay  lowest  highest  earliest  middle  latest",
        "      1    30s     15s      45s       15s     30s     45s",
        "      2     1m     30s   1m 30s       45s  1m 30s  2m 15s",
    ]


def test_with_a_start_the_time_in_all_is_an_instant() -> None:
    schedule = create_backoff(base="30s", max="1m")
    lines = list(table(list(rows_of(schedule, 1)), datetime(2026, 1, 1, tzinfo=UTC)))
    at = "2026-01-01 00:00:30"
    assert lines[0].strip("- ") == "next call at, UTC+00:00"
    assert lines[2] == f"      1    30s     30s      30s  {at}  {at}  {at}"


FIRST = "1 retry (2 calls in all) at the latest"
LAST = "retries without end at the earliest"


@pytest.mark.parametrize(
    ("fits", "line"),
    [
        (Fits(0, 0, 0), "1d holds 0 retries (1 call in all)."),
        (Fits(1, 1, 1), "1d holds 1 retry (2 calls in all)."),
        (Fits(None, None, None), "1d holds more than 100000 retries."),
        (Fits(math.inf, math.inf, math.inf), "1d holds retries without end."),
        (
            Fits(1, 2, 3),
            f"1d holds {FIRST}, 2 (3) in the middle and 3 (4) at the earliest.",
        ),
        (
            Fits(1, None, math.inf),
            f"1d holds {FIRST}, more than 100000 in the middle and {LAST}.",
        ),
    ],
)
def test_what_fits_is_told_in_retries_and_calls(fits: Fits, line: str) -> None:
    assert fits_line(86_400.0, fits) == line
