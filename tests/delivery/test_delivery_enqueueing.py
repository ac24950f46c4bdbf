from __future__ import annotations

import asyncio
import multiprocessing
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.rows import dict_row

from backoff_schedule.delivery import Ticket
from backoff_schedule.delivery.postgres import PostgresOutbox
from backoff_schedule.delivery.sqlite import SQLiteOutbox
from tests.delivery.conftest import Clock, connect, every_row, outbox_at

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from backoff_schedule.delivery.outbox import Outbox

COUNT = "SELECT count(*) FROM backoff_deliveries"


def test_an_event_waits_from_the_moment_it_is_enqueued(outbox: Outbox, clock: Clock) -> None:
    ticket = outbox.enqueue("acme", b'{"id": 1}', type="order.created", event_id="order-1")
    assert ticket == Ticket("order-1", created=True)
    row = outbox.get("order-1", "acme")
    assert row is not None
    assert (row.payload, row.type, row.state, row.attempts) == (
        b'{"id": 1}',
        "order.created",
        "pending",
        0,
    )
    assert row.created_at == row.next_attempt_at == clock.now
    assert row.expires_at is None
    assert row.finished_at is None


def test_without_an_id_each_event_is_a_new_one(outbox: Outbox) -> None:
    first, second = (outbox.enqueue("acme", b"same") for _ in range(2))
    assert first.event_id != second.event_id
    assert first.event_id.startswith("evt_")
    assert len(outbox.list()) == 2


def test_the_same_id_is_the_same_event_and_is_enqueued_once(outbox: Outbox) -> None:
    outbox.add_endpoint("bob")
    assert outbox.enqueue("acme", b"x", event_id="e").created
    assert outbox.enqueue("acme", b"x", event_id="e") == Ticket("e", created=False)
    assert outbox.enqueue("bob", b"x", event_id="e").created
    assert [row.endpoint for row in outbox.list()] == ["acme", "bob"]


def test_another_body_under_an_id_that_is_used_is_refused(outbox: Outbox) -> None:
    outbox.enqueue("acme", b"x", event_id="e")
    with pytest.raises(ValueError, match=r"event_id \('e'\) names another event of the endpoint"):
        outbox.enqueue("acme", b"y", event_id="e")
    row = outbox.get("e", "acme")
    assert row is not None
    assert row.payload == b"x"


def test_a_ttl_counts_from_when_the_event_is_due(outbox: Outbox, clock: Clock) -> None:
    later, earlier = clock.after(3600), clock.after(-3600)
    for event_id, at, expires in [
        ("now", None, clock.after(60)),
        ("later", later, clock.after(3660)),
        ("past", earlier, clock.after(60)),
    ]:
        outbox.enqueue("acme", b"x", event_id=event_id, ttl="1 minute", at=at)
        row = outbox.get(event_id, "acme")
        assert row is not None
        assert row.expires_at == expires
        assert row.next_attempt_at == (at or clock.now)


def test_an_instant_in_any_zone_is_the_same_instant(outbox: Outbox) -> None:
    at = datetime(2031, 7, 1, 0, 0, 0, 1, timezone(timedelta(hours=5, minutes=45)))
    outbox.enqueue("acme", b"x", event_id="e", at=at)
    row = outbox.get("e", "acme")
    assert row is not None
    assert row.next_attempt_at == at
    assert row.next_attempt_at.tzinfo is UTC


# On the caller's connection.


def begin(place: tuple[str, str]) -> Any:
    connection = connect(place)
    if place[0] == "sqlite":
        connection.execute("BEGIN IMMEDIATE")
    return connection


def test_an_event_is_kept_with_its_transaction_and_goes_with_it(
    place: tuple[str, str], outbox: Outbox
) -> None:
    connection = begin(place)
    connection.execute("CREATE TABLE orders (id INTEGER)")
    connection.execute("INSERT INTO orders VALUES (1)")
    outbox.enqueue("acme", b"x", event_id="kept", connection=connection)
    assert outbox.get("kept", "acme") is None
    connection.commit()
    assert outbox.get("kept", "acme") is not None
    if place[0] == "sqlite":
        connection.execute("BEGIN IMMEDIATE")
    outbox.enqueue("acme", b"x", event_id="gone", connection=connection)
    connection.rollback()
    connection.close()
    assert outbox.get("gone", "acme") is None


def test_an_unknown_endpoint_leaves_the_transaction_usable(
    place: tuple[str, str], outbox: Outbox
) -> None:
    connection = begin(place)
    outbox.enqueue("acme", b"x", event_id="e", connection=connection)
    with pytest.raises(LookupError, match="there is no endpoint 'nobody'"):
        outbox.enqueue("nobody", b"x", connection=connection)
    with pytest.raises(ValueError, match="another body"):
        outbox.enqueue("acme", b"y", event_id="e", connection=connection)
    outbox.enqueue("acme", b"x", event_id="f", connection=connection)
    connection.commit()
    connection.close()
    assert [row.event_id for row in outbox.list()] == ["e", "f"]


def test_a_connection_in_autocommit_without_a_transaction_is_refused(
    place: tuple[str, str], outbox: Outbox
) -> None:
    options: dict[str, Any] = (
        {"isolation_level": None} if place[0] == "sqlite" else {"autocommit": True}
    )
    connection = connect(place, **options)
    with pytest.raises(ValueError, match="in autocommit and in no transaction"):
        outbox.enqueue("acme", b"x", event_id="e", connection=connection)
    connection.execute("BEGIN")
    outbox.enqueue("acme", b"x", event_id="e", connection=connection)
    connection.execute("COMMIT")
    connection.close()
    assert outbox.get("e", "acme") is not None


def test_sqlite3s_legacy_mode_begins_the_transaction_with_the_insert(
    tmp_path: Path, clock: Clock
) -> None:
    outbox = SQLiteOutbox(tmp_path / "app.db", clock=clock)
    outbox.migrate()
    outbox.add_endpoint("acme")
    connection = sqlite3.connect(tmp_path / "app.db")
    connection.row_factory = sqlite3.Row
    outbox.enqueue("acme", b"x", event_id="e", connection=connection)
    assert connection.in_transaction
    connection.rollback()
    connection.close()
    assert outbox.list() == []
    outbox.close()


def test_the_applications_row_factory_does_not_matter(conninfo: str) -> None:
    outbox = PostgresOutbox(conninfo)
    outbox.migrate()
    outbox.add_endpoint("acme")
    with psycopg.connect(conninfo, row_factory=dict_row) as connection:
        for created in (True, False):
            ticket = outbox.enqueue("acme", b"x", event_id="e", connection=connection)
            assert ticket.created is created
    outbox.close()


def test_an_async_connection_enqueues_too(conninfo: str) -> None:
    outbox = PostgresOutbox(conninfo)
    outbox.migrate()
    outbox.add_endpoint("acme")

    async def main() -> None:
        connection = await psycopg.AsyncConnection.connect(conninfo)
        async with connection:
            for created in (True, False):
                ticket = await outbox.aenqueue("acme", b"x", event_id="e", connection=connection)
                assert ticket.created is created
            with pytest.raises(LookupError):
                await outbox.aenqueue("nobody", b"x", connection=connection)
        connection = await psycopg.AsyncConnection.connect(conninfo, autocommit=True)
        async with connection:
            with pytest.raises(ValueError, match="in autocommit"):
                await outbox.aenqueue("acme", b"x", connection=connection)
        sync: Any = outbox
        with pytest.raises(TypeError, match=r"connection .* psycopg.AsyncConnection"):
            await sync.aenqueue("acme", b"x", connection=object())

    asyncio.run(main())
    assert [row.event_id for row in outbox.list()] == ["e"]
    outbox.close()


def test_a_connection_of_another_driver_is_refused_by_name(outbox: Outbox) -> None:
    with pytest.raises(TypeError, match=r"connection .* hand over the driver's own, not object"):
        outbox.enqueue("acme", b"x", connection=object())


@pytest.mark.parametrize("style", ["format", "qmark", "numeric", "named"])
def test_the_statement_for_other_drivers_enqueues_what_enqueue_would(
    place: tuple[str, str], outbox: Outbox, clock: Clock, style: Any
) -> None:
    sql, values = outbox.insert_statement(
        "acme", b"x", paramstyle=style, event_id="e", type="t", ttl="1 hour", at=clock.after(5)
    )
    assert sql.startswith("INSERT ")
    runs = {"sqlite": ("qmark", "named"), "postgres": ("format",)}
    if style not in runs[place[0]]:
        count = len(values)
        assert (f"${count}" in sql) if style == "numeric" else count >= 11
        return
    connection = begin(place)
    for expected in (1, 0):
        assert connection.execute(sql, values).rowcount == expected
    connection.commit()
    connection.close()
    row = outbox.get("e", "acme")
    assert row is not None
    assert (row.type, row.next_attempt_at, row.expires_at) == (
        "t",
        clock.after(5),
        clock.after(3605),
    )


def enqueue_together(place: tuple[str, str], barrier: Any, created: Any) -> None:
    outbox = outbox_at(place)
    barrier.wait(60)
    for number in range(50):
        if outbox.enqueue("acme", b"x", event_id=f"e{number}").created:
            with created.get_lock():
                created.value += 1
    outbox.close()


def test_four_processes_that_enqueue_the_same_events_make_one_row_of_each(
    place: tuple[str, str], open_outbox: Callable[..., Outbox]
) -> None:
    outbox = open_outbox()
    outbox.migrate()
    outbox.add_endpoint("acme")
    spawn = multiprocessing.get_context("spawn")
    barrier, created = spawn.Barrier(4), spawn.Value("i", 0)
    processes = [
        spawn.Process(target=enqueue_together, args=(place, barrier, created)) for _ in range(4)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * 4
    assert created.value == 50
    assert every_row(place, COUNT) == [(50,)]


def test_enqueue_waits_for_no_open_transaction_that_claims_or_settles(conninfo: str) -> None:
    # A foreign key to a gate would make one wait for the other.
    outbox = PostgresOutbox(conninfo)
    outbox.migrate()
    outbox.add_endpoint("acme")
    outbox.enqueue("acme", b"x", event_id="e")
    with psycopg.connect(conninfo) as business, ThreadPoolExecutor(1) as threads:
        outbox.enqueue("acme", b"x", event_id="f", connection=business)
        (claim,) = threads.submit(outbox.claim, 10).result(timeout=5)
        assert claim.event_id == "e"
        business.rollback()
    with psycopg.connect(conninfo) as claiming:
        claiming.execute("SELECT * FROM backoff_gates FOR UPDATE")
        outbox.enqueue("acme", b"x", event_id="g")
        claiming.rollback()
    outbox.close()


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"payload": "text"}, TypeError, "payload .* needs to be bytes"),
        ({"payload": b"x" * 262_145}, ValueError, r"payload \(262145 bytes\)"),
        ({"endpoint": ""}, ValueError, "endpoint .* needs to be text of 1 to 255 characters"),
        ({"endpoint": "a\0"}, ValueError, "endpoint"),
        ({"endpoint": 7}, TypeError, "endpoint .* not int"),
        ({"type": "\ud800"}, ValueError, "type"),
        ({"type": ""}, ValueError, "type"),
        ({"event_id": "a.b"}, ValueError, "event_id .* without a full stop"),
        ({"event_id": "ä"}, ValueError, "event_id"),
        ({"event_id": " a"}, ValueError, "event_id"),
        ({"event_id": "a\n"}, ValueError, "event_id"),
        ({"event_id": ""}, ValueError, "event_id"),
        ({"event_id": "x" * 256}, ValueError, "event_id"),
        ({"event_id": 7}, TypeError, "event_id .* not int"),
        ({"ttl": 0}, ValueError, "ttl"),
        ({"ttl": "1001 years"}, ValueError, "ttl"),
        ({"ttl": 1e11}, ValueError, "ttl .* at most 1000 years"),
        ({"at": datetime(2026, 1, 1)}, ValueError, "at .* aware"),
        ({"at": 1.0}, TypeError, "at .* not float"),
    ],
)
def test_what_cannot_be_delivered_is_refused_at_the_enqueue(
    outbox: Outbox, arguments: dict[str, Any], error: type[Exception], said: str
) -> None:
    call: dict[str, Any] = {"endpoint": "acme", "payload": b"x", **arguments}
    with pytest.raises(error, match=said):
        outbox.enqueue(call.pop("endpoint"), call.pop("payload"), **call)
    assert outbox.list() == []


def test_a_due_time_at_the_end_of_time_is_kept(outbox: Outbox) -> None:
    last = datetime.max.replace(tzinfo=UTC)
    outbox.enqueue("acme", b"x", event_id="e", at=last, ttl="900 days")
    row = outbox.get("e", "acme")
    assert row is not None
    assert row.next_attempt_at == row.expires_at == last
