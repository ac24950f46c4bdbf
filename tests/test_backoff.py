from __future__ import annotations

import copy
import itertools
import json
import math
import multiprocessing
import os
import pickle
import random
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backoff_schedule import Backoff, SeededRandom, create_backoff
from backoff_schedule.jitter import LARGEST_DRAW, checked_jitter, multipliers

if TYPE_CHECKING:
    from collections.abc import Callable

    from backoff_schedule import RandomSource


class Fixed:
    """A source that answers one draw and counts how often it was asked."""

    def __init__(self, draw: float) -> None:
        self.draw = draw
        self.drawn = 0

    def random(self) -> float:
        self.drawn += 1
        return self.draw


class Scripted(Fixed):
    """A source that goes through a list of draws."""

    def __init__(self, draws: list[float]) -> None:
        super().__init__(0.0)
        self.draws = iter(draws)

    def random(self) -> float:
        self.drawn += 1
        return next(self.draws)


def first(count: int, schedule: Backoff) -> list[float]:
    return list(itertools.islice(schedule.delays(), count))


# Schedules of every shape, in whole seconds so that each can be jittered.
coarse = st.integers(1, 10**6).map(float)
jitters = st.one_of(
    st.just(0.0),
    st.just("full"),
    st.floats(0.01, 1.0),
    st.tuples(st.floats(0.0, 1.0), st.floats(1.01, 4.0)),
)


@st.composite
def schedules(draw: st.DrawFn, jitter: st.SearchStrategy[Any] = jitters) -> Backoff:
    free, chosen = draw(st.integers(0, 100)), draw(jitter)
    shape = draw(st.sampled_from(["base", "linear", "constant", "steps"]))
    if shape == "steps":
        steps = draw(st.lists(st.one_of(st.just(0.0), coarse), min_size=1, max_size=8))
        return create_backoff(steps=steps, free=free, jitter=chosen)
    base = draw(st.one_of(st.just(0.0), coarse))
    ceiling = draw(st.one_of(st.none(), coarse.map(lambda extra: base + extra)))
    if shape == "base":
        factor = draw(st.floats(1.0, 10.0))
        return create_backoff(base=base, factor=factor, max=ceiling, free=free, jitter=chosen)
    growth: Any = shape
    return create_backoff(base=base, growth=growth, max=ceiling, free=free, jitter=chosen)


attempts = st.one_of(
    st.integers(-5, 200), st.integers(-(10**9), 10**9), st.integers(-(10**400), 10**400)
)


# Exact values.


def test_every_schedule_answers_the_reference_delays(
    vectors: Callable[[str], list[dict[str, Any]]],
) -> None:
    cases = vectors("schedules")
    assert len(cases) == 19
    for case in cases:
        options: dict[str, Any] = {
            name: [step / 1000 for step in value]
            if name == "steps"
            else value / 1000
            if name in ("base", "max")
            else value
            for name, value in case["options_ms"].items()
        }
        source = None if case["seed"] is None else SeededRandom(case["seed"])
        schedule = create_backoff(**options, random=source)
        delays = [schedule.delay(attempt) for attempt in case["attempts"]]
        assert delays == [delay / 1000 for delay in case["delays_ms"]], case["name"]


def test_every_keyed_schedule_answers_the_reference_delays(
    vectors: Callable[[str], list[dict[str, Any]]],
) -> None:
    for case in vectors("keyed"):
        schedule = create_backoff(base=case["base"], max=case["max"], jitter=case["jitter"])
        keyed = schedule.keyed(case["key"])
        assert [keyed.delay(attempt) for attempt in case["attempts"]] == case["delays"]


def test_the_feed_schedule_answers_the_four_delays_that_everybody_can_check() -> None:
    schedule = create_backoff(
        base="15 minutes", max="1 day", jitter=0.1, random=SeededRandom("feeds")
    )
    assert first(4, schedule) == [951.542, 1655.825, 3624.786, 7326.701]


# off by one.


def test_the_first_wait_is_the_base_and_the_last_step_is_used_and_repeats() -> None:
    assert first(4, create_backoff(base=1)) == [1.0, 2.0, 4.0, 8.0]
    assert first(6, create_backoff(steps=[1, 2, 3, 4])) == [1.0, 2.0, 3.0, 4.0, 4.0, 4.0]
    assert first(5, create_backoff(base=1, free=2)) == [0.0, 0.0, 1.0, 2.0, 4.0]
    assert first(5, create_backoff(steps=[7, 8], free=2)) == [0.0, 0.0, 7.0, 8.0, 8.0]


def test_a_preview_of_an_unjittered_or_keyed_delay_equals_the_one_taken_later() -> None:
    for schedule in (create_backoff(base=1), create_backoff(base=1, jitter=0.5).keyed("a")):
        preview = schedule.delay(3)
        schedule.delay(4)
        assert schedule.delay(3) == preview


@pytest.mark.parametrize("attempt", [0, -1, -(10**400)])
def test_an_attempt_below_1_waits_for_nothing(attempt: int) -> None:
    for schedule in (create_backoff(base=1, jitter="full"), create_backoff(steps=[5])):
        assert schedule.delay(attempt) == 0.0
        assert schedule.bounds(attempt) == (0.0, 0.0)


@pytest.mark.parametrize("attempt", [1.0, 1.5, math.nan, "1", None, True, False])
def test_an_attempt_that_is_no_int_is_refused_everywhere(attempt: Any) -> None:
    schedule = create_backoff(base=1)
    asked: list[Callable[[], object]] = [
        lambda: schedule.delay(attempt),
        lambda: schedule.at(attempt, 0.0),
        lambda: schedule.delays(attempt),
        lambda: schedule.bounds(attempt),
    ]
    for ask in asked:
        with pytest.raises(TypeError, match=r"^attempt \(.*\) needs to be an int, not "):
            ask()


def test_an_int_of_a_subclass_is_an_attempt() -> None:
    class Count(int):
        pass

    assert create_backoff(base=1).delay(Count(3)) == 4.0


# The contract, whatever the options.


@given(schedules(), attempts)
def test_every_delay_lies_within_its_bounds_and_below_the_longest(
    schedule: Backoff, attempt: int
) -> None:
    low, high = schedule.bounds(attempt)
    assert 0.0 <= low <= high <= schedule.longest
    for delay in (schedule.delay(attempt), schedule.keyed("key").delay(attempt)):
        assert type(delay) is float
        assert low <= delay <= high


@given(schedules(), attempts)
def test_the_bounds_are_what_the_extreme_draws_answer(schedule: Backoff, attempt: int) -> None:
    lowest, highest = Fixed(0.0), Fixed(LARGEST_DRAW)
    assert schedule.bounds(attempt) == (
        schedule.replace(random=lowest).delay(attempt),
        schedule.replace(random=highest).delay(attempt),
    )


@given(schedules(), attempts, st.floats(0.0, LARGEST_DRAW))
@example(create_backoff(base=0.001, jitter="full"), 1, 0.49999999999999994)
def test_a_delay_is_the_curve_spread_by_one_draw_and_rounded_half_up(
    schedule: Backoff, attempt: int, draw: float
) -> None:
    curve = schedule.replace(jitter=0.0)
    plain = curve.delay(attempt)
    low, high = multipliers(checked_jitter(schedule.options["jitter"]))
    delay = schedule.replace(random=Fixed(draw)).delay(attempt)
    if (low, high) == (1.0, 1.0):
        assert delay == plain
    elif plain < 1e9:
        spread = plain * 1000 * (low + draw * (high - low))
        assert abs(delay * 1000 - spread) <= 0.5 + 1e-6
        assert delay == round(delay * 1000) / 1000


@given(schedules(), attempts)
def test_a_jittered_delay_takes_one_draw_and_no_other_takes_any(
    schedule: Backoff, attempt: int
) -> None:
    source = Fixed(0.5)
    schedule.replace(random=source).delay(attempt)
    jittered = schedule.options["jitter"] != 0.0
    assert source.drawn == (1 if jittered and attempt > schedule.options["free"] else 0)


def test_the_bounds_of_an_unjittered_delay_are_the_delay() -> None:
    assert create_backoff(base=1, free=1).bounds(4) == (4.0, 4.0)


def test_a_0_among_the_steps_takes_a_draw_and_the_pair_1_1_takes_none() -> None:
    source = Fixed(0.5)
    schedule = create_backoff(steps=[0, 1], free=1, jitter="full", random=source)
    assert first(3, schedule) == [0.0, 0.0, 0.5]
    assert source.drawn == 2
    unjittered = create_backoff(base=1, jitter=(1, 1), random=source)
    assert first(3, unjittered) == [1.0, 2.0, 4.0]
    assert source.drawn == 2


def test_asking_for_bounds_or_the_longest_takes_no_draw() -> None:
    source = Fixed(0.5)
    schedule = create_backoff(base=1, max=8, jitter=0.5, random=source)
    assert schedule.bounds(9) == (4.0, 12.0)
    assert schedule.longest == 12.0
    assert source.drawn == 0


@given(schedules(jitter=st.just(0.0)), st.integers(0, 10**400))
def test_an_unjittered_growing_delay_never_decreases(schedule: Backoff, attempt: int) -> None:
    if "steps" not in schedule.options:
        assert schedule.delay(attempt) <= schedule.delay(attempt + 1)


@given(schedules(jitter=st.just(0.0)))
def test_the_first_delay_is_the_base_itself_and_the_plateau_the_ceiling_itself(
    schedule: Backoff,
) -> None:
    options = schedule.options
    free = options["free"]
    if "steps" in options:
        assert schedule.delay(free + 1) == options["steps"][0]
        assert schedule.delay(10**400) == options["steps"][-1]
        assert schedule.longest == max(options["steps"])
    else:
        assert schedule.delay(free + 1) == options["base"]
        assert schedule.longest == schedule.delay(10**400)
        grows = options["growth"] == "linear" or options.get("factor", 1.0) > 1.0
        if options["max"] is not None and options["base"] > 0.0 and grows:
            assert schedule.delay(10**400) == options["max"]


@given(
    st.floats(0, 1e300).flatmap(
        lambda base: st.tuples(st.just(base), st.floats(base, 1e301, exclude_min=False))
    ),
    st.floats(1.0, 1e10),
    st.integers(1, 10**5),
)
def test_no_finite_option_makes_a_delay_that_is_negative_nan_or_beyond_the_ceiling(
    base_and_ceiling: tuple[float, float], factor: float, attempt: int
) -> None:
    base, ceiling = base_and_ceiling
    schedule = create_backoff(base=base, factor=factor, max=ceiling)
    assert base <= schedule.delay(attempt) <= ceiling


# the ceiling and the jitter.


@pytest.mark.parametrize(
    ("options", "longest"),
    [
        ({"base": 0.8, "factor": 1.5, "max": 1.2, "jitter": 0.5}, 1.8),
        ({"base": 0.1, "max": 0.5, "jitter": 0.5}, 0.75),
        ({"base": 0.1, "max": 0.5, "jitter": "full"}, 0.5),
        ({"base": 0.1, "max": 0.5, "jitter": (0.5, 1.0)}, 0.5),
        ({"base": 0.1, "max": 0.5, "jitter": (0.8, 1.0)}, 0.5),
    ],
)
def test_no_draw_leaves_the_band_and_longest_says_how_far_it_goes_past_the_ceiling(
    options: dict[str, Any], longest: float
) -> None:
    schedule = create_backoff(**options, random=random.Random("ceiling"))
    assert schedule.longest == longest
    for attempt in range(1, 7):
        low, high = schedule.bounds(attempt)
        delays = [schedule.delay(attempt) for _ in range(10_000)]
        assert low <= min(delays) <= max(delays) <= high <= longest


@pytest.mark.parametrize("jitter", [0.1, 0.5])
@pytest.mark.parametrize("attempt", [20, 2000])
def test_delays_parked_at_the_ceiling_still_spread_over_the_whole_band(
    jitter: float, attempt: int
) -> None:
    schedule = create_backoff(base=1, max=60, jitter=jitter)
    delays = [schedule.replace(random=SeededRandom(seed)).delay(attempt) for seed in range(1000)]
    low, high = schedule.bounds(attempt)
    assert len(set(delays)) > 900
    assert delays.count(60.0) < 10
    assert delays.count(low) < 10
    assert delays.count(high) < 10
    assert min(delays) < low + 0.02 * (high - low)
    assert max(delays) > high - 0.02 * (high - low)


@pytest.mark.parametrize(
    ("options", "longest"),
    [
        ({"base": 1}, math.inf),
        ({"base": 1, "growth": "linear"}, math.inf),
        ({"base": 1, "growth": "constant"}, 1.0),
        ({"base": 1, "factor": 1}, 1.0),
        ({"base": 0}, 0.0),
        ({"base": 0, "max": 5}, 0.0),
        ({"base": 0, "growth": "linear", "max": 5}, 0.0),
        ({"steps": [5, 9, 2]}, 9.0),
        ({"steps": [5, 9, 2], "jitter": 0.5}, 13.5),
        ({"compute": float}, math.inf),
        ({"compute": float, "max": 60, "jitter": 1.0}, 120.0),
        ({"base": 1, "jitter": "full"}, math.inf),
    ],
)
def test_longest_is_the_largest_delay_of_any_attempt(
    options: dict[str, Any], longest: float
) -> None:
    assert create_backoff(**options).longest == longest


def test_an_unbounded_jittered_curve_is_never_nan() -> None:
    schedule = create_backoff(base=1, jitter="full")
    for draw, delay in ((0.0, 0.0), (0.5, math.inf), (LARGEST_DRAW, math.inf)):
        assert schedule.replace(random=Fixed(draw)).delay(5000) == delay
    assert schedule.bounds(5000) == (0.0, math.inf)


def test_half_a_millisecond_rounds_up() -> None:
    schedule = create_backoff(
        steps=["1ms", "3ms", "5ms"], jitter="full", random=Scripted([0.5, 0.5, 0.5, 0.4999, 0.4999])
    )
    assert first(5, schedule) == [0.001, 0.002, 0.003, 0.002, 0.002]


def test_a_delay_beyond_whole_milliseconds_in_a_double_is_only_multiplied() -> None:
    long = create_backoff(base=1e13, factor=1e200, jitter="full")
    for draw, delays in {
        0.0: [0.0, 0.0, 0.0, 0.0],
        0.3: [1e16 * 0.3 / 1000, 1e16 * 1e200 * 0.3 / 1000, math.inf, math.inf],
    }.items():
        assert first(4, long.replace(random=Fixed(draw))) == delays
    # An odd number of milliseconds just above 2**52.
    odd = create_backoff(steps=[4503599627370.497], jitter=(1.0, 2.0), random=Fixed(0.0))
    assert odd.delay(1) == 4503599627370.497


# A function of the caller's.


def test_a_function_gets_the_nth_counted_failure_and_is_not_asked_for_free_ones() -> None:
    asked: list[int] = []

    def compute(n: int) -> float:
        asked.append(n)
        return n * 10

    schedule = create_backoff(compute=compute, free=2, max=25)
    assert asked == []
    assert first(5, schedule) == [0.0, 0.0, 10.0, 20.0, 25.0]
    assert asked == [1, 2, 3]


def test_a_function_that_answers_nonsense_is_refused_at_the_call() -> None:
    schedule = create_backoff(compute=lambda n: 1 - n)
    assert schedule.delay(1) == 0.0
    with pytest.raises(ValueError, match=r"^compute\(2\) \(-1\) needs to be 0 or more"):
        schedule.delay(2)


def test_what_a_function_answers_is_spread_like_any_curve() -> None:
    schedule = create_backoff(compute=lambda _: "1.0005s", jitter=0.5, random=Fixed(0.5))
    assert schedule.delay(1) == 1.001


# Free attempts.


@pytest.mark.parametrize("free", [0, 1, 64, 65, 1000, 10**400])
def test_free_attempts_shift_the_curve_however_many_they_are(free: int) -> None:
    schedule = create_backoff(base=1, max=8, free=free)
    assert schedule.delay(free) == 0.0
    assert [schedule.delay(free + n) for n in (1, 2, 3, 4, 5)] == [1.0, 2.0, 4.0, 8.0, 8.0]
    jittered = schedule.replace(jitter=0.5, random=Fixed(0.0))
    assert jittered.delay(free) == 0.0
    assert [jittered.delay(free + n) for n in (1, 2, 3, 4, 5)] == [0.5, 1.0, 2.0, 4.0, 4.0]


# at


def test_at_is_now_plus_the_delay_in_the_kind_of_now() -> None:
    schedule = create_backoff(base="15 minutes", max="1 day")
    now = datetime(2026, 1, 1, 9, tzinfo=UTC)
    assert schedule.at(2, now) == now + timedelta(minutes=30)
    assert schedule.at(2, now.replace(tzinfo=None)) == datetime(2026, 1, 1, 9, 30)
    assert schedule.at(2, 100.0) == 1900.0
    assert schedule.at(0, now) == now


# the delay is legal but now + delay is not.


def test_at_saturates_where_the_delay_passes_the_end_of_time() -> None:
    schedule = create_backoff(base=5, factor=5)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert schedule.at(16, now).year == 6861
    for attempt in (17, 50, 5000, 10**400):
        assert schedule.at(attempt, now) == datetime.max.replace(tzinfo=UTC)
    assert schedule.at(10**400, 0.0) == math.inf


def test_at_with_a_ceiling_is_now_plus_the_ceiling_at_every_attempt() -> None:
    schedule = create_backoff(base=10, max=300)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    for attempt in range(43, 61):
        assert schedule.at(attempt, now) == now + timedelta(seconds=300)


# delays


def test_delays_go_on_without_end_from_any_attempt() -> None:
    schedule = create_backoff(base=1, max=8, free=1)
    assert list(itertools.islice(schedule.delays(-1), 8)) == [0, 0, 0, 1, 2, 4, 8, 8]
    assert next(schedule.delays(10**400)) == 8.0


# Options, replace, equality.


@given(schedules())
def test_the_options_through_json_make_an_equal_schedule(schedule: Backoff) -> None:
    again = create_backoff(**json.loads(json.dumps(schedule.options)))
    assert again == schedule
    assert hash(again) == hash(schedule)
    assert again.options == schedule.options


@given(schedules())
def test_the_repr_evaluates_back(schedule: Backoff) -> None:
    for each in (schedule, schedule.keyed("key \u00e9\x00"), schedule.keyed(7)):
        assert eval(repr(each), {"create_backoff": create_backoff}) == each


def test_the_repr_leaves_out_what_is_a_default_and_where_it_draws_from() -> None:
    schedule = create_backoff(base="1m", max="6h", jitter=0.2, random=random.Random(1))
    assert repr(schedule) == "create_backoff(base=60.0, max=21600.0, jitter=0.2)"
    assert repr(schedule.keyed("dlv_1")) == (
        "create_backoff(base=60.0, max=21600.0, jitter=0.2).keyed(b'dlv_1')"
    )
    assert repr(create_backoff(steps=["1s"], free=2)) == "create_backoff(steps=[1.0], free=2)"
    assert repr(create_backoff(compute=abs)) == "create_backoff(compute=<built-in function abs>)"


def test_the_options_are_fresh_each_time() -> None:
    schedule = create_backoff(steps=[1, 2], jitter=(0.5, 1.0))
    schedule.options["steps"].append(3.0)
    schedule.options["free"] = 9
    assert schedule.options == {"steps": [1.0, 2.0], "free": 0, "jitter": [0.5, 1.0]}


def test_a_computed_schedule_has_no_options() -> None:
    message = "^a schedule made with compute has no options that JSON could hold$"
    with pytest.raises(TypeError, match=message):
        _ = create_backoff(compute=float).options


def test_schedules_are_equal_by_options_and_key_and_not_by_source() -> None:
    schedule = create_backoff(base=60, jitter=0.2)
    assert schedule == create_backoff(base="1m", factor=2, jitter=0.2, random=SeededRandom(1))
    assert schedule.keyed(1) == schedule.keyed("1") == schedule.keyed(b"1")
    different = [
        create_backoff(base=61, jitter=0.2),
        create_backoff(base=60, jitter=0.3),
        create_backoff(base=60, jitter=0.2, free=1),
        create_backoff(base=60, jitter=0.2, max=61),
        create_backoff(base=60, jitter=0.2, factor=3),
        create_backoff(steps=[60], jitter=0.2),
        schedule.keyed(""),
        schedule.keyed(1),
        "schedule",
    ]
    assert all(schedule != other for other in different)
    assert len({schedule, *different}) == len(different) + 1
    assert len({hash(each) for each in [schedule, *different]}) == len(different) + 1


@pytest.mark.parametrize(
    ("schedule", "changes", "expected"),
    [
        (
            create_backoff(base=1, factor=3, max=9),
            {"base": 2},
            create_backoff(base=2, factor=3, max=9),
        ),
        (
            create_backoff(base=1, factor=3, max=9),
            {"growth": "linear"},
            create_backoff(base=1, growth="linear", max=9),
        ),
        (
            create_backoff(base=1, factor=3),
            {"growth": "exponential"},
            create_backoff(base=1, factor=3),
        ),
        (
            create_backoff(base=1, growth="linear", free=1),
            {"factor": 3},
            create_backoff(base=1, factor=3, free=1),
        ),
        (
            create_backoff(base=1, max=9, free=2, jitter=0.5),
            {"steps": [5]},
            create_backoff(steps=[5], free=2, jitter=0.5),
        ),
        (create_backoff(base=1, growth="linear"), {"steps": [5]}, create_backoff(steps=[5])),
        (create_backoff(steps=[5], free=2), {"base": 1}, create_backoff(base=1, free=2)),
        (create_backoff(base=1, max=9), {"max": None}, create_backoff(base=1)),
        (
            create_backoff(base=1, factor=3, max=9),
            {"compute": float},
            create_backoff(compute=float, max=9),
        ),
        (
            create_backoff(compute=float, max=9),
            {"base": 1},
            create_backoff(base=1, max=9),
        ),
        (create_backoff(compute=float, max=9), {"steps": [1]}, create_backoff(steps=[1])),
    ],
)
def test_replace_changes_options_and_drops_what_goes_only_with_the_old_shape_or_growth(
    schedule: Backoff, changes: dict[str, Any], expected: Backoff
) -> None:
    before = repr(schedule)
    assert schedule.replace(**changes) == expected
    assert repr(schedule) == before


@pytest.mark.parametrize(
    ("schedule", "changes", "message"),
    [
        (create_backoff(steps=[1]), {"max": 5}, "max (5) does not go with steps"),
        (create_backoff(steps=[1]), {"factor": 2}, "factor (2) does not go with steps"),
        (create_backoff(steps=[1]), {"growth": "linear"}, "does not go with steps"),
        (create_backoff(base=1), {"steps": [1], "factor": 2}, "does not go with steps"),
        (create_backoff(base=1), {"growth": "linear", "factor": 2}, "goes with exponential"),
        (create_backoff(base=1), {"base": None}, "needs one of"),
        (create_backoff(base=1), {"steps": [1], "compute": float}, "do not go together"),
        (create_backoff(base=1), {"maximum": 5}, "a schedule has no option 'maximum'"),
        (create_backoff(base=1), {"random": 5}, "needs to be an object whose random()"),
    ],
)
def test_replace_refuses_what_create_backoff_refuses(
    schedule: Backoff, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError) as caught:
        schedule.replace(**changes)
    assert message in str(caught.value)


def test_replace_keeps_the_source_and_the_key_until_another_is_given() -> None:
    source = Fixed(0.0)
    schedule = create_backoff(base=1, jitter=0.5, random=source)
    assert schedule.replace(base=2).delay(1) == 1.0
    keyed = schedule.keyed("a")
    assert keyed.replace(base=1) == keyed
    assert keyed.replace(base=1).delay(1) == keyed.delay(1)
    assert keyed.replace(random=source) == schedule
    assert keyed.replace(random=source).delay(1) == 0.5
    drawn = source.drawn
    assert keyed.keyed("b").delay(1) != keyed.delay(1)
    assert keyed.replace(random=None) == schedule
    keyed.replace(random=None).delay(1)
    assert source.drawn == drawn


@pytest.mark.skipif(sys.version_info < (3, 13), reason="copy.replace came with Python 3.13")
def test_copy_replace_replaces() -> None:
    replaced = copy.replace(create_backoff(base=1), base=2)  # type: ignore[attr-defined, unused-ignore]
    assert replaced == create_backoff(base=2)


# An immutable value.


def test_a_schedule_cannot_be_changed() -> None:
    schedule = create_backoff(base=1)
    for name in ("_free", "longest", "delay", "anything"):
        with pytest.raises(AttributeError, match="a schedule is immutable"):
            setattr(schedule, name, 5)
        with pytest.raises(AttributeError, match="a schedule is immutable"):
            delattr(schedule, name)
    assert not hasattr(schedule, "__dict__")


@given(schedules(), st.sampled_from(range(pickle.HIGHEST_PROTOCOL + 1)))
def test_a_pickled_schedule_is_equal_and_answers_the_same(schedule: Backoff, protocol: int) -> None:
    seeded = schedule.replace(random=SeededRandom("pickle"))
    again = pickle.loads(pickle.dumps(seeded, protocol))
    assert again == schedule
    assert first(5, again) == first(5, seeded)
    keyed = pickle.loads(pickle.dumps(schedule.keyed("a"), protocol))
    assert keyed == schedule.keyed("a")
    assert keyed.delay(150) == schedule.keyed("a").delay(150)


def test_a_schedule_on_system_random_is_pickled_with_the_default_source() -> None:
    schedule = create_backoff(base=1, jitter="full", random=random.SystemRandom())
    again = pickle.loads(pickle.dumps(schedule))
    assert again == copy.copy(schedule) == copy.deepcopy(schedule) == schedule
    assert 0.0 <= again.delay(1) <= 1.0


def test_a_computed_schedule_is_pickled_by_the_name_of_its_function() -> None:
    schedule = create_backoff(compute=math.sqrt, max=9)
    assert pickle.loads(pickle.dumps(schedule)) == schedule


def test_a_shallow_copy_shares_the_source_and_a_deep_one_has_its_own() -> None:
    schedule = create_backoff(base=1, jitter="full", random=SeededRandom("copy"))
    deep = copy.deepcopy(schedule)
    shared = [schedule.delay(5), copy.copy(schedule).delay(5)]
    assert [deep.delay(5), deep.delay(5)] == shared
    assert shared[0] != shared[1]


# F-01 and F-02: seeds and randomness.


def _draw_ten(schedule: Backoff) -> list[float]:
    return [schedule.delay(5) for _ in range(10)]


def _children_draw_ten(schedule: Backoff, method: str) -> list[list[float]]:
    with multiprocessing.get_context(method).Pool(8, maxtasksperchild=1) as pool:
        return pool.map(_draw_ten, [schedule] * 8, chunksize=1)


def _forked_children_draw_ten(schedule: Backoff) -> list[list[float]]:
    sequences = []
    for _ in range(8):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writing, json.dumps(_draw_ten(schedule)).encode())
            os._exit(0)
        os.close(writing)
        with open(reading, "rb") as pipe:  # noqa: PTH123  (a file descriptor)
            sequences.append(json.loads(pipe.read()))
        os.waitpid(child, 0)
    return sequences


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_children_of_an_unseeded_schedule_draw_8_different_sequences() -> None:
    schedule = create_backoff(base=1, jitter="full")
    schedule.delay(1)
    sequences = _forked_children_draw_ten(schedule)
    assert len({tuple(sequence) for sequence in sequences}) == 8


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_children_of_a_seeded_schedule_draw_the_same_until_each_derives_its_own() -> None:
    stream = SeededRandom("workers")
    schedule = create_backoff(base=1, jitter="full", random=stream)
    assert len({tuple(sequence) for sequence in _forked_children_draw_ten(schedule)}) == 1
    own = [schedule.replace(random=stream.derive(worker)) for worker in range(8)]
    assert len({tuple(_draw_ten(each)) for each in own}) == 8


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_pool_workers_of_an_unseeded_schedule_draw_8_different_sequences(method: str) -> None:
    sequences = _children_draw_ten(create_backoff(base=1, jitter="full"), method)
    assert len({tuple(sequence) for sequence in sequences}) == 8


def test_importing_works_where_the_system_cannot_fork() -> None:
    code = "import os; del os.register_at_fork, os.fork; import backoff_schedule"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_20_processes_started_in_one_second_draw_20_different_sequences() -> None:
    code = (
        "from backoff_schedule import create_backoff; "
        "s = create_backoff(base=1, jitter='full'); print([s.delay(9) for _ in range(5)])"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(20)
    ]
    outputs = {process.communicate()[0] for process in running}
    assert len(outputs) == 20
    assert all(process.returncode == 0 for process in running)


def test_the_random_source_of_the_module_is_neither_seeded_nor_consumed() -> None:
    random.seed(1)
    undisturbed = [random.random() for _ in range(3)]
    random.seed(1)
    schedule = create_backoff(base=1, jitter="full")
    first(100, schedule)
    first(100, schedule.keyed("a"))
    first(100, schedule.replace(random=SeededRandom(1)))
    assert [random.random() for _ in range(3)] == undisturbed


def test_two_schedules_of_one_seed_answer_the_same_whatever_the_other_does() -> None:
    def seeded() -> Backoff:
        return create_backoff(base=1, jitter="full", random=SeededRandom("twins"))

    alone, other = seeded(), seeded()
    expected = first(5, alone)
    one, two = seeded(), other
    alternately = [(one.delay(n), two.delay(n)) for n in range(1, 6)]
    assert alternately == list(zip(expected, expected, strict=True))


def test_drawing_advances_a_source_and_leaves_a_key_alone() -> None:
    seeded = create_backoff(base=1, jitter="full", random=SeededRandom("order"))
    again = create_backoff(base=1, jitter="full", random=SeededRandom("order"))
    again.delay(4)
    assert seeded.delay(5) != again.delay(5)
    keyed = seeded.keyed("order")
    expected = keyed.delay(5)
    keyed.delay(4)
    assert keyed.delay(5) == expected


def test_any_object_that_draws_is_a_source() -> None:
    sources: list[RandomSource] = [
        random.Random(1),
        random.SystemRandom(),
        SeededRandom(1),
        Scripted([0.25] * 2),
    ]
    for source in sources:
        assert 0.0 <= create_backoff(base=1, jitter="full", random=source).delay(2) <= 2.0


def test_a_keyed_schedule_answers_the_same_from_any_number_of_threads() -> None:
    schedule = create_backoff(base=1, max="1h", jitter=0.5).keyed("threads")
    expected = first(200, schedule)
    answers: list[list[float]] = []
    threads = [
        threading.Thread(target=lambda: answers.append(first(200, schedule))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected] * 8


@given(st.one_of(st.text(), st.binary(), st.integers()), st.integers(1, 10**400))
def test_a_keyed_delay_is_the_same_in_any_order_of_asking(
    key: str | bytes | int, attempt: int
) -> None:
    schedule = create_backoff(base=60, max="6h", jitter=0.2)
    assert schedule.keyed(key).delay(attempt) == schedule.keyed(key).delay(attempt)
    low, high = schedule.bounds(attempt)
    assert low <= schedule.keyed(key).delay(attempt) <= high


def test_a_keyed_schedule_without_jitter_is_the_curve() -> None:
    assert first(4, create_backoff(base=1, max=4).keyed("a")) == [1.0, 2.0, 4.0, 4.0]
