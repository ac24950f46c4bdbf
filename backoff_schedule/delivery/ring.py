"""Which endpoints have due rows, and whose turn it is.

Finding them costs 10 ms over 10,000 endpoints, so what was found serves for up to 250 ms. An answer
of "nothing" is always from a fresh look.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from threading import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from ..database.transaction import Transaction

_LASTS = 0.25

# One probe for each endpoint, and none for the rows between. OFFSET, lest PostgreSQL joins all rows
# that wait. A loose index scan takes three times as long where every endpoint has some.
_PENDING = """
SELECT g.endpoint_id FROM {prefix}gates AS g
WHERE g.disabled_at IS NULL AND (g.status = 'closed' OR g.until <= {as_of})
    AND EXISTS (
        SELECT 1 FROM {prefix}deliveries AS d
        WHERE d.state = 'pending' AND d.endpoint_id = g.endpoint_id
            AND d.next_attempt_at <= {as_of}
        LIMIT 1 OFFSET 0
    )
ORDER BY g.endpoint_id
"""
# Of a breaker that is not closed too: the probe itself may be what was lost.
_LOST = """
SELECT DISTINCT d.endpoint_id
FROM {prefix}deliveries AS d JOIN {prefix}gates AS g ON g.endpoint_id = d.endpoint_id
WHERE d.state = 'sending' AND d.next_attempt_at <= {as_of} AND g.disabled_at IS NULL
    AND (g.status = 'closed' OR g.until <= {as_of} OR g.probe_id = d.id)
ORDER BY d.endpoint_id
"""


class Ring:
    """The endpoints with due rows, in turn. One for each store, shared by its threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._looked_at = float("-inf")
        self._pending: list[int] = []
        self._lost: list[int] = []
        self._last = 0
        self._last_lost = 0

    def is_stale(self) -> bool:
        """Whether it is time to look again."""
        return time.monotonic() - self._looked_at > _LASTS

    def look(self, transaction: Transaction) -> None:
        """Find the endpoints with due rows."""
        pending = [row[0] for row in transaction.rows(_PENDING)]
        lost = [row[0] for row in transaction.rows(_LOST)]
        with self._lock:
            self._pending, self._lost = pending, lost
            self._looked_at = time.monotonic()

    def turn(self, count: int, but: Container[int]) -> list[int]:
        """The next endpoints with pending rows, at most `count`, without those in `but`."""
        with self._lock:
            taken = _next(self._pending, self._last, count, but)
            if taken:
                self._last = taken[-1]
            return taken

    def lost_turn(self, count: int, but: Container[int]) -> list[int]:
        """The next endpoints with lost rows. The turn goes on only when one is taken."""
        with self._lock:
            return _next(self._lost, self._last_lost, count, but)

    def lost_taken(self, endpoint: int) -> None:
        """The turn of this endpoint's lost rows is over."""
        with self._lock:
            self._last_lost = endpoint

    def drained(self, endpoints: set[int]) -> None:
        """These have nothing more that may be claimed now."""
        with self._lock:
            self._pending = [number for number in self._pending if number not in endpoints]

    def forget(self) -> None:
        """Look again before the next answer: something was enqueued, enabled or redriven here."""
        self._looked_at = float("-inf")


def _next(ring: Sequence[int], last: int, count: int, but: Container[int]) -> list[int]:
    start = bisect_right(ring, last)
    taken: list[int] = []
    for number in (*ring[start:], *ring[:start]):
        if len(taken) == count:
            break
        if number not in but:
            taken.append(number)
    return taken
