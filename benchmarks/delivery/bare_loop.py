"""A loop written out by hand over our own tables, and what it does without.

It claims with SKIP LOCKED, settles what still has its token, and writes the history, a hundred
rows at a time on one connection: the same rows in the same tables. It knows which endpoints are
busy, and has no caps, breakers, lost rows, timeouts, retries or policies, and no sender.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
import uuid
from typing import TYPE_CHECKING, Any

import psycopg

from .ours import BATCH, Ours
from .tables import BUSY

if TYPE_CHECKING:
    from collections.abc import Callable

_NOW = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_AS_OF = "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint"
_LEASE = 40_000_000
_TAKE = f"""
WITH due AS MATERIALIZED (
    SELECT d.id FROM unnest(%s::bigint[]) AS busy(endpoint_id) CROSS JOIN LATERAL (
        SELECT id FROM backoff_deliveries
        WHERE state = 'pending' AND endpoint_id = busy.endpoint_id AND next_attempt_at <= {_AS_OF}
        ORDER BY next_attempt_at, id LIMIT %s FOR UPDATE SKIP LOCKED
    ) AS d
)
UPDATE backoff_deliveries AS d
SET state = 'sending', attempts = attempts + 1, token = token + 1, claimed_at = {_NOW},
    next_attempt_at = {_NOW} + {_LEASE}, first_claimed_at = COALESCE(first_claimed_at, {_NOW})
FROM due WHERE d.id = due.id
RETURNING d.id, d.endpoint_id, d.event_id, d.payload, d.attempts, d.token
"""  # noqa: S608  (put together from constants)
_SETTLE = f"""
WITH given AS (
    SELECT * FROM unnest(%s::bigint[], %s::bigint[]) AS g(id, token)
), moved AS (
    UPDATE backoff_deliveries AS d
    SET state = 'delivered', next_attempt_at = NULL, finished_at = {_NOW}, last_status = 200
    FROM given AS g WHERE d.id = g.id AND d.token = g.token AND d.state = 'sending'
    RETURNING d.id, d.redrives, d.attempts, d.event_id, d.claimed_at, d.finished_at
)
INSERT INTO backoff_tries
    (delivery_id, redrive, number, event_id, started_at, seconds, status, outcome)
SELECT id, redrives, attempts, event_id, claimed_at, (finished_at - claimed_at) / 1000000.0, 200,
    'delivered'
FROM moved
"""  # noqa: S608
_ENQUEUE = f"""
INSERT INTO backoff_deliveries
    (endpoint_id, event_id, payload, digest, state, created_at, next_attempt_at)
VALUES (1, %s, %s, %s, 'pending', {_NOW}, {_NOW})
"""  # noqa: S608


class PostgresLoop(Ours):
    name = "a bare SQL loop"

    def drain(self, sent: Callable[[], None]) -> None:
        busy = list(range(1, min(self.endpoints, BUSY) + 1))
        with psycopg.connect(self.place.where, autocommit=True) as session:
            while True:
                rows = session.execute(_TAKE.encode(), (busy, BATCH // len(busy))).fetchall()
                if not rows:
                    return
                for _ in rows:
                    sent()
                settled = ([row[0] for row in rows], [row[5] for row in rows])
                session.execute(_SETTLE.encode(), settled)

    def enqueue(self, rows: int, begun: Callable[[], None]) -> None:
        with psycopg.connect(self.place.where, autocommit=True) as session:
            begun()
            for _ in range(rows):
                values = (f"evt_{uuid.uuid4().hex}", b'{"id": 1}', b"digest")
                session.execute(_ENQUEUE.encode(), values)


_SQLITE_TAKE = """
UPDATE backoff_deliveries
SET state = 'sending', attempts = attempts + 1, token = token + 1, claimed_at = :now,
    next_attempt_at = :now + 40000000, first_claimed_at = COALESCE(first_claimed_at, :now)
WHERE id IN (
    SELECT id FROM backoff_deliveries
    WHERE state = 'pending' AND endpoint_id = :endpoint AND next_attempt_at <= :now
    ORDER BY next_attempt_at, id LIMIT :count
)
RETURNING id, endpoint_id, event_id, payload, attempts, token, redrives, claimed_at
"""
_SQLITE_SETTLE = """
UPDATE backoff_deliveries
SET state = 'delivered', next_attempt_at = NULL, finished_at = ?, last_status = 200
WHERE id = ? AND token = ? AND state = 'sending'
"""
_SQLITE_TRY = """
INSERT INTO backoff_tries
    (delivery_id, redrive, number, event_id, started_at, seconds, status, outcome)
VALUES (?, ?, ?, ?, ?, ?, 200, 'delivered')
"""
_SQLITE_ENQUEUE = """
INSERT INTO backoff_deliveries
    (endpoint_id, event_id, payload, digest, state, created_at, next_attempt_at)
VALUES (1, ?, ?, ?, 'pending', ?, ?)
"""


class SQLiteLoop(Ours):
    name = "a bare SQL loop"

    def drain(self, sent: Callable[[], None]) -> None:
        busy = range(1, min(self.endpoints, BUSY) + 1)
        count = BATCH // len(busy)
        with contextlib.closing(self._opened()) as connection:
            while True:
                rows: list[Any] = []
                connection.execute("BEGIN IMMEDIATE")
                for endpoint in busy:
                    values = {"now": _now(), "endpoint": endpoint, "count": count}
                    rows += connection.execute(_SQLITE_TAKE, values).fetchall()
                connection.execute("COMMIT")
                if not rows:
                    return
                for _ in rows:
                    sent()
                self._settle(connection, rows)

    def _settle(self, connection: sqlite3.Connection, rows: list[Any]) -> None:
        now = _now()
        connection.execute("BEGIN IMMEDIATE")
        tries = []
        for number, _, event_id, _, attempt, token, redrives, claimed_at in rows:
            # Only what still has its token gets a history.
            if connection.execute(_SQLITE_SETTLE, (now, number, token)).rowcount:
                seconds = (now - claimed_at) / 1_000_000
                tries.append((number, redrives, attempt, event_id, claimed_at, seconds))
        connection.executemany(_SQLITE_TRY, tries)
        connection.execute("COMMIT")

    def enqueue(self, rows: int, begun: Callable[[], None]) -> None:
        with contextlib.closing(self._opened()) as connection:
            begun()
            for _ in range(rows):
                now = _now()
                values = (f"evt_{uuid.uuid4().hex}", b'{"id": 1}', b"digest", now, now)
                connection.execute(_SQLITE_ENQUEUE, values)

    def _opened(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.place.where, timeout=60, isolation_level=None)
        connection.execute("PRAGMA synchronous = FULL")
        return connection


def _now() -> int:
    return time.time_ns() // 1000
