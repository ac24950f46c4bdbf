from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from backoff_schedule.database.sqlite import SQLiteDatabase, SQLiteTransaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

STEPS = [("CREATE TABLE {prefix}things (id {key}, size {big})",)]
INSERT = "INSERT INTO {prefix}things (size) VALUES (?)"
HOLD = """
import sqlite3, sys, time

connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
connection.execute("INSERT INTO backoff_things (size) VALUES (9)")
print("held", flush=True)
time.sleep(600)
"""
COUNT = "SELECT count(*) FROM {prefix}things"


@pytest.fixture
def open_database(tmp_path: Path) -> Iterator[Callable[..., SQLiteDatabase]]:
    opened: list[SQLiteDatabase] = []

    def open_one(**options: object) -> SQLiteDatabase:
        database = SQLiteDatabase(tmp_path / "app.db", **options)  # type: ignore[arg-type]
        opened.append(database)
        database.migrate("things", STEPS)
        return database

    yield open_one
    for database in opened:
        database.close()


def count(database: SQLiteDatabase) -> int:
    return database.read(lambda t: t.rows(COUNT))[0][0]  # type: ignore[no-any-return]


def test_what_raises_leaves_nothing_behind(open_database: Callable[..., SQLiteDatabase]) -> None:
    database = open_database()

    def work(transaction: SQLiteTransaction) -> None:
        transaction.change(INSERT, (1,))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        database.write(work)
    assert count(database) == 0
    assert database.write(lambda t: t.change(INSERT, (1,))) == 1
    assert count(database) == 1


def test_migrate_switches_the_file_to_wal_and_commits_are_durable(
    open_database: Callable[..., SQLiteDatabase],
) -> None:
    database = open_database()
    assert database.read(lambda t: t.rows("PRAGMA journal_mode")) == [("wal",)]
    assert database.read(lambda t: t.rows("PRAGMA synchronous")) == [(2,)]
    assert database.read(lambda t: t.rows("PRAGMA foreign_keys")) == [(1,)]


def test_a_clock_replaces_the_systems_time_in_statements_too(
    open_database: Callable[..., SQLiteDatabase],
) -> None:
    moment = datetime(2030, 1, 1, 0, 0, 0, 7, UTC)
    database = open_database(clock=lambda: moment)
    assert database.read(lambda t: (t.now(), *t.rows("SELECT {now}, {as_of}")[0])) == (
        (1_893_456_000_000_007,) * 3
    )
    real = open_database().read(lambda t: t.rows("SELECT {now}")[0][0]) / 1e6
    assert abs(real - time.time()) < 5


def test_a_read_that_takes_the_lock_late_does_not_fail_at_once(
    open_database: Callable[..., SQLiteDatabase],
) -> None:
    # A deferred transaction that reads and then writes gets SQLITE_BUSY_SNAPSHOT without a wait.
    database, other = open_database(), open_database()
    reading = threading.Event()

    def work(transaction: SQLiteTransaction) -> None:
        size = transaction.rows(COUNT)[0][0]
        reading.set()
        time.sleep(0.2)
        transaction.change(INSERT, (size,))

    def meanwhile() -> None:
        reading.wait(10)
        other.write(lambda t: t.change(INSERT, (-1,)))

    thread = threading.Thread(target=meanwhile)
    thread.start()
    database.write(work)
    thread.join()
    assert [
        size for (size,) in database.read(lambda t: t.rows("SELECT size FROM backoff_things"))
    ] == [0, -1]


def test_a_rollback_that_sqlite_has_done_itself_is_not_done_twice(
    open_database: Callable[..., SQLiteDatabase],
) -> None:
    database = open_database()

    def fill(transaction: SQLiteTransaction) -> None:
        pages = transaction.rows("PRAGMA page_count")[0][0]
        transaction.rows(f"PRAGMA max_page_count = {pages}")
        transaction.change_each(INSERT, [(number,) for number in range(100_000)])

    with pytest.raises(sqlite3.OperationalError, match="full"):
        database.write(fill)
    assert count(database) == 0


def test_the_lock_of_a_killed_process_is_free_at_once(
    tmp_path: Path, open_database: Callable[..., SQLiteDatabase]
) -> None:
    database = open_database()
    command = [sys.executable, "-c", HOLD, str(tmp_path / "app.db")]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    started = time.monotonic()
    database.write(lambda t: t.change(INSERT, (1,)))
    assert time.monotonic() - started < 5
    assert count(database) == 1


def test_a_child_writes_with_connections_of_its_own(
    open_database: Callable[..., SQLiteDatabase],
) -> None:
    database = open_database()
    child = os.fork()
    if child == 0:
        database.write(lambda t: t.change(INSERT, (1,)))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    database.write(lambda t: t.change(INSERT, (2,)))
    assert count(database) == 2


def test_an_sqlite_that_is_too_old_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    with pytest.raises(RuntimeError, match=r"is older than 3\.35"):
        SQLiteDatabase(tmp_path / "app.db")


def test_a_folder_that_does_not_exist_is_said_at_once(tmp_path: Path) -> None:
    database = SQLiteDatabase(tmp_path / "nowhere" / "app.db")
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        database.write(lambda t: t.rows("SELECT 1"))
