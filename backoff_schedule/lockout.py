"""Sign-in lockout: what each failure costs, as pure state.

A lockout is a rule, and a `LockoutState` is what it knows of one account: a small value that the
application stores where it likes. Nothing here reads a clock or writes anything down.

| event | the state after it |
|---|---|
| a failure while locked | unchanged: knocking does not prolong a lock |
| a failure after `reset_after` of quiet | one failure |
| any other failure | one failure more, and locked for as long as the schedule says of that count |
| a success, or an administrator's unlock | empty |

At the very instant of `locked_until` a try is allowed. Time that goes back loses no failure and
opens no lock: what counts is the latest time that was ever seen.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from .backoff import Backoff
from .durations import to_seconds
from .instants import epoch_seconds
from .refusals import refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from typing import Any

    from .durations import DurationLike

LAST_SECOND = 253402300799.0
"""Where a lock ends that has no end: the last second of the year 9999, as epoch seconds."""

_MOST_FAILURES = 2**31 - 1


@dataclass(frozen=True, slots=True)
class LockoutState:
    """What a lockout knows of one account. Times are epoch seconds.

    Attributes:
        failures: How many failures count, from 0 to 2**31 - 1, where it stays.
        locked_until: When the lock ends; None if there is none. `LAST_SECOND` means for ever.
        last_failure: The latest time at which a failure was counted; None before the first one.

    Examples:
        >>> LockoutState.from_dict(LockoutState(failures=2, last_failure=5.0).as_dict())
        LockoutState(failures=2, locked_until=None, last_failure=5.0)
    """

    failures: int = 0
    locked_until: float | None = None
    last_failure: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """The state as a dict that JSON holds."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> LockoutState:
        """The state that `as_dict` described.

        Raises `ValueError` for a mapping that `as_dict` does not answer.
        """
        rule = "what as_dict() answers"
        try:
            state = cls(**stored)
        except TypeError:
            raise ValueError(refusal("stored", stored, rule)) from None
        failures = state.failures
        if not isinstance(failures, int) or isinstance(failures, bool):
            raise ValueError(refusal("failures", failures, "an int"))
        if not 0 <= failures <= _MOST_FAILURES:
            raise ValueError(refusal("failures", failures, f"from 0 to {_MOST_FAILURES}"))
        try:
            return cls(
                failures,
                None
                if state.locked_until is None
                else epoch_seconds(state.locked_until, "locked_until"),
                None
                if state.last_failure is None
                else epoch_seconds(state.last_failure, "last_failure"),
            )
        except TypeError as refused:
            raise ValueError(str(refused)) from None


class Lockout:
    """How long a sign-in has to wait after each failure.

    - `schedule`: what each further failure costs; `free` failures cost nothing.
    - `reset_after`: after so long without a failure and without a lock, the count is forgotten
      whole, at the next failure. None never forgets. There is no sliding window: one slip each
      month is one failure, whatever happened the month before.

    An immutable value. Every method takes `now`, epoch seconds or an aware datetime.

    Raises `TypeError` for a schedule that is none, and as `to_seconds` does for `reset_after`.

    Examples:
        >>> from backoff_schedule import presets
        >>> lockout = Lockout(presets.SIGN_IN_LOCKOUT, reset_after="1 day")
        >>> state = LockoutState()
        >>> for now in (100.0, 101.0, 102.0, 103.0, 104.0):
        ...     state = lockout.after_failure(state, now)
        >>> lockout.locked_for(state, 104.5), lockout.locked_for(state, 105.0)
        (0.5, 0.0)
    """

    __slots__ = ("_reset_after", "_schedule")

    def __init__(self, schedule: Backoff, *, reset_after: DurationLike | None = None) -> None:
        if not isinstance(schedule, Backoff):
            rule = "a schedule, as create_backoff makes it"
            raise TypeError(f"{refusal('schedule', schedule, rule)}, not {type(schedule).__name__}")
        self._schedule = schedule
        self._reset_after = None if reset_after is None else to_seconds(reset_after, "reset_after")

    @property
    def schedule(self) -> Backoff:
        """What each further failure costs."""
        return self._schedule

    @property
    def reset_after(self) -> float | None:
        """Seconds of quiet after which the count is forgotten; None for never."""
        return self._reset_after

    def after_failure(self, state: LockoutState, now: float | datetime) -> LockoutState:
        """The state after a failure at `now`.

        Raises `ValueError` for a naive, NaN or infinite `now`.
        """
        moment = epoch_seconds(now)
        if self.locked_for(state, moment) > 0.0:
            return state
        if state.last_failure is not None:
            moment = max(moment, state.last_failure)
        failures = 0 if self._is_forgotten(state, moment) else state.failures
        failures = min(failures + 1, _MOST_FAILURES)
        wait = self._schedule.delay(failures)
        locked_until = min(moment + wait, LAST_SECOND) if wait > 0.0 else None
        return LockoutState(failures, locked_until, moment)

    def after_success(self, state: LockoutState) -> LockoutState:  # noqa: ARG002
        """The state after a success, or after an administrator's unlock: nothing is kept.

        Examples:
            >>> from backoff_schedule import presets
            >>> Lockout(presets.SIGN_IN_LOCKOUT).after_success(LockoutState(failures=9))
            LockoutState(failures=0, locked_until=None, last_failure=None)
        """
        return LockoutState()

    def locked_for(self, state: LockoutState, now: float | datetime) -> float:
        """The seconds until a try is allowed; 0.0 if it is.

        Never more than the schedule's longest delay for that count, so a clock that goes back
        shows no longer lock, and one made under a longer schedule is shortened to today's.

        Raises `ValueError` for a naive, NaN or infinite `now`.
        """
        moment = epoch_seconds(now)
        end = self._end(state)
        if end is None or moment >= end:
            return 0.0
        return min(end - moment, self._schedule.bounds(state.failures)[1])

    def _end(self, state: LockoutState) -> float | None:
        """When the lock ends: as it was made, or as today's schedule would make it if sooner."""
        if state.locked_until is None or state.last_failure is None:
            return state.locked_until
        longest = self._schedule.bounds(state.failures)[1]
        return min(state.locked_until, state.last_failure + longest)

    def _is_forgotten(self, state: LockoutState, moment: float) -> bool:
        if self._reset_after is None or state.last_failure is None:
            return False
        end = self._end(state)
        quiet_since = state.last_failure if end is None else max(state.last_failure, end)
        return moment - quiet_since >= self._reset_after

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Lockout):
            return NotImplemented
        return self._schedule == other._schedule and self._reset_after == other._reset_after

    def __hash__(self) -> int:
        return hash((self._schedule, self._reset_after))

    def __repr__(self) -> str:
        return f"Lockout({self._schedule!r}, reset_after={self._reset_after!r})"
