"""When an endpoint that fails is disabled, so that nobody goes on sending to it."""

from __future__ import annotations

from ..durations import to_seconds
from ..failure_window import FailureWindow
from ..refusals import refusal
from .values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..durations import DurationLike


class AutoDisable(Value):
    """Disable an endpoint when too many of its tries failed lately.

    - `failure_rate`: the share of failures that disables it, above 0, at most 1.
    - `window`: over how long tries count; in seconds once it is made.
    - `min_attempts`: how many tries there need to be before it is disabled. Only real tries count:
      what was never sent dilutes nothing.

    An immutable value, each argument an attribute of the same name; `failure_window` counts over
    its window, as pure state.

    Raises `TypeError` and `ValueError` for values outside these ranges.

    Examples:
        >>> AutoDisable(window="30 minutes")
        AutoDisable(failure_rate=0.9, window=1800.0, min_attempts=20)
    """

    __slots__ = ("failure_rate", "failure_window", "min_attempts", "window")

    failure_rate: float
    window: float
    min_attempts: int
    failure_window: FailureWindow

    def __init__(
        self,
        failure_rate: float = 0.9,
        window: DurationLike = "1 hour",
        min_attempts: int = 20,
    ) -> None:
        arguments = {
            "failure_rate": _checked_rate(failure_rate),
            "window": to_seconds(window, "window"),
            "min_attempts": checked_count(min_attempts, "min_attempts"),
        }
        self._keep(arguments, failure_window=FailureWindow(window))

    @property
    def options(self) -> dict[str, Any]:
        """The arguments in a fresh dict that JSON holds; `AutoDisable(**options)` is equal."""
        return dict(self._arguments)

    def trips(self, attempts: int, failures: int) -> bool:
        """Whether so many failures among so many attempts of a window disable the endpoint.

        Examples:
            >>> AutoDisable().trips(attempts=20, failures=18), AutoDisable().trips(19, 19)
            (True, False)
        """
        # Divided, since the product misses exact cases: 0.55 * 100 is above 55.
        return attempts >= self.min_attempts and failures / attempts >= self.failure_rate


def checked_count(number: int, name: str) -> int:
    """A whole number of tries, or the refusal of one that is none."""
    rule = "a whole number of tries, 1 or more"
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"{refusal(name, number, rule)}, not {type(number).__name__}")
    if number < 1:
        raise ValueError(refusal(name, number, rule))
    return int(number)


def _checked_rate(rate: float) -> float:
    rule = "a share above 0, at most 1"
    if not isinstance(rate, (int, float)) or isinstance(rate, bool):
        raise TypeError(f"{refusal('failure_rate', rate, rule)}, not {type(rate).__name__}")
    if not 0 < rate <= 1:
        raise ValueError(refusal("failure_rate", rate, rule))
    return float(rate)
