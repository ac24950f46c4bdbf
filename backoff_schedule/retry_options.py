"""What a retry policy may be made of: the options, their ranges, and every refusal."""

from __future__ import annotations

from .budget import RetryBudget
from .callables import is_async
from .refusals import refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .retrying import On, Schedule


def checked_schedule(schedule: Schedule) -> Schedule:
    if isinstance(schedule, type) or not callable(getattr(schedule, "delay", None)):
        rule = "a schedule: an object with delay(attempt), such as create_backoff(base=1)"
        raise TypeError(refusal("schedule", schedule, rule))
    return schedule


def checked_attempts(attempts: int | None) -> int | None:
    rule = "a whole number of calls, 1 or more, or None for no limit"
    if attempts is None:
        return None
    if not isinstance(attempts, int) or isinstance(attempts, bool):
        raise TypeError(f"{refusal('attempts', attempts, rule)}, not {type(attempts).__name__}")
    if attempts < 1:
        raise ValueError(refusal("attempts", attempts, rule))
    return int(attempts)


def checked_on(on: On) -> On:
    rule = "an exception type, a tuple of them, or a predicate"
    if isinstance(on, tuple):
        if not on:
            raise ValueError(refusal("on", on, f"{rule}: with no type in it nothing is retried"))
        kinds: tuple[object, ...] = on
    elif isinstance(on, type):
        kinds = (on,)
    elif on is None:
        raise TypeError(refusal("on", on, rule))
    else:
        checked_function(on, "on", rule)
        return on
    for kind in kinds:
        if not isinstance(kind, type) or not issubclass(kind, Exception):
            problem = "only subclasses of Exception can be retried"
            raise TypeError(f"{refusal('on', on, rule)}: {problem}")
    return on


def checked_budget(budget: RetryBudget | None) -> RetryBudget | None:
    if budget is None or isinstance(budget, RetryBudget):
        return budget
    rule = "a RetryBudget, or None"
    raise TypeError(f"{refusal('budget', budget, rule)}, not {type(budget).__name__}")


def checked_sleep(sleep: Any) -> Any:
    if sleep is None or callable(sleep):
        return sleep
    rule = "a function, or None"
    raise TypeError(f"{refusal('sleep', sleep, rule)}, not {type(sleep).__name__}")


def checked_function(function: Any, name: str, rule: str = "a function, or None") -> Any:
    if function is None:
        return None
    if not callable(function):
        raise TypeError(f"{refusal(name, function, rule)}, not {type(function).__name__}")
    if is_async(function):
        raise TypeError(refusal(name, function, f"{rule}, and not async: nothing awaits it"))
    return function
