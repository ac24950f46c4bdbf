from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from backoff_schedule import Backoff, create_backoff, presets
from backoff_schedule.delivery import (
    Claim,
    Decision,
    Delivered,
    DeliveryPolicy,
    Outcome,
    Permanent,
    Transient,
    decide,
    timetable,
)
from backoff_schedule.delivery.deciding import before_send

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
STEPS = DeliveryPolicy(create_backoff(steps=["5s", "5m", "30m"]))
BUSY = Transient("busy", status=503)


def claim(policy: DeliveryPolicy = STEPS, **changes: Any) -> Claim:
    row: dict[str, Any] = {
        "id": 1,
        "event_id": "evt_1",
        "endpoint": "acme",
        "url": None,
        "type": None,
        "payload": b"{}",
        "attempt": 1,
        "timeout": policy.timeout,
        "created_at": NOON,
        "deadline_at": None,
        "expires_at": None,
        "secrets": (),
        "policy": policy,
        "token": 1,
        "redrives": 0,
        "endpoint_id": 1,
        "generation": 0,
        "probe": False,
        "lost": False,
        "claimed_at": NOON,
    }
    return Claim(**row | changes)


def wait_after(
    outcome: Outcome, policy: DeliveryPolicy = STEPS, now: datetime = NOON, **changes: Any
) -> float:
    """The seconds until the next try."""
    decision = decide(outcome, claim(policy, **changes), policy, now)
    assert decision.state == "pending"
    assert decision.reason is None
    assert decision.next_attempt_at is not None
    return (decision.next_attempt_at - now).total_seconds()


def reason_for(outcome: Outcome, policy: DeliveryPolicy = STEPS, **changes: Any) -> str | None:
    """Why the row is dead."""
    decision = decide(outcome, claim(policy, **changes), policy, NOON)
    assert (decision.state, decision.next_attempt_at) == ("dead", None)
    return decision.reason


# What the sender said.


def test_a_success_is_delivered_even_at_the_last_try_and_past_the_deadline() -> None:
    late = claim(attempt=99, deadline_at=NOON - timedelta(days=1))
    assert decide(Delivered(status=200), late, STEPS, NOON) == Decision("delivered", None, None)


def test_a_permanent_failure_is_failed_at_once() -> None:
    failed = Decision("failed", None, "permanent")
    for outcome in (Permanent("no"), Permanent("bad", status=400), Permanent("gone", status=410)):
        assert decide(outcome, claim(), STEPS, NOON) == failed


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (Permanent("not found", status=404), "pending"),
        (Permanent("moved", status=301), "pending"),
        (Permanent("zero", status=0), "pending"),
        (Permanent("gone", status=410), "failed"),
        (Permanent("gone", status=410, disable_endpoint=True), "failed"),
        (Permanent("not an address"), "failed"),
    ],
)
def test_retry_on_any_tries_again_what_has_a_status_and_is_not_gone(
    outcome: Permanent, state: str
) -> None:
    policy = DeliveryPolicy(STEPS.schedule, retry_on="any")
    assert decide(outcome, claim(policy), policy, NOON).state == state
    if state == "pending":
        assert wait_after(outcome, policy) == 5.0
        assert reason_for(outcome, policy, attempt=4) == "attempts"


def test_a_sender_that_answers_no_outcome_is_tried_again() -> None:
    answer: Any
    for answer in (None, 200, "ok"):
        assert wait_after(answer) == 5.0
        assert reason_for(answer, attempt=4) == "attempts"


# The timetable.


def test_the_first_retry_comes_after_the_first_step_and_not_the_second() -> None:
    assert [wait_after(BUSY, attempt=attempt) for attempt in (1, 2, 3)] == [5.0, 300.0, 1800.0]
    assert reason_for(BUSY, attempt=4) == "attempts"


def test_steps_past_the_end_repeat() -> None:
    policy = DeliveryPolicy(STEPS.schedule, max_attempts=100)
    assert wait_after(BUSY, policy, attempt=99) == 1800.0
    assert reason_for(BUSY, policy, attempt=100) == "attempts"


def test_free_attempts_are_due_at_once() -> None:
    policy = DeliveryPolicy(create_backoff(steps=["5s"], free=1))
    assert [wait_after(BUSY, policy, attempt=attempt) for attempt in (1, 2)] == [0.0, 5.0]
    assert reason_for(BUSY, policy, attempt=3) == "attempts"


def test_jitter_is_that_of_the_endpoint_and_the_event() -> None:
    policy = DeliveryPolicy(presets.POSTEL)
    shown = presets.POSTEL.keyed("acme/evt_1")
    for attempt in range(1, 10):
        assert wait_after(BUSY, policy, attempt=attempt) == shown.delay(attempt)
    others = {wait_after(BUSY, policy, attempt=2, event_id=f"evt_{n}") for n in range(20)}
    assert len(others) == 20


def test_a_timetable_without_jitter_is_the_schedule_itself() -> None:
    assert timetable(STEPS, "acme", "evt_1") is STEPS.schedule
    policy = DeliveryPolicy(presets.POSTEL)
    assert timetable(policy, "acme", "evt_1") == presets.POSTEL.keyed("acme/evt_1")


@given(st.text(), st.text(), st.integers(1, 9), st.integers(-(10**6), 10**6))
def test_the_same_row_has_the_same_timetable_whenever_and_wherever_it_is_asked(
    endpoint: str, event_id: str, attempt: int, minutes: int
) -> None:
    row: dict[str, Any] = {"endpoint": endpoint, "event_id": event_id, "attempt": attempt}
    policy = DeliveryPolicy(presets.POSTEL)
    other = DeliveryPolicy(**policy.options)
    wait = wait_after(BUSY, policy, **row)
    assert wait == wait_after(BUSY, other, NOON + timedelta(minutes=minutes), **row, redrives=3)
    assert wait == timetable(policy, endpoint, event_id).delay(attempt)


# What the server asked for.


def test_a_503_that_asks_for_two_minutes_gets_them() -> None:
    assert wait_after(Transient("busy", status=503, retry_after=120)) == 120.0


def test_what_the_server_asks_for_is_not_shortened_by_jitter() -> None:
    policy = DeliveryPolicy(create_backoff(steps=["1m"], jitter="full"))
    for number in range(50):
        asked = Transient("busy", status=429, retry_after=60)
        assert wait_after(asked, policy, event_id=f"evt_{number}") == 60.0


@pytest.mark.parametrize("retry_after", [365 * 86400.0, 1e300, math.inf])
def test_a_year_of_retry_after_is_a_day(retry_after: float) -> None:
    assert wait_after(Transient("busy", retry_after=retry_after)) == 86400.0


def test_the_limit_never_shortens_the_delay_of_the_schedule() -> None:
    policy = DeliveryPolicy(STEPS.schedule, retry_after_limit="1m")
    asked = Transient("busy", retry_after=3600)
    assert [wait_after(asked, policy, attempt=n) for n in (1, 2)] == [60.0, 300.0]
    ignoring = DeliveryPolicy(STEPS.schedule, retry_after_limit=0)
    assert wait_after(asked, ignoring) == 5.0


# What ends a row.


def test_a_budget_of_one_try_has_no_second() -> None:
    policy = DeliveryPolicy(STEPS.schedule, max_attempts=1)
    assert reason_for(BUSY, policy) == "attempts"


def test_a_next_try_past_the_deadline_is_not_waited_for() -> None:
    assert reason_for(BUSY, deadline_at=NOON + timedelta(seconds=4.999999)) == "deadline"
    assert wait_after(BUSY, deadline_at=NOON + timedelta(seconds=5)) == 5.0
    asked = Transient("busy", retry_after=60)
    assert reason_for(asked, deadline_at=NOON + timedelta(seconds=59)) == "deadline"


def test_the_default_policy_has_no_deadline_that_could_leave_one_try() -> None:
    policy = DeliveryPolicy(create_backoff(steps=["100 days"]))
    assert policy.deadline is None
    assert wait_after(BUSY, policy) == 100 * 86400.0


@pytest.mark.parametrize(
    "schedule",
    [create_backoff(base=1, factor=1e200), create_backoff(base=1e300), create_backoff(base=3e11)],
)
def test_a_wait_that_has_no_end_or_no_date_is_unbounded(schedule: Backoff) -> None:
    policy = DeliveryPolicy(schedule, max_attempts=9)
    assert reason_for(BUSY, policy, attempt=3) == "unbounded"
    far = NOON + timedelta(days=10**6)
    assert reason_for(BUSY, policy, attempt=3, deadline_at=far) == "unbounded"


def test_a_budget_that_is_spent_asks_the_schedule_nothing() -> None:
    asked: list[int] = []

    def compute(failure: int) -> float:
        asked.append(failure)
        return 1.0

    policy = DeliveryPolicy(create_backoff(compute=compute), max_attempts=2)
    assert wait_after(BUSY, policy) == 1.0
    assert reason_for(BUSY, policy, attempt=2) == "attempts"
    assert asked == [1]


@pytest.mark.parametrize("jitter", [0.0, 0.5])
def test_what_the_schedule_of_the_caller_raises_does_not_lose_the_row(jitter: float) -> None:
    def compute(failure: int) -> float:
        if failure == 1:
            raise KeyError("no such row")
        return -1.0

    schedule = create_backoff(compute=compute, jitter=jitter)
    policy = DeliveryPolicy(schedule, max_attempts=9)
    assert reason_for(BUSY, policy) == "schedule: KeyError('no such row')"
    refused = reason_for(BUSY, policy, attempt=2)
    assert refused is not None
    assert refused.startswith("schedule: ValueError('compute(2) (-1.0) needs to be")


def test_an_interrupt_in_the_schedule_of_the_caller_is_no_failure_of_it() -> None:
    def compute(failure: int) -> float:
        raise KeyboardInterrupt

    policy = DeliveryPolicy(create_backoff(compute=compute), max_attempts=9)
    with pytest.raises(KeyboardInterrupt):
        decide(BUSY, claim(policy), policy, NOON)


# Clocks.


def test_the_answer_is_in_utc_whatever_the_zone_of_now() -> None:
    east = NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))
    decision = decide(BUSY, claim(), STEPS, east)
    assert decision.next_attempt_at == NOON + timedelta(seconds=5)
    assert decision.next_attempt_at is not None
    assert decision.next_attempt_at.tzinfo is UTC


def test_an_hour_that_comes_twice_is_no_hour_of_waiting() -> None:
    # At 01:00 UTC on this day clocks in Berlin go back from 3 to 2.
    before = datetime(2026, 10, 25, 2, 45, tzinfo=ZoneInfo("Europe/Berlin"))
    policy = DeliveryPolicy(create_backoff(steps=["30m"]))
    decision = decide(BUSY, claim(policy), policy, before)
    assert decision.next_attempt_at == datetime(2026, 10, 25, 1, 15, tzinfo=UTC)


def test_a_naive_now_is_refused() -> None:
    naive = datetime(2026, 1, 1, 12)
    for outcome in (Delivered(), BUSY, Permanent("no")):
        with pytest.raises(ValueError, match=r"^now \(.*\) needs to be aware"):
            decide(outcome, claim(), STEPS, naive)
    with pytest.raises(ValueError, match=r"^now \(.*\) needs to be aware"):
        before_send(claim(), naive)


@pytest.mark.parametrize(
    ("seconds", "microseconds"),
    [
        (0.1, 100_000),
        (951.542, 951_542_000),
        (0.000001, 1),
        (0.0000014, 2),
        (0.0000016, 2),
        (1e-9, 1),
        (5e-324, 1),
        (0.0, 0),
        (1 / 3, 333_334),
        (2**33 + 0.5, (2**33) * 10**6 + 500_000),
    ],
)
def test_a_wait_is_rounded_up_to_a_microsecond_and_whole_ones_stay(
    seconds: float, microseconds: int
) -> None:
    policy = DeliveryPolicy(create_backoff(base=seconds, growth="constant"), max_attempts=9)
    decision = decide(BUSY, claim(policy), policy, NOON)
    assert decision.next_attempt_at == NOON + timedelta(microseconds=microseconds)


# The contract.

waits = st.one_of(st.floats(0, 1e7), st.floats(0, allow_infinity=False), st.just(0.0))
schedules = st.one_of(
    st.builds(
        create_backoff, steps=st.lists(waits, min_size=1, max_size=5), free=st.integers(0, 2)
    ),
    st.builds(create_backoff, base=waits, factor=st.sampled_from([1.0, 2.0, 1e100])),
    st.builds(
        create_backoff,
        base=st.integers(1, 10**6),
        max=st.none() | st.integers(10**6, 10**8),
        jitter=st.sampled_from([0.5, "full", (0.5, 1.0)]),
    ),
)
policies = st.builds(
    DeliveryPolicy,
    schedule=schedules,
    max_attempts=st.integers(1, 12),
    retry_after_limit=st.floats(0, 1e6),
    breaker=st.none(),
)
asked_waits = st.none() | st.floats(0) | st.integers(0, 10**6)
moments = st.datetimes(timezones=st.timezones() | st.just(UTC))


@given(policies, asked_waits, st.integers(1, 15), moments, st.none() | st.floats(-1e6, 1e7))
def test_a_transient_failure_is_due_never_early_or_dead_for_a_reason_that_holds(
    policy: DeliveryPolicy,
    retry_after: float | None,
    attempt: int,
    now: datetime,
    until_deadline: float | None,
) -> None:
    try:
        now_in_utc = now.astimezone(UTC)
        deadline_at = None
        if until_deadline is not None:
            deadline_at = now_in_utc + timedelta(seconds=until_deadline)
    except OverflowError:
        assume(False)
    row = claim(policy, attempt=attempt, deadline_at=deadline_at)
    outcome = Transient("busy", retry_after=retry_after)
    decision = decide(outcome, row, policy, now)

    wait = policy.schedule.keyed("acme/evt_1").delay(attempt)
    if retry_after is not None:
        wait = max(wait, min(retry_after, policy.retry_after_limit))
    room = (datetime.max.replace(tzinfo=UTC) - now_in_utc).total_seconds()
    late = until_deadline is not None and wait > until_deadline + 2e-6
    if decision.state == "pending":
        due = decision.next_attempt_at
        assert due is not None
        assert attempt < policy.max_attempts
        assert due.utcoffset() == timedelta(0)
        assert wait <= (due - now_in_utc).total_seconds() <= wait + max(1e-6, math.ulp(wait))
        assert deadline_at is None or due <= deadline_at
        assert not late
        return
    assert (decision.state, decision.next_attempt_at) == ("dead", None)
    if attempt >= policy.max_attempts:
        assert decision.reason == "attempts"
    elif wait > room:
        assert decision.reason == "unbounded"
    elif decision.reason == "deadline":
        assert until_deadline is not None
        assert wait > until_deadline - 2e-6
    else:
        # Within rounding of the last instant that there is.
        assert decision.reason == "unbounded"
        assert wait >= room - 2e-6


@given(policies, asked_waits, st.integers(1, 15))
def test_what_was_decided_once_is_decided_again(
    policy: DeliveryPolicy, retry_after: float | None, attempt: int
) -> None:
    outcome = Transient("busy", retry_after=retry_after)
    row = claim(policy, attempt=attempt)
    assert decide(outcome, row, policy, NOON) == decide(outcome, row, policy, NOON)


# Before the send.

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("changes", "decision"),
    [
        ({}, None),
        ({"attempt": 4, "lost": True}, None),
        ({"expires_at": NOON + SECOND}, None),
        ({"expires_at": NOON}, Decision("expired", None, "ttl")),
        ({"expires_at": NOON - SECOND}, Decision("expired", None, "ttl")),
        ({"deadline_at": NOON}, None),
        ({"deadline_at": NOON - SECOND}, Decision("dead", None, "deadline")),
        ({"attempt": 5, "lost": True}, Decision("dead", None, "lost")),
        ({"attempt": 5}, Decision("dead", None, "attempts")),
        (
            {"expires_at": NOON - SECOND, "deadline_at": NOON - SECOND, "attempt": 5},
            Decision("expired", None, "ttl"),
        ),
        ({"deadline_at": NOON - SECOND, "attempt": 5}, Decision("dead", None, "deadline")),
    ],
)
def test_a_row_is_not_sent_past_its_ttl_its_deadline_or_its_budget(
    changes: dict[str, Any], decision: Decision | None
) -> None:
    assert before_send(claim(**changes), NOON) == decision


def test_a_row_due_in_30_seconds_whose_clock_moved_past_the_deadline_is_not_sent() -> None:
    policy = DeliveryPolicy(create_backoff(steps=["30s", "30s"]), deadline="5m")
    deadline_at = NOON + timedelta(minutes=5)
    assert wait_after(BUSY, policy, deadline_at=deadline_at) == 30.0
    again = claim(policy, attempt=2, deadline_at=deadline_at)
    assert before_send(again, NOON + timedelta(seconds=30)) is None
    late = before_send(again, NOON + timedelta(minutes=10))
    assert late == Decision("dead", None, "deadline")


# D-02: attempts that kill the worker are counted.


def test_a_row_that_kills_its_worker_each_time_is_sent_max_attempts_times_and_then_dead() -> None:
    sent = 0
    for attempt in range(1, 100):
        decision = before_send(claim(attempt=attempt, lost=attempt > 1), NOON)
        if decision is not None:
            break
        sent += 1
    assert sent == STEPS.max_attempts == 4
    assert decision == Decision("dead", None, "lost")
