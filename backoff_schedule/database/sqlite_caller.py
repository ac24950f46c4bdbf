"""A sqlite3 connection of the application's, with the transaction that a row of ours belongs to."""

from __future__ import annotations

import sqlite3

from ..refusals import refusal


def caller_cursor(connection: object, what: str) -> sqlite3.Cursor:
    """A cursor for an INSERT in the caller's transaction, with plain rows whatever his factory.

    `what` the row stands for: it would be committed alone on a connection in autocommit without a
    transaction, which is a ValueError. Raises `TypeError` for anything but the driver's own.
    """
    if not isinstance(connection, sqlite3.Connection):
        rule = "a sqlite3.Connection: hand over the driver's own"
        kind = type(connection).__name__
        raise TypeError(f"{refusal('connection', connection, rule)}, not {kind}")
    if not (connection.in_transaction or _begins_by_itself(connection)):
        raise ValueError(
            f"connection is in autocommit and in no transaction, so {what} would be committed "
            "alone: begin the transaction that it belongs to"
        )
    cursor = connection.cursor()
    cursor.row_factory = None
    return cursor


def _begins_by_itself(connection: sqlite3.Connection) -> bool:
    # sqlite3's legacy mode, the only one before Python 3.12, begins one before an INSERT.
    return getattr(connection, "autocommit", -1) == -1 and connection.isolation_level is not None
