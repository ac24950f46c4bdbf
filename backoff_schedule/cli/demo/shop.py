"""The sender of the story: a shop, whose orders and outbox are in one SQLite file."""

from __future__ import annotations

import json
import secrets
import sqlite3
from base64 import b64encode
from contextlib import suppress
from datetime import UTC, datetime

from ...breaker import CircuitBreaker
from ...delivery.policy import DeliveryPolicy
from ...delivery.sqlite import SQLiteOutbox
from ...schedule import create_backoff

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

MORNING = datetime(2026, 1, 5, 9, tzinfo=UTC)
POLICY = DeliveryPolicy(
    create_backoff(base="1m", factor=5, max="30m"),
    max_attempts=4,
    timeout="10s",
    breaker=CircuitBreaker(
        threshold=0.5,
        min_attempts=7,
        window="1h",
        cooldown=create_backoff(base="10m", max="40m"),
    ),
)
EVENTS = {"billing": "invoice", "warehouse": "parcel"}
"""Whom an order concerns, and what its event is called there."""


class Clock:
    """The time of the story, which nobody has to wait for."""

    def __init__(self) -> None:
        self.now = MORNING

    def __call__(self) -> datetime:
        return self.now


class DeclinedError(Exception):
    """The payment of an order was declined."""


class Shop:
    """Takes orders, and enqueues an event for each endpoint in the transaction of the order.

    - `path`: the file, which is made.
    - `clock`: the time of the outbox.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self.clock = clock
        self.secrets = {
            endpoint: "whsec_" + b64encode(secrets.token_bytes(32)).decode() for endpoint in EVENTS
        }
        self.outbox = SQLiteOutbox(path, clock=clock)
        self.outbox.migrate()
        for endpoint, secret in self.secrets.items():
            self.outbox.add_endpoint(endpoint, secrets=[secret])
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("CREATE TABLE orders (number INTEGER PRIMARY KEY)")

    def close(self) -> None:
        self._connection.close()
        self.outbox.close()

    def place_order(self, number: int, *, is_paid: bool = True) -> None:
        """One transaction: the order and its events, or nothing."""
        connection = self._connection
        with suppress(DeclinedError), connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO orders VALUES (?)", (number,))
            for endpoint, kind in EVENTS.items():
                self.outbox.enqueue(
                    endpoint,
                    json.dumps({"order": number}).encode(),
                    type=f"{kind}.wanted",
                    event_id=event_id(kind, number),
                    connection=connection,
                )
            if not is_paid:
                raise DeclinedError

    def orders(self) -> list[int]:
        """The numbers of the orders that are kept."""
        rows = self._connection.execute("SELECT number FROM orders ORDER BY number").fetchall()
        return [number for (number,) in rows]


def event_id(kind: str, number: int) -> str:
    return f"{kind}-{number}"


def clock_time(moment: datetime) -> str:
    return f"{moment:%H:%M:%S}"
