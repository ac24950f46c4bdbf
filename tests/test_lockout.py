from __future__ import annotations

import json
import math
import pickle
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from backoff_schedule import Lockout, LockoutState, create_backoff, presets
from backoff_schedule.lockout import LAST_SECOND

SIGN_IN = Lockout(presets.SIGN_IN_LOCKOUT)
# Three failures, then an hour.
THREE = Lockout(create_backoff(free=2, base="1 hour", growth="constant"), reset_after="15m")


def fail(lockout: Lockout, *moments: float, state: LockoutState | None = None) -> LockoutState:
    state = LockoutState() if state is None else state
    for moment in moments:
        state = lockout.after_failure(state, moment)
    return state


def test_the_fifth_failure_waits_a_second_and_from_the_fifteenth_on_each_waits_15_minutes() -> None:
    state, now, waits = LockoutState(), 0.0, []
    for _ in range(17):
        state = SIGN_IN.after_failure(state, now)
        waits.append(SIGN_IN.locked_for(state, now))
        now += waits[-1]
    assert waits[:6] == [0.0, 0.0, 0.0, 0.0, 1.0, 2.0]
    assert waits[13:] == [512.0, 900.0, 900.0, 900.0]


# E-02: knocking while locked prolongs the lock.


def test_a_failure_reported_while_locked_changes_nothing() -> None:
    locked = fail(THREE, 0.0, 60.0, 120.0)
    assert locked.locked_until == 3720.0
    for knock in (121.0, 2820.0, 3719.999):
        assert THREE.after_failure(locked, knock) == locked
        assert THREE.locked_for(locked, knock) == 3720.0 - knock


def test_at_the_instant_at_which_the_lock_ends_a_try_is_allowed() -> None:
    locked = fail(THREE, 0.0, 60.0, 120.0)
    assert THREE.locked_for(locked, 3719.0) == 1.0
    assert THREE.locked_for(locked, 3720.0) == 0.0
    again = THREE.after_failure(locked, 3720.0)
    assert (again.failures, again.locked_until) == (4, 7320.0)


# E-03: after the lock ends, one slip locks again; what is forgotten, and when.


def test_the_third_failure_locks_and_neither_the_second_nor_the_fourth() -> None:
    assert fail(THREE, 0.0, 1.0).locked_until is None
    assert fail(THREE, 0.0, 1.0, 2.0).locked_until == 3602.0


def test_a_failure_after_quiet_time_is_the_first_one_again() -> None:
    quiet = fail(THREE, 0.0, 1.0)
    assert THREE.after_failure(quiet, 1.0 + 899.999).failures == 3
    assert THREE.after_failure(quiet, 1.0 + 900.0).failures == 1
    locked = fail(THREE, 0.0, 1.0, 2.0)
    assert THREE.after_failure(locked, 3602.0 + 899.0).failures == 4
    assert THREE.after_failure(locked, 3602.0 + 900.0) == LockoutState(1, None, 4502.0)


def test_without_reset_after_nothing_is_forgotten() -> None:
    assert fail(SIGN_IN, 0.0, 1e9).failures == 2


def test_a_success_and_an_unlock_clear_the_count_the_lock_and_the_level() -> None:
    locked = fail(THREE, 0.0, 1.0, 2.0)
    assert THREE.after_success(locked) == LockoutState()
    assert fail(THREE, 5.0, state=THREE.after_success(locked)) == LockoutState(1, None, 5.0)


# Clocks.


def test_time_that_goes_back_loses_no_failure_and_opens_no_lock() -> None:
    state = fail(SIGN_IN, 1000.0, 10.0, 20.0, 30.0, 40.0)
    assert state == LockoutState(5, 1001.0, 1000.0)
    assert SIGN_IN.locked_for(state, 40.0) == 1.0
    assert SIGN_IN.locked_for(state, -1e9) == 1.0
    assert SIGN_IN.locked_for(state, 1000.5) == 0.5


def test_a_lock_made_under_a_longer_schedule_is_shortened_to_todays() -> None:
    locked = fail(THREE, 0.0, 1.0, 2.0)
    shorter = Lockout(create_backoff(free=2, base="1 minute", growth="constant"))
    assert shorter.locked_for(locked, 2.0) == 60.0
    assert shorter.locked_for(locked, 61.5) == 0.5
    assert shorter.locked_for(locked, 62.0) == 0.0
    assert shorter.after_failure(locked, 62.0) == LockoutState(4, 122.0, 62.0)
    assert Lockout(create_backoff(free=9, base=1)).locked_for(locked, 2.0) == 0.0


def test_the_longer_the_lock_the_later_the_end_for_21_900_days_too() -> None:
    ends = []
    for days in (1, 365, 21_900, 3_000_000, 10**9):
        lockout = Lockout(create_backoff(base=days * 86400.0, growth="constant"))
        state = lockout.after_failure(LockoutState(), 1_800_000_000.0)
        ends.append(state.locked_until)
    assert ends[2] == 1_800_000_000.0 + 21_900 * 86400.0
    assert ends == sorted(ends, key=lambda end: end or 0.0)
    assert ends[-1] == LAST_SECOND


def test_a_lock_without_end_ends_in_the_year_9999_and_is_ended_by_an_unlock() -> None:
    endless = Lockout(create_backoff(base=1, factor=1e200))
    state = fail(endless, 0.0, 1.0)
    assert state.locked_until == LAST_SECOND
    assert datetime.fromtimestamp(LAST_SECOND, UTC) == datetime(
        9999, 12, 31, 23, 59, 59, tzinfo=UTC
    )
    stored = LockoutState.from_dict(json.loads(json.dumps(state.as_dict())))
    assert stored == state
    assert endless.locked_for(stored, 2.0) == LAST_SECOND - 2.0
    assert endless.locked_for(endless.after_success(stored), 2.0) == 0.0


def test_the_counter_stays_at_its_largest_value() -> None:
    full = LockoutState(2**31 - 1, None, 0.0)
    assert SIGN_IN.after_failure(full, 1.0) == LockoutState(2**31 - 1, 901.0, 1.0)


def test_now_may_be_an_aware_datetime_and_is_kept_as_epoch_seconds() -> None:
    noon = datetime(2026, 7, 24, 14, tzinfo=timezone(timedelta(hours=2)))
    state = SIGN_IN.after_failure(LockoutState(), noon)
    assert state.last_failure == 1784894400.0
    assert SIGN_IN.locked_for(state, noon) == 0.0


@pytest.mark.parametrize("now", [datetime(2026, 1, 1), math.nan, math.inf])
def test_a_now_that_is_no_instant_is_refused(now: Any) -> None:
    for ask in (SIGN_IN.after_failure, SIGN_IN.locked_for):
        with pytest.raises(ValueError, match=r"^now \(.*\) needs to be "):
            ask(LockoutState(), now)


# Values.


def test_states_and_lockouts_are_values() -> None:
    state = fail(THREE, 0.0, 1.0)
    assert pickle.loads(pickle.dumps(state)) == state
    assert {state, fail(THREE, 0.0, 1.0)} == {state}
    with pytest.raises(AttributeError):
        state.failures = 0  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(THREE)) == THREE
    assert hash(THREE) == hash(pickle.loads(pickle.dumps(THREE)))
    assert THREE != SIGN_IN
    assert THREE != "lockout"
    assert (THREE.reset_after, SIGN_IN.reset_after) == (900.0, None)
    assert repr(THREE) == f"Lockout({THREE.schedule!r}, reset_after=900.0)"


@pytest.mark.parametrize(
    "stored",
    [
        None,
        {"failure": 1},
        {"failures": -1},
        {"failures": 2**31},
        {"failures": 1.0},
        {"failures": True},
        {"locked_until": "soon"},
        {"locked_until": math.nan},
        {"last_failure": math.inf},
    ],
)
def test_a_stored_state_that_is_none_is_refused(stored: Any) -> None:
    with pytest.raises(ValueError, match="needs to be"):
        LockoutState.from_dict(stored)


def test_a_lockout_that_could_not_work_is_refused() -> None:
    make: Any = Lockout
    with pytest.raises(TypeError, match=r"^schedule \(5\) needs to be a schedule.* not int$"):
        make(5)
    with pytest.raises(ValueError, match=r"^reset_after \('90'\) needs to be"):
        Lockout(presets.QUICK, reset_after="90")


class AnyInterleaving(RuleBasedStateMachine):
    """Failures, successes and a clock that jumps both ways."""

    def __init__(self) -> None:
        super().__init__()
        self.lockout = Lockout(
            create_backoff(free=2, base="10s", max="5 minutes"), reset_after="1 hour"
        )
        self.state = LockoutState()
        self.now = 1_800_000_000.0

    @rule(seconds=st.one_of(st.integers(-7200, 7200), st.floats(-30, 30)))
    def the_clock_moves(self, seconds: float) -> None:
        before = self.state
        self.now += seconds
        assert self.state == before

    @rule()
    def a_sign_in_fails(self) -> None:
        before = self.state
        locked = self.lockout.locked_for(before, self.now)
        self.state = self.lockout.after_failure(before, self.now)
        if locked:
            assert self.state == before
            return
        assert self.state.failures in (before.failures + 1, 1)
        if before.last_failure is not None:
            assert (self.state.last_failure or 0.0) >= before.last_failure
            if self.now - max(before.last_failure, before.locked_until or 0.0) < 3600.0:
                assert self.state.failures == before.failures + 1
        cost = self.lockout.schedule.delay(self.state.failures)
        assert self.lockout.locked_for(self.state, self.now) == pytest.approx(cost, abs=1e-3)

    @rule()
    def a_sign_in_succeeds(self) -> None:
        if self.lockout.locked_for(self.state, self.now) == 0.0:
            self.state = self.lockout.after_success(self.state)
            assert self.state == LockoutState()

    @invariant()
    def no_lock_is_shown_longer_than_its_failure_costs(self) -> None:
        for moment in (self.now, self.now - 1e6):
            shown = self.lockout.locked_for(self.state, moment)
            assert 0.0 <= shown <= self.lockout.schedule.bounds(self.state.failures)[1]

    @invariant()
    def the_state_goes_through_json(self) -> None:
        assert LockoutState.from_dict(json.loads(json.dumps(self.state.as_dict()))) == self.state


TestAnyInterleaving = AnyInterleaving.TestCase
