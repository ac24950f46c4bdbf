"""PostgreSQL through psycopg 3, with connections of our own or from the application's pool."""

from __future__ import annotations

import time
from contextlib import contextmanager

import psycopg
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from ..refusals import refusal
from ..schedule import create_backoff
from .clock import to_microseconds
from .connections import Connections
from .dialect import Dialect
from .migrations import apply
from .patience import patiently

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime
    from typing import Any, Protocol, TypeAlias, TypeVar

    Connection: TypeAlias = psycopg.Connection[object]

    class Pool(Protocol):
        def connection(self) -> AbstractContextManager[Connection]: ...

    T = TypeVar("T")

_PAUSES = create_backoff(base="20ms", max="1s", jitter="full")
# Half-open connections have stopped workers for hours: each of these has an end.
_CONNECTION = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
    "application_name": "backoff_schedule",
}
_SESSION = """
SELECT set_config('idle_in_transaction_session_timeout', '30s', false),
    set_config('statement_timeout', '30s', false)
"""
# In one round trip. Without parameters, so the numbers are put in here.
_BEGIN = """
BEGIN ISOLATION LEVEL READ COMMITTED;
SELECT set_config('lock_timeout', 'WAITINGms', true),
    set_config('statement_timeout', 'LEFTms', true), NOW
"""
# One number for all components: two migrations of one database go one after the other.
_MIGRATION_LOCK = 5_264_131_882_001
_PASSING = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.LockNotAvailable,
    errors.QueryCanceled,
)
_AWAY = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.TooManyConnections,
    errors.IdleInTransactionSessionTimeout,
)
_OUTSIDE = (TransactionStatus.IDLE, TransactionStatus.UNKNOWN)
_FULL = (errors.DiskFull, errors.OutOfMemory, errors.ReadOnlySqlTransaction)


class PostgresTransaction:
    """One transaction on one connection. It ends with the function that it was handed to."""

    def __init__(
        self,
        connection: Connection,
        dialect: Dialect,
        clock: Callable[[], int] | None,
    ) -> None:
        # Whatever the application's row factory makes of rows.
        self._cursor = connection.cursor(row_factory=tuple_row)
        self._dialect = dialect
        self._clock = clock
        self._began = 0
        self.notes: list[object] = []

    def begin(self, waiting: float, left: float) -> None:
        """Begin, with the seconds that a wait for a lock and a statement may take."""
        begin = _BEGIN.replace("WAITING", _milliseconds(waiting))
        begin = begin.replace("LEFT", _milliseconds(left))
        begin = begin.replace("NOW", _said(self._dialect, "{now}", self._clock))
        self._cursor.execute(begin.encode(), prepare=False)
        self._cursor.nextset()
        self._began = self._cursor.fetchall()[0][2]

    def commit(self) -> None:
        """End it, and keep what it did."""
        self._cursor.execute(b"COMMIT", prepare=False)

    def began(self) -> int:
        """Microseconds since the epoch at the transaction's beginning, which costs nothing."""
        return self._began

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Every row of the answer."""
        self._cursor.execute(self._said(statement), values)
        return self._cursor.fetchall()

    def change(self, statement: str, values: Sequence[Any] = ()) -> int:
        """How many rows the statement changed."""
        self._cursor.execute(self._said(statement), values)
        return self._cursor.rowcount

    def change_each(
        self, statement: str, rows: Sequence[Sequence[Any] | Mapping[str, Any]]
    ) -> None:
        """The statement once for each row of values, in as few round trips as possible."""
        self._cursor.executemany(self._said(statement), rows)

    def now(self) -> int:
        """Microseconds since the epoch, read now: not when the transaction began."""
        if self._clock is not None:
            return self._clock()
        microseconds: int = self.rows("SELECT {now}")[0][0]
        return microseconds

    def numbers(self, values: Sequence[int]) -> object:
        """A list as the value of `{among}`."""
        # In words, which takes a tenth of the time of psycopg's own.
        return f"{{{','.join(map(str, values))}}}"

    def _said(self, statement: str) -> bytes:
        return _said(self._dialect, statement, self._clock).encode()


class PostgresDatabase:
    """A database that any number of processes, threads and machines write.

    - `conninfo_or_pool`: where to connect, or a pool whose `connection()` lends connections.
    - `schema`: qualifies every table; None leaves it to the search path.
    - `clock`: answers an aware datetime in place of the server's time.
    - `patience`: seconds after which a database that stays away is a TimeoutError.
    - `listener`: told each note of a transaction, once that has committed.
    """

    def __init__(
        self,
        conninfo_or_pool: str | Pool,
        *,
        schema: str | None = None,
        clock: Callable[[], datetime] | None = None,
        patience: float = 10.0,
        listener: Callable[[object], object] | None = None,
    ) -> None:
        self._patience = patience
        self._listener = listener
        self._clock = None if clock is None else lambda: to_microseconds(clock(), "clock()")
        self._dialect = _dialect(schema, "%s")
        self._plain = _dialect(schema, "?")
        self._pool: Pool | None = None
        self.conninfo: str | None = None
        if isinstance(conninfo_or_pool, str):
            self.conninfo = conninfo_or_pool
            self._target = _complete(conninfo_or_pool)
            self._own = Connections(self._opened, _is_sound)
        elif callable(getattr(conninfo_or_pool, "connection", None)):
            self._pool = conninfo_or_pool
        else:
            rule = "a connection string, or a pool with connection()"
            kind = type(conninfo_or_pool).__name__
            raise TypeError(f"{refusal('conninfo_or_pool', conninfo_or_pool, rule)}, not {kind}")

    def write(
        self, work: Callable[[PostgresTransaction], T], *, lock_timeout: float | None = None
    ) -> T:
        """What `work` answers, in one transaction at READ COMMITTED.

        Nothing is kept if `work` raises. It is called again after a deadlock, a serialization
        failure or a lost connection, so it does nothing but read and write through what it is
        given. A connection lost during the commit may have committed. `lock_timeout` is how many
        seconds a statement waits for a lock before all of it is tried again.

        Raises `TimeoutError` when that does not help in time, and `RuntimeError` for a connection
        of the pool that is inside a transaction, whose rollback would undo what is written here.
        """
        return self._transact(work, self._patience, lock_timeout)

    def read(self, work: Callable[[PostgresTransaction], T], *, patience: float | None = None) -> T:
        """What `work` reads. As `write`, which see; with a patience of its own if one is given."""
        return self._transact(work, self._patience if patience is None else patience)

    def migrate(self, component: str, steps: Sequence[Sequence[str]]) -> None:
        """Bring the component's tables to the newest version, one migration at a time."""

        def work(transaction: PostgresTransaction) -> None:
            transaction.rows("SELECT pg_advisory_xact_lock(?)", (_MIGRATION_LOCK,))
            # An index over many rows takes the time that it takes.
            transaction.rows("SELECT set_config('statement_timeout', '0', true)")
            apply(transaction, component, steps)

        self._transact(work, self._patience)

    def is_away(self, error: Exception) -> bool:
        """Whether an error says that the server is away, busy or full."""
        return is_passing(error) or isinstance(error, _FULL)

    def said(self, statement: str) -> bytes:
        """The statement as psycopg takes it, for a connection of the application's."""
        return _said(self._dialect, statement, self._clock).encode()

    def plain(self, statement: str) -> str:
        """The statement with `?` for each value, for other drivers and for people."""
        return _said(self._plain, statement, self._clock)

    def close(self) -> None:
        """Close our own connections; a pool stays open. Using them afterwards is a RuntimeError."""
        if self._pool is None:
            self._own.close()

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection of ours or the pool's, outside any transaction."""
        if self._pool is None:
            with self._own.borrowed() as own:
                yield own
            return
        with self._pool.connection() as lent:
            if lent.info.transaction_status != TransactionStatus.IDLE:
                raise RuntimeError(
                    "the pool's connection is inside a transaction, whose rollback would undo what "
                    "is written here: hand over a pool of connections that are idle"
                )
            autocommit = lent.autocommit
            # Each transaction is begun in words, with what it needs.
            lent.autocommit = True
            try:
                yield lent
            finally:
                if lent.info.transaction_status == TransactionStatus.IDLE:
                    lent.autocommit = autocommit

    def _transact(
        self,
        work: Callable[[PostgresTransaction], T],
        patience: float,
        lock_timeout: float | None = None,
    ) -> T:
        deadline = time.monotonic() + patience

        def once() -> tuple[T, list[object]]:
            with self.connection() as connection:
                transaction = PostgresTransaction(connection, self._dialect, self._clock)
                left = max(0.001, deadline - time.monotonic())
                try:
                    transaction.begin(
                        left if lock_timeout is None else min(left, lock_timeout), left
                    )
                    answer = work(transaction)
                    transaction.commit()
                except BaseException:
                    # A connection that is gone has nothing to roll back.
                    if connection.info.transaction_status not in _OUTSIDE:
                        connection.execute(b"ROLLBACK", prepare=False)
                    raise
                return answer, transaction.notes

        answer, notes = patiently(once, pauses=_PAUSES, passes=is_passing, deadline=deadline)
        if self._listener is not None:
            for note in notes:
                self._listener(note)
        return answer

    def _opened(self) -> Connection:
        connection = psycopg.connect(self._target, autocommit=True)
        try:
            connection.execute(_SESSION)
        except BaseException:
            connection.close()
            raise
        return connection


def _milliseconds(seconds: float) -> str:
    return str(max(1, round(seconds * 1000)))


def is_passing(error: Exception) -> bool:
    """Whether trying again may help: another transaction in the way, or a server that is away."""
    if isinstance(error, (*_PASSING, *_AWAY)):
        return True
    # Errors without a code come from the connection: refused, cut, timed out.
    return isinstance(error, psycopg.OperationalError) and error.sqlstate is None


def _is_sound(connection: Connection) -> bool:
    if connection.closed or connection.broken:
        return False
    return connection.info.transaction_status == TransactionStatus.IDLE


def _complete(conninfo: str) -> str:
    """The connection string with an end to every wait that it leaves open."""
    try:
        given = conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError as refused:
        # Without the text itself, which may hold a password.
        raise ValueError(f"conninfo_or_pool needs to be a connection string: {refused}") from None
    return make_conninfo(conninfo, **{**_CONNECTION, **given})


def _said(dialect: Dialect, statement: str, clock: Callable[[], int] | None) -> str:
    if clock is None:
        return dialect.said(statement)
    now = f"{clock()}::bigint"
    return dialect.said(statement, now=now, as_of=now)


def _dialect(schema: str | None, mark: str) -> Dialect:
    prefix = "backoff_"
    if schema is not None:
        prefix = f"{sql.Identifier(schema).as_string()}.{prefix}"
    if mark == "%s":
        # psycopg reads a % in a statement as the beginning of a value.
        prefix = prefix.replace("%", "%%")
    return Dialect(
        {
            "now": "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
            "as_of": "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint",
            "prefix": prefix,
            "key": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
            "big": "BIGINT",
            "real": "DOUBLE PRECISION",
            "bytes": "BYTEA",
            "among": "= ANY(?::bigint[])",
            "clustered": "",
            "lock": "FOR NO KEY UPDATE OF g",
            "lock_free": "FOR NO KEY UPDATE OF g SKIP LOCKED",
            "take_free": "FOR UPDATE SKIP LOCKED",
            "prefer_indexes": "set_config('enable_seqscan', 'off', true)",
        },
        mark,
    )
