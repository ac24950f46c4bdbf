"""The growth rules: how long after the nth counted failure, before jitter.

A curve counts failures from 1 and leaves free attempts to the schedule. Inside it computes
in doubles of milliseconds and divides by 1000 last; what the caller wrote (the base, the
ceiling, a step) comes back as written.

| growth | after the nth failure |
|---|---|
| exponential | base * factor ** (n - 1) |
| linear | base * n |
| constant | base |
| steps | the nth step, the last one for ever after |
| compute | what the caller's function answers |

`max` is the ceiling of the first three and of a computed curve.
"""

from __future__ import annotations

from .durations import to_milliseconds, to_seconds
from .refusals import decimal_digits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    from .durations import DurationLike
else:
    Protocol = object

_INFINITE = float("inf")
# A curve that meets its ceiling within so many failures is tabulated up to it. Of a slower
# one only the start is, so that factor 1.0001 costs neither memory nor time.
_LONGEST_TABLE = 512
_SHORT_TABLE = 64


class Curve(Protocol):
    """The delay after the nth counted failure, n = 1, 2, 3 ..."""

    @property
    def longest(self) -> float:
        """The largest value in seconds that any n answers, inf if there is none."""
        ...

    @property
    def tabulated(self) -> int:
        """How many delays, from n = 1 on, may be asked for beforehand."""
        ...

    @property
    def settles(self) -> bool:
        """Whether every delay past the tabulated ones equals the last of them."""
        ...

    def seconds(self, n: int) -> float:
        """The delay in seconds."""
        ...

    def milliseconds(self, n: int) -> float:
        """The same delay in milliseconds, for jitter to spread."""
        ...


class Steps:
    """Delays written by hand; the last one repeats."""

    __slots__ = ("_milliseconds", "_seconds", "longest", "tabulated")

    settles = True

    def __init__(self, steps: tuple[float, ...]) -> None:
        self._seconds = steps
        self._milliseconds = tuple(to_milliseconds(step) for step in steps)
        self.longest = max(steps)
        self.tabulated = len(steps)

    def seconds(self, n: int) -> float:
        return self._seconds[min(n, len(self._seconds)) - 1]

    def milliseconds(self, n: int) -> float:
        return self._milliseconds[min(n, len(self._milliseconds)) - 1]


class Growth:
    """A base above 0 that grows until it meets the ceiling."""

    __slots__ = (
        "_base",
        "_base_ms",
        "_ceiling_ms",
        "_grown",
        "_known",
        "longest",
        "settles",
        "tabulated",
    )

    def __init__(
        self, grown: Callable[[float, int], float], base: float, ceiling: float | None
    ) -> None:
        self._grown = grown
        self._base = base
        self._base_ms = to_milliseconds(base)
        self.longest = _INFINITE if ceiling is None else ceiling
        self._ceiling_ms = to_milliseconds(self.longest)
        # In milliseconds, up to the ceiling where that is near.
        self._known = [self._base_ms]
        self.settles = False
        for n in range(2, (_SHORT_TABLE if ceiling is None else _LONGEST_TABLE) + 1):
            self._known.append(self._computed(n))
            if self._known[-1] == self._ceiling_ms:
                self.settles = True
                break
        if not self.settles:
            del self._known[_SHORT_TABLE:]
        self.tabulated = len(self._known)

    def milliseconds(self, n: int) -> float:
        return self._known[n - 1] if n <= self.tabulated else self._computed(n)

    def seconds(self, n: int) -> float:
        if n == 1:
            return self._base
        milliseconds = self.milliseconds(n)
        if milliseconds == self._ceiling_ms:
            return self.longest
        # Converting back may cost the last bit; it must not undercut the base as written.
        return min(max(milliseconds / 1000.0, self._base), self.longest)

    def _computed(self, n: int) -> float:
        try:
            grown = self._grown(self._base_ms, n)
        except OverflowError:
            return self._ceiling_ms
        return min(grown, self._ceiling_ms)


class Computed:
    """The caller's own function of n, validated at each call."""

    __slots__ = ("_compute", "longest")

    tabulated = 0
    settles = False

    def __init__(self, compute: Callable[[int], DurationLike], ceiling: float | None) -> None:
        self._compute = compute
        self.longest = _INFINITE if ceiling is None else ceiling

    def seconds(self, n: int) -> float:
        return min(to_seconds(self._compute(n), f"compute({decimal_digits(n)})"), self.longest)

    def milliseconds(self, n: int) -> float:
        return to_milliseconds(self.seconds(n))


def curve_of(options: Mapping[str, Any]) -> Curve:
    """The curve that checked options describe."""
    if "steps" in options:
        return Steps(options["steps"])
    if "compute" in options:
        return Computed(options["compute"], options["max"])
    base, growth, ceiling = options["base"], options["growth"], options["max"]
    factor = options.get("factor", 1.0)
    if growth == "linear" and base > 0.0:
        return Growth(lambda base_ms, n: base_ms * n, base, ceiling)
    if factor > 1.0 and base > 0.0:
        return Growth(lambda base_ms, n: base_ms * factor ** (n - 1), base, ceiling)
    return Steps((base,))
