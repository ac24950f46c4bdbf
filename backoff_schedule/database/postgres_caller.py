"""A psycopg connection of the application's, with the transaction that a row of ours belongs to."""

from __future__ import annotations

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from ..refusals import refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def caller_cursor(connection: object, what: str) -> psycopg.Cursor[tuple[Any, ...]]:
    """A cursor in the caller's transaction, with plain rows whatever his row factory.

    `what` the row stands for: it would be committed alone on a connection in autocommit without a
    transaction, which is a ValueError. Raises `TypeError` for anything but the driver's own.
    """
    if not isinstance(connection, psycopg.Connection):
        raise _wrong(connection, "a psycopg.Connection")
    _check_transaction(connection, what)
    return connection.cursor(row_factory=tuple_row)


def async_caller_cursor(connection: object, what: str) -> psycopg.AsyncCursor[tuple[Any, ...]]:
    """As `caller_cursor`, which see, on a `psycopg.AsyncConnection`."""
    if not isinstance(connection, psycopg.AsyncConnection):
        raise _wrong(connection, "a psycopg.AsyncConnection")
    _check_transaction(connection, what)
    return connection.cursor(row_factory=tuple_row)


def _check_transaction(
    connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], what: str
) -> None:
    if connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE:
        raise ValueError(
            f"connection is in autocommit and in no transaction, so {what} would be committed "
            "alone: begin the transaction that it belongs to"
        )


def _wrong(connection: object, rule: str) -> TypeError:
    whole = f"{rule}: hand over the driver's own"
    kind = type(connection).__name__
    return TypeError(f"{refusal('connection', connection, whole)}, not {kind}")
