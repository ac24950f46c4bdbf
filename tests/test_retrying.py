from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import gc
import inspect
import itertools
import pickle
import re
import threading
import time
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock, Mock

import pytest
import trio

from backoff_schedule import Retry, RetryBudget, RetryEvent, create_backoff, retry
from backoff_schedule.testing import instant

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

SCHEDULE = create_backoff(base=1)
AT_ONCE = create_backoff(base=0)


class Flaky:
    """Fails so many times, with an exception or a result of its own each time, then works."""

    def __init__(self, *failures: BaseException, then: Any = "fine") -> None:
        self.failures = list(failures)
        self.then = then
        self.calls = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        return self.then

    async def later(self, *args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(0)
        return self(*args, **kwargs)


class Broken:
    """Fails always."""

    def __init__(self, kind: type[BaseException] = OSError) -> None:
        self.kind = kind
        self.calls = 0

    def __call__(self) -> Any:
        self.calls += 1
        raise self.kind(f"failure {self.calls}")

    async def later(self) -> Any:
        return self()


def policy(**options: Any) -> Retry:
    return retry(options.pop("schedule", SCHEDULE), **{"attempts": 3, "on": OSError, **options})


def sync_call(retrying: Retry, function: Callable[[], Any]) -> Any:
    return retrying(function)()


def sync_caller(retrying: Retry, function: Callable[[], Any]) -> Any:
    return retrying.call(function)


def sync_loop(retrying: Retry, function: Callable[[], Any]) -> Any:
    for attempt in retrying:
        with attempt:
            result = function()
    return result


def async_call(retrying: Retry, function: Callable[[], Any]) -> Any:
    async def called() -> Any:
        return function()

    return asyncio.run(retrying(called)())


def async_caller(retrying: Retry, function: Callable[[], Any]) -> Any:
    async def called() -> Any:
        return function()

    async def main() -> Any:
        return await retrying.acall(called)

    return asyncio.run(main())


def async_loop(retrying: Retry, function: Callable[[], Any]) -> Any:
    async def main() -> Any:
        async for attempt in retrying:
            with attempt:
                result = function()
        return result

    return asyncio.run(main())


def trio_call(retrying: Retry, function: Callable[[], Any]) -> Any:
    async def called() -> Any:
        return function()

    return trio.run(retrying(called))


WITH_RESULTS = [sync_call, sync_caller, async_call, async_caller, trio_call]
FORMS = [*WITH_RESULTS, sync_loop, async_loop]
every_form = pytest.mark.parametrize("form", FORMS)


# What every form does alike.


@every_form
def test_a_call_that_works_is_made_once(form: Any) -> None:
    flaky = Flaky()
    with instant() as waits:
        assert form(policy(), flaky) == "fine"
    assert (flaky.calls, waits) == (1, [])


@every_form
def test_a_call_that_fails_is_made_again_after_the_waits_of_the_schedule(form: Any) -> None:
    flaky = Flaky(OSError(), OSError())
    with instant() as waits:
        assert form(policy(), flaky) == "fine"
    assert (flaky.calls, waits) == (3, [1.0, 2.0])


@every_form
def test_three_attempts_make_three_calls_and_ask_for_two_waits(form: Any) -> None:
    asked: list[int] = []

    class Recorded:
        def delay(self, attempt: int) -> float:
            asked.append(attempt)
            return 0.0

    broken = Broken()
    with instant() as waits, pytest.raises(OSError, match="failure 3"):
        form(policy(schedule=Recorded()), broken)
    assert (broken.calls, asked, waits) == (3, [1, 2], [0.0, 0.0])


@every_form
def test_giving_up_raises_the_very_exception_of_the_last_call_with_one_note(form: Any) -> None:
    failures = [OSError("a"), OSError("b"), OSError("c")]
    flaky = Flaky(*failures)
    last = failures[-1]
    with instant(), pytest.raises(OSError) as caught:
        form(policy(), flaky)
    assert caught.value is last
    assert last.__notes__ == ["gave up after 3 attempts in 3.0 s: attempts"]
    assert all(not hasattr(failure, "__notes__") for failure in failures[:-1])
    assert last.__context__ is None
    assert last.__cause__ is None


@every_form
def test_an_exception_that_on_does_not_name_passes_at_once(form: Any) -> None:
    broken = Broken(ValueError)
    with instant() as waits, pytest.raises(ValueError, match="failure 1") as caught:
        form(policy(), broken)
    assert (broken.calls, waits) == (1, [])
    assert not hasattr(caught.value, "__notes__")


@every_form
@pytest.mark.parametrize(
    ("on", "kind", "calls"),
    [
        (OSError, ConnectionError, 3),
        ((KeyError, OSError), ConnectionError, 3),
        (Exception, ValueError, 3),
        (lambda error: "failure" in str(error), ValueError, 3),
        (lambda error: isinstance(error, OSError), ValueError, 1),
    ],
)
def test_on_is_a_type_a_tuple_or_a_predicate(
    form: Any, on: Any, kind: type[Exception], calls: int
) -> None:
    broken = Broken(kind)
    with instant(), pytest.raises(kind):
        form(policy(on=on), broken)
    assert broken.calls == calls


# C-01: Ctrl-C is retried. C-02: cancelling is retried.


@every_form
@pytest.mark.parametrize(
    "kind",
    [KeyboardInterrupt, SystemExit, GeneratorExit, concurrent.futures.CancelledError],
)
@pytest.mark.parametrize("on", [Exception, lambda error: not isinstance(error, ValueError)])
def test_ctrl_c_an_exit_and_a_cancellation_pass_at_once(
    form: Any, kind: type[BaseException], on: Any
) -> None:
    if form is trio_call and kind in (GeneratorExit, KeyboardInterrupt):
        pytest.skip("trio wraps these itself")
    broken = Broken(kind)
    with instant(), pytest.raises(kind, match="failure 1"):
        form(policy(on=on), broken)
    assert broken.calls == 1


@every_form
@pytest.mark.parametrize(
    "on",
    [
        concurrent.futures.CancelledError,
        (ValueError, concurrent.futures.CancelledError),
        (Exception, concurrent.futures.CancelledError),
    ],
)
def test_a_cancelled_future_is_retried_if_on_names_it(form: Any, on: Any) -> None:
    broken = Broken(concurrent.futures.CancelledError)
    with instant(), pytest.raises(concurrent.futures.CancelledError):
        form(policy(on=on), broken)
    assert broken.calls == 3


def test_ctrl_c_during_a_wait_ends_the_call_at_once() -> None:
    interrupt = KeyboardInterrupt()

    def interrupted(_: float) -> None:
        raise interrupt

    broken = Broken()
    with pytest.raises(KeyboardInterrupt) as caught:
        policy(sleep=interrupted)(broken)()
    assert caught.value is interrupt
    assert broken.calls == 1


def test_an_outer_time_limit_ends_an_async_call_and_its_retries() -> None:
    calls = 0

    @policy(on=lambda error: not isinstance(error, ValueError), schedule=AT_ONCE)
    async def slow() -> None:
        nonlocal calls
        calls += 1
        await asyncio.sleep(30)

    async def main() -> None:
        async with asyncio.timeout(0.05):
            await slow()

    with pytest.raises(TimeoutError):
        asyncio.run(main())
    assert calls == 1


def test_a_time_limit_that_the_function_has_itself_stays_retryable() -> None:
    calls = 0

    @policy(on=TimeoutError, schedule=AT_ONCE)
    async def slow() -> str:
        nonlocal calls
        calls += 1
        async with asyncio.timeout(0.01):
            if calls < 3:
                await asyncio.sleep(30)
        return "fine"

    assert asyncio.run(slow()) == "fine"
    assert calls == 3


def test_cancelling_a_group_of_tasks_between_two_attempts_starts_no_attempt_more() -> None:
    broken = Broken()

    async def main() -> None:
        failing = policy(schedule=create_backoff(base="1 hour"), attempts=None)(broken.later)
        tasks = [asyncio.create_task(failing()) for _ in range(10)]
        await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ended)

    asyncio.run(main())
    assert broken.calls == 10


def test_trio_cancels_during_a_wait() -> None:
    broken = Broken()

    async def main() -> bool:
        with trio.move_on_after(0.05) as scope:
            await policy(schedule=create_backoff(base="1 hour"))(broken.later)()
        return scope.cancelled_caught

    assert trio.run(main)
    assert broken.calls == 1


# C-03: the deadline is only checked before the sleep.


@every_form
def test_no_wait_starts_that_would_end_after_max_elapsed(form: Any) -> None:
    broken = Broken()
    schedule = create_backoff(base=0.3)
    with instant() as waits, pytest.raises(OSError, match="failure 3") as caught:
        form(policy(schedule=schedule, attempts=None, max_elapsed=1.0), broken)
    assert waits == [0.3, 0.6]
    assert caught.value.__notes__ == [
        "gave up after 3 attempts in 0.9 s: max_elapsed, the next wait would be 1.2 s"
    ]


def test_a_function_that_takes_longer_than_the_limit_is_called_once() -> None:
    calls = 0

    @policy(attempts=None, max_elapsed=0.02, schedule=AT_ONCE)
    def slow() -> None:
        nonlocal calls
        calls += 1
        time.sleep(0.03)
        raise OSError

    with pytest.raises(OSError) as caught:
        slow()
    assert calls == 1
    note = caught.value.__notes__[0]
    # How many tenths of a second it took depends on what else the machine does.
    assert re.match(r"gave up after 1 attempt in \d+\.\d s: max_elapsed", note)


@every_form
def test_a_limit_of_0_allows_one_call(form: Any) -> None:
    broken = Broken()
    with instant(), pytest.raises(OSError):
        form(policy(schedule=AT_ONCE, attempts=None, max_elapsed=0), broken)
    assert broken.calls == 1


def test_a_clock_that_stands_still_allows_every_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 5.0)
    broken = Broken()
    with pytest.raises(OSError, match="failure 4"):
        policy(schedule=AT_ONCE, attempts=4, max_elapsed=1)(broken)()


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_a_jump_of_the_wall_clock_changes_nothing(
    jump: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time
    jumped = itertools.count()
    monkeypatch.setattr(time, "time", lambda: real() + jump * next(jumped))
    broken = Broken()
    with instant() as waits, pytest.raises(OSError, match="failure 4"):
        policy(attempts=None, max_elapsed=10)(broken)()
    assert waits == [1.0, 2.0, 4.0]


# B-05: a wait that is too long ends the retrying and is not shortened.


@every_form
def test_a_wait_above_max_wait_gives_up_at_once(form: Any) -> None:
    broken = Broken()
    with instant() as waits, pytest.raises(OSError) as caught:
        form(policy(max_wait=300, retry_after=lambda _: 1771404540.0), broken)
    assert (broken.calls, waits) == (1, [])
    assert caught.value.__notes__ == [
        "gave up after 1 attempt in 0.0 s: max_wait, the next wait would be 1771404540.0 s"
    ]


@every_form
def test_a_wait_without_end_gives_up(form: Any) -> None:
    broken = Broken()
    endless = create_backoff(steps=[1], free=0)

    class Endless:
        def delay(self, attempt: int) -> float:
            return float("inf") if attempt == 2 else endless.delay(attempt)

    with instant() as waits, pytest.raises(OSError) as caught:
        form(policy(schedule=Endless(), attempts=None), broken)
    assert waits == [1.0]
    assert caught.value.__notes__ == [
        "gave up after 2 attempts in 1.0 s: unbounded, the next wait would have no end"
    ]


@every_form
@pytest.mark.parametrize("delay", [-1.0, float("nan")])
def test_a_schedule_that_answers_no_wait_is_refused(form: Any, delay: float) -> None:
    class Nonsense:
        def delay(self, _: int, /) -> float:
            return delay

    broken = Broken()
    with instant(), pytest.raises(ValueError, match=r"^delay\(1\) \(.*\) needs to be 0 or more"):
        form(policy(schedule=Nonsense()), broken)
    assert broken.calls == 1


@every_form
@pytest.mark.parametrize(
    ("asked", "waits"),
    [(None, [1.0, 2.0]), (0.0, [1.0, 2.0]), (1.5, [1.5, 2.0]), (-5.0, [1.0, 2.0]), (9, [9, 9])],
)
def test_what_the_other_side_asks_for_is_a_floor_under_the_schedule(
    form: Any, asked: float | None, waits: list[float]
) -> None:
    seen: list[object] = []

    def retry_after(outcome: object) -> float | None:
        seen.append(outcome)
        return asked

    failures = [OSError("a"), OSError("b")]
    with instant() as recorded:
        form(policy(retry_after=retry_after), Flaky(*failures))
    assert recorded == waits
    assert seen == failures


def test_a_long_sleep_is_cut_into_days(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    policy(schedule=create_backoff(base="60 hours"))(Flaky(OSError()).__call__)()
    assert slept == [86400.0, 86400.0, 43200.0]


def test_a_long_async_sleep_is_cut_into_days(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    flaky = Flaky(OSError())

    async def main() -> None:
        monkeypatch.setattr(asyncio, "sleep", sleep)
        await policy(schedule=create_backoff(base="60 hours")).acall(flaky.later)

    asyncio.run(main())
    assert [pause for pause in slept if pause] == [86400.0, 86400.0, 43200.0]


# Results.


@pytest.mark.parametrize("form", WITH_RESULTS)
def test_a_refused_result_is_asked_for_again_and_the_last_one_is_returned(form: Any) -> None:
    answers = iter(["busy", "busy", "done"])
    with instant() as waits:
        refusing = policy(on_result=lambda result: result == "busy")
        assert form(refusing, lambda: next(answers)) == "done"
        assert form(refusing, lambda: "busy") == "busy"
    assert waits == [1.0, 2.0, 1.0, 2.0]


@pytest.mark.parametrize("form", [sync_loop, async_loop])
def test_the_loop_form_refuses_on_result(form: Any) -> None:
    with pytest.raises(TypeError, match="on_result needs a result"):
        form(policy(on_result=bool), lambda: None)


@pytest.mark.parametrize("form", WITH_RESULTS)
def test_retry_after_reads_a_refused_result(form: Any) -> None:
    with instant() as waits:
        asking = policy(on_result=lambda result: result > 5, retry_after=lambda result: result)
        assert form(asking, iter([30, 7, 1]).__next__) == 1
    assert waits == [30, 7]


# Hooks and the log.


@every_form
def test_the_hooks_learn_of_each_retry_and_of_the_end(form: Any) -> None:
    retries: list[RetryEvent] = []
    ends: list[RetryEvent] = []
    failures = [OSError("a"), OSError("b"), OSError("c")]
    with instant(), pytest.raises(OSError):
        form(policy(on_retry=retries.append, on_give_up=ends.append), Flaky(*failures))
    assert [(event.attempt, event.wait, event.reason) for event in retries] == [
        (1, 1.0, None),
        (2, 2.0, None),
    ]
    assert [event.exception for event in [*retries, *ends]] == failures
    assert [round(event.elapsed) for event in [*retries, *ends]] == [0, 1, 3]
    assert [(event.attempt, event.wait, event.reason) for event in ends] == [(3, None, "attempts")]
    assert all((event.name is None) == (form in (sync_loop, async_loop)) for event in retries)


def test_an_event_tells_the_name_and_never_the_arguments(
    caplog: pytest.LogCaptureFixture,
) -> None:
    events: list[RetryEvent] = []

    @policy(on_retry=events.append, on_give_up=events.append)
    def sign_in(user: str, password: str) -> None:
        raise OSError("refused")

    with caplog.at_level("DEBUG", "backoff_schedule"), instant(), pytest.raises(OSError):
        sign_in("ada", password="hunter2")
    name = "test_an_event_tells_the_name_and_never_the_arguments.<locals>.sign_in"
    assert [event.name for event in events] == [name] * 3
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        f"{name}: attempt 1 ended with OSError, the next one follows in 1.000 s",
        f"{name}: attempt 2 ended with OSError, the next one follows in 2.000 s",
        f"{name}: attempt 3 ended with OSError, gave up after 3 attempts in 3.0 s: attempts",
    ]
    assert "hunter2" not in repr(events) + "".join(said)


def test_the_log_names_a_loop_and_a_refused_result(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", "backoff_schedule"), instant():
        sync_loop(policy(), Flaky(OSError()))
        policy(on_result=lambda _: True, attempts=1).call(int)
    assert [record.getMessage() for record in caplog.records] == [
        "a loop: attempt 1 ended with OSError, the next one follows in 1.000 s",
        "int: attempt 1 ended with a result, gave up after 1 attempt in 0.0 s: attempts",
    ]


@every_form
@pytest.mark.parametrize("hook", ["on_retry", "on_give_up"])
def test_what_a_hook_raises_propagates(form: Any, hook: str) -> None:
    def raising(_: RetryEvent) -> None:
        raise ZeroDivisionError

    with instant(), pytest.raises(ZeroDivisionError):
        form(policy(**{hook: raising}), Broken())


# The note.


def test_the_note_of_an_inner_policy_is_replaced_and_other_notes_stay() -> None:
    error = OSError("refused")
    error.add_note("while fetching the feed")

    @policy(attempts=2)
    @policy(attempts=3)
    def fetch() -> None:
        raise error

    with instant(), pytest.raises(OSError):
        fetch()
    assert error.__notes__ == [
        "while fetching the feed",
        "gave up after 2 attempts in 4.0 s: attempts",
    ]


@every_form
def test_an_exception_that_takes_no_note_is_left_alone(form: Any) -> None:
    class Sealed(OSError):
        def __setattr__(self, name: str, value: object) -> None:
            raise AttributeError(name)

    with instant(), pytest.raises(Sealed) as caught:
        form(policy(attempts=1), Broken(Sealed))
    assert not hasattr(caught.value, "__notes__")


@every_form
def test_one_exception_object_raised_each_time_never_becomes_its_own_cause(form: Any) -> None:
    error = OSError("again")
    with instant(), pytest.raises(OSError) as caught:
        form(policy(), Flaky(error, error, error))
    assert caught.value is error
    assert error.__cause__ is None
    assert error.__context__ is None


# C-04: calls running at the same time share one attempt counter.


def test_fifty_threads_share_a_policy_and_each_call_has_its_three_attempts() -> None:
    shared = policy(schedule=create_backoff(base=0.001))
    counts: list[int] = []

    def fail_always() -> None:
        broken = Broken()
        with pytest.raises(OSError, match="failure 3"):
            shared.call(broken)
        counts.append(broken.calls)

    def fail_often() -> None:
        for _ in range(20):
            fail_always()

    threads = [threading.Thread(target=fail_often) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [3] * 1000


def test_fifty_tasks_share_a_policy_and_a_loop_and_each_has_its_three_attempts() -> None:
    shared = policy(schedule=create_backoff(base=0.001))

    async def one(number: int) -> int:
        broken = Broken()
        with pytest.raises(OSError, match="failure 3"):
            if number % 2:
                await shared.acall(broken.later)
            else:
                async for attempt in shared:
                    with attempt:
                        await broken.later()
        return broken.calls

    async def main() -> list[int]:
        return await asyncio.gather(*(one(number) for number in range(50)))

    assert asyncio.run(main()) == [3] * 50


def test_a_function_that_calls_itself_through_its_decorated_name_counts_for_each_call() -> None:
    calls: list[int] = []

    @policy(attempts=2)
    def descend(depth: int) -> None:
        calls.append(depth)
        if depth:
            descend(depth - 1)
        raise OSError

    with instant(), pytest.raises(OSError):
        descend(2)
    assert calls == [2, 1, 0, 0, 1, 0, 0, 2, 1, 0, 0, 1, 0, 0]


# C-05: decorating a generator does nothing.


def generating() -> Iterator[int]:
    yield 1


async def generating_later() -> AsyncIterator[int]:
    yield 1


class Generating:
    def __call__(self) -> Iterator[int]:
        yield 1


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (generating, "a generator function"),
        (generating_later, "a generator function"),
        (functools.partial(generating), "a generator function"),
        (functools.partial(generating_later), "a generator function"),
        (Generating(), "a generator function"),
        (Generating().__call__, "a generator function"),
        (Flaky, "a class"),
        (5, "not callable"),
        (None, "not callable"),
    ],
)
def test_what_a_retry_cannot_repeat_is_refused_at_decoration(function: Any, problem: str) -> None:
    with pytest.raises(TypeError, match=f"^cannot retry .*, which is {problem}"):
        policy()(function)


def test_a_sync_function_that_hands_back_a_generator_is_refused_at_the_call() -> None:
    functions: list[Callable[[], Any]] = [lambda: generating(), lambda: generating_later()]
    for function in functions:
        for call in (policy()(function), lambda: policy().call(function)):  # noqa: B023
            with pytest.raises(TypeError, match="returned a generator"):
                call()


# An async callable in any disguise is retried, or refused loudly.


class AsyncCallable:
    def __init__(self, flaky: Flaky) -> None:
        self.flaky = flaky

    async def __call__(self, *args: Any) -> Any:
        return await self.flaky.later(*args)


def marked(flaky: Flaky) -> Callable[[], Awaitable[Any]]:
    def called() -> Awaitable[Any]:
        return flaky.later()

    mark: Any = vars(inspect)["markcoroutinefunction"]
    made: Callable[[], Awaitable[Any]] = mark(called)
    return made


def wrapped_async(flaky: Flaky) -> Any:
    async def called() -> Any:
        return await flaky.later()

    return called


KNOWN_DISGUISES: list[Callable[[Flaky], Any]] = [
    wrapped_async,
    lambda flaky: flaky.later,
    lambda flaky: functools.partial(flaky.later, 1),
    AsyncCallable,
    lambda flaky: functools.partial(AsyncCallable(flaky), 1),
    lambda flaky: functools.partial(functools.partial(AsyncCallable(flaky), 1)),
    lambda flaky: AsyncCallable(flaky).__call__,
    lambda flaky: AsyncMock(side_effect=[*flaky.failures, "fine"]),
]
if hasattr(inspect, "markcoroutinefunction"):
    KNOWN_DISGUISES.append(marked)


def wrapped_sync(flaky: Flaky) -> Any:
    @functools.wraps(flaky.later)
    def called() -> Any:
        return flaky.later()

    return called


def dispatched(flaky: Flaky) -> Any:
    @functools.singledispatch
    async def called(argument: object = None) -> Any:
        return await flaky.later()

    return functools.partial(called, 1)


def in_a_future(flaky: Flaky) -> Any:
    def called() -> Any:
        return asyncio.ensure_future(flaky.later())

    return called


UNKNOWN_DISGUISES: list[Callable[[Flaky], Any]] = [
    lambda flaky: lambda: flaky.later(),
    wrapped_sync,
    dispatched,
    in_a_future,
    lambda flaky: Mock(side_effect=flaky.later),
]


@pytest.mark.parametrize("disguise", KNOWN_DISGUISES)
def test_an_async_callable_that_can_be_told_is_retried(disguise: Any) -> None:
    async def main() -> Any:
        function = disguise(Flaky(OSError(), OSError()))
        with pytest.raises(TypeError, match="is async, and call would not await it: use acall"):
            policy().call(function)
        return await policy(schedule=AT_ONCE)(function)()

    assert asyncio.run(main()) == "fine"


@pytest.mark.parametrize("disguise", UNKNOWN_DISGUISES)
def test_an_async_callable_that_cannot_be_told_is_refused_at_the_call(disguise: Any) -> None:
    async def main() -> None:
        function = disguise(Flaky(OSError(), OSError()))
        retried = policy(on=Exception)(function)
        for call in (retried, lambda: policy(on=Exception).call(function)):
            with pytest.raises(TypeError, match="returned an awaitable"):
                call()
        # A task that was started runs to its end, as the loop would have it.
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait([task])
            task.exception()

    asyncio.run(main())


@pytest.mark.parametrize("disguise", [*KNOWN_DISGUISES, *UNKNOWN_DISGUISES])
def test_acall_retries_an_async_callable_in_any_disguise(disguise: Any) -> None:
    async def main() -> Any:
        function = disguise(Flaky(OSError(), OSError()))
        return await policy(schedule=AT_ONCE).acall(function)

    assert asyncio.run(main()) == "fine"


def test_acall_refuses_a_sync_function_and_does_not_retry_the_refusal() -> None:
    flaky = Flaky()

    def sync() -> Any:
        return flaky()

    wrong: Any = sync
    with pytest.raises(TypeError, match="sync returned str, which cannot be awaited: use call"):
        asyncio.run(policy(on=Exception).acall(wrong))
    assert flaky.calls == 1


# Methods.


class Client:
    """Decorated in every way; each method fails once."""

    failures = 0

    @classmethod
    def fail_once(cls) -> str:
        cls.failures += 1
        if cls.failures % 2:
            raise OSError
        return cls.__name__

    @policy(schedule=AT_ONCE)
    def method(self) -> str:
        return self.fail_once()

    @policy(schedule=AT_ONCE)
    async def async_method(self) -> str:
        return self.fail_once()

    @policy(schedule=AT_ONCE)
    @classmethod
    def class_method(cls) -> str:
        return cls.fail_once()

    @classmethod
    @policy(schedule=AT_ONCE)
    def class_method_below(cls) -> str:
        return cls.fail_once()

    @policy(schedule=AT_ONCE)
    @staticmethod
    def static_method() -> str:
        return Client.fail_once()

    @staticmethod
    @policy(schedule=AT_ONCE)
    def static_method_below() -> str:
        return Client.fail_once()


def test_methods_of_every_kind_are_retried() -> None:
    client = Client()
    assert client.method() == Client.method(client) == "Client"
    assert asyncio.run(client.async_method()) == "Client"
    for owner in (client, Client):
        assert owner.class_method() == owner.class_method_below() == "Client"
        assert owner.static_method() == owner.static_method_below() == "Client"
    assert Client.method.__qualname__ == "Client.method"
    assert inspect.iscoroutinefunction(Client.async_method)
    assert Client.failures == 2 * 11


def test_a_decorated_function_keeps_its_name_its_doc_and_its_arguments() -> None:
    @policy()
    def add(one: int, *, two: int = 2) -> int:
        """Add."""
        return one + two

    assert (add.__name__, add.__doc__) == ("add", "Add.")
    assert str(inspect.signature(add)) == "(one: 'int', *, two: 'int' = 2) -> 'int'"
    assert add(1, two=5) == 6


# The loop form.


def test_an_attempt_tells_its_number_the_time_and_what_is_left() -> None:
    seen = []
    with instant():
        for attempt in policy(max_elapsed=10):
            with attempt as entered:
                assert entered is attempt
                remaining = attempt.remaining
                assert remaining is not None
                seen.append((attempt.number, round(attempt.elapsed), round(remaining)))
                if attempt.number < 3:
                    raise OSError
    assert seen == [(1, 0, 10), (2, 1, 9), (3, 3, 7)]
    assert next(iter(policy())).remaining is None


def test_what_is_left_is_never_negative() -> None:
    attempt = next(iter(policy(max_elapsed=0)))
    time.sleep(0.001)
    assert attempt.remaining == 0.0


def test_leaving_the_loop_from_within_an_attempt_is_a_success() -> None:
    def fetch(budget: RetryBudget) -> str:
        for attempt in policy(budget=budget):
            with attempt:
                return "fine"
        raise AssertionError

    budget = RetryBudget()
    budget.spend()
    assert fetch(budget) == "fine"
    assert budget.tokens == pytest.approx(9.1)


def test_an_attempt_without_its_with_block_is_refused() -> None:
    attempts = iter(policy())
    next(attempts)
    with pytest.raises(TypeError, match="attempt 1 needs its `with attempt:` block"):
        next(attempts)

    async def main() -> None:
        later = aiter(policy())
        await anext(later)
        with pytest.raises(TypeError, match="attempt 1 needs its `with attempt:` block"):
            await anext(later)

    asyncio.run(main())


def test_an_attempt_can_be_entered_once() -> None:
    attempts = iter(policy())
    attempt = next(attempts)
    with attempt:
        pass
    with pytest.raises(TypeError, match="attempt 1 can be entered once"), attempt:
        pass
    assert list(attempts) == []


def test_an_old_attempt_cannot_be_entered_in_place_of_the_next() -> None:
    with instant():
        attempts = iter(policy())
        first = next(attempts)
        with first:
            raise OSError
        next(attempts)
        with pytest.raises(TypeError, match="attempt 1 can be entered once"), first:
            pass


# The sleep of the caller's own.


def test_a_sleep_of_the_callers_own_is_given_the_whole_wait() -> None:
    slept: list[float] = []
    policy(schedule=create_backoff(base="60 hours"), sleep=slept.append)(
        Flaky(OSError()).__call__
    )()
    assert slept == [216000.0]


def test_an_async_sleep_of_the_callers_own_is_awaited() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    asyncio.run(policy(sleep=sleep).acall(Flaky(OSError()).later))
    assert slept == [1.0]


def test_a_sleep_of_the_wrong_kind_is_refused() -> None:
    async def asleep(_: float) -> None:
        return

    with pytest.raises(TypeError, match="sleep is async, and a sync retry cannot await it"):
        policy(sleep=asleep)(Broken().__call__)()
    with pytest.raises(TypeError, match="sleep is not async"):
        asyncio.run(policy(sleep=lambda _: None).acall(Broken().later))


# The budget.


@every_form
def test_retries_stop_while_half_of_the_budget_or_less_is_left(form: Any) -> None:
    budget = RetryBudget(max_tokens=4, token_ratio=0.5)
    first, second, third = Broken(), Broken(), Broken()
    with instant():
        with pytest.raises(OSError, match="failure 2") as caught:
            form(policy(budget=budget), first)
        assert caught.value.__notes__ == ["gave up after 2 attempts in 1.0 s: budget"]
        with pytest.raises(OSError, match="failure 1"):
            form(policy(budget=budget), second)
        for _ in range(4):
            form(policy(budget=budget), Flaky())
        with pytest.raises(OSError, match="failure 1"):
            form(policy(budget=budget), third)
    assert (first.calls, second.calls, third.calls) == (2, 1, 1)
    assert budget.tokens == 2.0


def test_an_exception_that_is_not_eligible_costs_no_token() -> None:
    budget = RetryBudget()
    with pytest.raises(ValueError, match="failure 1"):
        policy(budget=budget).call(Broken(ValueError))
    assert budget.tokens == 10.0


# Values: equal, hashable, picklable. C-06: what crosses a process boundary.


def test_policies_are_equal_by_their_options() -> None:
    assert policy() == policy()
    assert hash(policy()) == hash(policy())
    others: list[Any] = [
        *[{"attempts": 4}, {"attempts": None}, {"on": KeyError}, {"max_wait": 5}],
        *[{"max_elapsed": 5}, {"on_result": bool}, {"schedule": AT_ONCE}, {"sleep": print}],
    ]
    for options in others:
        assert policy(**options) != policy()
    assert policy() != "policy"


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_policy_pickles_and_its_budget_arrives_full(protocol: int) -> None:
    plain = policy(max_elapsed="1m", on_result=bool)
    assert pickle.loads(pickle.dumps(plain, protocol)) == plain
    budget = RetryBudget(max_tokens=4)
    budget.spend()
    arrived = pickle.loads(pickle.dumps(policy(budget=budget), protocol))
    assert arrived.budget.tokens == 4.0
    assert arrived.budget is not budget


def test_a_policy_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="a policy is immutable"):
        policy().attempts = 5
    with pytest.raises(AttributeError, match="a policy is immutable"):
        del policy().attempts


def test_the_repr_of_a_policy_tells_what_was_given() -> None:
    assert repr(policy(max_wait="5m")) == (
        "retry(create_backoff(base=1.0), attempts=3, on=<class 'OSError'>, max_wait=300.0)"
    )
    assert "attempts=None" in repr(policy(attempts=None))


@policy(schedule=AT_ONCE, attempts=2)
def fails_in_a_pool() -> None:
    raise FileNotFoundError(2, "no such file", "x")


def test_a_decorated_function_that_fails_in_a_process_pool_hands_its_own_exception_back() -> None:
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        error = pool.submit(fails_in_a_pool).exception()
    assert isinstance(error, FileNotFoundError)
    assert error.filename == "x"
    assert pickle.loads(pickle.dumps(fails_in_a_pool)) is fails_in_a_pool


# No cyclic garbage on any path.


@pytest.mark.parametrize("form", [sync_call, sync_caller, sync_loop])
@pytest.mark.parametrize(
    "make",
    [
        Flaky,
        lambda: Flaky(OSError(), OSError()),
        Broken,
        lambda: Broken(ValueError),
    ],
)
@pytest.mark.parametrize(
    "options", [{}, {"max_elapsed": 60}, {"on": Exception}, {"budget": RetryBudget(1000)}]
)
def test_no_call_leaves_cyclic_garbage(form: Any, make: Any, options: dict[str, Any]) -> None:
    retrying = policy(schedule=AT_ONCE, **options)

    def call() -> None:
        try:
            form(retrying, make())
        except (OSError, ValueError):
            return

    call()
    gc.collect()
    gc.disable()
    try:
        for _ in range(10):
            call()
        assert gc.collect() == 0
    finally:
        gc.enable()


@pytest.mark.parametrize("options", [{}, {"max_elapsed": 60}, {"on": Exception}])
def test_no_async_call_leaves_cyclic_garbage(options: dict[str, Any]) -> None:
    retrying = policy(schedule=AT_ONCE, **options)

    async def works() -> str:
        return "fine"

    async def fails() -> None:
        raise OSError

    async def main() -> int:
        for function in (works, fails):
            decorated = retrying(function)
            for _ in range(3):
                try:
                    await decorated()
                except OSError:
                    continue
        gc.collect()
        gc.disable()
        for function in (works, fails):
            decorated = retrying(function)
            for _ in range(10):
                try:
                    await decorated()
                except OSError:
                    continue
        del decorated
        found = gc.collect()
        gc.enable()
        return found

    assert asyncio.run(main()) == 0


# What a policy may be made of.


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"schedule": 5}, TypeError, "schedule (5) needs to be a schedule: an object with"),
        ({"schedule": Broken}, TypeError, "needs to be a schedule"),
        ({"attempts": 0}, ValueError, "attempts (0) needs to be a whole number of calls, 1 or"),
        ({"attempts": -1}, ValueError, "attempts (-1) needs to be a whole number of calls"),
        ({"attempts": 1.0}, TypeError, "attempts (1.0) needs to be a whole number of calls"),
        ({"attempts": True}, TypeError, "attempts (True) needs to be a whole number of calls"),
        ({"on": None}, TypeError, "on (None) needs to be an exception type, a tuple of them"),
        ({"on": "OSError"}, TypeError, "on ('OSError') needs to be an exception type"),
        ({"on": ()}, ValueError, "with no type in it nothing is retried"),
        ({"on": int}, TypeError, "only subclasses of Exception can be retried"),
        ({"on": BaseException}, TypeError, "only subclasses of Exception can be retried"),
        ({"on": (OSError, KeyboardInterrupt)}, TypeError, "only subclasses of Exception"),
        ({"on": (OSError, "KeyError")}, TypeError, "only subclasses of Exception"),
        ({"on": AsyncCallable(Flaky())}, TypeError, "and not async: nothing awaits it"),
        ({"on_result": 5}, TypeError, "on_result (5) needs to be a function, or None, not int"),
        ({"on_retry": AsyncMock()}, TypeError, "and not async: nothing awaits it"),
        ({"on_give_up": "print"}, TypeError, "on_give_up ('print') needs to be a function"),
        ({"retry_after": 5}, TypeError, "retry_after (5) needs to be a function"),
        ({"max_elapsed": -1}, ValueError, "max_elapsed (-1) needs to be 0 or more and finite"),
        ({"max_wait": "soon"}, ValueError, "max_wait ('soon') needs to be a number and a unit"),
        ({"sleep": 5}, TypeError, "sleep (5) needs to be a function, or None, not int"),
        ({"budget": 5}, TypeError, "budget (5) needs to be a RetryBudget, or None, not int"),
    ],
)
def test_a_policy_that_could_not_work_is_refused(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        policy(**options)
    assert type(caught.value) is error
    assert message in str(caught.value)


def test_attempts_and_on_have_no_default() -> None:
    make: Any = retry
    with pytest.raises(TypeError, match="missing 2 required keyword-only arguments"):
        make(SCHEDULE)
