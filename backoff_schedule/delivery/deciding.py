"""What becomes of a row: before it is sent, and after the sender has answered.

| the answer, or what is known before | state | reason |
|---|---|---|
| `Delivered` | delivered | |
| `Permanent` | failed | `permanent` |
| `Transient`, and it was the last try | dead | `attempts` |
| `Transient`, and the caller's own schedule fails | dead | `schedule: ...` |
| `Transient`, and the next wait has no end | dead | `unbounded` |
| `Transient`, and the next try would be past the deadline | dead | `deadline` |
| any other `Transient` | pending | |
| before the send: its ttl is over | expired | `ttl` |
| before the send: past the deadline | dead | `deadline` |
| before the send: the tries are used up, the last one lost | dead | `lost` |
| before the send: the tries are used up, since there are fewer now | dead | `attempts` |

Of several that hold, the first one counts. With `retry_on="any"` a `Permanent` that has a status,
410 aside, is a `Transient`. Nothing here reads a clock, draws or writes anything down.
"""

from __future__ import annotations

from datetime import UTC, timedelta

from ..refusals import refusal, shown
from .model import Decision, Delivered, Permanent, Transient, as_outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from ..backoff import Backoff
    from .model import Claim, Outcome
    from .policy import DeliveryPolicy

_GONE = 410
_MICROSECOND = timedelta(microseconds=1)

_DELIVERED = Decision("delivered")
_PERMANENT = Decision("failed", reason="permanent")
_SPENT = Decision("dead", reason="attempts")
_LOST = Decision("dead", reason="lost")
_LATE = Decision("dead", reason="deadline")
_UNBOUNDED = Decision("dead", reason="unbounded")
_EXPIRED = Decision("expired", reason="ttl")


def decide(outcome: Outcome, claim: Claim, policy: DeliveryPolicy, now: datetime) -> Decision:
    """What becomes of a row whose try had this outcome.

    After a transient failure of try n the row is due again max(delay(n), min(retry_after,
    retry_after_limit)) after `now`, rounded up to a microsecond: never earlier than the server
    asked within the limit, and the limit never shortens the schedule's own delay. The delay is
    that of `timetable`, so that every worker answers the same.

    `policy` is the merged one, as a claim carries it; `now` is aware, and the answer is in UTC.
    What is no outcome counts as `as_outcome` says. What the caller's own `compute` raises makes
    the row dead with a reason that begins with `"schedule: "`; it is not raised.

    Raises `ValueError` for a naive `now`.

    Examples:
        The first wait is a minute, but the server asks for two. This is all that it needs to know
        of a claim:

        >>> from datetime import datetime
        >>> from types import SimpleNamespace
        >>> from backoff_schedule.delivery import DeliveryPolicy
        >>> policy = DeliveryPolicy({"steps": ["1m", "5m"]})
        >>> row = {"endpoint": "acme", "event_id": "evt_1", "attempt": 1, "deadline_at": None}
        >>> busy = Transient("busy", status=503, retry_after=120)
        >>> now = datetime(2026, 1, 1, 9, 0, tzinfo=UTC)
        >>> decide(busy, SimpleNamespace(**row), policy, now).next_attempt_at.isoformat()
        '2026-01-01T09:02:00+00:00'
    """
    if now.utcoffset() is None:
        raise ValueError(refusal("now", now, "aware: it has no time zone"))
    if isinstance(outcome, Delivered):
        return _DELIVERED
    asked = None
    if isinstance(outcome, Permanent):
        if policy.retry_on == "default" or outcome.status is None or outcome.status == _GONE:
            return _PERMANENT
    elif isinstance(outcome, Transient):
        asked = outcome.retry_after
    else:
        return decide(as_outcome(outcome), claim, policy, now)
    if claim.attempt >= policy.max_attempts:
        return _SPENT
    try:
        wait = timetable(policy, claim.endpoint, claim.event_id).delay(claim.attempt)
    except Exception as error:  # noqa: BLE001  (whatever the caller's own function raises)
        return Decision("dead", reason=f"schedule: {shown(error)}")
    if asked is not None:
        wait = max(wait, min(asked, policy.retry_after_limit))
    due = _later(now, wait)
    if due is None:
        return _UNBOUNDED
    if claim.deadline_at is not None and due > claim.deadline_at:
        return _LATE
    return Decision("pending", due)


def before_send(claim: Claim, now: datetime) -> Decision | None:
    """What ends a claimed row unsent; None if it may be sent.

    A row whose ttl ends at `now` is expired; one whose deadline is `now` may still be sent.

    Raises `ValueError` for a naive `now`.
    """
    if now.utcoffset() is None:
        raise ValueError(refusal("now", now, "aware: it has no time zone"))
    if claim.expires_at is not None and now >= claim.expires_at:
        return _EXPIRED
    if claim.deadline_at is not None and now > claim.deadline_at:
        return _LATE
    if claim.attempt > claim.policy.max_attempts:
        return _LOST if claim.lost else _SPENT
    return None


def timetable(policy: DeliveryPolicy, endpoint: str, event_id: str) -> Backoff:
    """The schedule of one row: always the same waits, in every process and at every asking.

    Examples:
        >>> from backoff_schedule import presets
        >>> from backoff_schedule.delivery import DeliveryPolicy
        >>> policy = DeliveryPolicy(presets.POSTEL)
        >>> [timetable(policy, "acme", "evt_1").delay(attempt) for attempt in (1, 2, 3)]
        [4.597, 352.465, 1802.746]
    """
    # Making a keyed schedule takes longer than everything else here.
    if not policy.spreads:
        return policy.schedule
    return policy.schedule.keyed(f"{endpoint}/{event_id}")


def _later(now: datetime, wait: float) -> datetime | None:
    """`now` plus `wait` seconds, rounded up to a microsecond; None past the last instant."""
    try:
        step = timedelta(seconds=wait)
        # Not rounded up where the nearest microsecond is what the float stands for.
        if step.total_seconds() < wait:
            step += _MICROSECOND
        return now.astimezone(UTC) + step
    except OverflowError:
        return None
