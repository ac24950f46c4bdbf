"""The outbox in a SQLite file: the application's own, shared by any number of its processes."""

from __future__ import annotations

import json
from operator import itemgetter

from ..database.sqlite import DIALECT, SQLiteDatabase
from ..database.sqlite_caller import caller_cursor
from .enqueueing import FIND, INSERT, RETURNING, statement
from .gate import COUNTS
from .model import Ticket
from .outbox import Outbox
from .schema import steps
from .statements import CLAIMED, alike_results, alike_shares
from .watching import listener_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from os import PathLike
    from typing import Any

    from ..database.transaction import Transaction
    from .enqueueing import Event, Style
    from .gate import Gate
    from .model import Claim, Transition
    from .statements import Result

_STEPS = steps("strftime('%Y-%m-%dT%H:%M:%fZ', d.finished_at / 1000000.0, 'unixepoch')")
# The index by name: after some ANALYZE the planner took another one, which was eight times slower.
_TAKE = (
    """
UPDATE {prefix}deliveries
SET state = 'sending', attempts = attempts + 1, token = token + 1, claimed_at = {now},
    next_attempt_at = {now} + ?, first_claimed_at = COALESCE(first_claimed_at, {now})
WHERE id IN (
    SELECT d.id FROM json_each(?) AS e CROSS JOIN {prefix}deliveries AS d
    WHERE d.id IN (
        SELECT id FROM {prefix}deliveries INDEXED BY backoff_deliveries_pending
        WHERE state = 'pending' AND endpoint_id = e.value AND next_attempt_at <= {as_of}
        ORDER BY next_attempt_at, id LIMIT ?
    )
)
RETURNING """
    + CLAIMED
)
# The claims as an object, from the number of the row to its token.
_FINISH = """
UPDATE {prefix}deliveries AS d
SET state = ?, next_attempt_at = ?, finished_at = ?, last_status = ?, last_error = ?, reason = ?
FROM json_each(?) AS claim
WHERE d.id = CAST(claim.key AS INTEGER) AND d.token = claim.value AND d.state = 'sending'
RETURNING id
"""
_TRIES = """
INSERT INTO {prefix}tries
    (delivery_id, redrive, number, event_id, started_at, seconds, status, error, outcome)
SELECT id, redrives, attempts, event_id, claimed_at, MAX(0, ? - claimed_at) / 1000000.0,
    last_status, last_error, ?
FROM {prefix}deliveries WHERE id {among}
"""
_GATE = """
UPDATE {prefix}gates
SET status = :status, until = :until, generation = :generation,
    circuit = COALESCE(:circuit, circuit), successes = :successes,
    successes_at = :successes_at, failures = COALESCE(:failures, failures),
    probe_id = :probe_id, disabled_at = :disabled_at,
    disabled_reason = COALESCE(:disabled_reason, disabled_reason),
    delivered = delivered + :delivered, retried = retried + :retried, failed = failed + :failed,
    dead = dead + :dead, expired = expired + :expired, lost = lost + :lost, tries = tries + :tries,
    seconds = seconds + :seconds, redelivered = redelivered + :redelivered,
    died_again = died_again + :died_again
WHERE endpoint_id = :endpoint_id
"""
_STATE = (
    *("until", "circuit", "successes_at", "failures", "probe_id"),
    *("disabled_at", "disabled_reason"),
)
_NONE = {**dict.fromkeys((*COUNTS, "successes"), 0), **dict.fromkeys(_STATE)}


class _Statements:
    locks_rows = False

    def take(
        self, transaction: Transaction, wanted: Sequence[tuple[int, int, int]]
    ) -> dict[int, list[tuple[Any, ...]]]:
        taken: dict[int, list[tuple[Any, ...]]] = {}
        for (count, lease), endpoints in alike_shares(wanted).items():
            # An UPDATE answers in no order; the number is that of the enqueue.
            rows = transaction.rows(_TAKE, (lease, json.dumps(endpoints), count))
            for row in sorted(rows, key=itemgetter(0)):
                taken.setdefault(row[1], []).append(row)
        return taken

    def finish(
        self, transaction: Transaction, results: Sequence[tuple[Claim, Result]], now: int
    ) -> set[int]:
        finished: set[int] = set()
        for result, claims in alike_results(results).items():
            state, due, status, error, reason, outcome = result
            ended = now if due is None else None
            tokens = json.dumps({claim.id: claim.token for claim in claims})
            values = (state, due, ended, status, error, reason, tokens)
            ids = [row[0] for row in transaction.rows(_FINISH, values)]
            transaction.change(_TRIES, (now, outcome, transaction.numbers(ids)))
            finished.update(ids)
        return finished

    def write_gates(self, transaction: Transaction, gates: Sequence[Gate]) -> None:
        rows = []
        for gate in gates:
            state = gate.state_to_write()
            for name in ("circuit", "failures"):
                if name in state:
                    state[name] = json.dumps(state[name])
            rows.append({**_NONE, **gate.counts, **state, "endpoint_id": gate.endpoint_id})
        transaction.change_each(_GATE, rows)


class SQLiteOutbox(Outbox):
    """An outbox in a SQLite file.

    - `path`: the application's own file, so that an event is enqueued in the transaction that it is
      about. `migrate` switches it to WAL. Not on a network file system.
    - `clock`: for tests: answers an aware datetime in place of the system's time, everywhere.
    - `on_transition`: called with an endpoint's name and a `Transition` when this outbox, or a
      worker on it, has changed the endpoint or its breaker: after the commit, in the thread that
      wrote, so it must not wait. What it raises is logged, and ends nothing.

    Any number of processes and threads may enqueue and run workers. Begin a transaction in which
    you enqueue with `BEGIN IMMEDIATE`: one that reads first and writes later fails at once when
    somebody else has written in between.

    Examples:
        >>> import sqlite3, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     outbox = SQLiteOutbox(f"{folder}/app.db")
        ...     outbox.migrate()
        ...     outbox.add_endpoint("acme", url="https://acme.example/hooks")
        ...     ticket = outbox.enqueue("acme", b'{"id": 1}', event_id="order-1")
        ...     state = outbox.get("order-1", "acme").state
        ...     outbox.close()
        >>> ticket, state
        (Ticket(event_id='order-1', created=True), 'pending')
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        clock: Callable[[], datetime] | None = None,
        on_transition: Callable[[str, Transition], object] | None = None,
    ) -> None:
        self._sqlite = SQLiteDatabase(path, clock=clock, listener=listener_for(on_transition))
        super().__init__(self._sqlite, _Statements(), _STEPS, DIALECT.said)

    @property
    def path(self) -> str:
        """The file."""
        return self._sqlite.path

    def _enqueue_on(self, connection: Any, event: Event) -> Ticket:
        cursor = caller_cursor(connection, "the event")
        said = DIALECT.said(RETURNING, now="?")
        values = self._with_time(event)
        while True:
            if cursor.execute(said, values).fetchall():
                return Ticket(event.event_id, created=True)
            find = (event.event_id, event.endpoint)
            ticket = event.ticket_of(cursor.execute(DIALECT.said(FIND), find).fetchall())
            if ticket is not None:
                return ticket

    def _insert_statement(self, event: Event, style: Style) -> tuple[str, Any]:
        return statement(DIALECT.said(INSERT, now="?"), self._with_time(event), style)

    def _with_time(self, event: Event) -> tuple[Any, ...]:
        return (*event.values[:-1], self._sqlite.now(), event.values[-1])
