"""What a claim of a hundred due rows takes beside many that are not due."""

from __future__ import annotations

import contextlib
import time
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from ..measure import in_a_process, interleaved, ratio
from ..report import Row
from . import tables
from .ours import BATCH
from .places import Place, Store, empty

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backoff_schedule.delivery import Outbox
    from tests.postgres_server import PostgresServer

LIMIT = 1.5
# What a store knows of its endpoints is older than this when it is asked again, as with a worker
# that finds nothing and polls.
_POLL = 0.3


def rows(
    store: Store, sizes: Sequence[int], endpoints: int, rounds: int, server: PostgresServer
) -> list[Row]:
    """A row for each number of rows; the first one is the baseline."""
    with contextlib.ExitStack() as stack:
        places = {size: stack.enter_context(empty(store, server)) for size in sizes}
        samples = in_a_process(_claims, places, endpoints, rounds)
    names = {size: f"{size:,} rows" for size in sizes}
    baseline, largest = names[sizes[0]], names[sizes[-1]]
    return [
        Row(
            name,
            median(samples[name]),
            median(samples[baseline]),
            None if name == baseline else ratio(samples, name, baseline),
            LIMIT if name == largest else None,
        )
        for name in names.values()
    ]


def _claims(places: dict[int, Place], endpoints: int, rounds: int) -> dict[str, list[float]]:
    outboxes = {}
    for size, place in places.items():
        tables.make(place, endpoints)
        # Its endpoints have `endpoints - BUSY` rows already, where there are so many.
        waiting = size - BATCH - max(0, endpoints - tables.BUSY)
        tables.wait(place, endpoints + 1, waiting, 1, endpoints)
        tables.due(place, endpoints + size + 1, BATCH, endpoints)
        outboxes[f"{size:,} rows"] = place.outbox()

    def sample(outbox: Outbox) -> float:
        time.sleep(_POLL / len(outboxes))
        began = time.perf_counter()
        claims = outbox.claim(BATCH)
        taken = time.perf_counter() - began
        outbox.release(claims)
        if len(claims) != BATCH:
            raise RuntimeError(f"{len(claims)} of {BATCH} rows were claimed")
        return taken

    samples = interleaved(
        {name: partial(sample, outbox) for name, outbox in outboxes.items()}, rounds
    )
    for outbox in outboxes.values():
        outbox.close()
    return samples
