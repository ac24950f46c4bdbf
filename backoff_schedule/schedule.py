"""How a schedule is made: `create_backoff` checks its options once and answers a `Backoff`."""

from __future__ import annotations

from .backoff import Backoff
from .options import checked_options, checked_source

TYPE_CHECKING = False
if not TYPE_CHECKING:  # typing itself costs more to load than the whole package

    def overload(function):
        return function


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Literal, overload  # noqa: TC004  (defined above)

    from .durations import DurationLike
    from .jitter import Jitter, RandomSource


@overload
def create_backoff(
    *,
    base: DurationLike,
    growth: Literal["exponential", "linear", "constant"] = "exponential",
    factor: float = 2.0,
    max: DurationLike | None = None,
    free: int = 0,
    jitter: Jitter = 0.0,
    random: RandomSource | None = None,
) -> Backoff: ...


@overload
def create_backoff(
    *,
    steps: Iterable[DurationLike],
    free: int = 0,
    jitter: Jitter = 0.0,
    random: RandomSource | None = None,
) -> Backoff: ...


@overload
def create_backoff(
    *,
    compute: Callable[[int], DurationLike],
    max: DurationLike | None = None,
    free: int = 0,
    jitter: Jitter = 0.0,
    random: RandomSource | None = None,
) -> Backoff: ...
def create_backoff(
    *,
    base: DurationLike | None = None,
    growth: str | None = None,
    factor: float | None = None,
    max: DurationLike | None = None,
    steps: Iterable[DurationLike] | None = None,
    compute: Callable[[int], DurationLike] | None = None,
    free: int = 0,
    jitter: Jitter = 0.0,
    random: RandomSource | None = None,
) -> Backoff:
    """A schedule, from one of three shapes: a base that grows, steps, or a function.

    Durations are seconds, a `timedelta`, or text such as `"15 minutes"`.

    - `base`: the first delay, 0 or more. `growth` is `"exponential"` (the default: base,
      base * factor, base * factor**2 ...; `factor` is 2.0 unless given, 1 or more),
      `"linear"` (base, 2 * base, 3 * base ...) or `"constant"`.
    - `steps`: the delays one by one; the last one repeats for every attempt past the end.
    - `compute`: a function of the nth counted failure (1, 2, 3 ...) that answers a duration.
      What it raises passes through; what it answers is checked at each call.
    - `max`: the ceiling of the curve, for `base` and `compute`, at least `base`. Jitter comes
      after it, so a fraction spreads on both sides of the ceiling: `bounds` and `longest` say
      how far, and the pair `(0.8, 1.0)` or `"full"` never crosses it.
    - `free`: so many first failures cost nothing; the curve starts after them.
    - `jitter`: a fraction f from 0 to 1 spreads a delay over delay * [1-f, 1+f], `"full"`
      over [0, delay], a pair `(low, high)` over delay * [low, high]. Jittered delays are whole
      milliseconds, so `base`, `max` and each step need to be.
    - `random`: what draws, anything with `random()` in [0, 1): `random.Random`,
      `SeededRandom`, a NumPy Generator. The default is the operating system's generator.

    Raises `TypeError` for arguments of two shapes, or of the wrong type, and `ValueError` for a
    value outside its range. Both name the argument, the value and the rule. Once made, a
    schedule never fails.

    Examples:
        >>> polling = create_backoff(base="15 minutes", max="1 day")
        >>> [polling.delay(attempt) for attempt in (1, 2, 3, 100)]
        [900.0, 1800.0, 3600.0, 86400.0]
    """
    given = {
        "base": base,
        "growth": growth,
        "factor": factor,
        "max": max,
        "steps": steps,
        "compute": compute,
        "free": free,
        "jitter": jitter,
    }
    return Backoff(checked_options(given), checked_source(random))
