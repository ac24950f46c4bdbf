"""What the receivers of the story have: an inbox and their effects, in one SQLite file."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from ...delivery.inbox import SQLiteInbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from .shop import Clock


_WROTE = "wrote its effect"
_KNEW = "knew it already"
_NOTHING = "did nothing"


class Ledger:
    """What the receivers have in their SQLite file: an inbox, effects, and who asked for what."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self.inbox = SQLiteInbox(path, clock=clock)
        self.inbox.migrate()
        with closing(self._opened()) as connection:
            # Two rows for one event can be written: that there are none is for the inbox to see to.
            connection.execute("CREATE TABLE effects (event_id TEXT, body BLOB)")
            connection.execute("CREATE TABLE requests (at TEXT, event_id TEXT, deed TEXT)")

    def close(self) -> None:
        self.inbox.close()

    def take(self, event_id: str, body: bytes) -> None:
        """Give an event its effect, once, and commit."""
        with closing(self._opened()) as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            deed = _KNEW
            if self.inbox.claim(connection, "shop", event_id):
                connection.execute("INSERT INTO effects VALUES (?, ?)", (event_id, body))
                deed = _WROTE
            self._note(connection, event_id, deed)

    def pass_over(self, event_id: str) -> None:
        """Note a request that has no effect."""
        with closing(self._opened()) as connection:
            self._note(connection, event_id, _NOTHING)

    def deeds(self, at: datetime) -> dict[str, str]:
        """What was done with each event that was asked for at a time of the story."""
        with closing(self._opened()) as connection:
            return dict(
                connection.execute(
                    "SELECT event_id, deed FROM requests WHERE at = ?", (at.isoformat(),)
                ).fetchall()
            )

    def requests(self) -> tuple[int, int]:
        """How many requests have come, and how many of them had no effect and no claim."""
        with closing(self._opened()) as connection:
            deeds = [deed for (deed,) in connection.execute("SELECT deed FROM requests").fetchall()]
        return len(deeds), deeds.count(_NOTHING)

    def effects(self) -> dict[str, int]:
        """How many effects each event has had."""
        with closing(self._opened()) as connection:
            return dict(
                connection.execute(
                    "SELECT event_id, count(*) FROM effects GROUP BY event_id"
                ).fetchall()
            )

    def _note(self, connection: sqlite3.Connection, event_id: str, deed: str) -> None:
        connection.execute(
            "INSERT INTO requests VALUES (?, ?, ?)", (self._clock().isoformat(), event_id, deed)
        )

    def _opened(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=10, isolation_level=None)
