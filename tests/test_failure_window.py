from __future__ import annotations

import json
import math
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backoff_schedule import FailureWindow

MINUTE = FailureWindow("1 minute", buckets=6)


def filled(*results: tuple[float, bool]) -> Any:
    state: Any = ()
    for moment, failed in results:
        state = MINUTE.add(state, moment, failed)
    return state


def test_results_are_counted_by_bucket() -> None:
    state = filled((0.0, True), (9.9, False), (10.0, True))
    assert state == ((0, 2, 1), (1, 1, 1))
    assert MINUTE.totals(state, 10.0) == (3, 2)


@pytest.mark.parametrize(
    ("moment", "totals"), [(59.9, (2, 1)), (60.0, (0, 0)), (1e9, (0, 0)), (0.0, (2, 1))]
)
def test_a_result_counts_until_its_bucket_leaves_the_window(
    moment: float, totals: tuple[int, int]
) -> None:
    assert MINUTE.totals(filled((0.0, True), (9.0, False)), moment) == totals


@given(st.floats(0, 1e6), st.floats(0, 120))
def test_a_result_counts_for_at_least_a_bucket_less_than_the_window_and_at_most_for_it(
    start: float, later: float
) -> None:
    attempts, _ = MINUTE.totals(filled((start, True)), start + later)
    if later < 50.0 - 1e-6:
        assert attempts == 1
    if later > 60.0 + 1e-6:
        assert attempts == 0


def test_what_has_left_the_window_is_dropped_at_the_next_result() -> None:
    state = filled(*((moment, True) for moment in range(0, 1000, 10)))
    assert len(state) == 6
    assert MINUTE.totals(state, 990.0) == (6, 6)


def test_a_result_earlier_than_the_newest_bucket_counts_there() -> None:
    assert filled((100.0, True), (5.0, False)) == ((10, 2, 1),)


def test_a_state_from_json_goes_on() -> None:
    state = json.loads(json.dumps(filled((0.0, True), (10.0, False))))
    assert MINUTE.add(state, 10.0, failed=True) == ((0, 1, 1), (1, 2, 1))
    assert MINUTE.totals(state, 10.0) == (2, 1)


def test_the_auto_disable_of_postel_is_a_window() -> None:
    window = FailureWindow("1h")
    state: Any = ()
    for number in range(20):
        state = window.add(state, number * 60.0, failed=number >= 2)
    attempts, failures = window.totals(state, 1200.0)
    assert attempts >= 20
    assert failures / attempts >= 0.9


def test_windows_are_values() -> None:
    assert FailureWindow("1m", 6) == MINUTE
    assert hash(FailureWindow(60, 6)) == hash(MINUTE)
    assert FailureWindow("1m") != MINUTE
    assert MINUTE != "window"
    assert repr(MINUTE) == "FailureWindow(60.0, buckets=6)"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"window": 0}, ValueError),
        ({"window": -1}, ValueError),
        ({"window": None}, TypeError),
        ({"window": 60, "buckets": 0}, ValueError),
        ({"window": 60, "buckets": 1.5}, TypeError),
        ({"window": 60, "buckets": True}, TypeError),
    ],
)
def test_a_window_that_could_not_work_is_refused(
    options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"^(window|buckets) \(.*\) needs to be"):
        FailureWindow(**options)


@pytest.mark.parametrize("now", [datetime(2026, 1, 1), math.nan])
def test_a_now_that_is_no_instant_is_refused(now: Any) -> None:
    with pytest.raises(ValueError, match=r"^now \(.*\) needs to be"):
        MINUTE.add((), now, failed=True)


@given(st.booleans(), st.integers(1, 50), st.floats(0, 1e6), st.floats(0, 1e6))
def test_so_many_results_at_once_are_as_many_one_by_one(
    failed: bool, times: int, first: float, now: float
) -> None:
    window = FailureWindow("1 hour")
    before = window.add((), first, failed=True)
    one_by_one = before
    for _ in range(times):
        one_by_one = window.add(one_by_one, now, failed)
    assert window.add(before, now, failed, times) == one_by_one
