from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from backoff_schedule import create_backoff
from backoff_schedule.delivery import DeliveryPolicy
from backoff_schedule.delivery.postgres import PostgresOutbox
from backoff_schedule.delivery.sqlite import SQLiteOutbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from backoff_schedule.delivery.outbox import Outbox

# Three waits without jitter: four tries.
STEPS = DeliveryPolicy(create_backoff(steps=[10, 20, 40]), breaker=None)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = datetime(2030, 1, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def after(self, seconds: float) -> datetime:
        return self.now + timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """Where an outbox is: which kind, and the path or the conninfo."""
    if request.param == "sqlite":
        return "sqlite", str(tmp_path / "app.db")
    return "postgres", request.getfixturevalue("conninfo")


def outbox_at(place: tuple[str, str], **options: Any) -> Outbox:
    kind, where = place
    return (SQLiteOutbox if kind == "sqlite" else PostgresOutbox)(where, **options)


def connect(place: tuple[str, str], **options: Any) -> Any:
    """A driver's connection of the application's own."""
    kind, where = place
    return (sqlite3 if kind == "sqlite" else psycopg).connect(where, **options)


@pytest.fixture
def open_outbox(place: tuple[str, str]) -> Iterator[Callable[..., Outbox]]:
    opened: list[Outbox] = []

    def open_one(**options: Any) -> Outbox:
        outbox = outbox_at(place, **options)
        opened.append(outbox)
        return outbox

    yield open_one
    for outbox in opened:
        outbox.close()


@pytest.fixture
def outbox(open_outbox: Callable[..., Outbox], clock: Clock) -> Outbox:
    """Migrated, on the test's clock, with the endpoint "acme"."""
    outbox = open_outbox(clock=clock)
    outbox.migrate()
    outbox.add_endpoint("acme", url="https://acme.example/hooks", max_in_flight=None)
    return outbox


def every_row(place: tuple[str, str], statement: str) -> list[Any]:
    """The rows of a statement, by a connection of the test's own."""
    connection = connect(place)
    try:
        return [tuple(row) for row in connection.execute(statement).fetchall()]
    finally:
        connection.close()
