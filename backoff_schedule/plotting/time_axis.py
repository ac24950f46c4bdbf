"""The scale of an axis of durations, and its ticks at times that a person counts in."""

from __future__ import annotations

from math import log10
from typing import NamedTuple

from ..durations import format_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Literal

    from matplotlib.axes import Axes

# From one end to the other by more than this, and the small waits vanish on a linear axis.
_WIDE = 30.0
# A shorter wait is drawn as none: a microsecond is the resolution of durations.
_SHORTEST = 1e-6
ENDLESS = 1e280
"""From here on a wait is drawn as endless: no arithmetic on the way to a pixel can overflow."""
_MOST_TICKS = 8
_MOST_STEPS = 6
_DAY = 86_400.0
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


class TimeScale(NamedTuple):
    """What an axis shows. All but `kind` in seconds."""

    kind: Literal["linear", "log", "symlog"]
    """`symlog` is logarithmic and has a place for 0."""
    shortest: float
    """The shortest wait that is not 0."""
    bottom: float
    top: float
    ticks: list[float]

    def drawn(self, seconds: Iterable[float]) -> list[float]:
        """The waits as the axis places them: an endless one at its top edge."""
        return [min(wait, self.top) if wait >= _SHORTEST else 0.0 for wait in seconds]

    def apply_to(self, axes: Axes) -> None:
        options = {}
        if self.kind == "symlog":
            # What lies between 0 and the shortest wait is empty, and takes an eighth of the axis.
            linscale = max(0.3, log10(self.top / self.shortest) / 8)
            options = {"linthresh": self.shortest, "linscale": linscale}
        axes.set_yscale(self.kind, **options)
        axes.set_ylim(self.bottom, self.top)
        axes.set_yticks(self.ticks, [tick_label(tick) for tick in self.ticks])
        axes.set_yticks([], minor=True)


def time_scale(seconds: Iterable[float]) -> TimeScale:
    """The scale that shows all of these waits: linear, or logarithmic where they differ widely."""
    waits = [wait for wait in seconds if wait < ENDLESS]
    above_zero = [wait for wait in waits if wait >= _SHORTEST]
    if not above_zero:
        return TimeScale("linear", 1.0, -0.03, 1.06, [0.0, 1.0])
    shortest, longest = min(above_zero), max(above_zero)
    if longest <= _WIDE * shortest:
        ticks = _linear_ticks(longest)
        return TimeScale("linear", shortest, -0.03 * longest, 1.06 * longest, ticks)
    margin = (longest / shortest) ** 0.05
    bottom, top = shortest / margin, longest * margin
    if len(above_zero) == len(waits):
        return TimeScale("log", shortest, bottom, top, _log_ticks(bottom, top))
    ticks = [0.0, *_log_ticks(shortest, top)]
    return TimeScale("symlog", shortest, -0.2 * shortest, top, ticks)


def tick_label(seconds: float) -> str:
    """A tick as `format_duration` shows it; very many days as a power of ten."""
    days = seconds / _DAY
    if days < 100_000:
        return format_duration(seconds)
    digits, _, exponent = f"{days:.1e}".partition("e+")
    digits = digits.removesuffix(".0")
    times = "" if digits == "1" else f"{digits}\N{MULTIPLICATION SIGN}"
    return f"{times}10{str(int(exponent)).translate(_SUPERSCRIPTS)}d"


def _ladder(
    below_a_second: tuple[int, ...],
    seconds: tuple[int, ...],
    minutes: tuple[int, ...],
    hours: tuple[int, ...],
    days: Callable[[int], tuple[int, ...]],
) -> tuple[float, ...]:
    """Times that a person counts in, ascending; `days` by the power of ten."""
    return (
        *(digit / 10**-power for power in range(-6, 0) for digit in below_a_second),
        *map(float, seconds),
        *(60.0 * count for count in minutes),
        *(3600.0 * count for count in hours),
        *(_DAY * digit * 10.0**power for power in range(277) for digit in days(power)),
    )


def _one_two_five(_power: int) -> tuple[int, ...]:
    return (1, 2, 5)


_STEPS = _ladder(
    (1, 2, 5), (1, 2, 5, 10, 20, 30), (1, 2, 5, 10, 20, 30), (1, 2, 3, 6, 12), _one_two_five
)
# From many ticks to few.
_LADDERS = (
    _ladder((1, 2, 5), (1, 2, 5, 10, 30), (1, 2, 5, 10, 30), (1, 2, 6, 12), _one_two_five),
    _ladder((1,), (1, 10), (1, 10), (1, 6), lambda _: (1,)),
    _ladder((1,), (1,), (1,), (1,), lambda power: (1,) if power % 2 == 0 else ()),
)


def _log_ticks(bottom: float, top: float) -> list[float]:
    ticks: list[float] = []
    for ladder in _LADDERS:
        ticks = [rung for rung in ladder if bottom <= rung <= top]
        if len(ticks) <= _MOST_TICKS:
            break
    return ticks[:: max(1, -(-len(ticks) // _MOST_TICKS))]


def _linear_ticks(longest: float) -> list[float]:
    step = next(rung for rung in _STEPS if longest <= _MOST_STEPS * rung)
    return [step * count for count in range(int(longest / step) + 1)]
