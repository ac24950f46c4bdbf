"""Our tables with endpoints and rows in them, as the worker and the bare loop find them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .places import Place

# Of many endpoints so many have rows that are due.
BUSY = 100
_PAST, _FUTURE = 1, 4_102_444_800_000_000
_NUMBERS = """
WITH RECURSIVE numbers(i) AS (
    SELECT CAST(? AS BIGINT) UNION ALL SELECT i + 1 FROM numbers WHERE i < CAST(? AS BIGINT)
)
"""
# Names count up from 1 in an empty table, and so do the ids.
_ENDPOINTS = f"""
INSERT INTO backoff_endpoints (name, secrets, policy)
{_NUMBERS} SELECT 'endpoint' || i, e.secrets, e.policy
FROM numbers CROSS JOIN backoff_endpoints AS e WHERE e.id = 1
"""  # noqa: S608  (put together from constants)
_GATES = """
INSERT INTO backoff_gates (endpoint_id, max_in_flight, circuit)
SELECT e.id, g.max_in_flight, g.circuit
FROM backoff_endpoints AS e CROSS JOIN backoff_gates AS g WHERE g.endpoint_id = 1 AND e.id > 1
"""
_ROWS = f"""
INSERT INTO backoff_deliveries
    (endpoint_id, event_id, payload, digest, state, created_at, next_attempt_at)
{_NUMBERS} SELECT CAST(? AS BIGINT) + i % CAST(? AS BIGINT), 'event' || i, ?, ?, 'pending',
    CAST(? AS BIGINT), CAST(? AS BIGINT)
FROM numbers
"""  # noqa: S608


def make(place: Place, endpoints: int) -> None:
    """Our tables, endpoints without a cap, and a row in the future for each that is not busy."""
    outbox = place.outbox()
    outbox.migrate()
    outbox.add_endpoint("endpoint1", url="https://acme.example/hooks", max_in_flight=None)
    outbox.close()
    if endpoints > 1:
        place.run(_ENDPOINTS, (2, endpoints))
        place.run(_GATES)
    if endpoints > BUSY:
        wait(place, 1, endpoints - BUSY, BUSY + 1, endpoints - BUSY)


def due(place: Place, first: int, rows: int, endpoints: int) -> None:
    """Rows that are due, in turn over the busy endpoints, with event ids from `first` on."""
    _insert(place, first, rows, 1, min(endpoints, BUSY), _PAST)
    place.run("ANALYZE")


def wait(place: Place, first: int, rows: int, endpoint: int, endpoints: int) -> None:
    """Rows that are not due, in turn over `endpoints` from this one on."""
    _insert(place, first, rows, endpoint, endpoints, _FUTURE)


def _insert(
    place: Place, first: int, rows: int, endpoint: int, endpoints: int, due_at: int
) -> None:
    values = (endpoint, endpoints, b'{"id": 1}', b"digest", _PAST, due_at)
    place.run(_ROWS, (first, first + rows - 1, *values))
