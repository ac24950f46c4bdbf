"""What is measured of deliveries, against whom, and what is promised."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.postgres_server import PostgresServer

from ..measure import FULL, Effort
from ..report import Section
from . import claims, flights
from .bare_loop import PostgresLoop, SQLiteLoop
from .contest import Contest, Queue, drains, enqueues
from .ours import BATCH, Ours
from .peers import Huey, LiteQueue, PgQueuer, Procrastinate
from .places import Store, empty
from .tables import BUSY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    rows: int
    rounds: int
    enqueued: int
    crowd: int
    waiting: Sequence[int]
    claims: int
    flights: int


_FULL = Size(20_000, 5, 2_000, 10_000, (10_000, 100_000, 1_000_000), 20, 1_000)
_QUICK = Size(500, 1, 100, 1_000, (2_000, 20_000), 3, 1_000)

STORES: dict[Store, tuple[type[Queue], ...]] = {
    "PostgreSQL": (Ours, PostgresLoop, Procrastinate, PgQueuer),
    "SQLite": (Ours, SQLiteLoop, Huey, LiteQueue),
}
LIMITS: dict[Store, Mapping[str, float]] = {
    "PostgreSQL": {PostgresLoop.name: 0.45, Procrastinate.name: 8.0, PgQueuer.name: 1.0},
    "SQLite": {SQLiteLoop.name: 0.4, Huey.name: 3.0, LiteQueue.name: 3.0},
}
_DRAIN_NOTES = (
    "the time of one row, from the first send to the last; ratio: theirs over ours (baseline), so",
    f"above 1x ours is quicker. The sender does nothing; the worker is async and has {BATCH} at",
    f"once, and a batch is {BATCH} rows. Every contender runs in processes of its own, on an empty",
    "database for each round, and first drains a tenth as many rows, which does not count.",
    "PostgreSQL flushes as it does by default, SQLite has WAL and synchronous=FULL.",
)
_CROWD_NOTES = (f"{BUSY} endpoints have due rows, and each of the others one that is not due.",)
_ENQUEUE_NOTES = ("each event in a transaction of its own, from one process.",)
_CLAIM_NOTES = (
    f"{BATCH} rows are due and claimed; the others wait. Ratio: over the fewest rows (baseline).",
    "Between two claims is time enough that each looks for endpoints with due rows anew.",
)
_FLIGHT_NOTES = (
    f"async sends of {flights.SECONDS * 1000:.0f} ms; the whole process, the interpreter included.",
    f"Ratio: of the peak over {flights.MOST // 2**20} MiB.",
)


def sections(effort: Effort) -> list[Section]:
    """On each store: drains, enqueues, claims; and then the memory of a worker."""
    return measured(_FULL if effort == FULL else _QUICK)


def measured(size: Size, stores: Mapping[Store, Sequence[type[Queue]]] = STORES) -> list[Section]:
    """The sections for these contenders of each store; ours and the bare loop come first."""
    with PostgresServer() as server:
        return [
            *(
                section
                for store, queues in stores.items()
                for section in _drains(store, queues, size, server)
            ),
            *(_enqueues(store, queues, size, server) for store, queues in stores.items()),
            *(section for store in stores for section in _claims(store, size, server)),
            _flights(size, server),
        ]


def _drains(
    store: Store, everybody: Sequence[type[Queue]], size: Size, server: PostgresServer
) -> list[Section]:
    limits = LIMITS[store]
    # Only ours and the bare loop know of endpoints.
    ours = everybody[:2]
    one = Contest(store, size.rows, size.rounds)
    found = []
    for contest, queues in (
        (one, everybody),
        (replace(one, endpoints=size.crowd), ours),
        (replace(one, processes=2), everybody),
        (replace(one, processes=2, endpoints=size.crowd), ours),
    ):
        processes = "one process" if contest.processes == 1 else "two processes"
        endpoints = "" if contest.endpoints == 1 else f", {contest.endpoints:,} endpoints"
        # What is promised is promised of one process.
        promised = limits if contest.processes == 1 else {}
        found.append(
            Section(
                "delivery",
                f"drain of {size.rows:,} rows, {store}, {processes}{endpoints}",
                drains(contest, queues, promised, server),
                _DRAIN_NOTES if contest == one else _CROWD_NOTES if endpoints else (),
            )
        )
    return found


def _enqueues(
    store: Store, queues: Sequence[type[Queue]], size: Size, server: PostgresServer
) -> Section:
    rows = enqueues(Contest(store, size.enqueued, size.rounds), queues, server)
    return Section("delivery", f"enqueue of one event, {store}", rows, _ENQUEUE_NOTES)


def _claims(store: Store, size: Size, server: PostgresServer) -> list[Section]:
    return [
        Section(
            "delivery",
            f"a claim, {store}, {endpoints:,} endpoints",
            claims.rows(store, size.waiting, endpoints, size.claims, server),
            _CLAIM_NOTES,
        )
        for endpoints in (10, size.crowd)
    ]


def _flights(size: Size, server: PostgresServer) -> Section:
    rows = []
    for store in STORES:
        with empty(store, server) as place:
            rows.append(flights.row(place, size.flights, 3 * size.flights))
    title = f"memory of a worker with {size.flights:,} sends in flight"
    return Section("delivery", title, rows, _FLIGHT_NOTES)
