"""One queue after the other, each in processes of its own: filled, drained, timed.

A drain is timed from its first send to its last, so that neither a start nor an end counts. What
is drained first, in the same processes, does not count either.
"""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from statistics import median
from typing import TYPE_CHECKING, ClassVar

from ..measure import ratio
from ..report import Row
from .places import Place, Store, empty

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from multiprocessing.synchronize import Barrier

    from tests.postgres_server import PostgresServer

_PATIENCE = 600.0
_WARM_UP = 10
OURS = "ours"


class Queue:
    """A contender on one database. `endpoints` is for those that know of any."""

    name: ClassVar[str]
    remark: ClassVar[str] = ""

    def __init__(self, place: Place, endpoints: int) -> None:
        self.place = place
        self.endpoints = endpoints

    def make(self) -> None:
        """Make the tables."""
        raise NotImplementedError

    def fill(self, first: int, rows: int) -> None:
        """Enqueue rows in any way, since this is not timed. `first` numbers them."""
        raise NotImplementedError

    def drain(self, sent: Callable[[], None]) -> None:
        """Do nothing for each row but tell that it was sent, until there are no more."""
        raise NotImplementedError

    def enqueue(self, rows: int, begun: Callable[[], None]) -> None:
        """Tell that it begins, and enqueue rows, each in a transaction of its own."""
        raise NotImplementedError


@dataclass(frozen=True)
class Contest:
    """What is asked of every contender."""

    store: Store
    rows: int
    rounds: int
    endpoints: int = 1
    processes: int = 1


def drains(
    contest: Contest,
    queues: Sequence[type[Queue]],
    limits: Mapping[str, float],
    server: PostgresServer,
) -> list[Row]:
    """A row for each: the time of one row, and theirs over ours."""
    return _rows(contest, queues, limits, server, _drained)


def enqueues(contest: Contest, queues: Sequence[type[Queue]], server: PostgresServer) -> list[Row]:
    """A row for each: the time of one event in a transaction of its own, and theirs over ours."""
    return _rows(contest, queues, {}, server, _enqueued)


def _rows(
    contest: Contest,
    queues: Sequence[type[Queue]],
    limits: Mapping[str, float],
    server: PostgresServer,
    measure: Callable[[type[Queue], Place, Contest], float],
) -> list[Row]:
    samples: dict[str, list[float]] = {queue.name: [] for queue in queues}
    absent: dict[str, str] = {}
    for _ in range(contest.rounds):
        for queue in queues:
            if queue.name in absent:
                continue
            with empty(contest.store, server) as place:
                try:
                    samples[queue.name].append(measure(queue, place, contest))
                except ModuleNotFoundError as error:
                    absent[queue.name] = f"not measured: {error}"
    written = []
    for queue in queues:
        if queue.name in absent:
            written.append(Row(queue.name, remark=absent[queue.name]))
            continue
        seconds = median(samples[queue.name])
        speed = f"{1 / seconds:,.0f} a second"
        is_ours = queue.name == OURS
        written.append(
            Row(
                queue.name,
                seconds,
                median(samples[OURS]),
                None if is_ours else ratio(samples, queue.name, OURS),
                remark=f"{speed}; {queue.remark}" if queue.remark else speed,
                least=limits.get(queue.name),
            )
        )
    return written


def _drained(queue: type[Queue], place: Place, contest: Contest) -> float:
    """The seconds that one row takes."""
    context = get_context("spawn")
    barrier = context.Barrier(contest.processes)
    with ProcessPoolExecutor(
        contest.processes, mp_context=context, initializer=_meet, initargs=(barrier,)
    ) as pool:
        asked = [
            pool.submit(_drain, queue, place, contest.endpoints, contest.rows)
            for _ in range(contest.processes)
        ]
        times = [each.result() for each in asked]
    sent = sum(count for _, _, count in times)
    if sent != contest.rows:
        raise RuntimeError(f"{queue.name} sent {sent:,} of {contest.rows:,} rows")
    began = min(first for first, _, count in times if count)
    return (max(last for _, last, _ in times) - began) / contest.rows


def _enqueued(queue: type[Queue], place: Place, contest: Contest) -> float:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_enqueue, queue, place, contest.endpoints, contest.rows).result()


# In the process of a contender

_barriers: list[Barrier] = []


def _meet(barrier: Barrier) -> None:
    _barriers.append(barrier)


def _drain(kind: type[Queue], place: Place, endpoints: int, rows: int) -> tuple[float, float, int]:
    """When the first and the last row were sent by this process, and how many were."""
    barrier = _barriers[0]
    times: list[float] = []

    def sent() -> None:
        times.append(time.monotonic())

    try:
        queue = kind(place, endpoints)
        if barrier.wait(_PATIENCE) == 0:
            queue.make()
        for first, count in ((1, rows // _WARM_UP), (rows // _WARM_UP + 1, rows)):
            if barrier.wait(_PATIENCE) == 0:
                queue.fill(first, count)
            barrier.wait(_PATIENCE)
            times.clear()
            queue.drain(sent)
    except BaseException:
        # The others would wait for this one.
        barrier.abort()
        raise
    return (times[0], times[-1], len(times)) if times else (0.0, 0.0, 0)


def _enqueue(kind: type[Queue], place: Place, endpoints: int, rows: int) -> float:
    queue = kind(place, endpoints)
    queue.make()
    queue.enqueue(rows // _WARM_UP, lambda: None)
    times: list[float] = []
    queue.enqueue(rows, lambda: times.append(time.monotonic()))
    return (time.monotonic() - times[0]) / rows
