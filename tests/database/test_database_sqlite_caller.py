from __future__ import annotations

import sqlite3
import sys
from typing import TYPE_CHECKING, Any

import pytest

from backoff_schedule.database.sqlite_caller import caller_cursor

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def connect() -> Iterator[Any]:
    opened = []

    def connect_one(**options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = sqlite3.connect(":memory:", **options)
        opened.append(connection)
        return connection

    yield connect_one
    for connection in opened:
        connection.close()


def test_rows_are_plain_whatever_the_callers_row_factory(connect: Any) -> None:
    connection = connect()
    connection.row_factory = sqlite3.Row
    [row] = caller_cursor(connection, "the event").execute("SELECT 1, 2").fetchall()
    assert type(row) is tuple


def test_legacy_mode_begins_with_the_insert_and_is_taken(connect: Any) -> None:
    connection = connect()
    connection.execute("CREATE TABLE t (id INTEGER)")
    assert not connection.in_transaction
    caller_cursor(connection, "the event").execute("INSERT INTO t VALUES (1)")
    assert connection.in_transaction


def test_autocommit_is_taken_inside_a_transaction_only(connect: Any) -> None:
    connection = connect(isolation_level=None)
    with pytest.raises(ValueError, match="so the event would be committed alone: begin the trans"):
        caller_cursor(connection, "the event")
    connection.execute("BEGIN")
    assert caller_cursor(connection, "the event").connection is connection


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sqlite3 has no other mode before 3.12")
def test_the_modes_of_python_3_12_are_told_apart(connect: Any) -> None:
    assert caller_cursor(connect(autocommit=False), "the event") is not None
    with pytest.raises(ValueError, match="in autocommit and in no transaction"):
        caller_cursor(connect(autocommit=True), "the event")


def test_another_drivers_connection_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"connection \('x'\) .* a sqlite3.Connection.*, not str"):
        caller_cursor("x", "the event")
