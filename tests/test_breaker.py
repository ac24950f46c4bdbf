from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from backoff_schedule import CircuitBreaker, CircuitState, create_backoff
from backoff_schedule.breaker import Permit

BREAKER = CircuitBreaker(threshold=0.5, min_attempts=4, cooldown="30s", probe_timeout="10s")


def asked(state: CircuitState, now: float) -> tuple[CircuitState, Permit]:
    state, permit = BREAKER.ask(state, now)
    assert permit is not None
    return state, permit


def results(pattern: str, now: float = 0.0, state: CircuitState | None = None) -> CircuitState:
    """The state after a row of calls: `f` for a failure, `s` for a success."""
    state = CircuitState() if state is None else state
    for result in pattern:
        state, permit = asked(state, now)
        settle = BREAKER.after_failure if result == "f" else BREAKER.after_success
        state = settle(state, permit, now)
    return state


OPEN = results("ffff")
PROBING, PROBE = asked(OPEN, 30.0)


# The transition table, row by row.


def test_closed_every_ask_gets_a_permit_and_changes_nothing() -> None:
    state, permit = BREAKER.ask(CircuitState(), 5.0)
    assert (state, permit) == (CircuitState(), Permit(0))


def test_closed_results_are_counted() -> None:
    state = results("sfs")
    assert (state.phase, state.generation) == ("closed", 0)
    assert state.window == ((0, 3, 1),)


@pytest.mark.parametrize(
    ("pattern", "phase"),
    [("fff", "closed"), ("ffff", "open"), ("ssff", "open"), ("sssf", "closed"), ("ffss", "closed")],
)
def test_closed_a_failure_that_fills_the_threshold_opens(pattern: str, phase: str) -> None:
    assert results(pattern).phase == phase


def test_closed_the_share_is_exact_where_a_product_is_not() -> None:
    breaker = CircuitBreaker(threshold=0.7, min_attempts=10)
    state = CircuitState()
    for failed in [False] * 3 + [True] * 7:
        settle = breaker.after_failure if failed else breaker.after_success
        state = settle(state, Permit(0), 0.0)
    assert state.phase == "open"


def test_opening_empties_the_window_and_counts_one_opening_more() -> None:
    assert CircuitState("open", generation=1, openings=1, since=0.0, wait=30.0) == OPEN
    assert OPEN.until == 30.0
    assert CircuitState().until is None


def test_open_an_ask_before_the_cool_down_is_over_gets_no_permit() -> None:
    assert BREAKER.ask(OPEN, 29.999) == (OPEN, None)
    assert BREAKER.remaining(OPEN, 10.0) == 20.0
    assert BREAKER.status(OPEN, 10.0) == "open"


def test_open_the_first_ask_after_the_cool_down_is_the_probe() -> None:
    assert BREAKER.status(OPEN, 30.0) == "half_open"
    assert (PROBING.phase, PROBING.generation, PROBE) == ("half_open", 2, Permit(2))


def test_half_open_nobody_else_gets_a_permit_while_the_probe_is_out() -> None:
    assert BREAKER.ask(PROBING, 39.999) == (PROBING, None)
    assert BREAKER.remaining(PROBING, 35.0) == 0.0
    assert BREAKER.status(PROBING, 35.0) == "half_open"


def test_half_open_after_probe_timeout_another_probe_takes_the_place() -> None:
    state, permit = asked(PROBING, 40.0)
    assert (state.phase, permit) == ("half_open", Permit(3))
    assert BREAKER.after_success(state, PROBE, 41.0) == state


def test_half_open_a_late_answer_counts_until_another_probe_takes_the_place() -> None:
    assert BREAKER.after_success(PROBING, PROBE, 500.0).phase == "closed"


def test_half_open_success_closes() -> None:
    closed = BREAKER.after_success(PROBING, PROBE, 31.0)
    assert closed == CircuitState("closed", generation=3, openings=1, closed_at=31.0)


def test_half_open_failure_opens_again_one_opening_more() -> None:
    state = BREAKER.after_failure(PROBING, PROBE, 31.0)
    assert state == CircuitState("open", generation=3, openings=2, since=31.0, wait=30.0)


# D-06 (a): a trial that is cancelled frees its place at once.


def test_half_open_cancel_frees_the_place_at_once() -> None:
    vacant = BREAKER.after_cancel(PROBING, PROBE, 31.0)
    assert (vacant.phase, vacant.generation) == ("vacant", 3)
    assert BREAKER.status(vacant, 31.0) == "half_open"
    state, permit = asked(vacant, 31.0)
    assert (state.phase, permit) == ("half_open", Permit(4))
    assert BREAKER.ask(state, 31.0)[1] is None


def test_a_cancel_while_closed_counts_nothing() -> None:
    assert BREAKER.after_cancel(CircuitState(), Permit(0), 1.0) == CircuitState()


@pytest.mark.parametrize("state", [CircuitState(generation=7), OPEN, PROBING])
def test_a_result_of_another_generation_changes_nothing(state: CircuitState) -> None:
    old = Permit(0)
    for settle in (BREAKER.after_success, BREAKER.after_failure, BREAKER.after_cancel):
        assert settle(state, old, 50.0) == state


# The cool-down.


def test_the_cool_down_grows_with_the_openings_in_a_row_and_starts_again_after_quiet() -> None:
    breaker = CircuitBreaker(
        min_attempts=1, cooldown=create_backoff(base="10s", max="1m"), reset_after="1 hour"
    )

    def opened(state: CircuitState, now: float) -> CircuitState:
        state, permit = breaker.ask(state, now)
        assert permit is not None
        return breaker.after_failure(state, permit, now)

    state, now, waits = CircuitState(), 0.0, []
    for _ in range(5):
        state = opened(state, now)
        waits.append(state.wait)
        now += state.wait
    assert waits == [10.0, 20.0, 40.0, 60.0, 60.0]
    state, permit = breaker.ask(state, now)
    assert permit is not None
    closed = breaker.after_success(state, permit, now)
    assert opened(closed, now + 3599.0).wait == 60.0
    assert opened(closed, now + 3600.0).wait == 10.0


def test_a_long_outage_does_not_make_the_cool_down_start_again() -> None:
    breaker = CircuitBreaker(
        min_attempts=1, cooldown=create_backoff(base="30m", max="4h"), reset_after="1 hour"
    )
    state, now = CircuitState(closed_at=0.0), 0.0
    for expected in (1800.0, 3600.0, 7200.0, 14400.0):
        state, permit = breaker.ask(state, now)
        assert permit is not None
        state = breaker.after_failure(state, permit, now)
        assert state.wait == expected
        now += expected


def test_a_jittered_cool_down_is_drawn_once() -> None:
    breaker = CircuitBreaker(min_attempts=1, cooldown=create_backoff(base="1m", jitter=0.5))
    state = breaker.after_failure(CircuitState(), Permit(0), 0.0)
    assert {breaker.remaining(state, 0.0) for _ in range(10)} == {state.wait}


# Clocks that go back.


def test_an_ask_earlier_than_the_opening_moves_it_so_that_no_wait_is_longer() -> None:
    assert BREAKER.remaining(OPEN, -1000.0) == 30.0
    moved, permit = BREAKER.ask(OPEN, -1000.0)
    assert permit is None
    assert (moved.since, BREAKER.remaining(moved, -990.0)) == (-1000.0, 20.0)
    probing, permit = BREAKER.ask(PROBING, -1000.0)
    assert permit is None
    assert BREAKER.ask(probing, -990.0)[1] is not None


# Values.


def test_the_breaker_of_postel_can_be_written() -> None:
    breaker = CircuitBreaker(threshold=0.5, cooldown="5m")
    assert breaker == CircuitBreaker(cooldown=create_backoff(base=300, growth="constant"))
    assert hash(breaker) == hash(CircuitBreaker(threshold=0.5, cooldown=300))
    assert breaker != BREAKER
    assert breaker != "breaker"
    assert repr(breaker) == (
        "<CircuitBreaker cooldown=create_backoff(base=300.0, growth='constant'), min_attempts=10, "
        "probe_timeout=60.0, reset_after=3600.0, threshold=0.5, "
        "window=FailureWindow(60.0, buckets=10)>"
    )


GROWING = create_backoff(base="10s", max="10m", jitter=0.2)


@given(
    threshold=st.floats(0, 1, exclude_min=True),
    window=st.floats(0.001, 1e9),
    min_attempts=st.integers(1, 10**6),
    cooldown=st.one_of(st.floats(0, 1e9), st.sampled_from(["30 seconds", GROWING])),
    probe_timeout=st.floats(0, 1e9),
    reset_after=st.floats(0, 1e9),
)
def test_a_breaker_is_made_again_from_its_options_through_json(**options: Any) -> None:
    breaker = CircuitBreaker(**options)
    stored = json.loads(json.dumps(breaker.options))
    assert CircuitBreaker(**stored) == breaker
    assert CircuitBreaker(**stored).options == breaker.options


def test_the_options_of_a_breaker_are_its_arguments_in_seconds() -> None:
    assert CircuitBreaker().options == {
        "threshold": 0.5,
        "window": 60.0,
        "min_attempts": 10,
        "cooldown": 30.0,
        "probe_timeout": 60.0,
        "reset_after": 3600.0,
    }
    assert CircuitBreaker(cooldown=GROWING).options["cooldown"] == GROWING.options
    assert CircuitBreaker(cooldown=GROWING.options) == CircuitBreaker(cooldown=GROWING)


def test_a_cooldown_that_jitters_is_no_plain_number_among_the_options() -> None:
    steady = create_backoff(base="1m", growth="constant")
    assert CircuitBreaker(cooldown=steady).options["cooldown"] == 60.0
    spread = CircuitBreaker(cooldown=steady.replace(jitter=0.5))
    assert spread.options["cooldown"]["jitter"] == 0.5


def test_a_computed_cooldown_has_no_options() -> None:
    for ceiling in (None, "1m"):
        breaker = CircuitBreaker(cooldown=create_backoff(compute=float, max=ceiling))
        with pytest.raises(TypeError, match="made with compute"):
            _ = breaker.options


@pytest.mark.parametrize("state", [CircuitState(), results("sfs"), OPEN, PROBING])
def test_a_state_goes_through_json(state: CircuitState) -> None:
    assert CircuitState.from_dict(json.loads(json.dumps(state.as_dict()))) == state


@pytest.mark.parametrize(
    "changes",
    [{"phase": "ajar"}, {"window": [[1, 2]]}, {"window": None}, {"since": 5.0}, {"extra": 1}],
)
def test_a_stored_state_that_is_none_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^stored \(.*\) needs to be what as_dict\(\) answers"):
        CircuitState.from_dict(CircuitState().as_dict() | changes)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"threshold": 0}, ValueError),
        ({"threshold": 1.01}, ValueError),
        ({"threshold": "0.5"}, TypeError),
        ({"threshold": True}, TypeError),
        ({"min_attempts": 0}, ValueError),
        ({"min_attempts": 2.5}, TypeError),
        ({"min_attempts": True}, TypeError),
        ({"window": 0}, ValueError),
        ({"cooldown": "soon"}, ValueError),
        ({"probe_timeout": -1}, ValueError),
        ({"reset_after": None}, TypeError),
    ],
)
def test_a_breaker_that_could_not_work_is_refused(
    options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error, match=rf"^{next(iter(options))} \(.*\) needs to be"):
        CircuitBreaker(**options)


class AnyInterleaving(RuleBasedStateMachine):
    """Asks, results, late results, cancels, lost probes and a clock that jumps both ways."""

    def __init__(self) -> None:
        super().__init__()
        self.breaker = CircuitBreaker(
            min_attempts=2, cooldown=create_backoff(base="10s", max="1m"), probe_timeout="5s"
        )
        self.state = CircuitState()
        self.now = 1_800_000_000.0
        self.permits: list[Permit] = []

    def become(self, state: CircuitState) -> None:
        before, self.state = self.state, state
        assert state.generation >= before.generation
        moved = (before.phase, state.phase)
        if state.generation == before.generation:
            assert state.phase == before.phase
        else:
            assert state.generation == before.generation + 1
            assert moved in {
                ("closed", "open"),
                ("open", "half_open"),
                ("half_open", "half_open"),
                ("half_open", "closed"),
                ("half_open", "open"),
                ("half_open", "vacant"),
                ("vacant", "half_open"),
            }

    @rule(seconds=st.one_of(st.integers(-120, 120), st.floats(-10, 10)))
    def the_clock_moves(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def somebody_asks(self) -> None:
        status = self.breaker.status(self.state, self.now)
        phase, generation = self.state.phase, self.state.generation
        state, permit = self.breaker.ask(self.state, self.now)
        self.become(state)
        if phase == "closed":
            assert permit == Permit(generation)
        elif permit is not None:
            assert status == "half_open"
            assert permit == Permit(generation + 1)
            assert self.breaker.ask(self.state, self.now)[1] is None
        if permit is not None:
            self.permits.append(permit)

    @precondition(lambda self: self.permits)
    @rule(data=st.data(), result=st.sampled_from(["success", "failure", "cancel"]))
    def a_result_comes_late_or_in_time(self, data: st.DataObject, result: str) -> None:
        permit = data.draw(st.sampled_from(self.permits))
        before = self.state
        settle = getattr(self.breaker, f"after_{result}")
        self.become(settle(before, permit, self.now))
        if permit.generation != before.generation:
            assert self.state == before

    @invariant()
    def no_wait_is_longer_than_the_cool_down(self) -> None:
        for moment in (self.now, self.now - 1e6):
            assert 0.0 <= self.breaker.remaining(self.state, moment) <= 60.0

    @invariant()
    def after_the_longest_wait_somebody_is_let_through(self) -> None:
        state, _ = self.breaker.ask(self.state, self.now)
        later = self.now + 60.0
        assert self.breaker.ask(state, later)[1] is not None

    @invariant()
    def the_state_goes_through_json(self) -> None:
        assert CircuitState.from_dict(json.loads(json.dumps(self.state.as_dict()))) == self.state


TestAnyInterleaving = AnyInterleaving.TestCase


@pytest.mark.parametrize("phase", ["closed", "half_open"])
def test_so_many_successes_at_once_are_as_many_one_by_one(phase: str) -> None:
    breaker = CircuitBreaker(threshold=1.0, min_attempts=1, cooldown=5)
    state, permit = breaker.ask(CircuitState(), 100.0)
    assert permit is not None
    if phase == "half_open":
        state, permit = breaker.ask(breaker.after_failure(state, permit, 100.0), 105.0)
        assert permit is not None
    one_by_one = state
    for _ in range(7):
        one_by_one = breaker.after_success(one_by_one, permit, 106.0)
    assert breaker.after_success(state, permit, 106.0, 7) == one_by_one


def test_results_count_together_that_fall_into_one_bucket_of_the_window() -> None:
    breaker = CircuitBreaker(window="1 minute")
    assert breaker.counts_together(600.0, 605.999)
    assert not breaker.counts_together(605.999, 606.0)
