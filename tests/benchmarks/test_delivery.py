"""The benchmarks of delivery: what they count and whom they compare, never how fast anything is."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest

from benchmarks.delivery import flights, tables
from benchmarks.delivery.contest import Contest, Queue, drains
from benchmarks.delivery.group import LIMITS, STORES, Size, measured
from benchmarks.delivery.ours import Ours
from benchmarks.delivery.peers import Huey, LiteQueue, PgQueuer, Procrastinate
from benchmarks.delivery.places import Store, empty
from tests.postgres_server import PostgresServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from backoff_schedule.delivery import Delivery, Outbox, Try
    from benchmarks.report import Row

TINY = Size(rows=200, rounds=1, enqueued=20, crowd=150, waiting=(300, 600), claims=2, flights=20)
BOTH = pytest.mark.parametrize("store", get_args(Store))


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer({"fsync": "off"}) as started:
        yield started


class Absent(Ours):
    name = "absent"

    def make(self) -> None:
        import a_package_that_nobody_has  # type: ignore[import-not-found]  # noqa: F401


class Lazy(Ours):
    name = "lazy"

    def drain(self, sent: Callable[[], None]) -> None:
        sent()


def test_everything_is_measured_on_both_stores() -> None:
    # Peers may not be installed, and have tests of their own.
    stores: dict[Store, Sequence[type[Queue]]] = {name: kinds[:2] for name, kinds in STORES.items()}
    sections = {section.title: section.rows for section in measured(TINY, stores)}
    for store in STORES:
        for processes in ("one process", "two processes"):
            for crowd in ("", ", 150 endpoints"):
                rows = sections.pop(f"drain of 200 rows, {store}, {processes}{crowd}")
                assert [row.what for row in rows] == ["ours", "a bare SQL loop"]
                assert all(row.seconds is not None and row.seconds > 0.0 for row in rows)
                least = LIMITS[store]["a bare SQL loop"] if processes == "one process" else None
                assert [row.least for row in rows] == [None, least]
        assert len(sections.pop(f"enqueue of one event, {store}")) == 2
        for endpoints in (10, 150):
            few, many = sections.pop(f"a claim, {store}, {endpoints} endpoints")
            assert (few.limit, many.limit) == (None, 1.5)
    memory = sections.pop("memory of a worker with 20 sends in flight")
    assert [row.facts["in flight"] for row in memory] == [20, 20]
    assert not sections


def test_every_contender_has_a_limit() -> None:
    assert {store: set(limits) for store, limits in LIMITS.items()} == {
        store: {queue.name for queue in queues} - {"ours"} for store, queues in STORES.items()
    }


def test_a_peer_that_is_not_installed_is_a_row_that_says_so(server: PostgresServer) -> None:
    ours, absent = drains(Contest("SQLite", 20, 1), (Ours, Absent), {}, server)
    assert ours.seconds is not None
    assert (absent.seconds, absent.ratio) == (None, None)
    assert absent.remark == "not measured: No module named 'a_package_that_nobody_has'"


def test_a_contender_that_leaves_rows_behind_is_an_error(server: PostgresServer) -> None:
    with pytest.raises(RuntimeError, match=r"lazy sent 1 of 20 rows"):
        drains(Contest("SQLite", 20, 1), (Lazy,), {}, server)


@BOTH
def test_the_bare_loop_writes_the_rows_that_the_worker_writes(
    store: Store, server: PostgresServer
) -> None:
    written = []
    for kind in STORES[store][:2]:
        with empty(store, server) as place:
            queue = kind(place, 1)
            queue.make()
            queue.fill(1, 30)
            sent: list[None] = []
            queue.drain(lambda sent=sent: sent.append(None))  # type: ignore[misc]
            assert len(sent) == 30
            outbox = place.outbox()
            rows = outbox.list()

            def history(row: Delivery, outbox: Outbox = outbox) -> list[Try]:
                return outbox.history(row.event_id, row.endpoint)

            written.append(
                [
                    (
                        *(row.state, row.attempts, row.last_status, row.next_attempt_at),
                        *((each.number, each.outcome, each.status) for each in history(row)),
                    )
                    for row in rows
                ]
            )
            assert all(row.finished_at is not None for row in rows)
            outbox.close()
    ours, bare = written
    assert ours == bare
    assert set(ours) == {("delivered", 1, 200, None, (1, "delivered", 200))}


@BOTH
def test_of_many_endpoints_a_hundred_have_due_rows_and_the_others_one_that_waits(
    store: Store, server: PostgresServer
) -> None:
    with empty(store, server) as place:
        tables.make(place, 120)
        tables.due(place, 1000, 300, 120)
        outbox = place.outbox()
        claims = outbox.claim(400)
        assert len(claims) == 300
        assert len({claim.endpoint for claim in claims}) == tables.BUSY
        assert len(outbox.list(state="pending")) == 20
        assert {each.max_in_flight for each in outbox.endpoints()} == {None}
        outbox.close()


@pytest.mark.parametrize("kind", [Procrastinate, PgQueuer, Huey, LiteQueue])
def test_a_peer_drains_what_it_is_filled_with(kind: type[Queue], server: PostgresServer) -> None:
    store: Store = "PostgreSQL" if kind in STORES["PostgreSQL"] else "SQLite"
    rows: list[Row] = drains(Contest(store, 30, 1), (Ours, kind), {}, server)
    assert rows[1].ratio is not None or rows[1].remark.startswith("not measured: No module named")


def test_memory_is_set_against_120_mib(server: PostgresServer) -> None:
    with empty("SQLite", server) as place:
        row = flights.row(place, 5, 10)
    assert row.ratio is not None
    assert row.ratio.median == row.facts["peak"] / (120 * 2**20)
    assert row.limit == 1.0
