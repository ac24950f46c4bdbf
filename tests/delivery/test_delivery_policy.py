from __future__ import annotations

import json
import math
import random
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backoff_schedule import Backoff, CircuitBreaker, create_backoff, presets
from backoff_schedule.delivery import DEFAULT_POLICY, AutoDisable, DeliveryPolicy
from backoff_schedule.delivery.policy import merged, options_for_storage

STEPS = create_backoff(steps=["5s", "5m", "30m"])
GROWING = create_backoff(base="1m", max="6h", jitter=0.2)
COMPUTED = create_backoff(compute=float)

seconds = st.floats(0.001, 1e9)
jitters = st.sampled_from([0.0, 0.2, 1.0, "full", (0.5, 1.0), [0.8, 1.0], (1, 1)])
# Whole seconds, which every jitter can spread.
waits = st.integers(1, 10**6)
stepped = st.builds(
    create_backoff, steps=st.lists(waits, min_size=1), free=st.integers(0, 9), jitter=jitters
)
grown = st.builds(
    create_backoff,
    base=waits,
    growth=st.sampled_from(["exponential", "linear", "constant"]),
    max=st.none() | st.integers(10**6, 10**9),
    free=st.integers(0, 9),
    jitter=jitters,
)
breakers = st.builds(
    CircuitBreaker,
    threshold=st.floats(0, 1, exclude_min=True),
    window=seconds,
    min_attempts=st.integers(1, 1000),
    cooldown=seconds | grown,
)
auto_disables = st.builds(AutoDisable, failure_rate=st.floats(0.01, 1), window=seconds)
rest = {
    "timeout": seconds,
    "deadline": st.none() | seconds,
    "retry_after_limit": st.floats(0, 1e9),
    "retry_on": st.sampled_from(["default", "any"]),
    "breaker": st.none() | breakers,
    "auto_disable": st.none() | auto_disables,
}
policies = st.one_of(
    st.builds(
        DeliveryPolicy, schedule=stepped, max_attempts=st.none() | st.integers(1, 99), **rest
    ),
    st.builds(DeliveryPolicy, schedule=grown, max_attempts=st.integers(1, 99), **rest),
)
partial_options = st.fixed_dictionaries(
    {},
    optional={**rest, "schedule": stepped, "max_attempts": st.none() | st.integers(1, 99)},
)


# What a policy is.


def test_the_defaults_are_a_send_of_30_seconds_no_deadline_and_a_breaker() -> None:
    policy = DeliveryPolicy(STEPS)
    assert (policy.schedule, policy.max_attempts, policy.timeout) == (STEPS, 4, 30.0)
    assert (policy.deadline, policy.retry_after_limit, policy.retry_on) == (
        None,
        86400.0,
        "default",
    )
    assert (policy.breaker, policy.auto_disable) == (CircuitBreaker(), None)


def test_a_store_that_nobody_told_anything_tries_ten_times_over_three_days() -> None:
    assert DeliveryPolicy(presets.STANDARD_WEBHOOKS) == DEFAULT_POLICY
    assert DEFAULT_POLICY.max_attempts == 10
    waits = [DEFAULT_POLICY.schedule.delay(attempt) for attempt in range(1, 10)]
    assert sum(waits) == timedelta(hours=75, minutes=35, seconds=5).total_seconds()


@pytest.mark.parametrize(
    ("schedule", "tries"),
    [
        (create_backoff(steps=[1]), 2),
        (create_backoff(steps=[1, 2, 3]), 4),
        (create_backoff(steps=[1, 2, 3], free=2), 6),
        (create_backoff(steps=[1, 2, 3], jitter=0.5), 4),
    ],
)
def test_every_free_attempt_and_every_step_is_followed_by_a_try(
    schedule: Backoff, tries: int
) -> None:
    policy = DeliveryPolicy(schedule)
    assert (policy.max_attempts, policy.max_attempts_derived) == (tries, True)


def test_max_attempts_that_is_given_counts_more_than_the_steps() -> None:
    policy = DeliveryPolicy(STEPS, max_attempts=2)
    assert (policy.max_attempts, policy.max_attempts_derived) == (2, False)
    assert policy != DeliveryPolicy(STEPS)
    assert DeliveryPolicy(STEPS, max_attempts=4) != DeliveryPolicy(STEPS)


@pytest.mark.parametrize("schedule", [GROWING, COMPUTED, create_backoff(base=1, growth="constant")])
def test_a_schedule_without_steps_needs_max_attempts(schedule: Backoff) -> None:
    with pytest.raises(TypeError, match=r"^max_attempts \(None\) needs to be given, since the sch"):
        DeliveryPolicy(schedule)
    assert DeliveryPolicy(schedule, max_attempts=5).max_attempts == 5


def test_parts_may_be_given_as_their_options() -> None:
    written = DeliveryPolicy(
        {"base": "1m", "max": "6h", "jitter": 0.2},
        max_attempts=5,
        breaker={"cooldown": "5m"},
        auto_disable={"window": "10m"},
    )
    assert written == DeliveryPolicy(
        GROWING,
        max_attempts=5,
        breaker=CircuitBreaker(cooldown=300),
        auto_disable=AutoDisable(window=600),
    )


def test_durations_are_written_as_anywhere_else() -> None:
    policy = DeliveryPolicy(
        STEPS, timeout=timedelta(seconds=5), deadline="2 days", retry_after_limit=60
    )
    assert (policy.timeout, policy.deadline, policy.retry_after_limit) == (5.0, 172800.0, 60.0)


def test_policies_are_values() -> None:
    policy = DeliveryPolicy(STEPS, timeout="30s")
    assert policy == DeliveryPolicy(STEPS, timeout=30)
    assert hash(policy) == hash(DeliveryPolicy(STEPS, timeout=30))
    assert policy != DeliveryPolicy(STEPS, timeout=31)
    assert repr(DeliveryPolicy(STEPS, breaker=None)) == (
        f"DeliveryPolicy(schedule={STEPS!r}, max_attempts=None, timeout=30.0, deadline=None, "
        "retry_after_limit=86400.0, retry_on='default', breaker=None, auto_disable=None)"
    )


def test_a_key_or_a_source_of_the_schedule_does_not_count_since_each_row_has_its_own() -> None:
    plain = DeliveryPolicy(GROWING, max_attempts=3)
    assert DeliveryPolicy(GROWING.keyed("mine"), max_attempts=3) == plain
    seeded = DeliveryPolicy(GROWING.replace(random=random.Random(1)), max_attempts=3)
    assert seeded == plain


@pytest.mark.parametrize(
    ("schedule", "spreads"),
    [(STEPS, False), (GROWING, True), (COMPUTED, False), (COMPUTED.replace(jitter="full"), True)],
)
def test_a_policy_knows_whether_its_schedule_spreads(schedule: Backoff, spreads: bool) -> None:
    assert DeliveryPolicy(schedule, max_attempts=3).spreads == spreads


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"schedule": "svix"}, TypeError, "schedule ('svix') needs to be a schedule, as create_"),
        ({"schedule": None}, TypeError, "schedule (None) needs to be a schedule"),
        ({"schedule": {"steps": []}}, ValueError, "steps ([]) needs to be"),
        ({"max_attempts": 0}, ValueError, "max_attempts (0) needs to be a whole number of tries"),
        ({"max_attempts": -1}, ValueError, "max_attempts (-1) needs to be"),
        ({"max_attempts": 2.0}, TypeError, "max_attempts (2.0) needs to be"),
        ({"max_attempts": True}, TypeError, "max_attempts (True) needs to be"),
        ({"timeout": 0}, ValueError, "timeout (0) needs to be longer than 0"),
        ({"timeout": "0s"}, ValueError, "timeout ('0s') needs to be longer than 0"),
        ({"timeout": math.inf}, ValueError, "timeout (inf) needs to be 0 or more and finite"),
        ({"timeout": math.nan}, ValueError, "timeout (nan) needs to be"),
        ({"timeout": None}, TypeError, "timeout (None) needs to be"),
        ({"deadline": 0}, ValueError, "deadline (0) needs to be longer than 0"),
        ({"deadline": "soon"}, ValueError, "deadline ('soon') needs to be"),
        ({"retry_after_limit": -1}, ValueError, "retry_after_limit (-1) needs to be"),
        ({"retry_after_limit": None}, TypeError, "retry_after_limit (None) needs to be"),
        ({"retry_on": "all"}, ValueError, "retry_on ('all') needs to be 'default' or 'any'"),
        ({"retry_on": None}, TypeError, "retry_on (None) needs to be 'default' or 'any', not None"),
        ({"breaker": True}, TypeError, "breaker (True) needs to be a CircuitBreaker, its options"),
        ({"breaker": {"threshold": 2}}, ValueError, "threshold (2) needs to be"),
        ({"auto_disable": 0.9}, TypeError, "auto_disable (0.9) needs to be an AutoDisable"),
        ({"auto_disable": {"window": 0}}, ValueError, "window (0) needs to be"),
    ],
)
def test_a_policy_that_could_not_work_is_refused(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as refused:
        DeliveryPolicy(**{"schedule": STEPS, **options})
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("part", ["schedule", "breaker", "auto_disable"])
def test_an_option_that_a_part_does_not_have_is_refused_by_its_name(part: str) -> None:
    wrong: dict[str, Any] = {"schedule": STEPS, part: {"treshold": 1}}
    with pytest.raises(TypeError, match="treshold"):
        DeliveryPolicy(**wrong)


# Options.


@given(policies)
def test_a_policy_is_made_again_from_its_options_through_json(policy: DeliveryPolicy) -> None:
    again = DeliveryPolicy(**json.loads(json.dumps(policy.options)))
    assert again == policy
    assert hash(again) == hash(policy)
    assert again.options == policy.options
    assert again.max_attempts == policy.max_attempts
    assert again.max_attempts_derived == policy.max_attempts_derived


def test_options_are_fresh_at_each_asking() -> None:
    DEFAULT_POLICY.options["schedule"]["steps"].append(1.0)
    DEFAULT_POLICY.options["breaker"]["threshold"] = 1.0
    assert DEFAULT_POLICY.options == DeliveryPolicy(presets.STANDARD_WEBHOOKS).options


def test_a_policy_with_a_computed_schedule_has_no_options() -> None:
    policy = DeliveryPolicy(COMPUTED, max_attempts=3)
    with pytest.raises(TypeError, match="made with compute cannot be stored: give it to the work"):
        _ = policy.options


# An endpoint's options over the worker's.


@given(policies, policies)
def test_a_whole_policy_replaces_the_default(default: DeliveryPolicy, own: DeliveryPolicy) -> None:
    assert merged(default, own) == own
    assert merged(default, own.options) == own


@given(policies)
def test_no_options_change_nothing(default: DeliveryPolicy) -> None:
    assert merged(default, {}) is default
    assert merged(default, None) is default
    assert merged(default, default.options) == default


@given(policies, partial_options)
def test_a_mapping_changes_what_it_names_and_nothing_else(
    default: DeliveryPolicy, options: dict[str, Any]
) -> None:
    if "max_attempts" in options:
        # A default without steps has nothing to derive it from.
        options.setdefault("schedule", STEPS)
    policy = merged(default, options)
    for name, value in policy.options.items():
        source = DeliveryPolicy(**{"schedule": STEPS, **options}) if name in options else default
        assert value == source.options[name]


@given(policies, partial_options, partial_options)
def test_merging_twice_is_merging_both_at_once(
    default: DeliveryPolicy, first: dict[str, Any], second: dict[str, Any]
) -> None:
    first, second = {"schedule": STEPS, **first}, {"schedule": STEPS, **second}
    assert merged(merged(default, first), second) == merged(default, first | second)


def test_a_derived_max_attempts_follows_the_merged_schedule() -> None:
    policy = merged(DeliveryPolicy(STEPS), {"schedule": {"steps": ["1m"]}})
    assert (policy.max_attempts, policy.max_attempts_derived) == (2, True)


def test_a_max_attempts_that_was_given_stays_under_another_schedule() -> None:
    default = DeliveryPolicy(STEPS, max_attempts=7)
    assert merged(default, {"schedule": {"steps": ["1m"]}}).max_attempts == 7
    assert merged(default, {"schedule": GROWING}).max_attempts == 7
    assert merged(default, {"max_attempts": None}).max_attempts == 4


def test_a_schedule_without_steps_over_a_derived_max_attempts_says_what_is_missing() -> None:
    default = DeliveryPolicy(STEPS)
    with pytest.raises(TypeError, match=r"^max_attempts \(None\) needs to be given, since the sch"):
        merged(default, {"schedule": {"base": "1m"}})
    assert merged(default, {"schedule": {"base": "1m"}, "max_attempts": 5}).max_attempts == 5


def test_an_endpoint_can_have_its_own_options_over_a_computed_schedule() -> None:
    default = DeliveryPolicy(COMPUTED, max_attempts=3)
    policy = merged(default, {"timeout": "5s", "breaker": None})
    assert (policy.schedule, policy.timeout, policy.breaker) == (COMPUTED, 5.0, None)


def test_a_breaker_among_the_options_is_a_whole_one() -> None:
    default = DeliveryPolicy(STEPS, breaker=CircuitBreaker(threshold=0.9, min_attempts=3))
    policy = merged(default, {"breaker": {"threshold": 0.2}})
    assert policy.breaker == CircuitBreaker(threshold=0.2)


def test_names_that_a_policy_does_not_have_are_refused() -> None:
    with pytest.raises(TypeError) as refused:
        merged(DEFAULT_POLICY, {"timeout": 5, "time_out": 5, "attempts": 1})
    assert str(refused.value) == (
        "a policy has no option 'time_out', 'attempts'; it has schedule, max_attempts, timeout, "
        "deadline, retry_after_limit, retry_on, breaker and auto_disable"
    )
    options: Any = {1: 2}
    with pytest.raises(TypeError, match="no option 1; it has"):
        merged(DEFAULT_POLICY, options)


@pytest.mark.parametrize("options", ["{}", 5, [("timeout", 5)], STEPS])
def test_what_is_no_mapping_is_refused(options: Any) -> None:
    for read in (lambda: merged(DEFAULT_POLICY, options), lambda: options_for_storage(options)):
        with pytest.raises(TypeError, match=r"^policy \(.*\) needs to be a DeliveryPolicy, or a m"):
            read()


# What a store writes down.


@given(policies, st.one_of(policies, partial_options))
def test_stored_options_mean_what_was_given(
    default: DeliveryPolicy, own: DeliveryPolicy | dict[str, Any]
) -> None:
    if not isinstance(own, DeliveryPolicy) and "max_attempts" in own:
        own.setdefault("schedule", STEPS)
    stored = json.loads(json.dumps(options_for_storage(own)))
    assert merged(default, stored) == merged(default, own)
    if isinstance(own, dict):
        assert list(stored) == list(own)


def test_stored_options_are_in_seconds() -> None:
    stored = options_for_storage({"timeout": "1m", "schedule": STEPS, "breaker": {"cooldown": 5}})
    assert stored == {
        "timeout": 60.0,
        "schedule": STEPS.options,
        "breaker": CircuitBreaker(cooldown=5).options,
    }


def test_a_schedule_without_steps_can_be_stored_alone_for_a_worker_that_counts() -> None:
    stored = options_for_storage({"schedule": {"base": "1m"}})
    assert merged(DeliveryPolicy(STEPS, max_attempts=9), stored).max_attempts == 9


@pytest.mark.parametrize(
    "policy",
    [
        DeliveryPolicy(COMPUTED, max_attempts=3),
        {"schedule": COMPUTED},
        {"schedule": {"compute": float}},
    ],
)
def test_a_computed_schedule_is_not_stored(policy: Any) -> None:
    with pytest.raises(TypeError, match="cannot be stored: give it to the worker"):
        options_for_storage(policy)


def test_options_that_could_not_work_are_refused_before_they_are_stored() -> None:
    for wrong, error in [({"timeout": 0}, ValueError), ({"time_out": 5}, TypeError)]:
        with pytest.raises(error, match="time"):
            options_for_storage(wrong)
