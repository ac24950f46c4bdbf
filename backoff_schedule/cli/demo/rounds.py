"""Rounds of a real worker on the clock of the story, told from what the databases have."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from ...delivery.http import HTTPSender
from ...delivery.worker import Worker
from ..readable import readable_duration
from .shop import POLICY, clock_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from ...delivery.model import Delivery, Endpoint, Try
    from .ledger import Ledger
    from .narrator import Narrator
    from .shop import Shop

_COLUMNS = "   {:9}  {:6}  {:16}  {:30}  {}".format
_HEADING = _COLUMNS("event", "try", "the receiver", "what came back", "what follows")


class Rounds:
    """Sends what is due, moves the clock to the next due time, and sends again.

    Used in a `with` block, at whose end the sender is closed.
    """

    def __init__(self, narrator: Narrator, shop: Shop, ledger: Ledger) -> None:
        self._narrator = narrator
        self._outbox = shop.outbox
        self._clock = shop.clock
        self._last = shop.clock.now
        self._ledger = ledger
        self._runner = asyncio.Runner()
        # The names are the story's own.
        self._sender = HTTPSender(allow_private=True, resolve=_loopback)
        self._worker = Worker(shop.outbox, self._sender, POLICY)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._runner as runner:
            runner.run(self._sender.aclose())

    def heading(self) -> None:
        self._narrator.line(_HEADING)

    def forward(self) -> bool:
        """Go to the next time at which something may be sent, and send it. False if there is none.

        What waits behind an open breaker waits for that, whenever it is due.
        """
        opens_at = {each.name: _opens_at(each) for each in self._outbox.endpoints()}
        moments = [
            max(row.next_attempt_at, opens_at[row.endpoint])
            for row in self._outbox.list(state="pending")
            if row.next_attempt_at is not None
        ]
        if not moments:
            return False
        self.send_at(min(moments))
        return True

    def send_at(self, moment: datetime) -> None:
        """Go to this time, send what is due then, and tell what became of it."""
        later = (moment - self._last).total_seconds()
        self._clock.now = self._last = moment
        self._runner.run(self._worker.run_once())
        passed = f", {readable_duration(later)} later" if later else ""
        self._narrator.line(f"{clock_time(moment)}{passed}")
        for line in self._tries():
            self._narrator.line(line)
        for line in self._breakers():
            self._narrator.line(line)

    def _tries(self) -> Iterator[str]:
        deeds = self._ledger.deeds(self._clock.now)
        for row in self._outbox.list():
            for entry in self._outbox.history(row.event_id, row.endpoint):
                if entry.started_at == self._clock.now:
                    deed = deeds.get(row.event_id, "heard nothing")
                    number = f"{entry.number} of {POLICY.max_attempts}"
                    yield _COLUMNS(row.event_id, number, deed, came_back(entry), _follows(row))

    def _breakers(self) -> Iterator[str]:
        for endpoint in self._outbox.endpoints():
            happened = [
                change.event.replace("_", "-")
                for change in reversed(self._outbox.transitions(endpoint.name))
                if change.at == self._clock.now
            ]
            if happened:
                opens_at = _opens_at(endpoint)
                until = "" if opens_at < self._clock.now else f" until {clock_time(opens_at)}"
                yield f"   {endpoint.name}'s breaker: {', then '.join(happened)}{until}"


def came_back(entry: Try) -> str:
    """What a try brought: the status of a success, or the first words of the error."""
    return str(entry.status) if entry.error is None else brief(entry.error)


def brief(error: str) -> str:
    """The first words of an error, without what the system adds: that names a port."""
    return error.partition(": ")[0]


def _follows(row: Delivery) -> str:
    if row.next_attempt_at is not None:
        return f"due {clock_time(row.next_attempt_at)}"
    return row.state if row.reason is None else f"{row.state}: {row.reason}"


def _opens_at(endpoint: Endpoint) -> datetime:
    """When its breaker lets something through; in the past if it does."""
    return datetime.fromtimestamp(endpoint.circuit.until or 0.0, UTC)


async def _loopback(_host: str) -> list[str]:
    return ["127.0.0.1"]
