"""The rows of gates: read under a lock, and written once."""

from __future__ import annotations

from typing import NamedTuple

from .endpoints import log
from .gate import Gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..database.transaction import Transaction
    from .statements import Statements

_GATE = (
    "g.endpoint_id, g.disabled_at, g.status, g.generation, g.probe_id, g.successes, g.successes_at"
)
_TERMS = "g.max_in_flight, g.enabled_at, e.name, e.url, e.secrets, e.policy"
_LOCK = """
SELECT GATE, g.circuit, g.failures FROM {prefix}gates AS g
WHERE g.endpoint_id {among} ORDER BY g.endpoint_id LOCK
"""
_TO_CLAIM = """
SELECT GATE, g.circuit, g.failures, 1, TERMS
FROM {prefix}gates AS g JOIN {prefix}endpoints AS e ON e.id = g.endpoint_id
WHERE g.endpoint_id {among}
"""
# Nothing is decided at a gate without a cap, whose breaker is closed, that another claim or a
# result could be in the way of.
_TO_CLAIM_LOCKING = """
SELECT * FROM (
    SELECT GATE, g.circuit, g.failures, 1 AS locked, TERMS
    FROM {prefix}gates AS g JOIN {prefix}endpoints AS e ON e.id = g.endpoint_id
    WHERE g.endpoint_id {among} AND NOT (g.max_in_flight IS NULL AND g.status = 'closed')
    ORDER BY g.endpoint_id LOCK
) AS narrow
UNION ALL
SELECT GATE, '', '', 0, TERMS
FROM {prefix}gates AS g JOIN {prefix}endpoints AS e ON e.id = g.endpoint_id
WHERE g.endpoint_id {among} AND g.max_in_flight IS NULL AND g.status = 'closed'
"""


def _said(statement: str, lock: str = "") -> str:
    return statement.replace("GATE", _GATE).replace("TERMS", _TERMS).replace("LOCK", lock)


_LOCKED = _said(_LOCK, "{lock}")
_WHOLE = _said(_TO_CLAIM)
_WAITING = _said(_TO_CLAIM_LOCKING, "{lock}")
_FREE_ONLY = _said(_TO_CLAIM_LOCKING, "{lock_free}")


class Terms(NamedTuple):
    """What a claim is told of an endpoint besides its gate. Secrets and policy are JSON."""

    max_in_flight: int | None
    enabled_at: int | None
    name: str
    url: str | None
    secrets: str
    policy: str


def locked_gates(transaction: Transaction, endpoints: Iterable[int]) -> dict[int, Gate]:
    """The gates of these endpoints, locked in ascending order."""
    numbers = transaction.numbers(sorted(set(endpoints)))
    return {row[0]: Gate(*row) for row in transaction.rows(_LOCKED, (numbers,))}


def gates_to_claim(
    transaction: Transaction, statements: Statements, endpoints: Iterable[int], *, wait: bool
) -> list[tuple[Gate, Terms]]:
    """The gates of these endpoints and their terms; of the gates only the free ones if not `wait`.

    Locked in ascending order, but for those without a cap whose breaker is closed: a claim that
    read one of these before a result or an operator shut it, came before that.
    """
    numbers = transaction.numbers(sorted(set(endpoints)))
    if not statements.locks_rows:
        rows = transaction.rows(_WHOLE, (numbers,))
    else:
        rows = transaction.rows(_WAITING if wait else _FREE_ONLY, (numbers, numbers))
    return [(Gate(*row[:10]), Terms(*row[10:])) for row in rows]


def write_gates(transaction: Transaction, statements: Statements, gates: Iterable[Gate]) -> None:
    """Write what has changed, and what happened to whom."""
    changed = []
    unlocked = {}
    for gate in gates:
        if gate.changed and gate.is_locked:
            changed.append(gate)
        elif gate.changed:
            unlocked[gate.endpoint_id] = gate
    if unlocked:
        for number, gate in locked_gates(transaction, unlocked).items():
            gate.take_over(unlocked[number])
            changed.append(gate)
    if not changed:
        return
    statements.write_gates(transaction, changed)
    for gate in changed:
        for event, actor, reason in gate.events:
            log(transaction, gate.endpoint_id, event, actor, reason)
