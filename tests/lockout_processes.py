"""What the processes of test_lockout_store do. Each of them loads this and little else."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

from backoff_schedule import Lockout, create_backoff
from backoff_schedule.lockout_store import PostgresLockouts, SQLiteLockouts

if TYPE_CHECKING:
    from collections.abc import Sequence

Store: TypeAlias = SQLiteLockouts | PostgresLockouts

# Five passwords, then an hour.
FIVE = Lockout(create_backoff(free=4, base="1 hour", growth="constant"), reset_after="15 minutes")


def store_at(place: tuple[str, str], lockout: Lockout = FIVE, **options: Any) -> Store:
    kind, where = place
    make = SQLiteLockouts if kind == "sqlite" else PostgresLockouts
    return make(where, lockout, **options)


def guess(place: tuple[str, str], barrier: Any, keys: Sequence[str], counted: Any) -> None:
    """Ten threads, all connected before any of them guesses."""
    store = store_at(place)
    checked: list[str] = []

    def one() -> None:
        for key in keys:
            store.peek(key)
            barrier.wait(60)
            if store.reserve(key) == 0.0:
                checked.append(key)

    threads = [threading.Thread(target=one) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.close()
    counted.put(Counter(checked))


def fail_at_once(place: tuple[str, str], barrier: Any, keys: Sequence[str], now: float) -> None:
    store = store_at(place)
    for key in keys:
        store.peek(key)
        barrier.wait(60)
        if store.reserve(key, now) != 0.0:
            raise AssertionError("it was locked")
    store.close()


def hammer(place: tuple[str, str], barrier: Any, times: int) -> None:
    store = store_at(place)
    barrier.wait(60)
    store.migrate()
    own = str(os.getpid())
    for _ in range(times):
        store.reserve("shared", now=5.0)
        store.reserve(own, now=5.0)
        store.peek("shared")
        store.succeeded(own)
    store.close()


def hold_for_a_second(path: str, holding: Any) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    holding.set()
    time.sleep(1.0)
    connection.execute("COMMIT")
    connection.close()
