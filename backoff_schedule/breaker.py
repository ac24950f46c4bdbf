"""A circuit breaker, as pure state: when to stop calling, and when to try again.

| from | event | to | generation | besides |
|---|---|---|---|---|
| closed | ask | closed | | a permit |
| closed | success, failure | closed | | the result is counted |
| closed | cancel | closed | | nothing |
| closed | failure that fills the threshold | open | rises | no results, one opening more |
| open | ask before the cool-down is over | open | | no permit |
| open | ask after the cool-down | half-open | rises | a permit: the probe |
| half-open | ask while the probe is out | half-open | | no permit |
| half-open | ask after `probe_timeout` | half-open | rises | a permit: another probe |
| half-open | success of the probe | closed | rises | |
| half-open | failure of the probe | open | rises | one opening more |
| half-open | cancel of the probe | vacant | rises | the place is free at once |
| vacant | ask | half-open | rises | a permit: the probe |
| any | a result of another generation | the same | | nothing |

A permit carries the generation in which it was given, so a late result cannot close an open
circuit or open a closed one. Time that goes back makes no wait longer: an ask earlier than the
opening or the probe's start moves that start to now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from .backoff import Backoff
from .durations import to_seconds
from .failure_window import FailureWindow
from .instants import epoch_seconds
from .refusals import refusal
from .schedule import create_backoff

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any, Literal

    from .durations import DurationLike
    from .failure_window import WindowState

    Status = Literal["closed", "open", "half_open", "vacant"]


@dataclass(frozen=True, slots=True)
class Permit:
    """Leave to make one call. Hand it back with the result.

    Attributes:
        generation: The generation in which it was given.
    """

    generation: int


@dataclass(frozen=True, slots=True)
class CircuitState:
    """What a breaker knows of one circuit. Times are epoch seconds.

    Attributes:
        phase: `"closed"`, `"open"`, `"half_open"` (a probe is out), `"vacant"` (it was cancelled).
        generation: Rises at every opening, probe, freed place and closing; never falls.
        openings: How many openings in a row the cool-down has grown by.
        since: When it opened, or when the probe started; None while closed.
        wait: Seconds of the cool-down, or of the probe's time; 0.0 while closed.
        closed_at: When it last closed; None if it never did.
        window: The results that count, as `FailureWindow` keeps them.
    """

    phase: Status = "closed"
    generation: int = 0
    openings: int = 0
    since: float | None = None
    wait: float = 0.0
    closed_at: float | None = None
    window: WindowState = ()

    @property
    def until(self) -> float | None:
        """When the cool-down, or the probe's time, is over; None while closed."""
        return None if self.since is None else self.since + self.wait

    def as_dict(self) -> dict[str, Any]:
        """The state as a dict that JSON holds."""
        # Not dataclasses.asdict, which copies deeply and takes ten times as long.
        return {
            "phase": self.phase,
            "generation": self.generation,
            "openings": self.openings,
            "since": self.since,
            "wait": self.wait,
            "closed_at": self.closed_at,
            "window": [list(entry) for entry in self.window],
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> CircuitState:
        """The state that `as_dict` described.

        Raises `ValueError` for a mapping that `as_dict` does not answer.

        Examples:
            >>> CircuitState.from_dict(CircuitState().as_dict()) == CircuitState()
            True
        """
        try:
            if stored.keys() != _FIELDS:
                raise KeyError
            window = tuple((int(b), int(a), int(f)) for b, a, f in stored["window"])
            state = cls(
                stored["phase"],
                stored["generation"],
                stored["openings"],
                stored["since"],
                stored["wait"],
                stored["closed_at"],
                window,
            )
            phases = ("closed", "open", "half_open", "vacant")
            if state.phase not in phases or (state.phase == "closed") != (state.since is None):
                raise KeyError
        except (KeyError, TypeError, ValueError):
            raise ValueError(refusal("stored", stored, "what as_dict() answers")) from None
        return state


_FIELDS = {field.name for field in fields(CircuitState)}


class CircuitBreaker:
    """When to stop calling something that fails, and when to try it again.

    - `threshold`: the share of failures that opens the circuit, above 0, at most 1.
    - `window`: over how long results count.
    - `min_attempts`: how many results there need to be before it can open.
    - `cooldown`: how long it stays open: a duration, or a schedule (also as its options) that is
      asked with the number of openings in a row, so that the cool-down grows.
    - `probe_timeout`: when the one call that is let through afterwards has not answered for so
      long, another one is.
    - `reset_after`: a circuit that stayed closed for so long starts again with the first cool-down.

    An immutable value: the state is the caller's. `now` is epoch seconds (any clock that only goes
    forward will do) or an aware datetime.

    Raises `TypeError` and `ValueError` for values outside these ranges.

    Examples:
        >>> breaker = CircuitBreaker(min_attempts=2, cooldown="5 minutes")
        >>> state = CircuitState()
        >>> for now in (100.0, 101.0):
        ...     state, permit = breaker.ask(state, now)
        ...     state = breaker.after_failure(state, permit, now)
        >>> breaker.status(state, 102.0), breaker.remaining(state, 102.0)
        ('open', 299.0)
    """

    __slots__ = (
        "_cooldown",
        "_min_attempts",
        "_probe_timeout",
        "_reset_after",
        "_threshold",
        "_window",
        "_window_seconds",
    )

    def __init__(
        self,
        threshold: float = 0.5,
        window: DurationLike = "1 minute",
        min_attempts: int = 10,
        cooldown: DurationLike | Backoff | Mapping[str, Any] = "30 seconds",
        probe_timeout: DurationLike = "1 minute",
        reset_after: DurationLike = "1 hour",
    ) -> None:
        self._threshold = _share(threshold)
        self._window = FailureWindow(window)
        self._window_seconds = to_seconds(window, "window")
        rule = "a whole number of results, 1 or more"
        if not isinstance(min_attempts, int) or isinstance(min_attempts, bool):
            kind = type(min_attempts).__name__
            raise TypeError(f"{refusal('min_attempts', min_attempts, rule)}, not {kind}")
        if min_attempts < 1:
            raise ValueError(refusal("min_attempts", min_attempts, rule))
        self._min_attempts = int(min_attempts)
        if isinstance(cooldown, Mapping):
            cooldown = create_backoff(**cooldown)
        elif not isinstance(cooldown, Backoff):
            cooldown = _constant(to_seconds(cooldown, "cooldown"))
        self._cooldown = cooldown
        self._probe_timeout = to_seconds(probe_timeout, "probe_timeout")
        self._reset_after = to_seconds(reset_after, "reset_after")

    @property
    def options(self) -> dict[str, Any]:
        """The arguments in a fresh dict that JSON holds; durations are seconds.

        `CircuitBreaker(**breaker.options) == breaker`, but for a cool-down's key, which is not
        among a schedule's options.

        Raises `TypeError` for a cool-down made with `compute`: JSON holds no function.

        Examples:
            >>> CircuitBreaker(cooldown="5 minutes").options["cooldown"]
            300.0
        """
        longest = self._cooldown.longest
        plain = longest < float("inf") and self._cooldown == _constant(longest)
        return {
            "threshold": self._threshold,
            "window": self._window_seconds,
            "min_attempts": self._min_attempts,
            "cooldown": longest if plain else self._cooldown.options,
            "probe_timeout": self._probe_timeout,
            "reset_after": self._reset_after,
        }

    def ask(self, state: CircuitState, now: float | datetime) -> tuple[CircuitState, Permit | None]:
        """Ask to make a call: the state afterwards, and a permit or None.

        Raises `ValueError` for a naive, NaN or infinite `now`, as every method here does.
        """
        moment = epoch_seconds(now)
        if state.phase == "closed":
            return state, Permit(state.generation)
        state = _not_before(state, moment)
        if state.phase != "vacant" and not _is_over(state, moment):
            return state, None
        state = replace(
            state,
            phase="half_open",
            generation=state.generation + 1,
            since=moment,
            wait=self._probe_timeout,
        )
        return state, Permit(state.generation)

    def after_success(
        self, state: CircuitState, permit: Permit, now: float | datetime, times: int = 1
    ) -> CircuitState:
        """The state after the call of this permit has succeeded, or `times` calls of like ones."""
        moment = epoch_seconds(now)
        if permit.generation != state.generation:
            return state
        if state.phase == "closed":
            # By hand: `replace` takes three times as long, and this is what happens most.
            window = self._window.add(state.window, moment, False, times)
            return CircuitState(
                "closed", state.generation, state.openings, None, 0.0, state.closed_at, window
            )
        return replace(
            state,
            phase="closed",
            generation=state.generation + 1,
            since=None,
            wait=0.0,
            closed_at=moment,
        )

    def after_failure(
        self, state: CircuitState, permit: Permit, now: float | datetime
    ) -> CircuitState:
        """The state after the call of this permit has failed."""
        moment = epoch_seconds(now)
        if permit.generation != state.generation:
            return state
        if state.phase != "closed":
            return self._opened(state, moment, state.openings + 1)
        window = self._window.add(state.window, moment, failed=True)
        attempts, failures = self._window.totals(window, moment)
        # Divided, since the product misses exact cases: 0.7 * 10 is above 7.
        if attempts < self._min_attempts or failures / attempts < self._threshold:
            return replace(state, window=window)
        quiet = state.closed_at is not None and moment - state.closed_at >= self._reset_after
        return self._opened(state, moment, 1 if quiet else state.openings + 1)

    def after_cancel(
        self, state: CircuitState, permit: Permit, now: float | datetime
    ) -> CircuitState:
        """The state after the call of this permit was given up without a result."""
        moment = epoch_seconds(now)
        if permit.generation != state.generation or state.phase == "closed":
            return state
        return replace(
            state, phase="vacant", generation=state.generation + 1, since=moment, wait=0.0
        )

    def counts_together(self, one: float | datetime, other: float | datetime) -> bool:
        """Whether results at these instants fall into one bucket of the window."""
        return self._window.bucket(one) == self._window.bucket(other)

    def remaining(self, state: CircuitState, now: float | datetime) -> float:
        """The seconds that are left of the cool-down; 0.0 if it is over, or there is none."""
        moment = epoch_seconds(now)
        if state.phase != "open" or state.since is None:
            return 0.0
        return min(max(0.0, state.since + state.wait - moment), state.wait)

    def status(
        self, state: CircuitState, now: float | datetime
    ) -> Literal["closed", "open", "half_open"]:
        """What an ask meets: `"half_open"` also where it would be let through as the probe."""
        if state.phase == "closed":
            return "closed"
        return "open" if self.remaining(state, now) > 0.0 else "half_open"

    def _opened(self, state: CircuitState, moment: float, openings: int) -> CircuitState:
        return replace(
            state,
            phase="open",
            generation=state.generation + 1,
            openings=openings,
            since=moment,
            # Drawn once, so that a jittered cool-down does not change with each ask.
            wait=self._cooldown.delay(openings),
            window=(),
        )

    def _identity(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in _SHOWN)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CircuitBreaker):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        shown = ", ".join(f"{name[1:]}={getattr(self, name)!r}" for name in _SHOWN)
        return f"<CircuitBreaker {shown}>"


# The window's seconds are in the window.
_SHOWN = tuple(name for name in CircuitBreaker.__slots__ if name != "_window_seconds")


def _constant(seconds: float) -> Backoff:
    return create_backoff(base=seconds, growth="constant")


def _not_before(state: CircuitState, moment: float) -> CircuitState:
    if state.since is not None and moment < state.since:
        return replace(state, since=moment)
    return state


def _is_over(state: CircuitState, moment: float) -> bool:
    return state.since is None or moment >= state.since + state.wait


def _share(threshold: float) -> float:
    rule = "a share above 0, at most 1"
    if not isinstance(threshold, (int, float)) or isinstance(threshold, bool):
        kind = type(threshold).__name__
        raise TypeError(f"{refusal('threshold', threshold, rule)}, not {kind}")
    if not 0 < threshold <= 1:
        raise ValueError(refusal("threshold", threshold, rule))
    return float(threshold)
