"""Running the retries: whose loop does what."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from typing import TYPE_CHECKING, Any

import pytest

import backoff_schedule
from backoff_schedule import create_backoff
from tests.peers.asking import TRANSIENT, backoff, backoffs, of_tenacity, redress, stamina, tenacity

if TYPE_CHECKING:
    from collections.abc import Callable

AT_ONCE = create_backoff(base=0)


class Flaky:
    """Fails twice, then answers."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls < 3:
            raise KeyError(self.calls)
        return "done"


def test_it_retries_a_function(row: dict[str, str]) -> None:
    assert tenacity.retry(Flaky().__call__)() == "done"
    assert stamina.retry(on=KeyError, wait_initial=0, wait_jitter=0)(Flaky().__call__)() == "done"
    decorate = backoff.on_exception(backoff.constant, KeyError, interval=0)
    assert decorate(Flaky().__call__)() == "done"
    assert backoffs.retry(Flaky(), backoffs.Policy(backoffs.Constant(0.0))) == "done"
    assert redress_policy().call(Flaky()) == "done"
    assert ours()(Flaky().__call__)() == "done"
    assert set(row.values()) == {"yes"}


def redress_policy(**options: Any) -> Any:
    return redress.RetryPolicy(classifier=lambda _: TRANSIENT, strategy=lambda _: 0.0, **options)


def ours(**options: Any) -> backoff_schedule.Retry:
    return backoff_schedule.retry(AT_ONCE, **{"attempts": 5, "on": KeyError, **options})


def test_it_retries_a_coroutine(row: dict[str, str]) -> None:
    def flaky() -> Callable[[], Any]:
        inner = Flaky()

        async def call() -> str:
            return inner()

        return call

    async def answers() -> list[Any]:
        policy = redress.AsyncRetryPolicy(classifier=lambda _: TRANSIENT, strategy=lambda _: 0.0)
        return [
            await tenacity.retry(flaky())(),
            await stamina.retry(on=KeyError, wait_initial=0, wait_jitter=0)(flaky())(),
            await backoff.on_exception(backoff.constant, KeyError, interval=0)(flaky())(),
            await backoffs.aretry(flaky(), backoffs.Policy(backoffs.Constant(0.0))),
            await policy.call(flaky()),
            await ours()(flaky())(),
        ]

    assert asyncio.run(answers()) == ["done"] * 6
    assert set(row.values()) == {"yes"}


def test_it_retries_on_a_returned_value(row: dict[str, str]) -> None:
    def counter() -> Callable[[], int]:
        return itertools.count(1).__next__

    retry = tenacity.retry(retry=tenacity.retry_if_result(lambda value: value < 3))
    assert retry(counter())() == 3
    decorate = backoff.on_predicate(backoff.constant, lambda value: value < 3, interval=0)
    assert decorate(counter())() == 3
    policy = redress_policy(
        result_classifier=lambda value: TRANSIENT if value < 3 else None, max_attempts=5
    )
    assert policy.call(counter()) == 3
    assert ours(on_result=lambda value: value < 3).call(counter()) == 3
    assert set(inspect.signature(stamina.retry).parameters) == {
        *("on", "attempts", "timeout"),
        *("wait_initial", "wait_max", "wait_jitter", "wait_exp_base"),
    }
    assert set(inspect.signature(backoffs.retry).parameters) == {
        *("fn", "policy", "retry_on", "giveup", "retry_after"),
        *("on_retry", "sleep", "clock", "rng"),
    }
    assert row == {
        "this package": "`on_result`",
        "tenacity": "`retry_if_result`",
        "stamina": "no",
        "backoff": "`on_predicate`",
        "backoffs": "no",
        "redress": "`result_classifier`",
    }


def test_it_ends_by_itself(row: dict[str, str]) -> None:
    assert callable(tenacity.stop_after_attempt)
    assert callable(tenacity.stop_after_delay)
    for function, names in (
        (backoff_schedule.retry, ("attempts", "max_elapsed")),
        (stamina.retry, ("attempts", "timeout")),
        (backoff.on_exception, ("max_tries", "max_time")),
        (backoffs.Policy, ("max_retries", "max_elapsed")),
        (redress.RetryPolicy, ("max_attempts", "deadline_s")),
    ):
        assert set(names) <= set(inspect.signature(function).parameters)
    assert row == {
        "this package": "`attempts`, `max_elapsed`",
        "tenacity": "`stop_after_attempt`, `stop_after_delay`",
        "stamina": "`attempts`, `timeout`",
        "backoff": "`max_tries`, `max_time`",
        "backoffs": "`max_retries`, `max_elapsed`",
        "redress": "`max_attempts`, `deadline_s`",
    }


def test_tenacity_combines_waits_and_conditions() -> None:
    wait = tenacity.wait_fixed(3) + tenacity.wait_random(0, 2)
    assert 3.0 <= of_tenacity(wait, 1) <= 5.0
    two, later = tenacity.stop_after_attempt(2), tenacity.stop_after_delay(60)
    with pytest.raises(KeyError):
        tenacity.retry(stop=two | later, reraise=True)(Flaky().__call__)()
    assert tenacity.retry(stop=two & later, reraise=True)(Flaky().__call__)() == "done"
    key, value = map(tenacity.retry_if_exception_type, (KeyError, ValueError))
    assert tenacity.retry(retry=key | value)(Flaky().__call__)() == "done"
    with pytest.raises(KeyError):
        tenacity.retry(retry=key & value, reraise=True)(Flaky().__call__)()


def test_stamina_has_a_test_mode_and_a_switch() -> None:
    retry = stamina.retry(on=KeyError, wait_initial=3600, attempts=9)
    try:
        stamina.set_testing(True, attempts=3)
        assert retry(Flaky().__call__)() == "done"  # without waiting for two hours
        stamina.set_active(False)
        with pytest.raises(KeyError):
            retry(Flaky().__call__)()
    finally:
        stamina.set_testing(False)
        stamina.set_active(True)


def test_stamina_tells_each_retry_to_hooks() -> None:
    seen: list[Any] = []
    ready_made = {"PrometheusOnRetryHook", "StructlogOnRetryHook", "LoggingOnRetryHook"}
    assert ready_made <= set(stamina.instrumentation.__all__)
    try:
        stamina.instrumentation.set_on_retry_hooks([seen.append])
        stamina.retry(on=KeyError, wait_initial=0, wait_jitter=0)(Flaky().__call__)()
    finally:
        stamina.instrumentation.set_on_retry_hooks(None)
    assert [details.retry_num for details in seen] == [1, 2]


def test_stamina_asks_what_to_retry_on() -> None:
    with pytest.raises(TypeError, match="on"):
        stamina.retry()


def test_backoff_takes_any_generator_and_tells_handlers() -> None:
    def at_once() -> Any:
        yield
        while True:
            yield 0.0

    seen: list[int] = []
    decorate = backoff.on_exception(
        at_once, KeyError, jitter=None, on_backoff=lambda details: seen.append(details["tries"])
    )
    assert decorate(Flaky().__call__)() == "done"
    assert seen == [1, 2]


def test_backoffs_ends_a_sequence_within_a_budget() -> None:
    delays = backoffs.Policy(backoffs.Constant(2.0), max_elapsed=5.0).delays()
    assert list(delays) == [2.0, 2.0]
    assert delays.stop_reason == "max_elapsed"


def test_backoffs_has_decorrelated_jitter_and_fibonacci() -> None:
    jitter = backoffs.DecorrelatedJitter()
    drawn = itertools.islice(backoffs.Policy(backoffs.Exponential(1.0), jitter).delays(), 50)
    assert all(1.0 <= delay <= 30.0 for delay in drawn)
    delays = backoffs.Policy(backoffs.Fibonacci(1.0)).delays()
    assert list(itertools.islice(delays, 5)) == [1.0, 1.0, 2.0, 3.0, 5.0]


def test_backoffs_has_policies_of_grpc_and_google_cloud() -> None:
    assert backoffs.Policy.grpc().cap == 120.0
    assert backoffs.Policy.google_cloud().cap == 32.0


def test_redress_waits_by_class_of_error() -> None:
    waits: list[float] = []
    policy = redress.RetryPolicy(
        classifier=redress.http_classifier,
        strategies={
            redress.ErrorClass.RATE_LIMIT: lambda _: 0.002,
            redress.ErrorClass.SERVER_ERROR: lambda _: 0.001,
        },
        before_sleep=lambda _, seconds: waits.append(seconds),
    )

    class AnsweredError(Exception):
        def __init__(self, status: int) -> None:
            self.status = status

    errors: list[Exception] = [AnsweredError(429), AnsweredError(503)]

    def call() -> str:
        if errors:
            raise errors.pop(0)
        return "done"

    assert policy.call(call) == "done"
    assert waits == [0.002, 0.001]


def test_redress_has_a_circuit_breaker_and_a_retry_budget() -> None:
    budget = redress.Budget(max_retries=3, window_s=60.0)
    assert redress_policy(budget=budget).call(Flaky()) == "done"  # two retries of the three
    with pytest.raises(KeyError):
        redress_policy(budget=budget).call(Flaky())
    policy = redress.Policy(
        retry=redress.Retry(classifier=lambda _: TRANSIENT, strategy=lambda _: 0.0, max_attempts=1),
        circuit_breaker=redress.CircuitBreaker(
            failure_threshold=1, window_s=60.0, recovery_timeout_s=30.0, trip_on={TRANSIENT}
        ),
    )
    with pytest.raises(KeyError):
        policy.call(Flaky())
    with pytest.raises(redress.CircuitOpenError):
        policy.call(Flaky())
