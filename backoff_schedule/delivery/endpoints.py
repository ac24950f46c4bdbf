"""Endpoints: made, changed, disabled and enabled by people."""

from __future__ import annotations

import json

from ..breaker import CircuitState
from ..database.clock import from_microseconds
from ..durations import to_seconds
from ..refusals import refusal
from .model import Endpoint, Transition
from .policy import options_for_storage
from .text import checked_name, checked_secrets, stored_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from typing import Any

    from ..database.transaction import Transaction
    from ..durations import DurationLike
    from .policy import DeliveryPolicy

KEEP: Any = object()
"""An argument that was not given: what is stored stays."""

_FIND = "SELECT id, url, secrets, policy FROM {prefix}endpoints WHERE name = ?"
_NAME = "SELECT name FROM {prefix}endpoints WHERE id = ?"
_INSERT = """
INSERT INTO {prefix}endpoints (name, url, secrets, policy) VALUES (?, NULL, '[]', '{{}}')
ON CONFLICT (name) DO NOTHING
"""
_INSERT_GATE = """
INSERT INTO {prefix}gates (endpoint_id, max_in_flight, circuit) VALUES (?, 8, ?)
ON CONFLICT (endpoint_id) DO NOTHING
"""
_UPDATE = "UPDATE {prefix}endpoints SET url = ?, secrets = ?, policy = ? WHERE id = ?"
_CAP = "UPDATE {prefix}gates SET max_in_flight = ? WHERE endpoint_id = ?"
_DISABLE = """
UPDATE {prefix}gates SET disabled_at = {now}, disabled_reason = ?
WHERE endpoint_id = ? AND disabled_at IS NULL
"""
# What led to the disabling is forgotten, or the next failure would disable it again.
_ENABLE = """
UPDATE {prefix}gates
SET disabled_at = NULL, disabled_reason = NULL, enabled_at = {now}, failures = '[]'
WHERE endpoint_id = ? AND disabled_at IS NOT NULL
"""
_LOG = """
INSERT INTO {prefix}transitions (endpoint_id, at, event, actor, reason) VALUES (?, {now}, ?, ?, ?)
"""
_LIST = """
SELECT e.name, e.url, e.policy, e.secrets, g.max_in_flight, g.disabled_at, g.disabled_reason,
    g.circuit
FROM {prefix}endpoints AS e JOIN {prefix}gates AS g ON g.endpoint_id = e.id
ORDER BY e.name
"""
_TRANSITIONS = """
SELECT t.at, t.event, t.actor, t.reason
FROM {prefix}transitions AS t JOIN {prefix}endpoints AS e ON e.id = t.endpoint_id
WHERE e.name = ? ORDER BY t.id DESC LIMIT ?
"""


def endpoint_id(transaction: Transaction, name: str) -> int:
    """The number of an endpoint.

    Raises `LookupError` if there is none of that name.
    """
    rows = transaction.rows(_FIND, (checked_name(name),))
    if not rows:
        raise LookupError(f"there is no endpoint {name!r}: add_endpoint makes one")
    number: int = rows[0][0]
    return number


def log(transaction: Transaction, number: int, event: str, actor: str, reason: str | None) -> None:
    """Write a transition of an endpoint down, and note it for whoever listens."""
    transaction.change(_LOG, (number, event, actor, reason))
    name = transaction.rows(_NAME, (number,))[0][0]
    at = from_microseconds(transaction.began())
    transaction.notes.append((name, Transition(at=at, event=event, actor=actor, reason=reason)))


def add_endpoint(
    transaction: Transaction,
    name: str,
    url: str | None,
    secrets: Sequence[str],
    policy: DeliveryPolicy | Mapping[str, Any] | None,
    max_in_flight: int | None,
) -> None:
    """Make an endpoint, or change what is named of one."""
    transaction.change(_INSERT, (checked_name(name),))
    number, old_url, old_secrets, old_policy = transaction.rows(_FIND, (name,))[0]
    transaction.change(_INSERT_GATE, (number, json.dumps(CircuitState().as_dict())))
    if url is not KEEP:
        old_url = None if url is None else checked_name(url, "url", longest=2048)
    if secrets is not KEEP:
        kept = [{"secret": secret, "expires_at": None} for secret in checked_secrets(secrets)]
        old_secrets = json.dumps(kept)
    if policy is not KEEP:
        old_policy = json.dumps({} if policy is None else options_for_storage(policy))
    transaction.change(_UPDATE, (old_url, old_secrets, old_policy, number))
    if max_in_flight is not KEEP:
        transaction.change(_CAP, (_checked_cap(max_in_flight), number))


def rotate_secret(transaction: Transaction, name: str, new: str, overlap: DurationLike) -> None:
    """Sign with `new`, and for `overlap` with the secrets before it too."""
    until = transaction.now() + round(to_seconds(overlap, "overlap") * 1_000_000)
    number = endpoint_id(transaction, name)
    (_, url, secrets, policy) = transaction.rows(_FIND, (name,))[0]
    kept: list[dict[str, Any]] = [{"secret": checked_secrets([new])[0], "expires_at": None}]
    for old in json.loads(secrets):
        if old["secret"] == new:
            continue
        ends = until if old["expires_at"] is None else min(until, old["expires_at"])
        kept.append({"secret": old["secret"], "expires_at": ends})
    transaction.change(_UPDATE, (url, json.dumps(kept), policy, number))


def unexpired(secrets: Sequence[Mapping[str, Any]], now: int) -> tuple[str, ...]:
    """The secrets to sign with at `now`, the newest first."""
    return tuple(
        kept["secret"] for kept in secrets if kept["expires_at"] is None or now < kept["expires_at"]
    )


def disable(transaction: Transaction, name: str, actor: str, reason: str) -> None:
    """Let the rows of an endpoint wait. Does nothing where they do."""
    number = endpoint_id(transaction, name)
    said = stored_text(reason)
    if transaction.change(_DISABLE, (said, number)):
        log(transaction, number, "disabled", actor, said)


def enable(transaction: Transaction, name: str, actor: str, reason: str | None) -> None:
    """Let the rows of an endpoint go on. Does nothing where they do."""
    number = endpoint_id(transaction, name)
    said = None if reason is None else stored_text(reason)
    if transaction.change(_ENABLE, (number,)):
        log(transaction, number, "enabled", actor, said)


def endpoints(transaction: Transaction) -> list[Endpoint]:
    """Every endpoint, by name."""
    now = transaction.now()
    return [
        Endpoint(
            name=name,
            url=url,
            policy_options=json.loads(policy),
            max_in_flight=cap,
            disabled_at=_moment(disabled_at),
            disabled_reason=disabled_reason,
            circuit=CircuitState.from_dict(json.loads(circuit)),
            secrets=len(unexpired(json.loads(secrets), now)),
        )
        for name, url, policy, secrets, cap, disabled_at, disabled_reason, circuit in (
            transaction.rows(_LIST)
        )
    ]


def transitions(transaction: Transaction, name: str, limit: int) -> list[Transition]:
    """What became of an endpoint, the newest first."""
    return [
        Transition(at=from_microseconds(at), event=event, actor=actor, reason=reason)
        for at, event, actor, reason in transaction.rows(_TRANSITIONS, (name, limit))
    ]


def _moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else from_microseconds(microseconds)


def _checked_cap(max_in_flight: int | None) -> int | None:
    rule = "a whole number, 1 or more, or None for no cap"
    if max_in_flight is None:
        return None
    if not isinstance(max_in_flight, int) or isinstance(max_in_flight, bool):
        kind = type(max_in_flight).__name__
        raise TypeError(f"{refusal('max_in_flight', max_in_flight, rule)}, not {kind}")
    if not 1 <= max_in_flight < 2**31:
        raise ValueError(refusal("max_in_flight", max_in_flight, rule))
    return max_in_flight
