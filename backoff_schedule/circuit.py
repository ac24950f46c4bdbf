"""A circuit breaker that one process holds: a lock around a state."""

from __future__ import annotations

import time
from _thread import allocate_lock
from contextvars import ContextVar
from sys import modules as _modules

from .breaker import CircuitBreaker, CircuitState
from .refusals import refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, Literal, Self

    from .breaker import Permit


class CircuitOpen(Exception):  # noqa: N818  (it reads as a condition: except CircuitOpen)
    """The circuit lets no call through now.

    Attributes:
        remaining: Seconds until the cool-down is over; 0.0 while a probe is out, whose answer may
            come at any time.
    """

    def __init__(self, remaining: float) -> None:
        super().__init__(remaining)
        self.remaining = remaining

    def __str__(self) -> str:
        if self.remaining == 0.0:
            return "the circuit is open: one call is on its way to try it"
        return f"the circuit is open for another {self.remaining:.3g} s"


class Circuit:
    """A circuit for one process, shared by its threads and tasks.

    `with circuit:`, or `async with circuit:`, around a call asks the breaker first and raises
    `CircuitOpen` where it lets nothing through. An `Exception` from the block is a failure; another
    BaseException, and `concurrent.futures.CancelledError`, is a cancel.

    `clock` answers seconds and only goes forward.

    To wait for the circuit, retry on `CircuitOpen` with
    `retry_after=lambda error: getattr(error, "remaining", None)`; to give up at once, leave it out
    of `on`.

    Examples:
        >>> circuit = Circuit(CircuitBreaker(min_attempts=2))
        >>> for _ in range(2):
        ...     try:
        ...         with circuit:
        ...             raise ConnectionError
        ...     except ConnectionError:
        ...         pass
        >>> circuit.status
        'open'
    """

    __slots__ = ("_breaker", "_clock", "_lock", "_permits", "_state")

    def __init__(
        self, breaker: CircuitBreaker, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not isinstance(breaker, CircuitBreaker):
            kind = type(breaker).__name__
            raise TypeError(f"{refusal('breaker', breaker, 'a CircuitBreaker')}, not {kind}")
        self._breaker = breaker
        self._clock = clock
        self._state = CircuitState()
        self._lock = allocate_lock()
        # The permits of the blocks that this thread or task is in, the innermost last.
        self._permits: ContextVar[tuple[Permit, ...]] = ContextVar("permits", default=())

    @property
    def state(self) -> CircuitState:
        """The state as it is now."""
        return self._state

    @property
    def status(self) -> Literal["closed", "open", "half_open"]:
        """What a call would meet now."""
        return self._breaker.status(self._state, self._clock())

    @property
    def remaining(self) -> float:
        """The seconds that are left of the cool-down; 0.0 if there is none."""
        return self._breaker.remaining(self._state, self._clock())

    def __enter__(self) -> Self:
        with self._lock:
            now = self._clock()
            self._state, permit = self._breaker.ask(self._state, now)
            if permit is None:
                raise CircuitOpen(self._breaker.remaining(self._state, now))
        self._permits.set((*self._permits.get(), permit))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        *outer, permit = self._permits.get()
        self._permits.set(tuple(outer))
        settle: Any = self._breaker.after_success
        if exception is not None:
            failed = isinstance(exception, Exception) and not _is_cancelled_future(exception)
            settle = self._breaker.after_failure if failed else self._breaker.after_cancel
        with self._lock:
            self._state = settle(self._state, permit, self._clock())

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, exception, traceback)


def _is_cancelled_future(exception: BaseException) -> bool:
    futures = _modules.get("concurrent.futures._base")
    return futures is not None and isinstance(exception, futures.CancelledError)
