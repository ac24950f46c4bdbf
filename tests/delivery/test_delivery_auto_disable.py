from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backoff_schedule import FailureWindow
from backoff_schedule.delivery import AutoDisable


def test_the_defaults_are_those_of_postel() -> None:
    rule = AutoDisable()
    assert (rule.failure_rate, rule.window, rule.min_attempts) == (0.9, 3600.0, 20)
    assert rule.failure_window == FailureWindow("1 hour")
    assert repr(rule) == "AutoDisable(failure_rate=0.9, window=3600.0, min_attempts=20)"


@pytest.mark.parametrize(
    ("attempts", "failures", "trips"),
    [
        (19, 19, False),
        (20, 20, True),
        (20, 18, True),
        (20, 17, False),
        (100, 90, True),
        (0, 0, False),
    ],
)
def test_it_trips_at_the_rate_with_enough_tries(attempts: int, failures: int, trips: bool) -> None:
    assert AutoDisable().trips(attempts, failures) == trips


def test_the_rate_is_exact_where_a_product_is_not() -> None:
    assert 0.55 * 100 > 55
    assert AutoDisable(0.55, min_attempts=1).trips(100, 55)
    assert not AutoDisable(0.55, min_attempts=1).trips(100, 54)


@given(
    failure_rate=st.floats(0, 1, exclude_min=True),
    window=st.floats(0.001, 1e9),
    min_attempts=st.integers(1, 10**9),
)
def test_it_is_made_again_from_its_options_through_json(**options: Any) -> None:
    rule = AutoDisable(**options)
    assert AutoDisable(**json.loads(json.dumps(rule.options))) == rule
    assert rule.options == options


def test_it_is_a_value() -> None:
    assert AutoDisable(window="1h") == AutoDisable(window=3600)
    assert hash(AutoDisable(window="1h")) == hash(AutoDisable(window=3600))
    assert AutoDisable() != AutoDisable(min_attempts=21)
    options = AutoDisable().options
    options["window"] = 1.0
    assert AutoDisable().options["window"] == 3600.0


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"failure_rate": 0}, ValueError),
        ({"failure_rate": 1.01}, ValueError),
        ({"failure_rate": math.nan}, ValueError),
        ({"failure_rate": "0.9"}, TypeError),
        ({"failure_rate": True}, TypeError),
        ({"window": 0}, ValueError),
        ({"window": "1 month"}, ValueError),
        ({"window": None}, TypeError),
        ({"min_attempts": 0}, ValueError),
        ({"min_attempts": 2.0}, TypeError),
        ({"min_attempts": True}, TypeError),
    ],
)
def test_a_rule_that_could_not_work_is_refused(
    options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error, match=rf"^{next(iter(options))} \(.*\) needs to be"):
        AutoDisable(**options)
