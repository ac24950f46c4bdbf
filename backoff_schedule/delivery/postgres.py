"""The outbox in PostgreSQL, for workers on any number of machines."""

from __future__ import annotations

import json
from operator import itemgetter

from ..database.postgres import PostgresDatabase
from ..database.postgres_caller import async_caller_cursor, caller_cursor
from .enqueueing import FIND, INSERT, RETURNING, checked_event, statement
from .model import Ticket
from .outbox import Outbox
from .schema import steps
from .statements import alike_results, alike_shares
from .watching import listener_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from typing import Any

    import psycopg

    from ..database.postgres import Pool
    from ..database.transaction import Transaction
    from ..durations import DurationLike
    from .claiming import Claiming
    from .enqueueing import Event, Style
    from .gate import Gate
    from .model import Claim, Transition
    from .statements import Result

# Then the claim goes on without the gate that somebody holds.
_GATE_TIMEOUT = 1.0
_STEPS = steps("to_timestamp(d.finished_at / 1000000.0)")
# MATERIALIZED, since a plan that ran the inner query twice would take more than was wanted; and an
# array, since a join would be planned for as many rows as there are, and read all of them.
_TAKE = """
WITH wanted AS MATERIALIZED (
    SELECT e.endpoint_id, a.count, a.lease
    FROM json_to_recordset(?) AS a(count integer, lease bigint, endpoints bigint[])
    CROSS JOIN LATERAL unnest(a.endpoints) AS e(endpoint_id)
), due AS MATERIALIZED (
    SELECT d.id
    FROM wanted AS w CROSS JOIN LATERAL (
        SELECT id FROM {prefix}deliveries
        WHERE state = 'pending' AND endpoint_id = w.endpoint_id AND next_attempt_at <= {as_of}
        ORDER BY next_attempt_at, id LIMIT w.count {take_free}
    ) AS d
)
UPDATE {prefix}deliveries AS d
SET state = 'sending', attempts = d.attempts + 1, token = d.token + 1, claimed_at = {now},
    next_attempt_at = {now} + w.lease,
    first_claimed_at = COALESCE(d.first_claimed_at, {now})
FROM wanted AS w
WHERE d.id = ANY(ARRAY(SELECT id FROM due)) AND w.endpoint_id = d.endpoint_id
RETURNING d.id, d.endpoint_id, d.event_id, d.type, d.payload, d.attempts, d.token, d.redrives,
    d.created_at, d.expires_at, d.first_claimed_at, d.claimed_at
"""
# Results that are alike are said once, with the rows that they are of.
_FINISH = """
WITH alike AS (
    SELECT * FROM json_to_recordset(?) AS a(
        state text, due bigint, status integer, error text, reason text, outcome text,
        ids bigint[], tokens bigint[]
    )
), given AS MATERIALIZED (
    SELECT a.*, g.id, g.token
    FROM alike AS a CROSS JOIN LATERAL unnest(a.ids, a.tokens) AS g(id, token)
), moved AS (
    UPDATE {prefix}deliveries AS d
    SET state = g.state, next_attempt_at = g.due,
        finished_at = CASE WHEN g.due IS NULL THEN ?::bigint END,
        last_status = g.status, last_error = g.error, reason = g.reason
    FROM given AS g
    WHERE d.id = ANY(ARRAY(SELECT id FROM given)) AND d.id = g.id AND d.token = g.token
        AND d.state = 'sending'
    RETURNING d.id, d.redrives, d.attempts, d.event_id, d.claimed_at, d.last_status, d.last_error,
        g.outcome
)
INSERT INTO {prefix}tries
    (delivery_id, redrive, number, event_id, started_at, seconds, status, error, outcome)
SELECT m.id, m.redrives, m.attempts, m.event_id, m.claimed_at,
    GREATEST(0, ? - m.claimed_at) / 1000000.0, m.last_status, m.last_error, m.outcome
FROM moved AS m
RETURNING delivery_id
"""
# A count that is missing is 0, and a breaker or a window that is missing is as it was.
_GATES = """
WITH u AS MATERIALIZED (
    SELECT * FROM json_to_recordset(?) AS u(
        endpoint_id bigint, status text, until bigint, generation bigint, circuit text,
        successes bigint, successes_at bigint, failures text, probe_id bigint,
        disabled_at bigint, disabled_reason text,
        delivered integer, retried integer, failed integer, dead integer, expired integer,
        lost integer, tries integer, seconds float8, redelivered integer, died_again integer
    )
)
UPDATE {prefix}gates AS g
SET status = u.status, until = u.until, generation = u.generation,
    circuit = COALESCE(u.circuit, g.circuit), successes = COALESCE(u.successes, 0),
    successes_at = u.successes_at, failures = COALESCE(u.failures, g.failures),
    probe_id = u.probe_id, disabled_at = u.disabled_at,
    disabled_reason = COALESCE(u.disabled_reason, g.disabled_reason),
    delivered = g.delivered + COALESCE(u.delivered, 0),
    retried = g.retried + COALESCE(u.retried, 0), failed = g.failed + COALESCE(u.failed, 0),
    dead = g.dead + COALESCE(u.dead, 0), expired = g.expired + COALESCE(u.expired, 0),
    lost = g.lost + COALESCE(u.lost, 0), tries = g.tries + COALESCE(u.tries, 0),
    seconds = g.seconds + COALESCE(u.seconds, 0),
    redelivered = g.redelivered + COALESCE(u.redelivered, 0),
    died_again = g.died_again + COALESCE(u.died_again, 0)
FROM u
WHERE g.endpoint_id = ANY(ARRAY(SELECT endpoint_id FROM u)) AND g.endpoint_id = u.endpoint_id
"""


class _Statements:
    locks_rows = True

    def take(
        self, transaction: Transaction, wanted: Sequence[tuple[int, int, int]]
    ) -> dict[int, list[tuple[Any, ...]]]:
        taken: dict[int, list[tuple[Any, ...]]] = {}
        said = [
            {"count": count, "lease": lease, "endpoints": endpoints}
            for (count, lease), endpoints in alike_shares(wanted).items()
        ]
        rows = transaction.rows(_TAKE, (_said(said),))
        # An UPDATE answers in no order; the number is that of the enqueue.
        for row in sorted(rows, key=itemgetter(0)):
            taken.setdefault(row[1], []).append(row)
        return taken

    def finish(
        self, transaction: Transaction, results: Sequence[tuple[Claim, Result]], now: int
    ) -> set[int]:
        said = [
            {
                **result._asdict(),
                "ids": [claim.id for claim in claims],
                "tokens": [claim.token for claim in claims],
            }
            for result, claims in alike_results(results).items()
        ]
        return {row[0] for row in transaction.rows(_FINISH, (_said(said), now, now))}

    def write_gates(self, transaction: Transaction, gates: Sequence[Gate]) -> None:
        said = [
            {"endpoint_id": gate.endpoint_id, **gate.state_to_write(), **gate.counts}
            for gate in gates
        ]
        transaction.change(_GATES, (_said(said),))


_said = json.JSONEncoder(separators=(",", ":")).encode


class PostgresOutbox(Outbox):
    """An outbox in PostgreSQL. Needs the extra `postgres`.

    - `conninfo_or_pool`: where to connect, or a `psycopg_pool.ConnectionPool` or another pool with
      `connection()`. Behind PgBouncer hand over a pool whose connections have
      `prepare_threshold=None`.
    - `schema`: where the tables are; None leaves it to the search path.
    - `clock`: for tests: answers an aware datetime in place of the server's time, everywhere.
    - `on_transition`: called with an endpoint's name and a `Transition` when this outbox, or a
      worker on it, has changed the endpoint or its breaker: after the commit, in the thread that
      wrote, so it must not wait. What it raises is logged, and ends nothing.

    All times are the server's own, so workers whose clocks differ agree.
    """

    overlaps = True

    def __init__(
        self,
        conninfo_or_pool: str | Pool,
        *,
        schema: str | None = None,
        clock: Callable[[], datetime] | None = None,
        on_transition: Callable[[str, Transition], object] | None = None,
    ) -> None:
        self._postgres = PostgresDatabase(
            conninfo_or_pool,
            schema=schema,
            clock=clock,
            listener=listener_for(on_transition),
        )
        super().__init__(self._postgres, _Statements(), _STEPS, self._postgres.plain)

    @property
    def conninfo(self) -> str | None:
        """Where it connects; None with a pool."""
        return self._postgres.conninfo

    def _claim(self, claiming: Claiming) -> list[Claim]:
        return self._postgres.write(claiming, lock_timeout=_GATE_TIMEOUT)

    async def aenqueue(
        self,
        endpoint: str,
        payload: bytes,
        *,
        type: str | None = None,
        event_id: str | None = None,
        ttl: DurationLike | None = None,
        at: datetime | None = None,
        connection: psycopg.AsyncConnection[Any],
    ) -> Ticket:
        """`enqueue` in the transaction of a `psycopg.AsyncConnection`; see there."""
        event = checked_event(endpoint, payload, type, event_id, ttl, at)
        insert, find = self._postgres.said(RETURNING), self._postgres.said(FIND)
        async with async_caller_cursor(connection, "the event") as cursor:
            while True:
                await cursor.execute(insert, event.values)
                if await cursor.fetchall():
                    return Ticket(event.event_id, created=True)
                await cursor.execute(find, (event.event_id, event.endpoint))
                ticket = event.ticket_of(await cursor.fetchall())
                if ticket is not None:
                    return ticket

    def _enqueue_on(self, connection: Any, event: Event) -> Ticket:
        insert, find = self._postgres.said(RETURNING), self._postgres.said(FIND)
        with caller_cursor(connection, "the event") as cursor:
            while True:
                if cursor.execute(insert, event.values).fetchall():
                    return Ticket(event.event_id, created=True)
                cursor.execute(find, (event.event_id, event.endpoint))
                ticket = event.ticket_of(cursor.fetchall())
                if ticket is not None:
                    return ticket

    def _insert_statement(self, event: Event, style: Style) -> tuple[str, Any]:
        return statement(self._postgres.plain(INSERT), event.values, style)
