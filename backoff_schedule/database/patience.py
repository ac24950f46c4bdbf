"""Wait for a database that is busy or away, up to a deadline."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from ..backoff import Backoff

    T = TypeVar("T")


def patiently(
    work: Callable[[], T],
    *,
    pauses: Backoff,
    passes: Callable[[Exception], bool],
    deadline: float,
) -> T:
    """Do `work`, again and again while it raises what `passes`, until the `deadline`.

    `deadline` is a reading of `time.monotonic`, so that nested waits share one. Past it, the last
    error is the cause of a TimeoutError. Real time, also under `testing.instant`: another process
    does not let go of its lock any sooner.
    """
    for pause in pauses.delays():
        try:
            return work()
        except Exception as error:
            if not passes(error):
                raise
            if time.monotonic() + pause > deadline:
                raise TimeoutError(
                    f"the database was busy or away for too long: {error}"
                ) from error
        time.sleep(pause)
    raise AssertionError("a schedule has no end")
