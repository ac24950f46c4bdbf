"""Enqueue: one row for each event and endpoint, in the caller's own transaction.

The statement begins with the word INSERT: before any other, sqlite3's legacy mode opens no
transaction, and the row would be committed alone. It touches neither endpoint nor gate.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from uuid import uuid4

from ..database.clock import to_microseconds
from ..durations import to_seconds
from ..refusals import refusal
from .model import Ticket
from .text import checked_event_id, checked_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from typing import Any, Literal, TypeAlias

    from ..durations import DurationLike

    Style: TypeAlias = Literal["format", "qmark", "numeric", "named"]

_LARGEST_PAYLOAD = 256 * 1024
_LONGEST_TTL = 1000 * 365.25 * 86_400

# One reading of the clock for the time of the row and the time that it is due.
INSERT = """INSERT INTO {prefix}deliveries
    (endpoint_id, event_id, type, payload, digest, state, created_at, next_attempt_at, expires_at)
SELECT e.id, ?, ?, ?, ?, 'pending', c.at, COALESCE(CAST(? AS {big}), c.at),
    CASE WHEN CAST(? AS {big}) IS NULL THEN NULL
    WHEN COALESCE(CAST(? AS {big}), c.at) > c.at THEN CAST(? AS {big}) + CAST(? AS {big})
    ELSE c.at + CAST(? AS {big}) END
FROM {prefix}endpoints AS e, (SELECT {now} AS at) AS c
WHERE e.name = ?
ON CONFLICT (endpoint_id, event_id) DO NOTHING"""
RETURNING = INSERT + "\nRETURNING id"
FIND = """
SELECT d.digest FROM {prefix}endpoints AS e
LEFT JOIN {prefix}deliveries AS d ON d.endpoint_id = e.id AND d.event_id = ?
WHERE e.name = ?
"""


@dataclass(frozen=True, slots=True)
class Event:
    """A checked event, as the statement takes it."""

    endpoint: str
    event_id: str
    values: tuple[Any, ...]
    digest: bytes

    def ticket_of(self, found: Sequence[tuple[Any, ...]]) -> Ticket | None:
        """The receipt for a row that was there before; None if it has just gone.

        Raises `LookupError` for an endpoint that does not exist, `ValueError` for another body
        under the same id.
        """
        if not found:
            raise LookupError(f"there is no endpoint {self.endpoint!r}: add_endpoint makes one")
        digest = found[0][0]
        if digest is None:
            return None
        if bytes(digest) != self.digest:
            raise ValueError(
                f"event_id ({self.event_id!r}) names another event of the endpoint "
                f"{self.endpoint!r}, with another body"
            )
        return Ticket(self.event_id, created=False)


def checked_event(
    endpoint: str,
    payload: bytes,
    type: str | None,
    event_id: str | None,
    ttl: DurationLike | None,
    at: datetime | None,
) -> Event:
    """An event that can be enqueued.

    Raises `TypeError` and `ValueError`, naming the argument.
    """
    checked_name(endpoint)
    if not isinstance(payload, bytes):
        raise TypeError(
            f"{refusal('payload', payload, 'bytes: encode the text that goes over the wire')}, "
            f"not {payload.__class__.__name__}"
        )
    if len(payload) > _LARGEST_PAYLOAD:
        raise ValueError(f"payload ({len(payload)} bytes) needs to be at most {_LARGEST_PAYLOAD}")
    if type is not None:
        checked_name(type, "type")
    identity = f"evt_{uuid4().hex}" if event_id is None else checked_event_id(event_id)
    due = None if at is None else to_microseconds(at, "at")
    lasting = None if ttl is None else lifetime(ttl)
    digest = sha256(payload).digest()
    values = (
        *(identity, type, payload, digest, due),
        *(lasting, due, due, lasting, lasting),
        endpoint,
    )
    return Event(endpoint, identity, values, digest)


def statement(said: str, values: Sequence[Any], style: Style) -> tuple[str, Any]:
    """A statement with `?` for values, in the parameter style of a driver (PEP 249).

    Raises `ValueError` for another style.
    """
    if style == "qmark":
        return said, tuple(values)
    if style == "format":
        return said.replace("%", "%%").replace("?", "%s"), tuple(values)
    if style not in ("numeric", "named"):
        rule = "'format', 'qmark', 'numeric' or 'named'"
        raise ValueError(refusal("paramstyle", style, rule))
    first, *parts = said.split("?")
    sign = "$" if style == "numeric" else ":p"
    numbered = first + "".join(f"{sign}{n}{part}" for n, part in enumerate(parts, 1))
    if style == "numeric":
        return numbered, tuple(values)
    return numbered, {f"p{n}": value for n, value in enumerate(values, 1)}


def lifetime(ttl: DurationLike) -> int:
    """A ttl in microseconds.

    Raises as `to_seconds` does, and `ValueError` for more than 1000 years.
    """
    seconds = to_seconds(ttl, "ttl")
    if not 0.0 < seconds <= _LONGEST_TTL:
        raise ValueError(refusal("ttl", ttl, "longer than 0 and at most 1000 years"))
    return round(seconds * 1_000_000)
