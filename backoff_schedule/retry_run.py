"""One call and its retries: what is counted, decided, reported and slept.

A policy is a value and holds none of this. A run is made when a call has failed for the first
time, and belongs to that call alone.
"""

from __future__ import annotations

import time
from contextvars import ContextVar
from sys import modules as _modules

from .callables import discard, is_awaitable
from .refusals import refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from logging import Logger
    from typing import Any, Literal

    from .retrying import Retry

    Reason = Literal["attempts", "max_elapsed", "max_wait", "budget", "unbounded"]


class Waits(list[float]):
    """Waits that were recorded instead of slept, and how long they were in all."""

    total = 0.0

    def record(self, wait: float) -> None:
        self.append(wait)
        self.total += wait


INSTANT: ContextVar[Waits | None] = ContextVar("backoff_schedule.instant", default=None)
"""Where waits go, while `testing.instant` is on in this context."""

_NOTE = "gave up after "
# Every platform's sleep holds a day; some overflow at 49 of them.
_LONGEST_SLEEP = 86_400.0
_INFINITE = float("inf")
_DEBUG = 10
_FUTURES = "concurrent.futures._base"

_logger: Logger | None = None


class RetryEvent:
    """What a hook learns of a retry or of giving up. It never holds the call's arguments.

    Attributes:
        name: The callable's qualified name; None in the loop form.
        attempt: How many attempts have been made.
        elapsed: Seconds since the first attempt began (with `max_elapsed`; else since it failed).
        wait: Seconds until the next attempt. On giving up: the wait that was refused, or None.
        reason: None for a retry; else why there is none: `"attempts"`, `"max_elapsed"`,
            `"max_wait"`, `"budget"`, or `"unbounded"` (the wait would have no end).
        exception: The exception of the last attempt; None if a result was refused.
        result: The refused result; None if it raised.

    Examples:
        >>> from backoff_schedule import create_backoff, retry
        >>> told = []
        >>> policy = retry(create_backoff(base=0), attempts=2, on=ValueError, on_retry=told.append)
        >>> try:
        ...     policy.call(int, "x")
        ... except ValueError:
        ...     print(told[0].name, told[0].attempt, told[0].wait)
        int 1 0.0
    """

    __slots__ = ("attempt", "elapsed", "exception", "name", "reason", "result", "wait")

    def __init__(
        self,
        name: str | None,
        attempt: int,
        elapsed: float,
        wait: float | None,
        reason: Reason | None,
        exception: Exception | None,
        result: object,
    ) -> None:
        self.name = name
        self.attempt = attempt
        self.elapsed = elapsed
        self.wait = wait
        self.reason = reason
        self.exception = exception
        self.result = result

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in sorted(self.__slots__))
        return f"RetryEvent({fields})"


class Run:
    """The state of one call: how many attempts, since when, and where its waits go."""

    __slots__ = ("_name", "_plain", "_policy", "_skipped", "_started", "_waits", "number")

    _name: str | None
    _plain: bool
    _policy: Retry
    _started: float
    _waits: Waits | None
    _skipped: float
    number: int

    def begun(self, policy: Retry, name: str | None, started: float | None) -> Run:
        """This run with its first attempt made. Not `__init__`, which Python calls slowly."""
        self._policy = policy
        self._name = name
        self._started = time.monotonic() if started is None else started
        self._waits = INSTANT.get()
        self._skipped = 0.0 if self._waits is None else self._waits.total
        # Nobody watches and nothing limits but the number of attempts.
        self._plain = policy._plain and not (_logger or _found_logger()).isEnabledFor(_DEBUG)
        self.number = 1
        return self

    def elapsed(self) -> float:
        elapsed = time.monotonic() - self._started
        return elapsed if self._waits is None else elapsed + self._waits.total - self._skipped

    def wait_after(self, exception: Exception | None, result: object = None) -> float | None:
        """The wait before the next attempt; None if there is none.

        There is none after an exception that is not eligible, and after giving up, which is
        reported as every retry is. The exception is one that the policy catches.
        """
        policy = self._policy
        if policy._asks and exception is not None:
            if _FUTURES in _modules and isinstance(exception, _modules[_FUTURES].CancelledError):
                # An Exception by its class, and a cancellation by what it means.
                if policy._types is None or type(exception) not in policy._types:
                    return None
            elif policy._types is None:
                on: Any = policy.on
                if not on(exception):
                    return None
            elif not isinstance(exception, policy._types):
                return None
        wait: float | None = None
        if self._plain:
            number = self.number
            if number < policy._limit:
                wait = policy.schedule.delay(number)
                if 0.0 <= wait < _INFINITE:
                    self.number = number + 1
                    return wait
        return self._decide(exception, result, wait)

    def _decide(
        self, exception: Exception | None, result: object, wait: float | None
    ) -> float | None:
        policy = self._policy
        allowed = policy.budget is None or policy.budget.spend()
        elapsed = self.elapsed()
        reason: Reason | None = None
        if self.number >= policy._limit:
            reason = "attempts"
        elif not allowed:
            reason = "budget"
        else:
            if wait is None:
                wait = policy.schedule.delay(self.number)
            wait = self._asked(wait, result if exception is None else exception)
            if wait == _INFINITE:
                reason = "unbounded"
            elif policy.max_wait is not None and wait > policy.max_wait:
                reason = "max_wait"
            elif policy.max_elapsed is not None and elapsed + wait > policy.max_elapsed:
                reason = "max_elapsed"
        event = RetryEvent(self._name, self.number, elapsed, wait, reason, exception, result)
        if reason is not None and exception is not None:
            _annotate(exception, _farewell(event))
        logger = _logger or _found_logger()
        if logger.isEnabledFor(_DEBUG):
            _log(logger, event)
        hook = policy.on_retry if reason is None else policy.on_give_up
        if hook is not None:
            hook(event)
        if reason is not None:
            return None
        self.number += 1
        return wait

    def sleep(self, wait: float) -> None:
        if self._waits is not None:
            self._waits.record(wait)
            return
        sleep = self._policy.sleep
        if sleep is None:
            while wait > _LONGEST_SLEEP:
                time.sleep(_LONGEST_SLEEP)
                wait -= _LONGEST_SLEEP
            time.sleep(wait)
            return
        slept = sleep(wait)
        if slept is not None and is_awaitable(slept):
            discard(slept)
            raise TypeError("sleep is async, and a sync retry cannot await it")

    async def asleep(self, wait: float) -> None:
        if self._waits is not None:
            self._waits.record(wait)
            return
        sleep = self._policy.sleep
        if sleep is None:
            pause = _library_sleep()
            while wait > _LONGEST_SLEEP:
                await pause(_LONGEST_SLEEP)
                wait -= _LONGEST_SLEEP
            await pause(wait)
            return
        slept: Any = sleep(wait)
        if not is_awaitable(slept):
            raise TypeError("sleep is not async, and would hold up every other task")
        await slept

    def _asked(self, wait: float, outcome: object) -> float:
        """The wait, or what the other side asked for if that is longer."""
        if self._policy.retry_after is not None:
            asked = self._policy.retry_after(outcome)
            if asked is not None and asked > wait:
                wait = asked
        if not wait >= 0.0:
            raise ValueError(refusal(f"delay({self.number})", wait, "0 or more seconds"))
        return wait


def _library_sleep() -> Callable[[float], Awaitable[Any]]:
    """The sleep of the async library that runs this task."""
    trio = _modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_task():
        pause: Callable[[float], Awaitable[Any]] = trio.sleep
        return pause
    import asyncio

    return asyncio.sleep


def _farewell(event: RetryEvent) -> str:
    plural = "" if event.attempt == 1 else "s"
    said = f"{_NOTE}{event.attempt} attempt{plural} in {event.elapsed:.1f} s: {event.reason}"
    if event.wait is None:
        return said
    if event.reason == "unbounded":
        return f"{said}, the next wait would have no end"
    return f"{said}, the next wait would be {event.wait:.1f} s"


def _annotate(exception: Exception, note: str) -> None:
    """Give the exception our one note (PEP 678), unless it takes none."""
    try:
        notes = [kept for kept in getattr(exception, "__notes__", ()) if not _is_ours(kept)]
        exception.__notes__ = [*notes, note]
    except Exception:  # noqa: BLE001  (whatever an exception class does about attributes)
        return


def _is_ours(note: object) -> bool:
    return isinstance(note, str) and note.startswith(_NOTE)


def _found_logger() -> Logger | _Silence:
    """The `backoff_schedule` logger; looking it up at each failure would be slow."""
    global _logger  # noqa: PLW0603
    # Without the module nobody can have asked for the log.
    logging = _modules.get("logging")
    if logging is None:
        return _SILENCE
    logger: Logger = logging.getLogger("backoff_schedule")
    _logger = logger
    return logger


class _Silence:
    """Stands in for the logger while nobody has loaded logging."""

    def isEnabledFor(self, _level: int) -> bool:  # noqa: N802
        return False

    def debug(self, *_said: object) -> None:
        return


_SILENCE = _Silence()


def _log(logger: Logger | _Silence, event: RetryEvent) -> None:
    what = "a result" if event.exception is None else type(event.exception).__qualname__
    name = event.name or "a loop"
    if event.reason is None:
        said = "%s: attempt %d ended with %s, the next one follows in %.3f s"
        logger.debug(said, name, event.attempt, what, event.wait)
    else:
        said = "%s: attempt %d ended with %s, %s"
        logger.debug(said, name, event.attempt, what, _farewell(event))
