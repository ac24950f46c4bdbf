"""SQLite: the write lock first, waited for by us, and nothing done while it is held."""

from __future__ import annotations

import json
import sqlite3
import time
from os import fspath

from ..refusals import refusal
from ..schedule import create_backoff
from .clock import to_microseconds
from .connections import Connections
from .dialect import Dialect
from .migrations import apply
from .patience import patiently

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from os import PathLike
    from typing import Any, TypeVar

    T = TypeVar("T")

_OLDEST = (3, 35, 0)
# SQLite's own busy timeout starves: two busy processes waited 1.1 s for a lock that a retry after
# 1 ms gets in 0.6 ms (99th percentile).
_PAUSES = create_backoff(base="1ms", growth="constant")
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
_AWAY = (
    *_BUSY,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
)

_WORDS = {
    "now": "backoff_now()",
    "as_of": "backoff_now()",
    "prefix": "backoff_",
    "key": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "big": "INTEGER",
    "real": "REAL",
    "bytes": "BLOB",
    "among": "IN (SELECT value FROM json_each(?))",
    "clustered": "WITHOUT ROWID",
    "lock": "",
    "lock_free": "",
    "take_free": "",
    "prefer_indexes": "1",
}
DIALECT = Dialect(_WORDS, "?")


class SQLiteTransaction:
    """One transaction on one connection. It ends with the function that it was handed to."""

    def __init__(self, connection: sqlite3.Connection, clock: Callable[[], int]) -> None:
        self._connection = connection
        self._clock = clock
        self.notes: list[object] = []

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Every row of the answer. All of them: an open cursor would keep the lock."""
        return self._connection.execute(DIALECT.said(statement), values).fetchall()

    def change(self, statement: str, values: Sequence[Any] = ()) -> int:
        """How many rows the statement changed."""
        return self._connection.execute(DIALECT.said(statement), values).rowcount

    def change_each(
        self, statement: str, rows: Sequence[Sequence[Any] | Mapping[str, Any]]
    ) -> None:
        """The statement once for each row of values."""
        self._connection.executemany(DIALECT.said(statement), rows)

    def now(self) -> int:
        """Microseconds since the epoch, read now."""
        return self._clock()

    def began(self) -> int:
        """The same: whoever writes holds the lock from the beginning."""
        return self._clock()

    def numbers(self, values: Sequence[int]) -> object:
        """A list as the value of `{among}`."""
        return json.dumps(values)


class SQLiteDatabase:
    """A file that any number of processes and threads write.

    - `path`: the file; not `":memory:"`, which every connection would have to itself.
    - `clock`: answers an aware datetime in place of the system's time.
    - `patience`: seconds after which a database that stays locked is a TimeoutError.
    - `listener`: told each note of a transaction, once that has committed.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        clock: Callable[[], datetime] | None = None,
        patience: float = 10.0,
        listener: Callable[[object], object] | None = None,
    ) -> None:
        if sqlite3.sqlite_version_info < _OLDEST:
            raise RuntimeError(f"SQLite {sqlite3.sqlite_version} is older than 3.35")
        self.path = fspath(path)
        if not self.path or self.path.startswith(":memory:"):
            raise ValueError(refusal("path", path, "a file, which processes and threads share"))
        self._clock = _system_time if clock is None else lambda: to_microseconds(clock(), "clock()")
        self._patience = patience
        self._listener = listener
        self._connections = Connections(
            self._opened, lambda connection: not connection.in_transaction
        )

    def write(self, work: Callable[[SQLiteTransaction], T]) -> T:
        """What `work` answers, in one transaction that has the write lock from its start.

        Nothing is kept if `work` raises. Raises `TimeoutError` if the lock cannot be had.
        """
        deadline = time.monotonic() + self._patience
        with self._connections.borrowed() as connection:
            self._execute(connection, "BEGIN IMMEDIATE", deadline)
            try:
                transaction = SQLiteTransaction(connection, self._clock)
                answer = work(transaction)
                # A journal that is not WAL makes a commit wait for readers.
                self._execute(connection, "COMMIT", deadline)
            except BaseException:
                # A full disk has rolled back already.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        if self._listener is not None:
            for note in transaction.notes:
                self._listener(note)
        return answer

    def read(self, work: Callable[[SQLiteTransaction], T], *, patience: float | None = None) -> T:
        """What `work` reads, all of it from one moment. It may be called more than once.

        `patience` is in seconds; None for the database's own.
        """
        deadline = time.monotonic() + (self._patience if patience is None else patience)

        def once() -> T:
            connection.execute("BEGIN")
            try:
                return work(SQLiteTransaction(connection, self._clock))
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

        with self._connections.borrowed() as connection:
            return patiently(once, pauses=_PAUSES, passes=is_busy, deadline=deadline)

    def migrate(self, component: str, steps: Sequence[Sequence[str]]) -> None:
        """Switch the file to WAL and bring the component's tables to the newest version."""
        with self._connections.borrowed() as connection:
            self._execute(
                connection, "PRAGMA journal_mode = WAL", time.monotonic() + self._patience
            )
        self.write(lambda transaction: apply(transaction, component, steps))

    def now(self) -> int:
        """Microseconds since the epoch, read now."""
        return self._clock()

    def is_away(self, error: Exception) -> bool:
        """Whether an error says that the file is away, locked or full, which somebody can mend."""
        return _code(error) in _AWAY

    def close(self) -> None:
        """Close every connection. Using the database afterwards is a RuntimeError."""
        self._connections.close()

    def _opened(self) -> sqlite3.Connection:
        # Which thread uses it changes; that no two do at once is what Connections is for.
        connection = sqlite3.connect(
            self.path, timeout=0, isolation_level=None, check_same_thread=False
        )
        try:
            # Called once for each statement, and not for each row: a statement has one time.
            connection.create_function("backoff_now", 0, self._clock, deterministic=True)
            deadline = time.monotonic() + self._patience
            self._execute(connection, "PRAGMA foreign_keys = ON", deadline)
            self._execute(connection, "PRAGMA synchronous = FULL", deadline)
        except BaseException:
            connection.close()
            raise
        return connection

    @staticmethod
    def _execute(connection: sqlite3.Connection, statement: str, deadline: float) -> None:
        patiently(
            lambda: connection.execute(statement).fetchall(),
            pauses=_PAUSES,
            passes=is_busy,
            deadline=deadline,
        )


def is_busy(error: Exception) -> bool:
    """Whether another connection is in the way, which passes."""
    return _code(error) in _BUSY


def _code(error: Exception) -> int:
    if not isinstance(error, sqlite3.OperationalError):
        return 0
    # The rest of the number says more about it.
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _system_time() -> int:
    return time.time_ns() // 1000
