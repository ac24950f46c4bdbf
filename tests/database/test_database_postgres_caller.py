from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from backoff_schedule.database.postgres_caller import async_caller_cursor, caller_cursor

ALONE = "in autocommit and in no transaction, so the event would be committed alone"


def test_rows_are_plain_whatever_the_callers_row_factory(conninfo: str) -> None:
    with psycopg.connect(conninfo, row_factory=dict_row) as connection:
        [row] = caller_cursor(connection, "the event").execute("SELECT 1, 2").fetchall()
    assert row == (1, 2)


def test_autocommit_is_taken_inside_a_transaction_only(conninfo: str) -> None:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        with pytest.raises(ValueError, match=ALONE):
            caller_cursor(connection, "the event")
        with connection.transaction():
            assert caller_cursor(connection, "the event").connection is connection


def test_an_async_connection_is_looked_at_in_the_same_way(conninfo: str) -> None:
    async def main() -> None:
        options: dict[str, Any] = {"autocommit": True, "row_factory": dict_row}
        async with await psycopg.AsyncConnection.connect(conninfo, **options) as connection:
            with pytest.raises(ValueError, match=ALONE):
                async_caller_cursor(connection, "the event")
            async with connection.transaction():
                cursor = async_caller_cursor(connection, "the event")
                await cursor.execute("SELECT 1, 2")
                assert await cursor.fetchall() == [(1, 2)]
            with pytest.raises(TypeError, match=r"needs to be a psycopg.Connection"):
                caller_cursor(connection, "the event")

    asyncio.run(main())


def test_another_drivers_connection_is_refused_by_name() -> None:
    for cursor, rule in [
        (caller_cursor, r"a psycopg.Connection: hand over the driver's own, not str"),
        (async_caller_cursor, r"a psycopg.AsyncConnection: hand over the driver's own, not str"),
    ]:
        with pytest.raises(TypeError, match=rule):
            cursor("x", "the event")
