"""The tables of delivery. Instants are microseconds since the epoch.

| table | one row for each | besides |
|---|---|---|
| `backoff_endpoints` | endpoint | what a sender needs to know of it |
| `backoff_gates` | endpoint | whether more may be sent to it now, and counts of what was |
| `backoff_deliveries` | event and endpoint | its due time, which is its lease while it is sent |
| `backoff_tries` | try | |
| `backoff_transitions` | change of an endpoint | who made it, and why |

No delivery refers to a gate by key: a claim locks gates, and a foreign key would make it wait for
every business transaction that is still open. The view `backoff_dead_letters` is for people.
"""

from __future__ import annotations

COMPONENT = "delivery"

_ENDPOINTS = """
CREATE TABLE {prefix}endpoints (
    id {key},
    name TEXT NOT NULL UNIQUE,
    url TEXT,
    secrets TEXT NOT NULL,
    policy TEXT NOT NULL
)
"""
_GATES = """
CREATE TABLE {prefix}gates (
    endpoint_id {big} PRIMARY KEY,
    max_in_flight INTEGER,
    disabled_at {big},
    disabled_reason TEXT,
    enabled_at {big},
    status TEXT NOT NULL DEFAULT 'closed',
    until {big},
    generation {big} NOT NULL DEFAULT 0,
    circuit TEXT NOT NULL,
    successes {big} NOT NULL DEFAULT 0,
    successes_at {big},
    failures TEXT NOT NULL DEFAULT '[]',
    probe_id {big},
    delivered {big} NOT NULL DEFAULT 0,
    retried {big} NOT NULL DEFAULT 0,
    failed {big} NOT NULL DEFAULT 0,
    dead {big} NOT NULL DEFAULT 0,
    expired {big} NOT NULL DEFAULT 0,
    lost {big} NOT NULL DEFAULT 0,
    tries {big} NOT NULL DEFAULT 0,
    seconds {real} NOT NULL DEFAULT 0,
    redriven {big} NOT NULL DEFAULT 0,
    redelivered {big} NOT NULL DEFAULT 0,
    died_again {big} NOT NULL DEFAULT 0
)
"""
_DELIVERIES = """
CREATE TABLE {prefix}deliveries (
    id {key},
    endpoint_id {big} NOT NULL,
    event_id TEXT NOT NULL,
    type TEXT,
    payload {bytes} NOT NULL,
    digest {bytes} NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    redrives INTEGER NOT NULL DEFAULT 0,
    token {big} NOT NULL DEFAULT 0,
    created_at {big} NOT NULL,
    next_attempt_at {big},
    expires_at {big},
    first_claimed_at {big},
    claimed_at {big},
    finished_at {big},
    last_status INTEGER,
    last_error TEXT,
    reason TEXT,
    UNIQUE (endpoint_id, event_id)
)
"""
_TRIES = """
CREATE TABLE {prefix}tries (
    delivery_id {big} NOT NULL,
    redrive INTEGER NOT NULL,
    number INTEGER NOT NULL,
    event_id TEXT NOT NULL,
    started_at {big} NOT NULL,
    seconds {real},
    status INTEGER,
    error TEXT,
    outcome TEXT NOT NULL,
    PRIMARY KEY (delivery_id, redrive, number)
) {clustered}
"""
_TRANSITIONS = """
CREATE TABLE {prefix}transitions (
    id {key},
    endpoint_id {big} NOT NULL,
    at {big} NOT NULL,
    event TEXT NOT NULL,
    actor TEXT NOT NULL,
    reason TEXT
)
"""
# A partial index serves a query only if its condition stands in it word for word.
_PENDING = """
CREATE INDEX backoff_deliveries_pending
ON {prefix}deliveries (endpoint_id, next_attempt_at, id) WHERE state = 'pending'
"""
_SENDING = """
CREATE INDEX backoff_deliveries_sending
ON {prefix}deliveries (endpoint_id, next_attempt_at, id) WHERE state = 'sending'
"""
_ENDED = """
CREATE INDEX backoff_deliveries_ended
ON {prefix}deliveries (finished_at, id) WHERE state IN ('failed', 'dead', 'expired')
"""
# Of each endpoint, with all that is counted of them, so that no row is read for it.
_DEAD = """
CREATE INDEX backoff_deliveries_dead
ON {prefix}deliveries (endpoint_id, finished_at, redrives) WHERE state IN ('dead', 'failed')
"""
_OF_ENDPOINT = """
CREATE INDEX backoff_transitions_of_endpoint ON {prefix}transitions (endpoint_id, id)
"""
_DEAD_LETTERS = """
CREATE VIEW {prefix}dead_letters AS
SELECT e.name AS endpoint, d.event_id, d.type, d.attempts, d.last_status, d.last_error, d.reason,
    FINISHED_AT AS finished_at, d.redrives, d.id
FROM {prefix}deliveries AS d JOIN {prefix}endpoints AS e ON e.id = d.endpoint_id
WHERE d.state IN ('dead', 'failed')
"""


def steps(finished_at: str) -> tuple[tuple[str, ...], ...]:
    """The migrations; `finished_at` says how a database shows an instant to people."""
    first = (
        *(_ENDPOINTS, _GATES, _DELIVERIES, _TRIES, _TRANSITIONS),
        *(_PENDING, _SENDING, _ENDED, _DEAD, _OF_ENDPOINT),
        _DEAD_LETTERS.replace("FINISHED_AT", finished_at),
    )
    return (first,)
