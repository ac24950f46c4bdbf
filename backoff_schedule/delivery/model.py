"""What a delivery is made of: the values that a sender, a worker and a store hand each other.

| state | means | leaves it |
|---|---|---|
| `pending` | waits until it is due | by a claim |
| `sending` | claimed, under a lease | by its result, a release, or the end of the lease |
| `delivered` | the receiver has it | never |
| `failed` | the receiver will never take it | by a redrive |
| `dead` | the tries or the time are used up | by a redrive |
| `expired` | it was not sent while it was worth sending | by a redrive with a new ttl |

Every time is an aware datetime in UTC, every duration is in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ..refusals import refusal, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

    from ..breaker import CircuitState
    from .policy import DeliveryPolicy

State: TypeAlias = Literal["pending", "sending", "delivered", "failed", "dead", "expired"]
"""Where a delivery stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """A sender's answer: the receiver has it.

    Attributes:
        status: What the receiver answered, such as an HTTP status; None if there is no such number.

    Raises `TypeError` for a status that is not an int, `ValueError` for one of more than 32 bits.

    Examples:
        >>> Delivered(status=204)
        Delivered(status=204)
    """

    status: int | None = None

    def __post_init__(self) -> None:
        _check_status(self.status)


@dataclass(frozen=True, slots=True)
class Transient:
    """A sender's answer: not this time, but a later try may work.

    Attributes:
        reason: What went wrong, for people.
        status: What the receiver answered; None if it did not.
        retry_after: The seconds that the receiver asked for, 0 or more; None if it did not ask.
            `inf` is allowed, since the policy bounds it by `retry_after_limit`.

    Raises `TypeError` for another type, `ValueError` for a `retry_after` that is negative or NaN
    and for a status of more than 32 bits.

    Examples:
        >>> Transient("503 Service Unavailable", status=503, retry_after=120)
        Transient(reason='503 Service Unavailable', status=503, retry_after=120.0)
    """

    reason: str
    status: int | None = field(default=None, kw_only=True)
    retry_after: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _check_reason(self.reason)
        _check_status(self.status)
        if self.retry_after is not None:
            object.__setattr__(self, "retry_after", _checked_retry_after(self.retry_after))


@dataclass(frozen=True, slots=True)
class Permanent:
    """A sender's answer: no later try can work.

    Attributes:
        reason: What went wrong, for people.
        status: What the receiver answered; None if it did not.
        disable_endpoint: Whether the endpoint is gone, so that nothing more is sent to it until
            somebody enables it; its rows wait.

    Raises `TypeError` for another type, `ValueError` for a status of more than 32 bits.

    Examples:
        >>> Permanent("410 Gone", status=410, disable_endpoint=True).disable_endpoint
        True
    """

    reason: str
    status: int | None = field(default=None, kw_only=True)
    disable_endpoint: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        _check_reason(self.reason)
        _check_status(self.status)
        if not isinstance(self.disable_endpoint, bool):
            kind = type(self.disable_endpoint).__name__
            sentence = refusal("disable_endpoint", self.disable_endpoint, "True or False")
            raise TypeError(f"{sentence}, not {kind}")


Outcome: TypeAlias = Delivered | Transient | Permanent
"""What a sender may answer."""


def as_outcome(answer: object) -> Outcome:
    """What a sender answered, as an outcome.

    An outcome is handed back. Anything else is a `Transient` that says so: the sender is at fault,
    not the row, and nobody knows whether the receiver has it.

    Examples:
        >>> as_outcome(None)
        Transient(reason='the sender answered None, not an outcome', status=None, retry_after=None)
    """
    if isinstance(answer, (Delivered, Transient, Permanent)):
        return answer
    return Transient(f"the sender answered {shown(answer)}, not an outcome")


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a row.

    Attributes:
        state: The state that it takes.
        next_attempt_at: When it is due again, if the state is `"pending"`; else None.
        reason: Why it ended, None for `"delivered"` and `"pending"`: `"permanent"`; `"attempts"`,
            `"deadline"`, `"unbounded"` (the next wait has no end), `"schedule: ..."` (the caller's
            own function failed), `"lost"` (the worker of its last try died); `"ttl"`.
    """

    state: Literal["delivered", "failed", "dead", "pending", "expired"]
    next_attempt_at: datetime | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Claim:
    """A row that one worker may send now: what the sender needs, and what settles it.

    Its `repr` shows neither the url, the payload nor the secrets: any of them may be confidential.

    Attributes:
        id: The row's number.
        event_id: What the receiver knows the event by; the same at every try.
        endpoint: The name of the endpoint.
        url: Where to send it; None if the endpoint has none.
        type: The type of the event, such as `"order.created"`; None if it has none.
        payload: The body, byte for byte as it was enqueued.
        attempt: Which try of this budget it is, counted from 1.
        timeout: How many seconds the send may take.
        created_at: When it was enqueued.
        deadline_at: After which instant it is not sent any more; None if there is no deadline.
        expires_at: From which instant on it is not worth sending; None if it always is.
        secrets: The endpoint's unexpired secrets, to sign with each.
        policy: The rules for this row, the endpoint's options merged in.
        token: Which claim of the row it is: a settle with another one writes nothing.
        redrives: How often the row was given a new budget.
        endpoint_id: The endpoint's number.
        generation: The breaker's generation in which it was claimed.
        probe: Whether it is the one send that tries a half-open breaker.
        lost: Whether the try before it ended with its lease and not with a result.
        claimed_at: When it was claimed.
    """

    id: int
    event_id: str
    endpoint: str
    url: str | None
    type: str | None
    payload: bytes
    attempt: int
    timeout: float
    created_at: datetime
    deadline_at: datetime | None
    expires_at: datetime | None
    secrets: tuple[str, ...]
    policy: DeliveryPolicy
    token: int
    redrives: int
    endpoint_id: int
    generation: int
    probe: bool
    lost: bool
    claimed_at: datetime

    def __repr__(self) -> str:
        return (
            f"<Claim id={self.id} event_id={self.event_id!r} endpoint={self.endpoint!r} "
            f"attempt={self.attempt} payload: {len(self.payload)} bytes, "
            f"secrets: {len(self.secrets)}>"
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Delivery:
    """A row as it stands. Its `repr` shows the size of the payload only.

    Attributes:
        id: The row's number.
        event_id: What the receiver knows the event by.
        endpoint: The name of the endpoint.
        type: The type of the event; None if it has none.
        payload: The body.
        state: Where it stands.
        attempts: How many tries of this budget were begun.
        next_attempt_at: When it is due, or when its lease ends; None once it is finished.
        last_status: What the receiver answered last; None if it did not.
        last_error: What went wrong last; None if nothing did.
        redrives: How often it was given a new budget.
        created_at: When it was enqueued.
        finished_at: When it took a state that it does not leave by itself; None before.
        expires_at: From which instant on it is not worth sending; None if it always is.
        reason: Why it ended, as `Decision.reason` says it; None if it did not, or was delivered.
    """

    id: int
    event_id: str
    endpoint: str
    type: str | None
    payload: bytes
    state: State
    attempts: int
    next_attempt_at: datetime | None
    last_status: int | None
    last_error: str | None
    redrives: int
    created_at: datetime
    finished_at: datetime | None
    expires_at: datetime | None
    reason: str | None = None

    def __repr__(self) -> str:
        return (
            f"<Delivery id={self.id} event_id={self.event_id!r} endpoint={self.endpoint!r} "
            f"state={self.state!r} attempts={self.attempts} payload: {len(self.payload)} bytes>"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A dead or failed row, and how many died like it.

    Attributes:
        delivery: The row.
        alike: How many dead and failed rows of its endpoint have the same last error, or without
            one the same reason, and finished at the same time or later. It counts itself.
    """

    delivery: Delivery
    alike: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """One try in a row's history.

    Attributes:
        number: Which try of its budget it was, counted from 1.
        redrive: How many redrives came before it.
        started_at: When it was claimed.
        seconds: How long it took; None if it was lost.
        status: What the receiver answered; None if it did not.
        error: What went wrong; None if nothing did.
        outcome: What became of the row by it; `"lost"` if its lease ended without a result.
        event_id: The id that it was sent under.
    """

    number: int
    redrive: int
    started_at: datetime
    seconds: float | None
    status: int | None
    error: str | None
    outcome: Literal["delivered", "retry", "failed", "dead", "lost"]
    event_id: str


@dataclass(frozen=True, slots=True)
class Ticket:
    """The receipt of an enqueue.

    Attributes:
        event_id: What the receiver will know the event by.
        created: False if the endpoint had this very event already.
    """

    event_id: str
    created: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An endpoint as it stands. It tells how many secrets there are and never what they are.

    Attributes:
        name: Its name.
        url: Where it is; None if only the sender knows.
        policy_options: The options that it has for itself; empty if it has none.
        max_in_flight: How many sends to it may be under way at once; None for no cap.
        disabled_at: When it was disabled; None if it is enabled.
        disabled_reason: Why it was disabled; None if it is enabled.
        circuit: The state of its breaker. Successes since its window was last looked at, all of
            one tenth of it, are not in the window yet; failures always are.
        secrets: How many unexpired secrets it has.
    """

    name: str
    url: str | None
    policy_options: dict[str, Any]
    max_in_flight: int | None
    disabled_at: datetime | None
    disabled_reason: str | None
    circuit: CircuitState
    secrets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A change of an endpoint.

    Attributes:
        at: When it happened.
        event: `"opened"`, `"half_open"`, `"closed"` (its breaker), `"disabled"`, `"enabled"`.
        actor: Who made it: `"worker"`, `"auto_disable"`, or whom the caller named.
        reason: Why; None if nobody said.
    """

    at: datetime
    event: str
    actor: str
    reason: str | None


def _check_reason(reason: str) -> None:
    if not isinstance(reason, str):
        raise TypeError(f"{refusal('reason', reason, 'text')}, not {type(reason).__name__}")


def _check_status(status: int | None) -> None:
    if status is None:
        return
    rule = "a whole number of 32 bits, or None"
    if not isinstance(status, int) or isinstance(status, bool):
        raise TypeError(f"{refusal('status', status, rule)}, not {type(status).__name__}")
    # What an integer column holds: a larger one would fail only there, with its whole batch.
    if not -(2**31) <= status < 2**31:
        raise ValueError(refusal("status", status, rule))


def _checked_retry_after(seconds: float) -> float:
    rule = "a number of seconds, 0 or more, or None"
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool):
        kind = type(seconds).__name__
        raise TypeError(f"{refusal('retry_after', seconds, rule)}, not {kind}")
    if not seconds >= 0:
        raise ValueError(refusal("retry_after", seconds, rule))
    try:
        return float(seconds)
    except OverflowError:
        return float("inf")
