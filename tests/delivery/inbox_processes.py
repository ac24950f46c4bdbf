"""What the processes of test_delivery_inbox do. Each of them loads this and little else."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from backoff_schedule.delivery.inbox import Inbox, PostgresInbox, SQLiteInbox

if TYPE_CHECKING:
    from collections.abc import Sequence

    Place = tuple[str, str]


def inbox_at(place: Place, **options: Any) -> Inbox:
    kind, where = place
    return (SQLiteInbox if kind == "sqlite" else PostgresInbox)(where, **options)


def begun(place: Place) -> Any:
    """A connection of the consumer's, in a transaction."""
    kind, where = place
    if kind == "sqlite":
        connection = sqlite3.connect(where, timeout=60)
        connection.execute("BEGIN IMMEDIATE")
        return connection
    import psycopg

    return psycopg.connect(where)


def claim_all(place: Place, barrier: Any, event_ids: Sequence[str], claimed: Any) -> None:
    """Claims each event in a transaction of its own, all processes the same one at a time."""
    inbox = inbox_at(place)
    mine = []
    for event_id in event_ids:
        barrier.wait(60)
        connection = begun(place)
        if inbox.claim(connection, "acme", event_id):
            mine.append(event_id)
        connection.commit()
        connection.close()
    inbox.close()
    claimed.put(mine)


def claim_and_hold(place: Place, keeps: bool, claimed: Any, may_end: Any) -> None:
    """Claims an event, and ends its transaction only when it is told to."""
    inbox = inbox_at(place)
    connection = begun(place)
    claimed.put(inbox.claim(connection, "acme", "e"))
    may_end.wait(60)
    if keeps:
        connection.commit()
    else:
        connection.rollback()
    connection.close()
    inbox.close()


def claim_one(place: Place, asking: Any, claimed: Any) -> None:
    inbox = inbox_at(place)
    asking.set()
    connection = begun(place)
    claimed.put(inbox.claim(connection, "acme", "e"))
    connection.commit()
    connection.close()
    inbox.close()
