"""What a delivery may cost: the rules of a worker, and those of an endpoint over them."""

from __future__ import annotations

from collections.abc import Mapping

from ..backoff import Backoff
from ..breaker import CircuitBreaker
from ..durations import to_seconds
from ..presets import STANDARD_WEBHOOKS
from ..refusals import refusal, shown
from ..schedule import create_backoff
from .auto_disable import AutoDisable, checked_count
from .values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, TypeAlias

    from ..durations import DurationLike

    RetryOn: TypeAlias = Literal["default", "any"]
    JsonOptions: TypeAlias = Mapping[str, Any]


_BREAKER = CircuitBreaker()


class DeliveryPolicy(Value):
    """When a delivery is tried again, how often, and when it is given up.

    - `schedule`: how long to wait after each failed try: a `Backoff`, or its options. Each row has
      a timetable of its own, keyed by endpoint and event, so a key or a random source that the
      schedule has is dropped.
    - `max_attempts`: how many tries there are, the first one included, 1 or more. The default is
      one more than the schedule has free attempts and steps. A schedule without steps needs it.
    - `timeout`: how long one send may take, above 0.
    - `deadline`: how long after its first claim a row may still be sent, above 0; None for no end.
    - `retry_after_limit`: how long a wait at most a receiver can ask for. It never shortens the
      schedule's own.
    - `retry_on`: `"default"` tries again what the sender calls transient; `"any"` also what it
      calls permanent, if there is a status and it is not 410.
    - `breaker`: the circuit breaker of each endpoint, or its options; None for none.
    - `auto_disable`: when a failing endpoint is disabled, or its options; None for never.

    Durations are seconds, a `timedelta`, or text such as `"30 seconds"`.

    An immutable value, each argument an attribute of the same name, durations in seconds.
    `max_attempts_derived` says whether the schedule's steps made `max_attempts`, and `spreads`
    whether the schedule has jitter.

    Raises `TypeError` and `ValueError` for values outside these ranges, and `TypeError` for a
    schedule without steps if `max_attempts` is not given.

    Examples:
        >>> policy = DeliveryPolicy(create_backoff(steps=["5s", "5m", "30m"]), timeout="10s")
        >>> policy.max_attempts, policy.timeout
        (4, 10.0)
    """

    __slots__ = (
        "auto_disable",
        "breaker",
        "deadline",
        "max_attempts",
        "max_attempts_derived",
        "retry_after_limit",
        "retry_on",
        "schedule",
        "spreads",
        "timeout",
    )

    schedule: Backoff
    spreads: bool
    max_attempts: int
    max_attempts_derived: bool
    timeout: float
    deadline: float | None
    retry_after_limit: float
    retry_on: RetryOn
    breaker: CircuitBreaker | None
    auto_disable: AutoDisable | None

    def __init__(
        self,
        schedule: Backoff | JsonOptions,
        max_attempts: int | None = None,
        timeout: DurationLike = "30 seconds",
        deadline: DurationLike | None = None,
        retry_after_limit: DurationLike = "24 hours",
        retry_on: RetryOn = "default",
        breaker: CircuitBreaker | JsonOptions | None = _BREAKER,
        auto_disable: AutoDisable | JsonOptions | None = None,
    ) -> None:
        schedule = _checked_schedule(schedule)
        if max_attempts is not None:
            max_attempts = checked_count(max_attempts, "max_attempts")
        arguments = {
            "schedule": schedule,
            "max_attempts": max_attempts,
            "timeout": _above_zero(timeout, "timeout"),
            "deadline": None if deadline is None else _above_zero(deadline, "deadline"),
            "retry_after_limit": to_seconds(retry_after_limit, "retry_after_limit"),
            "retry_on": _checked_retry_on(retry_on),
            "breaker": _checked_breaker(breaker),
            "auto_disable": _checked_auto_disable(auto_disable),
        }
        self._keep(
            arguments,
            max_attempts=_derived_attempts(schedule) if max_attempts is None else max_attempts,
            max_attempts_derived=max_attempts is None,
            spreads=schedule != schedule.replace(jitter=0.0),
        )

    @property
    def options(self) -> dict[str, Any]:
        """The arguments in a fresh dict that JSON holds; durations are seconds.

        `DeliveryPolicy(**policy.options) == policy`, but for a key of the breaker's cool-down. A
        derived `max_attempts` is None there, so that it is derived again.

        Raises `TypeError` for a schedule made with `compute`: JSON holds no function, so such a
        policy can only be a worker's own.

        Examples:
            >>> DEFAULT_POLICY.options["timeout"], DEFAULT_POLICY.options["max_attempts"]
            (30.0, None)
        """
        try:
            schedule = self.schedule.options
        except TypeError:
            raise TypeError(
                "a policy whose schedule is made with compute cannot be stored: "
                "give it to the worker, where its function is"
            ) from None
        return self._arguments | {
            "schedule": schedule,
            "breaker": None if self.breaker is None else self.breaker.options,
            "auto_disable": None if self.auto_disable is None else self.auto_disable.options,
        }


def merged(default: DeliveryPolicy, options: DeliveryPolicy | JsonOptions | None) -> DeliveryPolicy:
    """The policy of an endpoint: its own options over the default.

    A `DeliveryPolicy` replaces the default whole; a mapping only what it names; None nothing. A
    `max_attempts` that was derived follows the schedule of the answer.

    Raises `TypeError` for a name that a policy does not have, and as `DeliveryPolicy` does.

    Examples:
        >>> merged(DEFAULT_POLICY, {"schedule": {"steps": ["1m", "1h"]}}).max_attempts
        3
    """
    if options is None:
        return default
    if isinstance(options, DeliveryPolicy):
        return options
    if not isinstance(options, Mapping):
        rule = "a DeliveryPolicy, or a mapping of its options"
        raise TypeError(f"{refusal('policy', options, rule)}, not {type(options).__name__}")
    if not options:
        return default
    arguments = default._arguments
    unknown = [shown(name) for name in options if name not in arguments]
    if unknown:
        raise TypeError(f"a policy has no option {', '.join(unknown)}; it has {_listed(arguments)}")
    return DeliveryPolicy(**{**arguments, **options})


def options_for_storage(policy: DeliveryPolicy | JsonOptions) -> dict[str, Any]:
    """The options of an endpoint, checked, in a fresh dict that JSON holds.

    A mapping keeps the names that it has, so that the rest still follows the worker's policy.
    Merged or stored, `merged(default, options_for_storage(policy)) == merged(default, policy)`.

    Raises `TypeError` for a schedule made with `compute`, which can live only on the worker, and
    as `merged` does. Whether a schedule without steps finds a `max_attempts` is known only when
    it is merged.

    Examples:
        >>> options_for_storage({"timeout": "5 seconds"})
        {'timeout': 5.0}
    """
    options = merged(_BARE, policy).options
    if isinstance(policy, DeliveryPolicy):
        return options
    return {name: options[name] for name in policy}


def _listed(arguments: Mapping[str, Any]) -> str:
    *names, last = arguments
    return f"{', '.join(names)} and {last}"


def _checked_schedule(schedule: Backoff | JsonOptions) -> Backoff:
    if isinstance(schedule, Mapping):
        schedule = create_backoff(**schedule)
    if not isinstance(schedule, Backoff):
        rule = "a schedule, as create_backoff makes it, or its options"
        raise TypeError(f"{refusal('schedule', schedule, rule)}, not {type(schedule).__name__}")
    return schedule.replace(random=None)


def _derived_attempts(schedule: Backoff) -> int:
    try:
        options = schedule.options
        return int(options["free"]) + len(options["steps"]) + 1
    except (TypeError, KeyError):
        rule = "given, since the schedule has no steps to count"
        raise TypeError(refusal("max_attempts", None, rule)) from None


def _checked_breaker(breaker: CircuitBreaker | JsonOptions | None) -> CircuitBreaker | None:
    if breaker is None or isinstance(breaker, CircuitBreaker):
        return breaker
    if isinstance(breaker, Mapping):
        return CircuitBreaker(**breaker)
    rule = "a CircuitBreaker, its options, or None for none"
    raise TypeError(f"{refusal('breaker', breaker, rule)}, not {type(breaker).__name__}")


def _checked_auto_disable(rule: AutoDisable | JsonOptions | None) -> AutoDisable | None:
    if rule is None or isinstance(rule, AutoDisable):
        return rule
    if isinstance(rule, Mapping):
        return AutoDisable(**rule)
    wanted = "an AutoDisable, its options, or None for never"
    raise TypeError(f"{refusal('auto_disable', rule, wanted)}, not {type(rule).__name__}")


def _above_zero(duration: DurationLike, name: str) -> float:
    seconds = to_seconds(duration, name)
    if seconds == 0.0:
        raise ValueError(refusal(name, duration, "longer than 0"))
    return seconds


def _checked_retry_on(retry_on: RetryOn) -> RetryOn:
    rule = "'default' or 'any'"
    if not isinstance(retry_on, str):
        raise TypeError(f"{refusal('retry_on', retry_on, rule)}, not {type(retry_on).__name__}")
    if retry_on == "default":
        return "default"
    if retry_on == "any":
        return "any"
    raise ValueError(refusal("retry_on", retry_on, rule))


DEFAULT_POLICY = DeliveryPolicy(STANDARD_WEBHOOKS)
"""What holds where nobody says otherwise: the ten tries of `presets.STANDARD_WEBHOOKS`.

The last try is 75 h 35 min 5 s after the first. Everything else is a `DeliveryPolicy`'s default:
30 seconds for a send, no deadline, a Retry-After of up to 24 hours, a breaker, no auto-disable.
"""

# Any schedule goes with it, for its max_attempts is given.
_BARE = DeliveryPolicy(STANDARD_WEBHOOKS, max_attempts=1)
