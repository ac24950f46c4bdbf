from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from backoff_schedule.database.migrations import script
from backoff_schedule.database.sqlite import DIALECT, SQLiteDatabase

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FIRST = ("CREATE TABLE {prefix}things (id {key}, size {big})",)
SECOND = ("ALTER TABLE {prefix}things ADD COLUMN name TEXT", "UPDATE {prefix}things SET name = 'x'")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SQLiteDatabase]:
    database = SQLiteDatabase(tmp_path / "app.db")
    yield database
    database.close()


def test_only_the_steps_that_are_missing_run(database: SQLiteDatabase) -> None:
    database.migrate("things", [FIRST])
    database.write(lambda t: t.change("INSERT INTO {prefix}things (size) VALUES (?)", (7,)))
    for _ in range(2):
        database.migrate("things", [FIRST, SECOND])
        assert database.read(lambda t: t.rows("SELECT size, name FROM {prefix}things")) == [
            (7, "x")
        ]


def test_components_have_versions_of_their_own(database: SQLiteDatabase) -> None:
    database.migrate("things", [FIRST, SECOND])
    database.migrate("others", [("CREATE TABLE {prefix}others (id {key})",)])
    rows = database.read(lambda t: t.rows("SELECT * FROM {prefix}schema_versions ORDER BY 1"))
    assert rows == [("others", 1), ("things", 2)]


def test_a_step_that_fails_leaves_everything_as_it_was(database: SQLiteDatabase) -> None:
    database.migrate("things", [FIRST])
    with pytest.raises(sqlite3.OperationalError):
        database.migrate("things", [FIRST, (*SECOND, "ALTER TABLE nothing ADD COLUMN x")])
    rows = database.read(lambda t: t.rows("SELECT version FROM {prefix}schema_versions"))
    assert rows == [(1,)]
    database.migrate("things", [FIRST, SECOND])


def test_the_script_makes_what_migrate_would_and_says_so(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "app.db")
    for statement in script("things", [FIRST, SECOND]):
        connection.execute(DIALECT.said(statement))
    connection.commit()
    connection.close()
    database = SQLiteDatabase(tmp_path / "app.db")
    database.migrate("things", [FIRST, SECOND])
    assert database.read(lambda t: t.rows("SELECT * FROM {prefix}schema_versions")) == [
        ("things", 2)
    ]
    database.close()
