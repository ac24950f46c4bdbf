"""What a schedule adds up to."""

import math
from itertools import pairwise
from typing import Literal

import pytest

from backoff_schedule import SeededRandom, create_backoff
from backoff_schedule.timetable import Fits, Row, retries_within, rows_of

INF = math.inf


def test_a_row_holds_the_wait_its_band_and_the_time_in_all() -> None:
    schedule = create_backoff(base="1m", jitter=0.2)
    assert list(rows_of(schedule, 2)) == [
        Row(1, 60.0, 48.0, 72.0, 48.0, 60.0, 72.0),
        Row(2, 120.0, 96.0, 144.0, 144.0, 180.0, 216.0),
    ]


def test_a_drawn_delay_is_the_exact_one() -> None:
    polling = create_backoff(base="15 minutes", max="1 day", jitter=0.1)
    rows = rows_of(polling.replace(random=SeededRandom("feeds")), 4, drawn=True)
    assert [row.delay for row in rows] == [951.542, 1655.825, 3624.786, 7326.701]


def test_adding_up_leaves_no_dust() -> None:
    tenth = create_backoff(base="100ms", growth="constant")
    assert [row.latest for row in rows_of(tenth, 3)] == [0.1, 0.2, 0.3]
    assert retries_within(tenth, 0.3) == Fits(3, 3, 3)


def test_what_overflows_is_infinite_and_nothing_is_nan() -> None:
    rows = list(rows_of(create_backoff(base=1e304, factor=1e4, jitter="full"), 5))
    assert [row.latest for row in rows][1:] == [INF] * 4
    assert [row.earliest for row in rows] == [0.0] * 5
    assert not any(math.isnan(value) for row in rows for value in row)


@pytest.mark.parametrize(
    ("options", "seconds", "fits"),
    [
        ({"base": 1}, 0.0, Fits(0, 0, 0)),
        ({"base": 1}, 7.0, Fits(3, 3, 3)),
        ({"base": 1}, 6.999, Fits(2, 2, 2)),
        ({"base": 10, "growth": "constant", "jitter": 0.5}, 60.0, Fits(4, 6, 12)),
        ({"base": 0}, 0.0, Fits(INF, INF, INF)),
        ({"base": 1, "jitter": "full"}, 3.0, Fits(2, 2, INF)),
        ({"base": 1, "growth": "constant"}, 100_000.0, Fits(100_000, 100_000, 100_000)),
        ({"base": 1, "growth": "constant"}, 100_001.0, Fits(None, None, None)),
        ({"base": 1, "free": 10**4000}, 1.0, Fits(None, None, None)),
        ({"steps": [5, 0]}, 4.0, Fits(0, 0, 0)),
        ({"steps": [5, 0]}, 5.0, Fits(INF, INF, INF)),
    ],
)
def test_as_many_retries_fit_as_their_waits_do(
    options: dict[str, object], seconds: float, fits: Fits
) -> None:
    assert retries_within(create_backoff(base=1).replace(**options), seconds) == fits


@pytest.mark.parametrize("base", [0.1, 1, 86_400, 1e9])
@pytest.mark.parametrize("factor", [1, 1.1, 2, 1e6])
@pytest.mark.parametrize("jitter", [0, 0.2, 1, "full", (0.5, 1.0), (1.0, 3.0)])
def test_the_edges_are_in_order_and_only_grow(
    base: float, factor: float, jitter: float | Literal["full"] | tuple[float, float]
) -> None:
    rows = list(rows_of(create_backoff(base=base, factor=factor, jitter=jitter, free=1), 100))
    for row in rows:
        assert row.lowest <= row.highest
        assert row.earliest <= row.middle <= row.latest
    for before, after in pairwise(rows):
        assert before.earliest <= after.earliest
        assert before.middle <= after.middle
        assert before.latest <= after.latest
