from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import psycopg
import pytest

from backoff_schedule.delivery.postgres import PostgresOutbox
from tests.delivery.conftest import outbox_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from backoff_schedule.delivery.outbox import Outbox


def test_migrating_twice_and_from_many_threads_makes_the_tables_once(
    place: tuple[str, str],
) -> None:
    stores = [outbox_at(place) for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda store: store.migrate(), stores))
    stores[0].add_endpoint("acme")
    stores[1].migrate()
    assert [endpoint.name for endpoint in stores[1].endpoints()] == ["acme"]
    for store in stores:
        store.close()


def test_the_printed_schema_makes_what_migrate_makes(
    place: tuple[str, str], open_outbox: Callable[..., Outbox]
) -> None:
    outbox = open_outbox()
    sql = outbox.schema_sql()
    if place[0] == "sqlite":
        connection = sqlite3.connect(place[1])
        connection.executescript(sql)
        connection.close()
    else:
        with psycopg.connect(place[1]) as session:
            session.execute(sql.encode())
    outbox.migrate()
    outbox.add_endpoint("acme")
    outbox.enqueue("acme", b"x")
    assert len(outbox.claim(1)) == 1


def test_a_schema_of_postgresql_qualifies_every_table(conninfo: str) -> None:
    with psycopg.connect(conninfo) as session:
        session.execute('CREATE SCHEMA "other %s"')
    try:
        outbox = PostgresOutbox(conninfo, schema="other %s")
        outbox.migrate()
        outbox.add_endpoint("acme")
        with psycopg.connect(conninfo) as session:
            outbox.enqueue("acme", b"x", event_id="e", connection=session)
        (claim,) = outbox.claim(1)
        outbox.release([claim])
        assert outbox.get("e", "acme") is not None
        assert '"other %s".backoff_deliveries' in outbox.schema_sql()
        outbox.close()
        with psycopg.connect(conninfo) as session:
            assert session.execute("SELECT to_regclass('backoff_gates')").fetchone() == (None,)
    finally:
        with psycopg.connect(conninfo) as session:
            session.execute('DROP SCHEMA "other %s" CASCADE')


def test_a_schema_of_a_newer_release_is_refused(
    place: tuple[str, str], open_outbox: Callable[..., Outbox]
) -> None:
    outbox = open_outbox()
    outbox.migrate()
    update = "UPDATE backoff_schema_versions SET version = 99"
    if place[0] == "sqlite":
        connection = sqlite3.connect(place[1])
        connection.execute(update)
        connection.commit()
        connection.close()
    else:
        with psycopg.connect(place[1]) as session:
            session.execute(update)
    with pytest.raises(RuntimeError, match="delivery have version 99, and this release knows 1"):
        outbox.migrate()


def test_claims_and_counts_use_the_partial_indexes(conninfo: str) -> None:
    outbox = PostgresOutbox(conninfo)
    outbox.migrate()
    with psycopg.connect(conninfo) as session:
        session.execute("SET enable_seqscan = off")
        for state, compare in (("pending", "<="), ("sending", ">")):
            plan = session.execute(
                f"EXPLAIN SELECT id FROM backoff_deliveries WHERE state = '{state}' "
                f"AND endpoint_id = 1 AND next_attempt_at {compare} 5 "
                "ORDER BY next_attempt_at, id LIMIT 3".encode()
            ).fetchall()
            assert f"backoff_deliveries_{state}" in str(plan)
            assert "Sort" not in str(plan)
    outbox.close()
