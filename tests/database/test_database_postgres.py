from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg.rows import dict_row

from backoff_schedule.database.postgres import PostgresDatabase, PostgresTransaction, is_passing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STEPS = [("CREATE TABLE {prefix}things (id {key}, size {big})",)]
INSERT = "INSERT INTO {prefix}things (size) VALUES (?)"
COUNT = "SELECT count(*) FROM {prefix}things"


@pytest.fixture
def open_database(conninfo: str) -> Iterator[Callable[..., PostgresDatabase]]:
    opened: list[PostgresDatabase] = []

    def open_one(where: object = conninfo, **options: object) -> PostgresDatabase:
        database = PostgresDatabase(where, **options)  # type: ignore[arg-type]
        opened.append(database)
        database.migrate("things", STEPS)
        return database

    yield open_one
    for database in opened:
        database.close()


def test_what_raises_leaves_nothing_behind(open_database: Callable[..., PostgresDatabase]) -> None:
    database = open_database()

    def work(transaction: PostgresTransaction) -> None:
        transaction.change(INSERT, (1,))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        database.write(work)
    assert database.read(lambda t: t.rows(COUNT)) == [(0,)]
    assert database.write(lambda t: t.change(INSERT, (1,))) == 1


def test_a_deadlock_is_resolved_by_trying_again(
    open_database: Callable[..., PostgresDatabase],
) -> None:
    database = open_database()
    database.write(lambda t: t.change_each(INSERT, [(0,), (0,)]))
    barrier = threading.Barrier(2)

    def both(first: int, second: int) -> None:
        tries = []

        def work(transaction: PostgresTransaction) -> None:
            tries.append(first)
            add = "UPDATE {prefix}things SET size = size + 1 WHERE id = ?"
            transaction.change(add, (first,))
            if len(tries) == 1:
                barrier.wait(10)
            transaction.change(add, (second,))

        database.write(work)

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(both, 1, 2), threads.submit(both, 2, 1)]:
            done.result()
    assert database.read(lambda t: t.rows("SELECT size FROM {prefix}things")) == [(2,), (2,)]


def test_a_connection_that_the_server_cuts_is_replaced(
    conninfo: str, open_database: Callable[..., PostgresDatabase]
) -> None:
    database = open_database()
    tries = []

    def work(transaction: PostgresTransaction) -> None:
        tries.append(transaction.rows("SELECT pg_backend_pid()")[0][0])
        transaction.change(INSERT, (1,))
        if len(tries) == 1:
            with psycopg.connect(conninfo, autocommit=True) as killer:
                killer.execute("SELECT pg_terminate_backend(%s)", tries)
            transaction.rows(COUNT)

    database.write(work)
    assert len(set(tries)) == 2
    assert database.read(lambda t: t.rows(COUNT)) == [(1,)]


def test_a_schema_qualifies_every_table(
    conninfo: str, open_database: Callable[..., PostgresDatabase]
) -> None:
    odd = 'Odd "name"%'
    with psycopg.connect(conninfo) as session:
        session.execute('CREATE SCHEMA "Odd ""name""%"')
    try:
        database = open_database(schema=odd)
        database.write(lambda t: t.change(INSERT, (1,)))
        with psycopg.connect(conninfo) as session:
            found = session.execute(
                "SELECT table_name FROM information_schema.tables WHERE table_schema = %s", (odd,)
            ).fetchall()
        assert sorted(found) == [("backoff_schema_versions",), ("backoff_things",)]
    finally:
        with psycopg.connect(conninfo) as session:
            session.execute('DROP SCHEMA "Odd ""name""%" CASCADE')


def test_a_clock_replaces_the_servers_time_in_every_statement(
    open_database: Callable[..., PostgresDatabase],
) -> None:
    moment = datetime(2030, 1, 1, 0, 0, 0, 7, UTC)
    database = open_database(clock=lambda: moment)
    assert database.read(lambda t: (t.now(), *t.rows("SELECT {now}, {as_of}")[0])) == (
        (1_893_456_000_000_007,) * 3
    )


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu", "America/St_Johns"])
def test_the_sessions_time_zone_changes_no_instant(conninfo: str, zone: str) -> None:
    database = PostgresDatabase(f"{conninfo} application_name='x'")
    query = "SELECT {now}, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

    def work(transaction: PostgresTransaction) -> tuple[int, int]:
        transaction.rows("SELECT set_config('TimeZone', ?, true)", (zone,))
        (row,) = transaction.rows(query)
        return row

    ours, theirs = database.read(work)
    assert 0 <= theirs - ours < 1_000_000
    database.close()


def test_the_applications_row_factory_does_not_matter(conninfo: str) -> None:
    class Pool:
        def connection(self) -> psycopg.Connection[dict[str, object]]:
            return psycopg.connect(conninfo, row_factory=dict_row)

    database = PostgresDatabase(Pool())
    assert database.read(lambda t: t.rows("SELECT 1, 2")) == [(1, 2)]


def test_a_child_has_connections_of_its_own_and_its_end_cuts_none(
    open_database: Callable[..., PostgresDatabase],
) -> None:
    database = open_database()
    query = "SELECT pg_backend_pid()"
    before = database.read(lambda t: t.rows(query))
    child = os.fork()
    if child == 0:
        other = database.write(lambda t: (t.change(INSERT, (1,)), t.rows(query))[1])
        os._exit(0 if other != before else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert database.read(lambda t: t.rows(query)) == before
    assert database.read(lambda t: t.rows(COUNT)) == [(1,)]


def test_a_server_that_is_not_there_is_a_timeout_after_a_while() -> None:
    database = PostgresDatabase("host=/nowhere dbname=x", patience=0.3)
    with pytest.raises(TimeoutError, match="busy or away for too long") as raised:
        database.read(lambda t: t.rows("SELECT 1"))
    assert is_passing(raised.value.__cause__)  # type: ignore[arg-type]


def test_a_mistake_is_said_at_once(open_database: Callable[..., PostgresDatabase]) -> None:
    database = open_database()
    with pytest.raises(psycopg.errors.UndefinedTable):
        database.read(lambda t: t.rows("SELECT * FROM nothing"))
