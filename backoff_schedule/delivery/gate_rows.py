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

_GATE = "g.endpoint_id, g.disabled_at, g.status, g.generation, g.probe_id"
_TERMS = "g.max_in_flight, g.enabled_at, e.name, e.url, e.secrets, e.policy"
_OF_ENDPOINTS = "FROM {prefix}gates AS g JOIN {prefix}endpoints AS e ON e.id = g.endpoint_id"
_AMONG = "WHERE g.endpoint_id {among}"
_ORDER = "ORDER BY g.endpoint_id"
_LOCK = f"""
SELECT {_GATE}, g.circuit, g.failures FROM {{prefix}}gates AS g {_AMONG} {_ORDER} {{lock}}
"""  # noqa: S608  (put together from constants)
_TO_CLAIM = f"SELECT {_GATE}, g.circuit, g.failures, 1 AS locked, {_TERMS} {_OF_ENDPOINTS} {_AMONG}"
# Nothing is decided at such a gate that another claim or a result could be in the way of.
_WIDE_OPEN = "(g.max_in_flight IS NULL AND g.status = 'closed')"
_LOCK_NARROW = (
    f"SELECT * FROM ({_TO_CLAIM} AND NOT {_WIDE_OPEN} {_ORDER} LOCK) AS locked UNION ALL "
    f"SELECT {_GATE}, '', '', 0, {_TERMS} {_OF_ENDPOINTS} {_AMONG} AND {_WIDE_OPEN}"
)
_WAITING = _LOCK_NARROW.replace("LOCK)", "{lock})")
_FREE_ONLY = _LOCK_NARROW.replace("LOCK)", "{lock_free})")


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
    return {row[0]: Gate(*row) for row in transaction.rows(_LOCK, (numbers,))}


def gates_to_claim(
    transaction: Transaction, statements: Statements, endpoints: Iterable[int], *, wait: bool
) -> list[tuple[Gate, Terms]]:
    """The gates of these endpoints and their terms; of the gates only the free ones if not `wait`.

    Locked in ascending order, but for those without a cap whose breaker is closed: a claim that
    read one of these before a result or an operator shut it, came before that.
    """
    numbers = transaction.numbers(sorted(set(endpoints)))
    if not statements.locks_rows:
        rows = transaction.rows(_TO_CLAIM, (numbers,))
    else:
        rows = transaction.rows(_WAITING if wait else _FREE_ONLY, (numbers, numbers))
    return [(Gate(*row[:8]), Terms(*row[8:])) for row in rows]


def write_gates(transaction: Transaction, statements: Statements, gates: Iterable[Gate]) -> None:
    """Write what has changed, and what happened to whom."""
    changed = []
    unlocked = {}
    for gate in gates:
        gate.take_successes_in()
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
