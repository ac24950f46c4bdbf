"""How many attempts failed lately: counts in buckets of time, as pure state."""

from __future__ import annotations

from math import floor

from .durations import to_seconds
from .instants import epoch_seconds
from .refusals import refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import TypeAlias

    from .durations import DurationLike

    # (bucket, attempts, failures), by rising bucket.
    WindowState: TypeAlias = tuple[tuple[int, int, int], ...]


class FailureWindow:
    """Counts attempts and failures over the last `window` of time, in `buckets` steps.

    The state is a tuple that JSON holds as lists, empty at first. A result counts for between
    window - window / buckets and window. A result earlier than the newest bucket counts there.

    `window` is a duration above 0, `buckets` a whole number, 1 or more.

    Raises `TypeError` and `ValueError` for others.

    Examples:
        >>> window = FailureWindow("1 minute")
        >>> state = window.add((), 100.0, failed=True)
        >>> state = window.add(state, 110.0, failed=False)
        >>> window.totals(state, 110.0), window.totals(state, 165.0), window.totals(state, 200.0)
        ((2, 1), (1, 0), (0, 0))
    """

    __slots__ = ("_buckets", "_width")

    def __init__(self, window: DurationLike, buckets: int = 10) -> None:
        seconds = to_seconds(window, "window")
        if seconds == 0.0:
            raise ValueError(refusal("window", window, "longer than 0"))
        rule = "a whole number of buckets, 1 or more"
        if not isinstance(buckets, int) or isinstance(buckets, bool):
            raise TypeError(f"{refusal('buckets', buckets, rule)}, not {type(buckets).__name__}")
        if buckets < 1:
            raise ValueError(refusal("buckets", buckets, rule))
        self._buckets = buckets
        self._width = seconds / buckets

    def add(
        self, state: WindowState, now: float | datetime, failed: bool, times: int = 1
    ) -> WindowState:
        """The state after one more result at `now`, or `times` more that are alike.

        What has left the window is dropped.
        """
        current = self._current(state, now)
        oldest = current - self._buckets
        kept = [
            (bucket, attempts, failures) for bucket, attempts, failures in state if bucket > oldest
        ]
        if kept and kept[-1][0] == current:
            bucket, attempts, failures = kept.pop()
        else:
            bucket, attempts, failures = current, 0, 0
        return (*kept, (bucket, attempts + times, failures + failed * times))

    def totals(self, state: WindowState, now: float | datetime) -> tuple[int, int]:
        """How many attempts and how many failures count at `now`."""
        oldest = self._current(state, now) - self._buckets
        counted = [entry for entry in state if entry[0] > oldest]
        return sum(entry[1] for entry in counted), sum(entry[2] for entry in counted)

    def bucket(self, now: float | datetime) -> int:
        """The number of the bucket in which a result at `now` counts."""
        return floor(epoch_seconds(now) / self._width)

    def _current(self, state: WindowState, now: float | datetime) -> int:
        bucket = self.bucket(now)
        return max(bucket, state[-1][0]) if state else bucket

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FailureWindow):
            return NotImplemented
        return (self._buckets, self._width) == (other._buckets, other._width)

    def __hash__(self) -> int:
        return hash((self._buckets, self._width))

    def __repr__(self) -> str:
        return f"FailureWindow({self._width * self._buckets!r}, buckets={self._buckets})"
