from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backoff_schedule import create_backoff, curves
from backoff_schedule.curves import Computed, Growth, Steps, curve_of

any_attempt = st.one_of(st.integers(1, 3000), st.integers(1, 10**9), st.integers(1, 10**400))


def growth(**options: Any) -> curves.Curve:
    return curve_of({"growth": "exponential", "factor": 2.0, "max": None, **options})


@pytest.mark.parametrize(
    ("options", "delays"),
    [
        ({"base": 1.0}, [1.0, 2.0, 4.0, 8.0, 16.0]),
        ({"base": 1.0, "factor": 3.0, "max": 20.0}, [1.0, 3.0, 9.0, 20.0, 20.0]),
        ({"base": 1.0, "factor": 1.0}, [1.0, 1.0, 1.0, 1.0, 1.0]),
        ({"base": 2.0, "growth": "linear", "factor": 1.0, "max": 7.0}, [2.0, 4.0, 6.0, 7.0, 7.0]),
        ({"base": 2.0, "growth": "constant", "factor": 1.0}, [2.0, 2.0, 2.0, 2.0, 2.0]),
        ({"base": 0.0}, [0.0, 0.0, 0.0, 0.0, 0.0]),
        ({"base": 0.0, "growth": "linear", "factor": 1.0}, [0.0, 0.0, 0.0, 0.0, 0.0]),
    ],
)
def test_each_growth_follows_its_rule(options: dict[str, Any], delays: list[float]) -> None:
    curve = growth(**options)
    assert [curve.seconds(n) for n in range(1, 6)] == delays
    assert [curve.milliseconds(n) for n in range(1, 6)] == [delay * 1000 for delay in delays]


def test_steps_repeat_their_last_entry() -> None:
    curve = Steps((1.0, 5.0, 3.0))
    assert [curve.seconds(n) for n in (1, 2, 3, 4, 10**400)] == [1.0, 5.0, 3.0, 3.0, 3.0]
    assert curve.milliseconds(10**400) == 3000.0
    assert curve.longest == 5.0
    assert curve.settles
    assert curve.tabulated == 3


def test_a_curve_is_tabulated_up_to_its_ceiling() -> None:
    curve = growth(base=60.0, max=21600.0)
    assert curve.settles
    assert curve.tabulated == 10
    assert curve.seconds(9) < curve.seconds(10) == 21600.0


@pytest.mark.parametrize("options", [{"max": None}, {"max": 1e300, "factor": 1.0001}])
def test_a_curve_far_from_its_ceiling_has_a_short_table(options: dict[str, Any]) -> None:
    curve = growth(base=1.0, **options)
    assert not curve.settles
    assert curve.tabulated == 64


def test_a_curve_that_meets_its_ceiling_at_attempt_512_is_tabulated_and_a_slower_one_is_not() -> (
    None
):
    assert growth(base=1.0, growth="linear", max=512.0).tabulated == 512
    slower = growth(base=1.0, growth="linear", max=513.0)
    assert (slower.tabulated, slower.settles) == (64, False)
    assert slower.seconds(513) == 513.0


# the power overflows before the ceiling is applied.


@pytest.mark.parametrize("number", [float, int])
def test_no_attempt_overflows_before_the_ceiling_applies(number: type[float]) -> None:
    schedule = create_backoff(base=number(1), factor=number(2), max=5)
    assert [schedule.delay(n) for n in (1, 2, 3, 4)] == [1.0, 2.0, 4.0, 5.0]
    short = create_backoff(base=0.1, factor=2.0, max=5)
    assert short.delay(6) == 3.2
    for n in (7, 1024, 1025, 2000, 10_000, 10**6, 10**9, 10**400, 10**5000):
        assert schedule.delay(n) == 5.0
        assert short.delay(n) == 5.0
        assert short.keyed("a").delay(n) == 5.0
        assert 4.0 <= short.replace(jitter=0.2).delay(n) <= 6.0
        assert 4.0 <= short.replace(jitter=0.2).keyed("a").delay(n) <= 6.0


def test_a_slow_curve_reaches_its_ceiling_and_stops_exactly_there() -> None:
    curve = growth(base=1.0, factor=1.1, max=3600.0)
    assert curve.seconds(86) < 3600.0
    assert curve.seconds(87) == curve.seconds(10**9) == 3600.0


@given(
    base=st.floats(0, 1e9),
    factor=st.floats(1.0, 1e6),
    ceiling=st.floats(0, 1e12),
    n=any_attempt,
    kind=st.sampled_from(["exponential", "linear"]),
)
def test_a_curve_never_decreases_and_stays_between_its_base_and_its_ceiling(
    base: float, factor: float, ceiling: float, n: int, kind: str
) -> None:
    ceiling = max(base, ceiling)
    curve = growth(base=base, factor=factor, max=ceiling, growth=kind)
    assert curve.seconds(1) == base
    assert base <= curve.seconds(n) <= curve.seconds(n + 1) <= ceiling
    assert curve.milliseconds(n) <= curve.milliseconds(n + 1)


@given(
    base=st.floats(1e-3, 1e9),
    factor=st.floats(1.0001, 1e6),
    ceiling=st.floats(0, 1e12),
    kind=st.sampled_from(["exponential", "linear"]),
)
def test_a_growing_curve_ends_at_its_ceiling(
    base: float, factor: float, ceiling: float, kind: str
) -> None:
    ceiling = max(base, ceiling)
    curve = growth(base=base, factor=factor, max=ceiling, growth=kind)
    assert curve.seconds(10**400) == ceiling
    assert curve.longest == ceiling


@given(st.floats(5e-324, allow_infinity=False), st.floats(1.0001, 1e300), any_attempt)
def test_without_a_ceiling_a_curve_is_as_its_formula_says_or_infinite(
    base: float, factor: float, n: int
) -> None:
    delay = growth(base=base, factor=factor).seconds(n)
    assert delay >= base
    try:
        expected = base * factor ** (n - 1)
    except OverflowError:
        expected = math.inf
    # In milliseconds the range of a float ends a thousand times sooner.
    assert delay == math.inf or math.isclose(delay, expected, rel_tol=1e-12, abs_tol=1e-320)
    assert delay < math.inf or expected >= 1e305


@pytest.mark.parametrize("kind", ["exponential", "linear"])
def test_without_a_ceiling_a_growing_curve_ends_in_inf(kind: str) -> None:
    curve = growth(base=1.0, growth=kind)
    assert curve.seconds(10**400) == math.inf
    assert curve.milliseconds(10**400) == math.inf
    assert curve.longest == math.inf


@pytest.mark.parametrize(
    ("base", "ceiling"), [(1e306, 1e307), (1.9360510410800154, 1.9360510410800156)]
)
@pytest.mark.parametrize("free", [0, 65])
def test_a_base_that_has_the_milliseconds_of_the_ceiling_still_grows_to_it(
    base: float, ceiling: float, free: int
) -> None:
    schedule = create_backoff(base=base, max=ceiling, free=free)
    assert [schedule.delay(free + n) for n in (1, 2, 3)] == [base, ceiling, ceiling]
    assert schedule.bounds(free + 3) == (ceiling, ceiling)
    assert schedule.longest == ceiling


def test_a_base_beyond_the_range_of_milliseconds_comes_back_as_written() -> None:
    curve = growth(base=1e306, max=2e306)
    assert [curve.seconds(n) for n in (1, 2, 3)] == [1e306, 2e306, 2e306]


# What the caller's own function answers.


def test_a_computed_curve_asks_its_function_and_applies_the_ceiling() -> None:
    curve = Computed(lambda n: n * n * 5, 60.0)
    assert [curve.seconds(n) for n in (1, 2, 3, 4)] == [5.0, 20.0, 45.0, 60.0]
    assert curve.milliseconds(2) == 20_000.0
    assert (curve.longest, curve.tabulated, curve.settles) == (60.0, 0, False)
    assert Computed(lambda _: "1m", None).seconds(1) == 60.0
    assert Computed(lambda _: 1, None).longest == math.inf


@pytest.mark.parametrize("answer", [-1, math.nan, math.inf, "soon"])
def test_what_a_function_answers_outside_the_range_is_refused_by_name(answer: Any) -> None:
    with pytest.raises(ValueError, match=r"^compute\(3\) \(.*\) needs to be "):
        Computed(lambda _: answer, 60.0).seconds(3)


def test_what_a_function_answers_of_another_type_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"^compute\(1\) \(None\) needs to be "):
        Computed(lambda _: None, None).seconds(1)  # type: ignore[arg-type, return-value]


def test_what_a_function_raises_passes_through() -> None:
    with pytest.raises(ZeroDivisionError):
        Computed(lambda n: 1 / (n - n), None).seconds(1)


def test_the_shape_of_the_options_chooses_the_curve() -> None:
    assert type(curve_of({"steps": (1.0,)})) is Steps
    assert type(curve_of({"compute": float, "max": None})) is Computed
    assert type(growth(base=1.0)) is Growth
