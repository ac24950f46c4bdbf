"""The worker, with an async sender that does nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from backoff_schedule.delivery import Claim, Delivered, Worker

from . import tables
from .contest import OURS, Queue

if TYPE_CHECKING:
    from collections.abc import Callable

BATCH = 100


class Ours(Queue):
    name = OURS

    def make(self) -> None:
        tables.make(self.place, self.endpoints)

    def fill(self, first: int, rows: int) -> None:
        tables.due(self.place, first + self.endpoints, rows, self.endpoints)

    def drain(self, sent: Callable[[], None]) -> None:
        async def send(_: Claim) -> Delivered:
            sent()
            return Delivered(status=200)

        outbox = self.place.outbox()
        asyncio.run(Worker(outbox, send, concurrency=BATCH).run_once())
        outbox.close()

    def enqueue(self, rows: int, begun: Callable[[], None]) -> None:
        outbox = self.place.outbox()
        begun()
        for _ in range(rows):
            outbox.enqueue("endpoint1", b'{"id": 1}')
        outbox.close()
