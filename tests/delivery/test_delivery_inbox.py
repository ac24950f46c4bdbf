from __future__ import annotations

import asyncio
import multiprocessing
import sqlite3
import sys
from typing import TYPE_CHECKING, Any

import psycopg
import psycopg_pool
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.rows import dict_row

from backoff_schedule.delivery import InboxCounts, PostgresInbox, SQLiteInbox, SQLiteOutbox
from backoff_schedule.delivery import inbox as inbox_module
from tests.delivery.conftest import Clock, connect, every_row
from tests.delivery.inbox_processes import begun, claim_all, claim_and_hold, claim_one, inbox_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from backoff_schedule.delivery import Inbox

SPAWN = multiprocessing.get_context("spawn")
COUNT = "SELECT count(*) FROM backoff_inbox"
ODD_TEXTS = ["\0", "a\0b", "\ud800", "\udfff tail", "é" * 10_000, " ", "\r\n", "a.b", "?"]


@pytest.fixture
def open_inbox(place: tuple[str, str]) -> Iterator[Callable[..., Inbox]]:
    opened: list[Inbox] = []

    def open_one(**options: Any) -> Inbox:
        inbox = inbox_at(place, **options)
        opened.append(inbox)
        return inbox

    yield open_one
    for inbox in opened:
        inbox.close()


@pytest.fixture
def inbox(open_inbox: Callable[..., Inbox], clock: Clock) -> Inbox:
    inbox = open_inbox(clock=clock)
    inbox.migrate()
    return inbox


def taken(place: tuple[str, str], inbox: Inbox, source: str, event_id: str) -> bool:
    """The answer to a claim in a transaction that is committed."""
    connection = begun(place)
    answer = inbox.claim(connection, source, event_id)
    connection.commit()
    connection.close()
    return answer


def test_an_event_is_new_once(place: tuple[str, str], inbox: Inbox) -> None:
    assert [taken(place, inbox, "acme", "e") for _ in range(3)] == [True, False, False]
    assert taken(place, inbox, "acme", "f")


def test_the_same_id_from_another_source_is_another_event(
    place: tuple[str, str], inbox: Inbox
) -> None:
    # As one text, all of these pairs would be the same.
    for source, event_id in [("acme", "11"), ("acme1", "1"), ("acm", "e11"), ("5:acme", "1")]:
        assert taken(place, inbox, source, event_id)
        assert not taken(place, inbox, source, event_id)


def test_a_second_claim_in_the_same_transaction_is_a_duplicate(
    place: tuple[str, str], inbox: Inbox
) -> None:
    connection = begun(place)
    assert inbox.claim(connection, "acme", "e")
    assert not inbox.claim(connection, "acme", "e")
    connection.commit()
    connection.close()
    assert inbox.stats() == {"acme": InboxCounts(received=1, duplicates=1)}


def test_a_claim_that_is_rolled_back_was_none(place: tuple[str, str], inbox: Inbox) -> None:
    connection = begun(place)
    connection.execute("CREATE TABLE orders (id INTEGER)")
    assert inbox.claim(connection, "acme", "e")
    connection.rollback()
    connection.close()
    assert inbox.stats() == {}
    assert taken(place, inbox, "acme", "e")


def test_a_duplicate_that_is_rolled_back_leaves_the_claim(
    place: tuple[str, str], inbox: Inbox
) -> None:
    taken(place, inbox, "acme", "e")
    connection = begun(place)
    assert not inbox.claim(connection, "acme", "e")
    connection.rollback()
    connection.close()
    assert inbox.stats() == {"acme": InboxCounts(received=1, duplicates=0)}
    assert not taken(place, inbox, "acme", "e")


# Two at once.


def test_of_four_processes_that_claim_the_same_events_at_once_one_gets_each(
    place: tuple[str, str], inbox: Inbox
) -> None:
    event_ids = [f"e{number}" for number in range(25)]
    barrier, claimed = SPAWN.Barrier(4), SPAWN.SimpleQueue()
    processes = [
        SPAWN.Process(target=claim_all, args=(place, barrier, event_ids, claimed)) for _ in range(4)
    ]
    for process in processes:
        process.start()
    got = [event_id for _ in processes for event_id in claimed.get()]
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * 4
    assert sorted(got) == sorted(event_ids)
    assert inbox.stats() == {"acme": InboxCounts(received=25, duplicates=75)}


@pytest.mark.parametrize("keeps", [True, False], ids=["commit", "rollback"])
def test_the_second_waits_for_the_firsts_end_and_gets_what_that_leaves(
    place: tuple[str, str], inbox: Inbox, keeps: bool
) -> None:
    first, second = SPAWN.SimpleQueue(), SPAWN.SimpleQueue()
    may_end, asking = SPAWN.Event(), SPAWN.Event()
    holder = SPAWN.Process(target=claim_and_hold, args=(place, keeps, first, may_end))
    waiter = SPAWN.Process(target=claim_one, args=(place, asking, second))
    holder.start()
    assert first.get() is True
    waiter.start()
    assert asking.wait(60)
    # It would have answered by then; its end below shows that it answers at all.
    waiter.join(1.0)
    assert waiter.is_alive()
    assert second.empty()
    may_end.set()
    holder.join(60)
    waiter.join(60)
    assert (holder.exitcode, waiter.exitcode) == (0, 0)
    assert second.get() is not keeps
    assert inbox.stats() == {"acme": InboxCounts(received=1, duplicates=int(keeps))}


def test_events_of_one_source_are_claimed_side_by_side(conninfo: str) -> None:
    inbox = PostgresInbox(conninfo)
    inbox.migrate()
    with psycopg.connect(conninfo) as first, psycopg.connect(conninfo) as second:
        second.execute("SET lock_timeout = '2s'")
        assert inbox.claim(first, "acme", "e")
        assert inbox.claim(second, "acme", "f")
    inbox.close()


# The consumer's connection.


def test_a_connection_in_autocommit_without_a_transaction_is_refused(
    place: tuple[str, str], inbox: Inbox
) -> None:
    options: dict[str, Any] = (
        {"isolation_level": None} if place[0] == "sqlite" else {"autocommit": True}
    )
    connection = connect(place, **options)
    with pytest.raises(ValueError, match="no transaction, so the claim would be committed alone"):
        inbox.claim(connection, "acme", "e")
    connection.execute("BEGIN")
    assert inbox.claim(connection, "acme", "e")
    connection.execute("ROLLBACK")
    connection.close()
    assert every_row(place, COUNT) == [(0,)]


def test_sqlite3s_legacy_mode_begins_the_transaction_with_the_claim(tmp_path: Path) -> None:
    inbox = SQLiteInbox(tmp_path / "app.db")
    inbox.migrate()
    connection = sqlite3.connect(tmp_path / "app.db")
    connection.row_factory = sqlite3.Row
    assert inbox.claim(connection, "acme", "e")
    assert connection.in_transaction
    connection.rollback()
    connection.close()
    assert inbox.stats() == {}
    inbox.close()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sqlite3 has no other mode before 3.12")
@pytest.mark.parametrize("autocommit", [True, False])
def test_sqlite3s_other_modes_are_told_apart(tmp_path: Path, autocommit: bool) -> None:
    inbox = SQLiteInbox(tmp_path / "app.db")
    inbox.migrate()
    options: dict[str, Any] = {"autocommit": autocommit}
    connection = sqlite3.connect(tmp_path / "app.db", **options)
    if autocommit:
        with pytest.raises(ValueError, match="in autocommit"):
            inbox.claim(connection, "acme", "e")
    else:
        assert inbox.claim(connection, "acme", "e")
        connection.rollback()
    connection.close()
    assert inbox.stats() == {}
    inbox.close()


def test_the_consumers_row_factory_does_not_matter(conninfo: str) -> None:
    inbox = PostgresInbox(conninfo)
    inbox.migrate()
    with psycopg.connect(conninfo, row_factory=dict_row) as connection:
        assert [inbox.claim(connection, "acme", "e") for _ in range(2)] == [True, False]
    inbox.close()


def test_an_async_connection_claims_too(conninfo: str) -> None:
    inbox = PostgresInbox(conninfo)
    inbox.migrate()

    async def main() -> None:
        async with await psycopg.AsyncConnection.connect(conninfo) as connection:
            assert await inbox.aclaim(connection, "acme", "e")
            await connection.rollback()
            assert await inbox.aclaim(connection, "acme", "e")
            await connection.commit()
            assert not await inbox.aclaim(connection, "acme", "e")
        async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True) as connection:
            with pytest.raises(ValueError, match="the claim would be committed alone"):
                await inbox.aclaim(connection, "acme", "f")
        other: Any = object()
        with pytest.raises(TypeError, match=r"connection .* a psycopg.AsyncConnection"):
            await inbox.aclaim(other, "acme", "f")

    asyncio.run(main())
    assert inbox.stats() == {"acme": InboxCounts(received=1, duplicates=1)}
    inbox.close()


def test_a_connection_of_another_driver_is_refused_by_name(inbox: Inbox) -> None:
    with pytest.raises(TypeError, match=r"connection .* hand over the driver's own, not object"):
        inbox.claim(object(), "acme", "e")


# What comes over the network.


@pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
def test_any_text_is_an_id_and_a_source(place: tuple[str, str], inbox: Inbox, text: str) -> None:
    for source, event_id in [("acme", text), (text, "e")]:
        assert taken(place, inbox, source, event_id)
        assert not taken(place, inbox, source, event_id)
        assert taken(place, inbox, source, f"{event_id}!")


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(pairs=st.sets(st.tuples(*[st.text(st.characters(exclude_categories=()), min_size=1)] * 2)))
def test_every_pair_of_texts_is_an_event_of_its_own(
    place: tuple[str, str], inbox: Inbox, pairs: set[tuple[str, str]]
) -> None:
    connection = begun(place)
    for answer in (True, False):
        assert all(inbox.claim(connection, *pair) is answer for pair in pairs)
    connection.rollback()
    connection.close()


@pytest.mark.parametrize(
    ("source", "event_id", "error", "said"),
    [
        ("", "e", ValueError, r"source \(''\) needs to be text that is not empty"),
        ("acme", "", ValueError, r"event_id \(''\) needs to be text that is not empty"),
        ("acme", None, TypeError, r"event_id \(None\) .*, not NoneType"),
        (b"acme", "e", TypeError, "source .*, not bytes"),
    ],
)
def test_what_names_no_event_is_refused_and_leaves_the_transaction_usable(
    place: tuple[str, str],
    inbox: Inbox,
    source: Any,
    event_id: Any,
    error: type[Exception],
    said: str,
) -> None:
    connection = begun(place)
    with pytest.raises(error, match=said):
        inbox.claim(connection, source, event_id)
    assert inbox.claim(connection, "acme", "e")
    connection.commit()
    connection.close()


def test_people_find_an_event_by_what_its_names_look_like(
    place: tuple[str, str], inbox: Inbox, clock: Clock
) -> None:
    taken(place, inbox, "acme", "order-1")
    taken(place, inbox, "b\0b", "x" * 300)
    rows = every_row(place, "SELECT source, event_id FROM backoff_inbox ORDER BY source")
    assert rows == [("acme", "order-1"), ("b?b", "x" * 255)]


# Counts and the horizon.


def test_what_came_is_counted_by_source(place: tuple[str, str], inbox: Inbox) -> None:
    for event_id in ("e", "f", "e", "e"):
        taken(place, inbox, "bob", event_id)
    taken(place, inbox, "acme", "e")
    stats = inbox.stats()
    assert stats == {
        "acme": InboxCounts(received=1, duplicates=0),
        "bob": InboxCounts(received=2, duplicates=2),
    }
    assert list(stats) == ["acme", "bob"]
    assert {type(stats["bob"].received), type(stats["bob"].duplicates)} == {int}


def test_purge_forgets_what_came_first_so_long_ago(
    place: tuple[str, str], inbox: Inbox, clock: Clock
) -> None:
    taken(place, inbox, "acme", "old")
    clock.forward(60)
    taken(place, inbox, "acme", "young")
    taken(place, inbox, "acme", "old")
    assert inbox.purge(60.000001) == 0
    assert inbox.purge("1 minute") == 1
    assert taken(place, inbox, "acme", "old")
    assert not taken(place, inbox, "acme", "young")
    assert inbox.purge(1e300) == 0
    with pytest.raises(ValueError, match="older_than"):
        inbox.purge(-1)


@pytest.mark.parametrize("moments", [1, 7], ids=["at one moment", "at several"])
def test_purge_goes_in_batches_until_nothing_old_is_left(
    place: tuple[str, str],
    inbox: Inbox,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    moments: int,
) -> None:
    monkeypatch.setattr(inbox_module, "_BATCH", 3)
    connection = begun(place)
    for number in range(9):
        if number < moments:
            clock.forward(1)
        inbox.claim(connection, "acme", f"e{number}")
    connection.commit()
    connection.close()
    batches = []
    write = inbox._database.write

    def noting(work: Any) -> Any:
        batches.append(write(work))
        return batches[-1]

    monkeypatch.setattr(inbox._database, "write", noting)
    assert inbox.purge(0) == 9
    assert [len(batch) for batch in batches] == [3, 3, 3, 0]
    assert every_row(place, COUNT) == [(0,)]


def test_purge_waits_for_nobody_who_claims(conninfo: str, clock: Clock) -> None:
    inbox = PostgresInbox(conninfo, clock=clock)
    inbox.migrate()
    place = ("postgres", conninfo)
    for event_id in ("e", "f"):
        taken(place, inbox, "acme", event_id)
    with psycopg.connect(conninfo) as connection:
        assert not inbox.claim(connection, "acme", "e")
        assert inbox.purge(0) == 1
    assert not taken(place, inbox, "acme", "e")
    assert inbox.purge(0) == 1
    inbox.close()


def test_without_a_clock_the_servers_or_the_systems_time_counts(
    place: tuple[str, str], open_inbox: Callable[..., Inbox]
) -> None:
    inbox = open_inbox()
    inbox.migrate()
    taken(place, inbox, "acme", "e")
    assert inbox.purge("1 minute") == 0
    assert inbox.purge(0) == 1


# The table.


def test_it_lives_beside_an_outbox_and_migrates_as_often_as_asked(
    place: tuple[str, str], inbox: Inbox, open_outbox: Callable[..., Any]
) -> None:
    open_outbox().migrate()
    taken(place, inbox, "acme", "e")
    inbox.migrate()
    assert not taken(place, inbox, "acme", "e")
    versions = "SELECT component FROM backoff_schema_versions ORDER BY component"
    assert every_row(place, versions) == [("delivery",), ("inbox",)]


def test_a_table_of_a_newer_release_is_refused(place: tuple[str, str], inbox: Inbox) -> None:
    connection = connect(place)
    connection.execute("UPDATE backoff_schema_versions SET version = 99")
    connection.commit()
    connection.close()
    with pytest.raises(RuntimeError, match="inbox have version 99, and this release knows 1"):
        inbox.migrate()


def test_another_migration_tool_makes_the_same_table(
    place: tuple[str, str], open_inbox: Callable[..., Inbox]
) -> None:
    inbox = open_inbox()
    connection = connect(place)
    for statement in inbox.schema_sql().split(";"):
        if statement.strip():
            connection.execute(statement)
    connection.commit()
    connection.close()
    inbox.migrate()
    assert [taken(place, inbox, "acme", "e") for _ in range(2)] == [True, False]


def test_a_schema_of_its_own_and_a_pool_serve_it(conninfo: str) -> None:
    with psycopg.connect(conninfo) as session:
        session.execute('CREATE SCHEMA "in%box"')
    with psycopg_pool.ConnectionPool(conninfo, min_size=1, max_size=2) as pool:
        inbox = PostgresInbox(pool, schema="in%box")
        inbox.migrate()
        assert inbox.conninfo is None
        with pool.connection() as connection:
            assert inbox.claim(connection, "acme", "e")
        assert inbox.stats() == {"acme": InboxCounts(received=1, duplicates=0)}
        assert inbox.purge(0) == 1
        inbox.close()
    with psycopg.connect(conninfo) as session:
        session.execute('DROP SCHEMA "in%box" CASCADE')


def test_an_event_may_go_on_to_others_in_the_transaction_that_took_it(tmp_path: Path) -> None:
    inbox, outbox = SQLiteInbox(tmp_path / "app.db"), SQLiteOutbox(tmp_path / "app.db")
    inbox.migrate()
    outbox.migrate()
    outbox.add_endpoint("bob")
    connection = sqlite3.connect(inbox.path)
    for _ in range(2):
        with connection:
            if inbox.claim(connection, "acme", "e"):
                outbox.enqueue("bob", b"{}", connection=connection)
    connection.close()
    assert len(outbox.list()) == 1
    inbox.close()
    outbox.close()


def test_after_close_it_is_a_runtime_error(inbox: Inbox) -> None:
    inbox.close()
    with pytest.raises(RuntimeError, match="was closed"):
        inbox.stats()
