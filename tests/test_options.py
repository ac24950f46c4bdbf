from __future__ import annotations

import enum
import math
import random
import re
from datetime import timedelta
from typing import Any

import pytest

from backoff_schedule import SeededRandom, create_backoff
from backoff_schedule.options import checked_attempt, checked_source
from backoff_schedule.refusals import refusal

# `create_backoff(**options)` raises `error` with `message`, word for word.
REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    # No shape, two shapes.
    ({}, TypeError, "a schedule needs one of base, steps and compute"),
    ({"max": 5}, TypeError, "a schedule needs one of base, steps and compute"),
    (
        {"base": 1, "steps": [1]},
        TypeError,
        "base and steps do not go together: a schedule needs one of base, steps and compute",
    ),
    (
        {"steps": [1], "compute": float},
        TypeError,
        "steps and compute do not go together: a schedule needs one of base, steps and compute",
    ),
    (
        {"base": 1, "steps": [1], "compute": float},
        TypeError,
        (
            "base and steps and compute do not go together: "
            "a schedule needs one of base, steps and compute"
        ),
    ),
    ({"steps": [1], "max": 5}, TypeError, "max (5) does not go with steps"),
    ({"steps": [1], "factor": 2.0}, TypeError, "factor (2.0) does not go with steps"),
    ({"steps": [1], "growth": "linear"}, TypeError, "growth ('linear') does not go with steps"),
    ({"compute": float, "factor": 2.0}, TypeError, "factor (2.0) does not go with compute"),
    (
        {"compute": float, "growth": "constant"},
        TypeError,
        "growth ('constant') does not go with compute",
    ),
    (
        {"base": 1, "growth": "linear", "factor": 2.0},
        TypeError,
        "factor (2.0) goes with exponential growth only, not linear",
    ),
    (
        {"base": 1, "growth": "constant", "factor": 1},
        TypeError,
        "factor (1) goes with exponential growth only, not constant",
    ),
    # negative, NaN and infinite values.
    ({"base": -1}, ValueError, "base (-1) needs to be 0 or more and finite"),
    ({"base": math.nan}, ValueError, "base (nan) needs to be 0 or more and finite"),
    ({"base": math.inf}, ValueError, "base (inf) needs to be 0 or more and finite"),
    ({"base": 1, "max": -1}, ValueError, "max (-1) needs to be 0 or more and finite"),
    ({"base": 1, "max": math.nan}, ValueError, "max (nan) needs to be 0 or more and finite"),
    ({"base": 1, "max": math.inf}, ValueError, "max (inf) needs to be 0 or more and finite"),
    ({"base": 1, "max": 0}, ValueError, "max (0s) needs to be at least base (1s)"),
    ({"base": 10, "max": 3}, ValueError, "max (3s) needs to be at least base (10s)"),
    ({"base": "1m", "max": "1s"}, ValueError, "max (1s) needs to be at least base (1m)"),
    (
        {"base": 2, "max": 1, "growth": "constant"},
        ValueError,
        "max (1s) needs to be at least base (2s)",
    ),
    ({"base": 1, "factor": 0}, ValueError, "factor (0) needs to be a finite number, 1 or more"),
    (
        {"base": 1, "factor": 0.99},
        ValueError,
        "factor (0.99) needs to be a finite number, 1 or more",
    ),
    ({"base": 1, "factor": -2}, ValueError, "factor (-2) needs to be a finite number, 1 or more"),
    (
        {"base": 1, "factor": math.nan},
        ValueError,
        "factor (nan) needs to be a finite number, 1 or more",
    ),
    (
        {"base": 1, "factor": math.inf},
        ValueError,
        "factor (inf) needs to be a finite number, 1 or more",
    ),
    (
        {"base": 1, "free": -1},
        ValueError,
        "free (-1) needs to be a whole number of attempts, 0 or more",
    ),
    (
        {"base": 1, "growth": "cubic"},
        ValueError,
        "growth ('cubic') needs to be 'exponential', 'linear' or 'constant'",
    ),
    (
        {"steps": []},
        ValueError,
        "steps ([]) needs to be a list of durations, one for each failure, at least one",
    ),
    ({"steps": [1, -2]}, ValueError, "steps[1] (-2) needs to be 0 or more and finite"),
    (
        {"base": 1, "jitter": 1.5},
        ValueError,
        (
            "jitter (1.5) needs to be a fraction from 0 to 1, 'full', or a pair (low, high) with "
            "0 <= low <= high"
        ),
    ),
    # What jitter, in whole milliseconds, could not spread.
    (
        {"base": 0.0005, "jitter": "full"},
        ValueError,
        "base (0.0005) needs to be a whole number of milliseconds, to which jitter rounds",
    ),
    (
        {"base": 1, "max": 1.0005, "jitter": 0.5},
        ValueError,
        "max (1.0005) needs to be a whole number of milliseconds, to which jitter rounds",
    ),
    (
        {"steps": [1, 0.0015], "jitter": 0.5},
        ValueError,
        "steps[1] (0.0015) needs to be a whole number of milliseconds, to which jitter rounds",
    ),
    (
        {"base": "2ms", "jitter": 0.1},
        ValueError,
        (
            "base (2ms) needs to be long enough for its jitter to spread: a band of 0.4 ms is gone "
            "when rounded to whole milliseconds"
        ),
    ),
    (
        {"steps": [0, 0.002], "jitter": 0.1},
        ValueError,
        (
            "steps[1] (2ms) needs to be long enough for its jitter to spread: a band of 0.4 ms is "
            "gone when rounded to whole milliseconds"
        ),
    ),
    # Other types.
    (
        {"base": True},
        TypeError,
        (
            "base (True) needs to be a number of seconds, a timedelta, or text such as "
            "'15 minutes', not bool"
        ),
    ),
    (
        {"base": 1, "factor": "2"},
        TypeError,
        "factor ('2') needs to be a finite number, 1 or more, not str",
    ),
    (
        {"base": 1, "factor": True},
        TypeError,
        "factor (True) needs to be a finite number, 1 or more, not bool",
    ),
    (
        {"base": 1, "free": 1.0},
        TypeError,
        "free (1.0) needs to be a whole number of attempts, 0 or more, not float",
    ),
    (
        {"base": 1, "free": True},
        TypeError,
        "free (True) needs to be a whole number of attempts, 0 or more, not bool",
    ),
    ({"base": 1, "growth": 2}, TypeError, "growth (2) needs to be text, not int"),
    (
        {"steps": "15s"},
        TypeError,
        "steps ('15s') needs to be a list of durations, one for each failure, not str",
    ),
    (
        {"steps": b"15s"},
        TypeError,
        "steps (b'15s') needs to be a list of durations, one for each failure, not bytes",
    ),
    (
        {"steps": 5},
        TypeError,
        "steps (5) needs to be a list of durations, one for each failure, not int",
    ),
    ({"compute": 5}, TypeError, "compute (5) needs to be a function of the nth counted failure"),
    (
        {"base": 1, "random": 5},
        TypeError,
        (
            "random (5) needs to be an object whose random() draws from [0, 1), "
            "such as random.Random()"
        ),
    ),
]


@pytest.mark.parametrize(
    ("options", "error", "message"), REFUSED, ids=[repr(case[0]) for case in REFUSED]
)
def test_options_are_refused_at_construction_with_argument_value_and_rule(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        create_backoff(**options)
    assert type(caught.value) is error
    assert str(caught.value) == message


def test_a_number_beyond_every_float_is_refused_like_an_infinite_one() -> None:
    for name, rule in {
        "base": "0 or more and finite",
        "max": "0 or more and finite",
        "factor": "a finite number, 1 or more",
    }.items():
        with pytest.raises(ValueError, match=f"^{re.escape(refusal(name, 10**400, rule))}$"):
            create_backoff(**{"base": 1, name: 10**400})  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "options",
    [
        {"base": 0},
        {"base": 0, "max": 0, "jitter": "full"},
        {"base": 1, "max": 1},
        {"base": 1, "factor": 1},
        {"base": 1, "factor": 1e308},
        {"base": 5e-324},
        {"base": 1e308, "max": 1e308},
        {"base": timedelta(minutes=1), "max": "1h", "free": 10**400},
        {"base": 0.0005, "jitter": 0.0},
        {"base": 0.0005, "jitter": (1, 1)},
        {"steps": [0, "1s", 0], "jitter": 0.5},
        {"compute": math.sqrt, "jitter": 0.5},
    ],
    ids=repr,
)
def test_the_edges_of_the_ranges_are_allowed(options: dict[str, Any]) -> None:
    schedule = create_backoff(**options)
    assert schedule.delay(1) >= 0.0


def test_steps_that_can_be_read_only_once_are_read_once() -> None:
    steps = (step for step in ("1s", 2, timedelta(seconds=3)))
    assert create_backoff(steps=steps) == create_backoff(steps=[1, 2, 3])


def test_only_what_draws_is_a_source() -> None:
    generator = random.Random(1)
    assert checked_source(generator) is generator
    assert checked_source(None) is None
    with pytest.raises(TypeError, match=r"^random \(<class 'random.Random'>\) needs to be"):
        checked_source(random.Random)  # type: ignore[arg-type]


def test_an_enum_that_is_text_or_a_number_counts_as_its_value() -> None:
    class Rule(str, enum.Enum):  # noqa: UP042  (its str() is its name)
        GROWTH = "linear"
        JITTER = "full"
        SEED = "feeds"
        BASE = "1m"

    class Number(int, enum.Enum):
        SEED = 42

    options: dict[str, Any] = {"base": Rule.BASE, "growth": Rule.GROWTH, "jitter": Rule.JITTER}
    schedule = create_backoff(**options)
    assert repr(schedule) == "create_backoff(base=60.0, growth='linear', jitter='full')"
    assert SeededRandom(Rule.SEED) == SeededRandom("feeds")
    assert SeededRandom(Number.SEED) == SeededRandom("42")
    assert schedule.keyed(Rule.SEED) == schedule.keyed("feeds")
    assert schedule.keyed(Number.SEED) == schedule.keyed(42)
    assert schedule.bounds(Number.SEED) == schedule.bounds(42)


def test_an_int_of_a_subclass_is_an_attempt_and_a_bool_is_none() -> None:
    class Count(int):
        pass

    assert checked_attempt(Count(3)) == 3
    assert type(checked_attempt(Count(3))) is int
    for attempt in (True, 1.0, 1.5, "1", None):
        message = f"{refusal('attempt', attempt, 'an int')}, not {type(attempt).__name__}"
        with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
            checked_attempt(attempt)
