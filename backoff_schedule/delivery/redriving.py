"""Redrive and purge: give rows a new budget, or let them go, a thousand at a time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from uuid import uuid4

from ..database.clock import to_microseconds
from ..refusals import refusal
from .enqueueing import lifetime
from .text import checked_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from ..database.transaction import Transaction
    from ..durations import DurationLike

BATCH = 1000

# Keyed forward by (finished_at, id), so that a row that dies again meanwhile is not met again.
_FIND = """
SELECT d.id, d.finished_at, d.endpoint_id, d.event_id
FROM {prefix}deliveries AS d JOIN {prefix}endpoints AS e ON e.id = d.endpoint_id
WHERE d.state IN ('failed', 'dead', 'expired')
    AND (d.finished_at > ? OR (d.finished_at = ? AND d.id > ?)) AND d.finished_at <= ?
    AND (d.state <> 'expired' OR CAST(? AS INTEGER) = 1)
    AND (CAST(? AS TEXT) IS NULL OR e.name = ?)
    AND (CAST(? AS TEXT) IS NULL OR d.last_error = ?)
    AND (CAST(? AS INTEGER) = 0 OR d.id {among})
ORDER BY d.finished_at, d.id LIMIT ?
"""
_MOVE = """
UPDATE {prefix}deliveries
SET state = 'pending', attempts = 0, redrives = redrives + 1, next_attempt_at = {now} + ?,
    expires_at = {now} + ? + CAST(? AS {big}), first_claimed_at = NULL, finished_at = NULL,
    event_id = ?, reason = NULL
WHERE id = ? AND state IN ('failed', 'dead', 'expired') AND finished_at <= ?
"""
_COUNT = "UPDATE {prefix}gates SET redriven = redriven + ? WHERE endpoint_id = ?"
_PURGE = """
SELECT id FROM {prefix}deliveries
WHERE id > ? AND finished_at <= ? AND state IN (STATES)
ORDER BY id LIMIT ? {take_free}
"""
_FORGET = "DELETE FROM {prefix}tries WHERE delivery_id {among}"
_DELETE = "DELETE FROM {prefix}deliveries WHERE id {among}"
_FINISHED = ("delivered", "failed", "dead", "expired")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows to redrive, and how.

    `since` and `started` are microseconds: only what was finished between them is moved, so that
    the whole ends. `spacing` and `ttl` are microseconds too.
    """

    ids: tuple[int, ...] | None
    endpoint: str | None
    since: int
    error: str | None
    spacing: float
    ttl: int | None
    fresh_event_id: bool
    dry_run: bool
    started: int


@dataclass(frozen=True, slots=True)
class Moved:
    """How far a redrive has come: the rows of its last batch, and where the next one begins."""

    ids: tuple[int, ...]
    after: tuple[int, int]
    places: Mapping[int, int]
    is_last: bool


def beginning(wanted: Wanted) -> Moved:
    """Before the first batch."""
    return Moved((), (wanted.since - 1, 2**62), {}, is_last=False)


def redrive(transaction: Transaction, wanted: Wanted, before: Moved, count: int) -> Moved:
    """Move the next `count` rows."""
    finished, number = before.after
    values = (
        *(finished, finished, number, wanted.started),
        int(wanted.ttl is not None),
        *(wanted.endpoint, wanted.endpoint, wanted.error, wanted.error),
        *(int(wanted.ids is not None), transaction.numbers(wanted.ids or ())),
        count,
    )
    found = transaction.rows(_FIND, values)
    places = dict(before.places)
    moved = []
    counts: Counter[int] = Counter()
    for row_id, _, endpoint, event_id in found:
        place = places.get(endpoint, 0)
        if wanted.dry_run:
            moved.append(row_id)
            continue
        delay = round(place * wanted.spacing)
        identity = f"evt_{uuid4().hex}" if wanted.fresh_event_id else event_id
        change = (delay, delay, wanted.ttl, identity, row_id, wanted.started)
        # Another operator may have moved it since.
        if transaction.change(_MOVE, change):
            places[endpoint] = place + 1
            counts[endpoint] += 1
            moved.append(row_id)
    # Last and ascending, as a settle does, so that a claim waits for no more than the commit.
    for endpoint, number_moved in sorted(counts.items()):
        transaction.change(_COUNT, (number_moved, endpoint))
    after = (found[-1][1], found[-1][0]) if found else before.after
    return Moved(tuple(moved), after, places, is_last=len(found) < count)


def checked_wanted(
    ids: Sequence[int] | None,
    endpoint: str | None,
    since: datetime | None,
    error: str | None,
    rate: float | None,
    ttl: DurationLike | None,
    fresh_event_id: bool,
    dry_run: bool,
    started: int,
) -> Wanted:
    """What is to be redriven.

    Raises `TypeError` and `ValueError`, naming the argument.
    """
    return Wanted(
        ids=None if ids is None else tuple(ids),
        endpoint=None if endpoint is None else checked_name(endpoint),
        since=0 if since is None else to_microseconds(since, "since"),
        error=error,
        spacing=_spacing(rate),
        ttl=None if ttl is None else lifetime(ttl),
        fresh_event_id=fresh_event_id,
        dry_run=dry_run,
        started=started,
    )


def purge(
    transaction: Transaction, states: Sequence[str], before: int, after: int, count: int
) -> tuple[int, int | None]:
    """Drop the next rows that were finished by `before`: how many, and the last one's id."""
    listed = ", ".join(f"'{state}'" for state in states)
    statement = _PURGE.replace("STATES", listed)
    ids = [row[0] for row in transaction.rows(statement, (after, before, count))]
    if not ids:
        return 0, None
    transaction.change(_FORGET, (transaction.numbers(ids),))
    transaction.change(_DELETE, (transaction.numbers(ids),))
    return len(ids), ids[-1]


def checked_states(states: Sequence[str]) -> tuple[str, ...]:
    """States whose rows may be dropped.

    Raises `ValueError` for one that is none, or in which a row still waits.
    """
    wanted = (states,) if isinstance(states, str) else tuple(states)
    for state in wanted:
        if state not in _FINISHED:
            raise ValueError(refusal("states", state, f"among {', '.join(_FINISHED)}"))
    return wanted


def _spacing(rate: float | None) -> float:
    """Microseconds between two rows of one endpoint at so many a second."""
    if rate is None:
        return 0.0
    rule = "rows a second, above 0"
    if not isinstance(rate, (int, float)) or isinstance(rate, bool):
        raise TypeError(f"{refusal('rate', rate, rule)}, not {type(rate).__name__}")
    if not 0 < rate < float("inf"):
        raise ValueError(refusal("rate", rate, rule))
    return 1_000_000 / rate
