"""The memory of a worker with many slow sends in flight."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from backoff_schedule.delivery import Claim, Delivered, Worker

from ..measure import Spread, in_a_process
from ..report import Row
from . import tables

if TYPE_CHECKING:
    from .places import Place

MOST = 120 * 2**20
SECONDS = 0.2


def row(place: Place, flights: int, rows: int) -> Row:
    """The peak of a process with one worker, over the limit."""
    peak, most, seconds = in_a_process(_flown, place, flights, rows)
    share = peak / MOST
    return Row(
        place.store,
        seconds / rows,
        None,
        Spread(share, share, share),
        1.0,
        f"{peak / 2**20:.0f} MiB at its peak, at most {most:,} in flight",
        {"peak": peak, "in flight": most},
    )


def _flown(place: Place, flights: int, rows: int) -> tuple[int, int, float]:
    tables.make(place, 1)
    tables.due(place, 1, rows, 1)
    flying = most = 0

    async def send(_: Claim) -> Delivered:
        nonlocal flying, most
        flying += 1
        most = max(most, flying)
        await asyncio.sleep(SECONDS)
        flying -= 1
        return Delivered(status=200)

    async def main() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        counts = await Worker(outbox, send, concurrency=flights).run_once()
        if counts.delivered != rows:
            raise RuntimeError(f"{counts.delivered:,} of {rows:,} rows were delivered")
        return loop.time() - began

    outbox = place.outbox()
    seconds = asyncio.run(main())
    outbox.close()
    return _peak(), most, seconds


def _peak() -> int:
    """The most memory that this process has held. `getrusage` would count its parent's, too."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("this system does not say how much memory a process held")
