"""The loop form of a policy: `for attempt in policy: with attempt: ...`, and `async for`.

An attempt that ends without an exception ends the loop, also by `return` and `break`. One that is
skipped, or entered twice, is refused, since its failures would be counted wrongly.
"""

from __future__ import annotations

from .retry_run import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Literal, Self

    from .retrying import Retry


class Attempt:
    """One attempt of the loop form: a context manager around the code that may fail.

    Attributes:
        number: Which attempt this is, counted from 1.
    """

    __slots__ = ("_loop", "number")

    def __init__(self, loop: _Loop, number: int) -> None:
        self._loop = loop
        self.number = number

    @property
    def elapsed(self) -> float:
        """Seconds since the first attempt began."""
        return self._loop.run.elapsed()

    @property
    def remaining(self) -> float | None:
        """Seconds left of `max_elapsed`, 0.0 or more, for a timeout; None without that limit."""
        limit = self._loop.policy.max_elapsed
        return None if limit is None else max(0.0, limit - self._loop.run.elapsed())

    def __enter__(self) -> Self:
        self._loop.entered(self.number)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        return self._loop.left(exception)


class _Loop:
    """What both loop forms share: which attempt is next, and the wait before it."""

    __slots__ = ("_state", "_wait", "policy", "run")

    def __init__(self, policy: Retry) -> None:
        if policy.on_result is not None:
            raise TypeError("on_result needs a result, and the loop form has none: use a decorator")
        self.policy = policy
        self.run = Run().begun(policy, None, None)
        self._wait: float | None = None
        self._state: Literal["next", "handed out", "entered", "over"] = "next"

    def entered(self, number: int) -> None:
        if self._state != "handed out" or number != self.run.number:
            raise TypeError(f"attempt {number} can be entered once, and before the next one")
        self._state = "entered"

    def left(self, exception: BaseException | None) -> bool:
        self._state = "over"
        if exception is None:
            if self.policy.budget is not None:
                self.policy.budget.earn()
            return False
        if not isinstance(exception, self.policy._caught):
            return False
        self._wait = self.run.wait_after(exception)
        if self._wait is None:
            return False
        self._state = "next"
        return True

    def wait_before_next(self) -> float | None:
        """The wait that is due, None before the first attempt. Refuses to skip an attempt."""
        if self._state in ("handed out", "entered"):
            raise TypeError(f"attempt {self.run.number} needs its `with attempt:` block")
        return self._wait

    def next_attempt(self) -> Attempt:
        self._state = "handed out"
        return Attempt(self, self.run.number)


class Attempts(_Loop):
    __slots__ = ()

    def __iter__(self) -> Attempts:
        return self

    def __next__(self) -> Attempt:
        wait = self.wait_before_next()
        if self._state == "over":
            raise StopIteration
        if wait is not None:
            self.run.sleep(wait)
        return self.next_attempt()


class AsyncAttempts(_Loop):
    __slots__ = ()

    def __aiter__(self) -> AsyncAttempts:
        return self

    async def __anext__(self) -> Attempt:
        wait = self.wait_before_next()
        if self._state == "over":
            raise StopAsyncIteration
        if wait is not None:
            await self.run.asleep(wait)
        return self.next_attempt()
