"""The outbox that a URL names."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote

from ...refusals import refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...delivery import Outbox

VARIABLE = "BACKOFF_SCHEDULE_DB"
_RULE = "a SQLite file, or sqlite:///FILE, or postgresql://HOST/NAME"


def open_outbox(url: str | None, schema: str | None, *, new: bool) -> Outbox:
    """An outbox in a SQLite file or in PostgreSQL. Nothing is connected to yet.

    Raises `ValueError` for no URL, for one of another kind of database, and for a file that does
    not exist, unless it may be `new`: SQLite would make one for whoever has mistyped its name.
    """
    given = url or os.environ.get(VARIABLE, "")
    if not given:
        raise ValueError(f"which outbox? Give --db URL or set {VARIABLE}: {_RULE}")
    kind, separator, rest = given.partition("://")
    # A conninfo such as `host=db dbname=shop` has no scheme.
    if kind in ("postgresql", "postgres") or (not separator and "dbname=" in given):
        from ...delivery import PostgresOutbox

        return PostgresOutbox(given, schema=schema)
    if separator and kind != "sqlite":
        # Without what may be a password.
        raise ValueError(refusal("--db", f"{kind}://...", _RULE))
    if schema is not None:
        raise ValueError("--schema is for PostgreSQL; a SQLite file has none")
    from ...delivery import SQLiteOutbox

    # As SQLAlchemy has it: three slashes before a relative path, four before an absolute one.
    path = unquote(rest.removeprefix("/")) if separator else given
    if not path:
        raise ValueError(refusal("--db", given, _RULE))
    if not new and not Path(path).exists():
        raise ValueError(refusal("--db", path, "a file that exists; `migrate` makes one"))
    return SQLiteOutbox(path)
