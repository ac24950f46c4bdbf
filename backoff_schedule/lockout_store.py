"""Sign-in lockouts in SQLite or PostgreSQL, counted before the password is checked.

Reading a count, checking a password and writing the count are three steps, and a hundred guesses
sent at once can all read before one has written. So a try is reserved first: counted as a failure
under a lock, and taken back by a success. What a failure costs is decided by `Lockout` alone.
"""

from __future__ import annotations

import hmac
from hashlib import sha256

from .durations import to_seconds
from .instants import epoch_seconds
from .lockout import LAST_SECOND, Lockout, LockoutState
from .refusals import refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from os import PathLike
    from typing import Any

    from .database.postgres import Pool
    from .database.transaction import Database, Transaction
    from .durations import DurationLike

_COMPONENT = "lockouts"
_STEPS = (
    (
        """
        CREATE TABLE {prefix}lockouts (
            key_digest {bytes} PRIMARY KEY,
            failures INTEGER NOT NULL,
            locked_until {real},
            last_failure {real}
        )
        """,
        "CREATE INDEX backoff_lockouts_last_failure ON {prefix}lockouts (last_failure)",
    ),
)
# The row is locked from here on, whether it was there or not, and what it holds is the newest.
_LOCK = """
INSERT INTO {prefix}lockouts AS kept (key_digest, failures) VALUES (?, 0)
ON CONFLICT (key_digest) DO UPDATE SET failures = kept.failures
RETURNING failures, locked_until, last_failure
"""
_PEEK = "SELECT failures, locked_until, last_failure FROM {prefix}lockouts WHERE key_digest = ?"
_COUNT = """
UPDATE {prefix}lockouts SET failures = ?, locked_until = ?, last_failure = ? WHERE key_digest = ?
"""
_FORGET = "DELETE FROM {prefix}lockouts WHERE key_digest = ?"
_PURGE = """
DELETE FROM {prefix}lockouts
WHERE last_failure <= ? AND (locked_until IS NULL OR locked_until <= ?)
"""


class Lockouts:
    """What both databases have in common, which is everything but how to connect."""

    def __init__(self, database: Database, lockout: Lockout, hash_keys: str | bytes | None) -> None:
        if not isinstance(lockout, Lockout):
            rule = "a Lockout"
            raise TypeError(f"{refusal('lockout', lockout, rule)}, not {type(lockout).__name__}")
        self._database = database
        self._lockout = lockout
        self._secret = _secret(hash_keys)

    @property
    def lockout(self) -> Lockout:
        """What each failure costs."""
        return self._lockout

    def migrate(self) -> None:
        """Make the table, or bring it to the newest version. Does nothing where that is done.

        Raises `RuntimeError` for tables that a newer release has made.
        """
        self._database.migrate(_COMPONENT, _STEPS)

    def reserve(self, key: str, now: float | datetime | None = None) -> float:
        """The seconds to wait before this try. 0.0: it is counted, go and check the password.

        While locked nothing is counted and the password must not be checked. `math.inf` means
        that the lock has no end. A try that was reserved counts as a failure until `succeeded` is
        called, so one that crashes on the way counts too.

        - `key`: any text: an account, an address, or both.
        - `now`: epoch seconds or an aware datetime; by default the database server's time, or on
          SQLite the system's, read while the lock on the row is held.

        Raises `TimeoutError` when the database stays locked or away for ten seconds: refuse the
        sign-in then, since a guess that is not counted must not be checked. `TypeError` for a key
        that is no str, `ValueError` for a naive, NaN or infinite `now`.
        """
        digest = self._digest(key)
        asked = None if now is None else epoch_seconds(now)

        def work(transaction: Transaction) -> float:
            state = LockoutState(*transaction.rows(_LOCK, (digest,))[0])
            moment = transaction.now() / 1_000_000 if asked is None else asked
            wait = self._lockout.locked_for(state, moment)
            if wait > 0.0:
                return float("inf") if moment + wait >= LAST_SECOND else wait
            state = self._lockout.after_failure(state, moment)
            counted = (state.failures, state.locked_until, state.last_failure, digest)
            transaction.change(_COUNT, counted)
            return 0.0

        return self._database.write(work)

    def succeeded(self, key: str) -> None:
        """Clear this key, and no other, after the password was right."""
        digest = self._digest(key)
        self._database.write(lambda transaction: transaction.change(_FORGET, (digest,)))

    def unlock(self, key: str) -> None:
        """Clear this key. The same as `succeeded`, said by an administrator."""
        self.succeeded(key)

    def peek(self, key: str) -> LockoutState:
        """What is known of this key. Counts nothing, and locks nothing."""
        digest = self._digest(key)
        rows: list[tuple[Any, ...]] = self._database.read(
            lambda transaction: transaction.rows(_PEEK, (digest,))
        )
        return LockoutState(*rows[0]) if rows else LockoutState()

    def purge(self, older_than: DurationLike, now: float | datetime | None = None) -> int:
        """Drop the keys that were quiet for `older_than`, and say how many they were.

        Never one that is locked, or whose failures still count: quiet is counted from the end of
        the last lock, and is at least `reset_after`. Without `reset_after` nothing is ever
        forgotten by itself, and purging is the forgetting.

        Raises as `to_seconds` does for `older_than`, and as `reserve` does.
        """
        quiet = max(to_seconds(older_than, "older_than"), self._lockout.reset_after or 0.0)
        asked = None if now is None else epoch_seconds(now)

        def work(transaction: Transaction) -> int:
            moment = transaction.now() / 1_000_000 if asked is None else asked
            return transaction.change(_PURGE, (moment - quiet, moment - quiet))

        return self._database.write(work)

    def close(self) -> None:
        """Close our own connections; a pool of the application's stays open."""
        self._database.close()

    def _digest(self, key: str) -> bytes:
        """32 bytes for any text: a NUL, half a surrogate pair and a novel are keys like others."""
        if not isinstance(key, str):
            raise TypeError(f"{refusal('key', key, 'a str')}, not {type(key).__name__}")
        text = key.encode("utf-8", "surrogatepass")
        if self._secret is None:
            return sha256(text).digest()
        return hmac.digest(self._secret, text, "sha256")


class SQLiteLockouts(Lockouts):
    """Lockouts in a SQLite file, which any number of processes and threads on a machine share.

    - `path`: the file; the application's own will do. `migrate` switches it to WAL.
    - `lockout`: what each failure costs.
    - `hash_keys`: a secret. Keys are stored as a digest, which somebody who has the file can check
      guesses of an address against; with a secret, only who has that too.

    Do not call it inside a write transaction of your own on the same file: each would wait for the
    other, until a TimeoutError.

    Raises `TypeError` and `ValueError` for other arguments.

    Examples:
        >>> import tempfile
        >>> from backoff_schedule import create_backoff
        >>> lockout = Lockout(create_backoff(free=2, base="1 hour"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     lockouts = SQLiteLockouts(f"{folder}/app.db", lockout)
        ...     lockouts.migrate()
        ...     waits = [lockouts.reserve("ann@example.com", now=100.0) for _ in range(4)]
        ...     lockouts.close()
        >>> waits
        [0.0, 0.0, 0.0, 3600.0]
    """

    def __init__(
        self,
        path: str | PathLike[str],
        lockout: Lockout,
        *,
        hash_keys: str | bytes | None = None,
    ) -> None:
        from .database.sqlite import SQLiteDatabase

        super().__init__(SQLiteDatabase(path), lockout, hash_keys)


class PostgresLockouts(Lockouts):
    """Lockouts in PostgreSQL, which any number of machines share. Needs the extra `postgres`.

    - `conninfo_or_pool`: where to connect, or a `psycopg_pool.ConnectionPool` or another pool with
      `connection()`. Its connections have to be idle: a call on one inside a transaction is refused
      with RuntimeError, since a rollback of that transaction would undo the count.
    - `lockout`, `hash_keys`: as for `SQLiteLockouts`.

    It connects again after a restart of the server.

    Raises `TypeError` and `ValueError` for other arguments.
    """

    def __init__(
        self,
        conninfo_or_pool: str | Pool,
        lockout: Lockout,
        *,
        hash_keys: str | bytes | None = None,
    ) -> None:
        from .database.postgres import PostgresDatabase

        super().__init__(PostgresDatabase(conninfo_or_pool), lockout, hash_keys)


def _secret(hash_keys: str | bytes | None) -> bytes | None:
    if hash_keys is None:
        return None
    if not isinstance(hash_keys, (str, bytes)):
        # Its type and not its value, which is a secret.
        raise TypeError(f"hash_keys needs to be a str or bytes, not {type(hash_keys).__name__}")
    if not hash_keys:
        raise ValueError("hash_keys needs to be a secret that is not empty")
    return hash_keys.encode() if isinstance(hash_keys, str) else hash_keys
