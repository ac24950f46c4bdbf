from __future__ import annotations

import math
import multiprocessing
import sqlite3
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import psycopg
import psycopg_pool
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backoff_schedule import Lockout, LockoutState, create_backoff
from backoff_schedule.lockout import LAST_SECOND
from backoff_schedule.lockout_store import PostgresLockouts, SQLiteLockouts
from tests.lockout_processes import (
    FIVE,
    fail_at_once,
    guess,
    hammer,
    hold_for_a_second,
    store_at,
)
from tests.postgres_server import PostgresServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.lockout_processes import Store

SPAWN = multiprocessing.get_context("spawn")
ODD_KEYS = ["", "\0", "a\0b", "é" * 10_000, "\ud800", "\udfff tail", "ann@example.com|203.0.113.7"]


def run_together(processes: int, work: Callable[..., None], *arguments: Any) -> None:
    running = [SPAWN.Process(target=work, args=arguments) for _ in range(processes)]
    for process in running:
        process.start()
    for process in running:
        process.join(120)
    assert [process.exitcode for process in running] == [0] * processes


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    if request.param == "sqlite":
        return "sqlite", str(tmp_path / "app.db")
    return "postgres", request.getfixturevalue("conninfo")


@pytest.fixture
def open_store(place: tuple[str, str]) -> Iterator[Callable[..., Store]]:
    opened: list[Store] = []

    def open_one(lockout: Lockout = FIVE, **options: Any) -> Store:
        store = store_at(place, lockout, **options)
        opened.append(store)
        store.migrate()
        return store

    yield open_one
    for store in opened:
        store.close()


def test_a_try_is_counted_before_the_password_is_checked(
    open_store: Callable[..., Store],
) -> None:
    lockouts = open_store()
    assert [lockouts.reserve("ann", now=1000.0) for _ in range(7)] == [0.0] * 5 + [3600.0] * 2
    assert lockouts.peek("ann") == LockoutState(5, 4600.0, 1000.0)
    assert lockouts.reserve("ann", now=datetime.fromtimestamp(4599.5, UTC)) == 0.5
    assert lockouts.reserve("ann", now=4600.0) == 0.0
    assert lockouts.peek("ann").failures == 6


def test_knocking_while_locked_writes_nothing(open_store: Callable[..., Store]) -> None:
    lockouts = open_store()
    for _ in range(5):
        lockouts.reserve("ann", now=1000.0)
    before = lockouts.peek("ann")
    for knock in range(1001, 4600, 400):
        assert lockouts.reserve("ann", now=knock) == 4600.0 - knock
    assert lockouts.peek("ann") == before


def test_a_success_clears_its_own_key_and_no_other(open_store: Callable[..., Store]) -> None:
    lockouts = open_store()
    for key in ("ann", "bob"):
        for _ in range(3):
            lockouts.reserve(key, now=1000.0)
    lockouts.succeeded("ann")
    assert lockouts.peek("ann") == LockoutState()
    assert lockouts.peek("bob").failures == 3
    lockouts.unlock("bob")
    lockouts.unlock("nobody")
    assert lockouts.peek("bob") == LockoutState()


def test_what_is_stored_is_the_state_that_the_pure_rule_gives(
    open_store: Callable[..., Store],
) -> None:
    lockout = Lockout(
        create_backoff(free=2, base=0.1, factor=1.7, max="3 days"), reset_after="1 hour"
    )
    lockouts, state, now = open_store(lockout), LockoutState(), 1_800_000_000.123456
    for step in (0.1, 7.3, 0.0, -50.0, 4000.0, 0.333333, 1e6, 2.5):
        now += step
        assert lockouts.reserve("ann", now) == lockout.locked_for(state, now)
        state = lockout.after_failure(state, now)
        assert lockouts.peek("ann") == state


@pytest.mark.parametrize("secret", [None, "pepper", b"\0pepper"])
@pytest.mark.parametrize("key", ODD_KEYS, ids=range(len(ODD_KEYS)))
def test_any_text_is_a_key(
    open_store: Callable[..., Store], key: str, secret: str | bytes | None
) -> None:
    lockouts = open_store(hash_keys=secret)
    for count in range(1, 4):
        assert lockouts.reserve(key, now=5.0) == 0.0
        assert lockouts.peek(key).failures == count
    assert lockouts.peek(key + " ") == LockoutState()
    lockouts.succeeded(key)
    assert lockouts.peek(key) == LockoutState()


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(key=st.text(st.characters(exclude_categories=())))
def test_every_text_has_a_count_of_its_own(open_store: Callable[..., Store], key: str) -> None:
    lockouts = open_store()
    lockouts.succeeded(key)
    lockouts.reserve(key, now=5.0)
    assert lockouts.peek(key).failures == 1


def stored_digests(place: tuple[str, str]) -> list[bytes]:
    query = "SELECT key_digest FROM backoff_lockouts"
    if place[0] == "sqlite":
        connection = sqlite3.connect(place[1])
        rows = connection.execute(query).fetchall()
        connection.close()
    else:
        with psycopg.connect(place[1]) as session:
            rows = session.execute(query).fetchall()
    return [bytes(row[0]) for row in rows]


def test_a_key_is_stored_as_a_digest_of_32_bytes_that_a_secret_changes(
    place: tuple[str, str], open_store: Callable[..., Store]
) -> None:
    open_store().reserve("a\ud800", now=5.0)
    open_store(hash_keys="pepper").reserve("a\ud800", now=5.0)
    # printf 'a\xed\xa0\x80' | openssl dgst -sha256 [-hmac pepper]
    assert {digest.hex() for digest in stored_digests(place)} == {
        "25819b9b43d499092eb2be7b6f27ae28439eee434cea4490191ab4ccb8f3409c",
        "6424c4968562e7481f965dddd5f5694a4e9b9e2e973ac3d662644b3bb007cd57",
    }


def test_without_a_moment_the_servers_or_the_systems_time_counts(
    open_store: Callable[..., Store],
) -> None:
    lockouts = open_store()
    before = time.time()
    for _ in range(5):
        assert lockouts.reserve("ann") == 0.0
    state = lockouts.peek("ann")
    assert state.last_failure is not None
    assert before - 0.001 <= state.last_failure <= time.time() + 0.001
    assert 3590.0 < lockouts.reserve("ann") <= 3600.0


def test_a_lock_without_end_is_stored_and_an_unlock_ends_it(
    open_store: Callable[..., Store],
) -> None:
    lockouts = open_store(Lockout(create_backoff(steps=[1e300])))
    assert lockouts.reserve("ann", now=1000.0) == 0.0
    assert lockouts.peek("ann").locked_until == LAST_SECOND
    assert lockouts.reserve("ann", now=2000.0) == math.inf
    lockouts.unlock("ann")
    assert lockouts.reserve("ann", now=2000.0) == 0.0


def test_a_lock_of_21_900_days_has_an_end(open_store: Callable[..., Store]) -> None:
    lockouts = open_store(Lockout(create_backoff(base="21900 days", growth="constant")))
    lockouts.reserve("ann", now=1_800_000_000.0)
    assert lockouts.reserve("ann", now=1_800_000_000.0) == 21_900 * 86_400.0


def test_purge_drops_what_was_quiet_and_nothing_that_is_locked_or_still_counts(
    open_store: Callable[..., Store],
) -> None:
    lockouts = open_store()
    lockouts.reserve("old", now=0.0)
    for _ in range(5):
        lockouts.reserve("locked", now=0.0)
    lockouts.reserve("recent", now=3000.0)
    assert lockouts.purge("1 hour", now=3599.0) == 0
    # Younger than reset_after, however short the quiet that is asked for.
    assert lockouts.purge(0, now=899.0) == 0
    assert lockouts.purge("1 hour", now=3600.0) == 1
    assert lockouts.peek("old") == LockoutState()
    assert lockouts.peek("recent").failures == 1
    assert lockouts.purge(0, now=4499.0) == 1
    assert lockouts.peek("locked").failures == 5
    assert lockouts.purge(0, now=4500.0) == 1


def test_migrating_again_and_from_many_threads_changes_nothing(place: tuple[str, str]) -> None:
    stores = [store_at(place) for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(store.migrate) for store in stores]:
            done.result()
    stores[0].reserve("ann", now=5.0)
    stores[1].migrate()
    assert stores[1].peek("ann").failures == 1
    for store in stores:
        store.close()


def test_a_schema_of_a_newer_release_is_refused(
    place: tuple[str, str], open_store: Callable[..., Store]
) -> None:
    lockouts = open_store()
    update = "UPDATE backoff_schema_versions SET version = 99 WHERE component = 'lockouts'"
    if place[0] == "sqlite":
        connection = sqlite3.connect(place[1])
        connection.execute(update)
        connection.commit()
        connection.close()
    else:
        with psycopg.connect(place[1]) as session:
            session.execute(update)
    with pytest.raises(RuntimeError, match="lockouts have version 99, and this release knows 1"):
        lockouts.migrate()


# E-01: guesses sent at the same time slip past the limit.


def test_of_100_guesses_from_10_processes_exactly_5_passwords_are_checked_three_keys_in_a_row(
    place: tuple[str, str], open_store: Callable[..., Store]
) -> None:
    lockouts, keys = open_store(), ["ann", "bob", "cy\ud800"]
    barrier, counted = SPAWN.Barrier(100), SPAWN.SimpleQueue()
    run_together(10, guess, place, barrier, keys, counted)
    checked = Counter[str]()
    for _ in range(10):
        checked.update(counted.get())
    assert checked == dict.fromkeys(keys, 5)
    for key in keys:
        assert lockouts.peek(key).failures == 5
        assert lockouts.reserve(key) > 3500.0


def test_two_that_forget_and_count_in_the_same_moment_lose_nothing(
    place: tuple[str, str], open_store: Callable[..., Store]
) -> None:
    lockouts, keys = open_store(), ["ann", "bob", "cy"]
    for key in keys * 4:
        lockouts.reserve(key, now=1000.0)
    # The last failure was 15 minutes and a second ago.
    run_together(2, fail_at_once, place, SPAWN.Barrier(2), keys, 1901.0)
    assert [lockouts.peek(key).failures for key in keys] == [2, 2, 2]


# "database is locked" never reaches a caller.


def test_eight_processes_hammer_one_sqlite_file_from_its_creation_on(tmp_path: Path) -> None:
    place = ("sqlite", str(tmp_path / "app.db"))
    run_together(8, hammer, place, SPAWN.Barrier(8), 60)
    store = store_at(place)
    assert store.peek("shared").failures == 5
    store.close()


def test_a_process_that_holds_the_lock_for_a_second_is_waited_for(tmp_path: Path) -> None:
    store = store_at(("sqlite", str(tmp_path / "app.db")))
    store.migrate()
    holding = SPAWN.Event()
    holder = SPAWN.Process(target=hold_for_a_second, args=(str(tmp_path / "app.db"), holding))
    holder.start()
    assert holding.wait(60)
    assert store.reserve("ann", now=5.0) == 0.0
    holder.join(60)
    assert store.peek("ann").failures == 1
    store.close()


def test_a_file_that_stays_locked_is_a_timeout_and_counts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "app.db"
    store = store_at(("sqlite", str(path)))
    store.migrate()
    monkeypatch.setattr(store._database, "_patience", 0.2)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(TimeoutError, match="busy or away for too long: database is locked"):
        store.reserve("ann")
    holder.execute("ROLLBACK")
    holder.close()
    assert store.peek("ann") == LockoutState()
    store.close()


# PostgreSQL alone.


def test_a_row_that_stays_locked_is_a_timeout_and_counts_nothing(
    conninfo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PostgresLockouts(conninfo, FIVE)
    store.migrate()
    store.reserve("ann", now=5.0)
    monkeypatch.setattr(store._database, "_patience", 0.3)
    with psycopg.connect(conninfo) as holder:
        holder.execute("SELECT * FROM backoff_lockouts FOR UPDATE")
        with pytest.raises(TimeoutError):
            store.reserve("ann")
        holder.rollback()
    assert store.peek("ann").failures == 1
    store.close()


def test_the_time_is_read_after_the_lock_is_held(conninfo: str) -> None:
    store = PostgresLockouts(conninfo, FIVE)
    store.migrate()
    store.reserve("ann", now=5.0)
    with psycopg.connect(conninfo) as holder, ThreadPoolExecutor(1) as threads:
        holder.execute("SELECT * FROM backoff_lockouts FOR UPDATE")
        waiting = threads.submit(store.reserve, "ann")
        time.sleep(0.5)
        released = time.time()
        holder.rollback()
        assert waiting.result() == 0.0
    last = store.peek("ann").last_failure
    assert last is not None
    assert last >= released - 0.01
    store.close()


def test_a_pool_serves_it_and_gets_its_connections_back_as_they_were(conninfo: str) -> None:
    with psycopg_pool.ConnectionPool(conninfo, min_size=1, max_size=2) as pool:
        store = PostgresLockouts(pool, FIVE)
        store.migrate()
        assert [store.reserve("ann", now=5.0) for _ in range(6)] == [0.0] * 5 + [3600.0]
        store.close()
        with pool.connection() as connection:
            assert connection.isolation_level is None
            assert connection.execute("SHOW lock_timeout").fetchone() == ("0",)
            assert connection.execute("SHOW statement_timeout").fetchone() == ("0",)


def test_a_pools_serializable_default_does_not_change_the_count(conninfo: str) -> None:
    def configure(connection: psycopg.Connection[Any]) -> None:
        connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE

    with psycopg_pool.ConnectionPool(conninfo, max_size=4, configure=configure) as pool:
        store = PostgresLockouts(pool, FIVE)
        store.migrate()
        with ThreadPoolExecutor(4) as threads:
            waits = list(threads.map(store.reserve, ["ann"] * 40))
        assert waits.count(0.0) == 5


def test_a_connection_inside_the_callers_transaction_is_refused(conninfo: str) -> None:
    store = PostgresLockouts(conninfo, FIVE)
    store.migrate()
    store.close()

    class InTransaction:
        def connection(self) -> psycopg.Connection[Any]:
            connection = psycopg.connect(conninfo)
            connection.execute("SELECT 1")
            return connection

    with pytest.raises(RuntimeError, match="inside a transaction, whose rollback would undo"):
        PostgresLockouts(InTransaction(), FIVE).reserve("ann")


def test_it_connects_again_after_the_server_was_killed_and_started_again() -> None:
    with PostgresServer() as server:
        store = PostgresLockouts(server.conninfo, FIVE)
        store.migrate()
        assert store.reserve("ann", now=5.0) == 0.0
        server.kill()
        server.start()
        assert store.reserve("ann", now=5.0) == 0.0
        assert store.peek("ann").failures == 2
        server.restart()
        with ThreadPoolExecutor(1) as threads:
            server.stop()
            waiting = threads.submit(store.reserve, "ann", 5.0)
            time.sleep(0.3)
            server.start()
            assert waiting.result() == 0.0
        assert store.peek("ann").failures == 3
        store.close()


# Bad input.


def test_what_is_refused_is_named(tmp_path: Path) -> None:
    path: Any = tmp_path / "app.db"
    with pytest.raises(TypeError, match=r"lockout .* needs to be a Lockout, not Backoff"):
        SQLiteLockouts(path, create_backoff(base=1))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"path .* needs to be a file"):
        SQLiteLockouts(":memory:", FIVE)
    with pytest.raises(TypeError, match=r"conninfo_or_pool .* needs to be a connection string"):
        PostgresLockouts(7, FIVE)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="conninfo_or_pool needs to be a connection string"):
        PostgresLockouts("host=x password", FIVE)
    for wrong, error in ((7, TypeError), ("", ValueError), (b"", ValueError)):
        with pytest.raises(error, match="hash_keys needs to be"):
            SQLiteLockouts(path, FIVE, hash_keys=wrong)  # type: ignore[arg-type]
    store = SQLiteLockouts(path, FIVE)
    store.migrate()
    for method in (store.reserve, store.succeeded, store.unlock, store.peek):
        with pytest.raises(TypeError, match=r"key .* needs to be a str, not bytes"):
            method(b"ann")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="now"):
        store.reserve("ann", math.nan)
    with pytest.raises(ValueError, match="now"):
        store.reserve("ann", datetime(2026, 1, 1))
    assert store.peek("ann") == LockoutState()
    with pytest.raises(ValueError, match="older_than"):
        store.purge(-1)
    store.close()
    with pytest.raises(RuntimeError, match="was closed"):
        store.peek("ann")
