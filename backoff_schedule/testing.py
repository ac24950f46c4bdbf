"""Test mode: waits are recorded and not slept."""

from __future__ import annotations

from .retry_run import INSTANT, Waits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextvars import Token
    from types import TracebackType


class instant:  # noqa: N801  (it reads as a verb: with instant() as waits)
    """Within this block no retry sleeps: each wait is recorded, in seconds and in order.

    What is recorded counts as elapsed time, so a policy with `max_elapsed` ends as it would. Holds
    for sync and async code, in this context and in the tasks that are started from it; other
    threads go on sleeping.

    Examples:
        >>> from backoff_schedule import create_backoff, retry
        >>> @retry(create_backoff(base="1 hour"), attempts=3, on=ConnectionError)
        ... def fetch() -> None:
        ...     raise ConnectionError("refused")
        >>> with instant() as waits:
        ...     try:
        ...         fetch()
        ...     except ConnectionError as error:
        ...         print(error.__notes__[0])
        gave up after 3 attempts in 10800.0 s: attempts
        >>> waits
        [3600.0, 7200.0]
    """

    __slots__ = ("_token",)

    def __init__(self) -> None:
        self._token: Token[Waits | None] | None = None

    def __enter__(self) -> list[float]:
        if self._token is not None:
            raise RuntimeError("one instant() makes one block: write instant() again")
        waits = Waits()
        self._token = INSTANT.set(waits)
        return waits

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._token is not None:
            INSTANT.reset(self._token)
            self._token = None
