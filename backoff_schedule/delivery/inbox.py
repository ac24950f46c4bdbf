"""The inbox: the receiver's half. Each event takes effect once, however often it is delivered.

Delivery is at least once, so an event comes again when its answer was lost. The receiver claims its
id in the transaction that writes what the event means, and so has done both or neither. The row of
a claim is locked until that transaction ends: whoever claims the same event meanwhile waits, and
gets it if the first one rolls back.

Nothing that belongs to a whole source is locked: its events are claimed side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from hashlib import sha256

from ..database.migrations import script
from ..durations import to_seconds
from ..refusals import refusal
from .text import stored_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from os import PathLike
    from sqlite3 import Connection
    from typing import Any

    import psycopg

    from ..database.postgres import Pool
    from ..database.transaction import Database, Transaction
    from ..durations import DurationLike

_COMPONENT = "inbox"
_STEPS = (
    (
        """
        CREATE TABLE {prefix}inbox (
            digest {bytes} PRIMARY KEY,
            source TEXT NOT NULL,
            event_id TEXT NOT NULL,
            received_at {big} NOT NULL,
            duplicates {big} NOT NULL DEFAULT 0
        ) {clustered}
        """,
        "CREATE INDEX backoff_inbox_received_at ON {prefix}inbox (received_at)",
        "CREATE INDEX backoff_inbox_source ON {prefix}inbox (source, duplicates)",
    ),
)
# It begins with the word INSERT: before any other, sqlite3's legacy mode opens no transaction. The
# answer is 0 for a row that was not there.
_CLAIM = """INSERT INTO {prefix}inbox AS kept (digest, source, event_id, received_at)
VALUES (?, ?, ?, {now})
ON CONFLICT (digest) DO UPDATE SET duplicates = kept.duplicates + 1
RETURNING duplicates"""
_COUNT = """
SELECT source, count(*), CAST(sum(duplicates) AS {big}) FROM {prefix}inbox GROUP BY source
"""
_PURGE = """
WITH old AS MATERIALIZED (
    SELECT digest FROM {prefix}inbox WHERE received_at BETWEEN ? AND ?
    ORDER BY received_at LIMIT ? {take_free}
)
DELETE FROM {prefix}inbox WHERE digest IN (SELECT digest FROM old) RETURNING received_at
"""
_BATCH = 1000
_LONGEST_SHOWN = 255
_LONGEST_AGE = 1e11


@dataclass(frozen=True, slots=True)
class InboxCounts:
    """What came from a source, of what is kept.

    Attributes:
        received: How many events were claimed.
        duplicates: How many times one of them came again.
    """

    received: int
    duplicates: int


class Inbox:
    """Which events a receiver has taken. Made as `SQLiteInbox` or `PostgresInbox`.

    One row for each source and event, under a digest of both, so that any text is an id.
    """

    def __init__(self, database: Database, plain: Callable[[str], str]) -> None:
        self._database = database
        self._plain = plain

    def migrate(self) -> None:
        """Make the table, or bring it to the newest version. Does nothing where that is done.

        A SQLite file is switched to WAL. Raises `RuntimeError` for a table that a newer release has
        made.
        """
        self._database.migrate(_COMPONENT, _STEPS)

    def schema_sql(self) -> str:
        """What `migrate` does in an empty database, as statements for another migration tool."""
        statements = script(_COMPONENT, _STEPS)
        return "".join(f"{self._plain(statement).strip()};\n\n" for statement in statements)

    def claim(self, connection: Any, source: str, event_id: str) -> bool:
        """Whether an event is new: True once, in the transaction that its effect belongs to.

        True: write what the event means on the same connection, and commit. False: it was taken
        before, and all that is left is to acknowledge it. After a rollback nothing was claimed, and
        the next try is True again. While another transaction has claimed the same event, this waits
        until it ends; how long at most is the connection's own affair (`lock_timeout` in
        PostgreSQL, `timeout` in sqlite3).

        - `connection`: the driver's own. It inserts or counts, and never commits.
        - `source`: who sends, by the name that you have for it. The same id from two sources is
          two events.
        - `event_id`: what the sender knows the event by.

        Both may be any text but an empty one, of any length: what a header may hold, a NUL and half
        a surrogate pair are ids like others. Claim several events of one transaction in the order
        of their ids, or two transactions may wait for each other.

        Raises `ValueError` for a connection in autocommit without a transaction, and for an empty
        text, under which all events without an id would be one; `TypeError` for a connection of
        another driver and for what is no text. What the database says, the driver raises.
        """
        raise NotImplementedError

    def stats(self, *, timeout: DurationLike = "10 seconds") -> dict[str, InboxCounts]:
        """What came from each source, of what is kept, by the first 255 characters of its name.

        A count takes longer the more rows are kept: ask once a minute, and not at every event.

        Raises `TimeoutError` for a database that stays busy or away for `timeout`.
        """
        rows = self._database.read(
            lambda transaction: transaction.rows(_COUNT), patience=to_seconds(timeout, "timeout")
        )
        return {source: InboxCounts(*counts) for source, *counts in sorted(rows)}

    def purge(self, older_than: DurationLike) -> int:
        """Forget events that came first `older_than` ago or earlier; say how many they were.

        An event that comes again after that is taken for a new one. So `older_than` must be longer
        than the time from a sender's first try to its last, and to the day on which somebody may
        still redrive it: with two weeks of retries, two months are a good choice.

        A thousand rows in a transaction; rows that somebody is claiming are left for the next time.

        Raises as `to_seconds` does.
        """
        seconds = min(to_seconds(older_than, "older_than"), _LONGEST_AGE)
        last = self._database.read(lambda transaction: transaction.now())
        last -= round(seconds * 1_000_000)
        first, dropped = -(2**63), 0
        while True:
            moments = self._database.write(partial(_purge, first=first, last=last))
            dropped += len(moments)
            if len(moments) < _BATCH:
                return dropped
            # The next batch begins here: what was dropped stays in the index for a while.
            first = max(moments)

    def close(self) -> None:
        """Close our own connections; a pool of the application's stays open."""
        self._database.close()

    def _is_away(self, error: Exception) -> bool:
        return isinstance(error, TimeoutError) or self._database.is_away(error)


class SQLiteInbox(Inbox):
    """An inbox in a SQLite file.

    - `path`: the file that the effects are written to; a claim in another one is no promise.
      `migrate` switches it to WAL. Not on a network file system.
    - `clock`: for tests: answers an aware datetime in place of the system's time, everywhere.

    Begin a transaction in which you claim with `BEGIN IMMEDIATE`: one that reads first and claims
    later fails at once when somebody else has written in between. SQLite has one writer at a time,
    so here a claim waits for any transaction that writes.

    Examples:
        >>> import sqlite3, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     inbox = SQLiteInbox(f"{folder}/app.db")
        ...     inbox.migrate()
        ...     connection = sqlite3.connect(f"{folder}/app.db")
        ...     answers = []
        ...     for _ in range(3):
        ...         with connection:  # commits, or rolls back
        ...             answers.append(inbox.claim(connection, "acme", "order-1"))
        ...     connection.close()
        ...     counts = inbox.stats()
        ...     inbox.close()
        >>> answers, counts
        ([True, False, False], {'acme': InboxCounts(received=1, duplicates=2)})
    """

    def __init__(
        self, path: str | PathLike[str], *, clock: Callable[[], datetime] | None = None
    ) -> None:
        from ..database.sqlite import DIALECT, SQLiteDatabase

        self._sqlite = SQLiteDatabase(path, clock=clock)
        self._said = DIALECT.said(_CLAIM, now="?")
        super().__init__(self._sqlite, DIALECT.said)

    @property
    def path(self) -> str:
        """The file."""
        return self._sqlite.path

    def claim(self, connection: Connection, source: str, event_id: str) -> bool:
        """`Inbox.claim`, which see, on a `sqlite3.Connection`."""
        from ..database.sqlite_caller import caller_cursor

        values = (*_row(source, event_id), self._sqlite.now())
        cursor = caller_cursor(connection, "the claim")
        # All of it: an open cursor would keep the lock.
        return _is_new(cursor.execute(self._said, values).fetchall())


class PostgresInbox(Inbox):
    """An inbox in PostgreSQL. Needs the extra `postgres`.

    - `conninfo_or_pool`: where to connect for all but claims, or a `psycopg_pool.ConnectionPool` or
      another pool with `connection()`. It has to be the database that the effects are written to.
    - `schema`: where the table is; None leaves it to the search path.
    - `clock`: for tests: answers an aware datetime in place of the server's time, everywhere.

    At REPEATABLE READ or SERIALIZABLE a claim that waited may end with error 40001. Repeat the
    transaction whole, as for your own statements.
    """

    def __init__(
        self,
        conninfo_or_pool: str | Pool,
        *,
        schema: str | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        from ..database.postgres import PostgresDatabase

        self._postgres = PostgresDatabase(conninfo_or_pool, schema=schema, clock=clock)
        super().__init__(self._postgres, self._postgres.plain)

    @property
    def conninfo(self) -> str | None:
        """Where it connects; None with a pool."""
        return self._postgres.conninfo

    def claim(self, connection: psycopg.Connection[Any], source: str, event_id: str) -> bool:
        """`Inbox.claim`, which see, on a `psycopg.Connection`."""
        from ..database.postgres_caller import caller_cursor

        values = _row(source, event_id)
        with caller_cursor(connection, "the claim") as cursor:
            return _is_new(cursor.execute(self._postgres.said(_CLAIM), values).fetchall())

    async def aclaim(
        self, connection: psycopg.AsyncConnection[Any], source: str, event_id: str
    ) -> bool:
        """`Inbox.claim`, which see, on a `psycopg.AsyncConnection`."""
        from ..database.postgres_caller import async_caller_cursor

        values = _row(source, event_id)
        async with async_caller_cursor(connection, "the claim") as cursor:
            await cursor.execute(self._postgres.said(_CLAIM), values)
            return _is_new(await cursor.fetchall())


def _purge(transaction: Transaction, first: int, last: int) -> list[int]:
    """Drop the oldest rows of a span of microseconds: when each was received."""
    return [row[0] for row in transaction.rows(_PURGE, (first, last, _BATCH))]


def _row(source: str, event_id: str) -> tuple[bytes, str, str]:
    """The key of an event, and for people what both databases can hold of its names."""
    name, identity = _encoded(source, "source"), _encoded(event_id, "event_id")
    # With the length of the first, no two pairs are the same bytes.
    digest = sha256(b"%d:%b%b" % (len(name), name, identity)).digest()
    return digest, stored_text(source, _LONGEST_SHOWN), stored_text(event_id, _LONGEST_SHOWN)


def _encoded(text: str, argument: str) -> bytes:
    rule = "text that is not empty"
    if not isinstance(text, str):
        raise TypeError(f"{refusal(argument, text, rule)}, not {type(text).__name__}")
    if not text:
        raise ValueError(refusal(argument, text, rule))
    return text.encode("utf-8", "surrogatepass")


def _is_new(rows: list[tuple[Any, ...]]) -> bool:
    [(duplicates,)] = rows
    return bool(duplicates == 0)
