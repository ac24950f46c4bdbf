"""What is stored of deliveries, for people and programs that ask."""

from __future__ import annotations

from typing import get_args

from ..database.clock import from_microseconds, to_microseconds
from ..refusals import refusal
from .model import DeadLetter, Delivery, State, Try
from .text import checked_name, stored_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from typing import Any

    from ..database.transaction import Transaction

_DELIVERY = """
SELECT d.id, d.event_id, e.name, d.type, d.payload, d.state, d.attempts, d.next_attempt_at,
    d.last_status, d.last_error, d.redrives, d.created_at, d.finished_at, d.expires_at, d.reason
"""
_FROM = """
FROM {prefix}deliveries AS d JOIN {prefix}endpoints AS e ON e.id = d.endpoint_id
"""
_COLUMNS = _DELIVERY + _FROM
_GET = _COLUMNS + "WHERE e.name = ? AND d.event_id = ?"
_LIST = _COLUMNS + "WHERE d.id > ? STATE ENDPOINT ORDER BY d.id LIMIT ?"
# Counted over all of them before LIMIT, in the order in which they are shown. What has no error of
# a receiver, such as a deadline that was over before a send, is told apart by its reason.
_DEAD_LETTERS = (
    _DELIVERY
    + """
, count(*) OVER (
    PARTITION BY d.endpoint_id, COALESCE(d.last_error, d.reason)
    ORDER BY d.finished_at DESC, d.id DESC ROWS UNBOUNDED PRECEDING
)
"""
    + _FROM
    + """
WHERE d.state IN ('failed', 'dead', 'expired') AND d.state <> 'expired' AND d.finished_at >= ?
ENDPOINT ERROR ORDER BY d.finished_at DESC, d.id DESC LIMIT ?
"""
)
# By the row and not by the id in its history, which a redrive under a fresh id has left behind.
_HISTORY = """
SELECT t.number, t.redrive, t.started_at, t.seconds, t.status, t.error, t.outcome, t.event_id
FROM {prefix}tries AS t
JOIN {prefix}deliveries AS d ON d.id = t.delivery_id
JOIN {prefix}endpoints AS e ON e.id = d.endpoint_id
WHERE e.name = ? AND d.event_id = ? ORDER BY t.redrive, t.number
"""


def get(transaction: Transaction, event_id: str, endpoint: str) -> Delivery | None:
    """The row of an event and an endpoint; None if there is none."""
    rows = transaction.rows(_GET, (checked_name(endpoint), checked_name(event_id, "event_id")))
    return _delivery(rows[0]) if rows else None


def listed(
    transaction: Transaction, state: str | None, endpoint: str | None, limit: int, after: int
) -> list[Delivery]:
    """Rows by their id, which is the order in which they were enqueued."""
    statement, values = _LIST, [after]
    extra: list[Any] = []
    if state is not None and state not in get_args(State):
        raise ValueError(refusal("state", state, f"one of {', '.join(get_args(State))}"))
    # Word for word, for a partial index to serve.
    statement = statement.replace("STATE", "" if state is None else f"AND d.state = '{state}'")
    statement = statement.replace("ENDPOINT", "" if endpoint is None else "AND e.name = ?")
    if endpoint is not None:
        extra.append(checked_name(endpoint))
    return [_delivery(row) for row in transaction.rows(statement, (*values, *extra, limit))]


def dead_letters(
    transaction: Transaction,
    endpoint: str | None,
    since: datetime | None,
    error: str | None,
    limit: int,
) -> list[DeadLetter]:
    """Dead and failed rows, the last to finish first."""
    values: list[Any] = [0 if since is None else to_microseconds(since, "since")]
    statement = _DEAD_LETTERS.replace("ENDPOINT", "" if endpoint is None else "AND e.name = ?")
    statement = statement.replace("ERROR", "" if error is None else "AND d.last_error = ?")
    if endpoint is not None:
        values.append(checked_name(endpoint))
    if error is not None:
        values.append(stored_text(error))
    rows = transaction.rows(statement, (*values, limit))
    return [DeadLetter(delivery=_delivery(row), alike=row[15]) for row in rows]


def history(transaction: Transaction, event_id: str, endpoint: str) -> list[Try]:
    """Every try of a row, the first one first."""
    values = (checked_name(endpoint), checked_name(event_id, "event_id"))
    return [
        Try(
            number=number,
            redrive=redrive,
            started_at=from_microseconds(started_at),
            seconds=seconds,
            status=status,
            error=error,
            outcome=outcome,
            event_id=sent_as,
        )
        for number, redrive, started_at, seconds, status, error, outcome, sent_as in (
            transaction.rows(_HISTORY, values)
        )
    ]


def _delivery(row: Sequence[Any]) -> Delivery:
    (number, event_id, endpoint, kind, payload, state, attempts, due, status, error) = row[:10]
    redrives, created_at, finished_at, expires_at, reason = row[10:15]
    return Delivery(
        id=number,
        event_id=event_id,
        endpoint=endpoint,
        type=kind,
        payload=bytes(payload),
        state=state,
        attempts=attempts,
        next_attempt_at=_moment(due),
        last_status=status,
        last_error=error,
        redrives=redrives,
        created_at=from_microseconds(created_at),
        finished_at=_moment(finished_at),
        expires_at=_moment(expires_at),
        reason=reason,
    )


def _moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else from_microseconds(microseconds)
