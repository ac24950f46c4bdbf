"""Retry a call: the policy, its decorator and its callers.

A policy says when to call again; a schedule says how long to wait before. Both are values, made
once and shared. What belongs to one call, its count and its clock, lives in a `Run`
(`retry_run.py`) that is made when that call first fails.
"""

from __future__ import annotations

import time
from functools import update_wrapper

from .callables import PLAIN, check_retryable, is_async, is_awaitable, name_of, refuse_deferred
from .durations import to_seconds
from .retry_loop import AsyncAttempts, Attempts
from .retry_options import (
    checked_attempts,
    checked_budget,
    checked_function,
    checked_on,
    checked_schedule,
    checked_sleep,
)
from .retry_run import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from typing import Any, NoReturn, ParamSpec, Protocol, TypeAlias, TypeVar

    from .budget import RetryBudget
    from .durations import DurationLike
    from .retry_loop import Attempt
    from .retry_run import RetryEvent

    class Schedule(Protocol):
        def delay(self, attempt: int, /) -> float: ...

    P = ParamSpec("P")
    T = TypeVar("T")
    Decorated = TypeVar("Decorated")
    On: TypeAlias = type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], bool]
    Hook: TypeAlias = Callable[[RetryEvent], object]


def retry(
    schedule: Schedule,
    *,
    attempts: int | None,
    on: On,
    retry_after: Callable[[Any], float | None] | None = None,
    on_result: Callable[[Any], bool] | None = None,
    max_elapsed: DurationLike | None = None,
    max_wait: DurationLike | None = None,
    on_retry: Hook | None = None,
    on_give_up: Hook | None = None,
    budget: RetryBudget | None = None,
    sleep: Callable[[float], object] | None = None,
) -> Retry:
    """A policy that calls again what failed: a decorator, a caller and a loop.

    - `schedule`: says how long to wait; anything with `delay(attempt)` in seconds.
    - `attempts`: how many calls at most, the first one included; None says "for ever".
    - `on`: which exceptions are worth another call: a type, a tuple of types, or a predicate.
      Only subclasses of `Exception` can be. KeyboardInterrupt, SystemExit and a cancellation pass
      at once, also `concurrent.futures.CancelledError`, unless `on` names it.
    - `retry_after`: asked with the exception or the refused result, answers the seconds that the
      other side wants to be left alone, or None: a floor under the schedule's delay.
    - `on_result`: a predicate on results; one that it accepts is refused and called for again. When
      attempts run out, the last result is returned. Not with the loop form.
    - `max_elapsed`: no wait starts that would end later than this after the first call began.
    - `max_wait`: a longer wait is not shortened, it gives up at once.
    - `on_retry`, `on_give_up`: called with a `RetryEvent` before a wait, and at the end. What they
      raise propagates.
    - `budget`: a `RetryBudget` that policies and threads share.
    - `sleep`: waits in place of the library's own; async where the call is.

    Giving up re-raises the very exception of the last call, with one note (PEP 678) that says after
    how many attempts and why. Works with asyncio and trio; a cancellation during a wait ends it.

    Raises `TypeError` and `ValueError` for a policy that could not work, and `TypeError` at
    decoration for a class, a generator function or what is not callable.

    Examples:
        >>> from backoff_schedule import create_backoff
        >>> policy = retry(create_backoff(base=0), attempts=3, on=ConnectionError)
        >>> answers = iter([ConnectionError("refused"), "hello"])
        >>> @policy
        ... def fetch() -> str:
        ...     answer = next(answers)
        ...     if isinstance(answer, Exception):
        ...         raise answer
        ...     return answer
        >>> fetch()
        'hello'
    """
    return Retry(
        schedule=checked_schedule(schedule),
        attempts=checked_attempts(attempts),
        on=checked_on(on),
        retry_after=checked_function(retry_after, "retry_after"),
        on_result=checked_function(on_result, "on_result"),
        max_elapsed=None if max_elapsed is None else to_seconds(max_elapsed, "max_elapsed"),
        max_wait=None if max_wait is None else to_seconds(max_wait, "max_wait"),
        on_retry=checked_function(on_retry, "on_retry"),
        on_give_up=checked_function(on_give_up, "on_give_up"),
        budget=checked_budget(budget),
        sleep=checked_sleep(sleep),
    )


# The fields that are the value of a policy.
_OPTIONS = (
    "schedule",
    "attempts",
    "on",
    "retry_after",
    "on_result",
    "max_elapsed",
    "max_wait",
    "on_retry",
    "on_give_up",
    "budget",
    "sleep",
)


class Retry:
    """When to call again, and what to do about it. Made by `retry`; see there for the options.

    An immutable value: comparable, and picklable where its schedule and functions are. A policy
    with a `budget` pickles as one with a fresh budget.
    """

    __slots__ = (*_OPTIONS, "_asks", "_caught", "_judged", "_limit", "_plain", "_types")

    schedule: Schedule
    attempts: int | None
    on: On
    retry_after: Callable[[Any], float | None] | None
    on_result: Callable[[Any], bool] | None
    max_elapsed: float | None
    max_wait: float | None
    on_retry: Hook | None
    on_give_up: Hook | None
    budget: RetryBudget | None
    sleep: Callable[[float], object] | None

    _types: tuple[type[Exception], ...] | None
    _caught: type[Exception] | tuple[type[Exception], ...]
    _asks: bool
    _limit: float
    _judged: bool
    _plain: bool

    def __init__(self, **options: Any) -> None:
        on, attempts = options["on"], options["attempts"]
        types = on if isinstance(on, tuple) else (on,) if isinstance(on, type) else None
        broad = types is not None and any(map(_is_above_cancelled_future, types))
        watching = ("retry_after", "max_elapsed", "max_wait", "on_retry", "budget")
        for name, value in {
            **options,
            # None for a predicate.
            "_types": types,
            # Whether an exception that is caught may still be none to retry.
            "_asks": broad or types is None,
            # What an except clause catches: the types themselves, if they alone decide.
            "_caught": Exception if broad or types is None else types,
            "_limit": float("inf") if attempts is None else attempts,
            "_judged": options["on_result"] is not None or options["budget"] is not None,
            # Whether the number of attempts alone decides, and nobody is told.
            "_plain": all(options[name] is None for name in watching),
        }.items():
            super().__setattr__(name, value)

    def __call__(self, function: Decorated) -> Decorated:
        """Decorate a sync or async function or method; its type is unchanged."""
        target: Any = function
        if isinstance(target, (staticmethod, classmethod)):
            retried: Any = type(target)(self(target.__func__))
        else:
            check_retryable(target)
            make = self._async if is_async(target) else self._sync
            retried = update_wrapper(make(target, name_of(target)), target)
        decorated: Decorated = retried
        return decorated

    def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `function(*args, **kwargs)` and retry it. For a sync function.

        Examples:
            >>> from backoff_schedule import create_backoff
            >>> retry(create_backoff(base=1), attempts=3, on=OSError).call(int, "7")
            7
        """
        if is_async(function):
            raise TypeError(f"{name_of(function)} is async, and call would not await it: use acall")
        result: T = self._sync(function, name_of(function))(*args, **kwargs)
        return result

    async def acall(
        self, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Await `function(*args, **kwargs)` and retry it. For anything that makes an awaitable."""
        name = name_of(function)

        async def awaiting(*args: Any, **kwargs: Any) -> Any:
            pending = function(*args, **kwargs)
            if not is_awaitable(pending):
                raise _NotAwaitableError(type(pending).__name__)
            return await pending

        target = function if is_async(function) else awaiting
        try:
            result: T = await self._async(target, name)(*args, **kwargs)
        except _NotAwaitableError as refused:
            message = f"{name} returned {refused}, which cannot be awaited: use call or for"
            raise TypeError(message) from None
        return result

    def __iter__(self) -> Iterator[Attempt]:
        """Attempts, each to be used once: `for attempt in policy: with attempt: ...`."""
        return Attempts(self)

    def __aiter__(self) -> AsyncIterator[Attempt]:
        """The same for async code: `async for attempt in policy: with attempt: ...`."""
        return AsyncAttempts(self)

    def _sync(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        timed, judged = self.max_elapsed is not None, self._judged
        clock, caught, plain = time.monotonic, self._caught, PLAIN

        def retried(*args: Any, **kwargs: Any) -> Any:
            # Most calls succeed, so the first one is made before anything for retries exists.
            started = clock() if timed else None
            try:
                result = function(*args, **kwargs)
            except caught as error:
                run = Run().begun(self, name, started)
                wait = run.wait_after(error)
                if wait is None:
                    raise
                result = None
            else:
                if type(result) not in plain:
                    refuse_deferred(result, name)
                if not judged:
                    return result
                run = Run().begun(self, name, started)
                wait = self._wait_after_result(run, result)
            # Each further call is made outside the except block, so that no error becomes the
            # next one's context, and no local keeps an error and with it this very frame.
            while wait is not None:
                run.sleep(wait)
                try:
                    result = function(*args, **kwargs)
                except caught as error:
                    wait = run.wait_after(error)
                    if wait is None:
                        raise
                else:
                    if type(result) not in plain:
                        refuse_deferred(result, name)
                    if not judged:
                        return result
                    wait = self._wait_after_result(run, result)
            return result

        return retried

    def _async(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        timed, judged = self.max_elapsed is not None, self._judged
        clock, caught = time.monotonic, self._caught

        async def retried(*args: Any, **kwargs: Any) -> Any:
            started = clock() if timed else None
            try:
                result = await function(*args, **kwargs)
            except caught as error:
                run = Run().begun(self, name, started)
                wait = run.wait_after(error)
                if wait is None:
                    raise
                result = None
            else:
                if not judged:
                    return result
                run = Run().begun(self, name, started)
                wait = self._wait_after_result(run, result)
            while wait is not None:
                await run.asleep(wait)
                try:
                    result = await function(*args, **kwargs)
                except caught as error:
                    wait = run.wait_after(error)
                    if wait is None:
                        raise
                else:
                    if not judged:
                        return result
                    wait = self._wait_after_result(run, result)
            return result

        return retried

    def _wait_after_result(self, run: Run, result: object) -> float | None:
        """The wait before another call if this result is refused, None to return it."""
        if self.on_result is not None and self.on_result(result):
            return run.wait_after(None, result)
        if self.budget is not None:
            self.budget.earn()
        return None

    def _identity(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in _OPTIONS)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Retry):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={getattr(self, name)!r}"
            for name in _OPTIONS
            if name != "schedule" and (getattr(self, name) is not None or name == "attempts")
        )
        return f"retry({self.schedule!r}, {shown})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (dict(zip(_OPTIONS, self._identity(), strict=True)),)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a policy is immutable: {name} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a policy is immutable: {name} cannot be deleted")


class _NotAwaitableError(BaseException):
    """Passes by every `except Exception`, so that it is never retried."""


def _made(options: dict[str, Any]) -> Retry:
    return Retry(**options)


def _is_above_cancelled_future(kind: type[Exception]) -> bool:
    return kind is Exception or kind.__module__ == "concurrent.futures._base"
