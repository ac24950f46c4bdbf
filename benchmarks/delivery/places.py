"""An empty database for each sample: on one PostgreSQL server, or in a SQLite file."""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import psycopg
from psycopg.conninfo import make_conninfo

from backoff_schedule.delivery import Outbox, PostgresOutbox, SQLiteOutbox

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.postgres_server import PostgresServer

Store = Literal["PostgreSQL", "SQLite"]


@dataclass(frozen=True)
class Place:
    """A database: the conninfo or the path that is handed to a contender's process."""

    store: Store
    where: str

    def outbox(self) -> Outbox:
        return (
            PostgresOutbox(self.where) if self.store == "PostgreSQL" else SQLiteOutbox(self.where)
        )

    def run(self, statement: str, values: Sequence[Any] = ()) -> None:
        """One statement with `?` for its values, in a transaction of its own."""
        if self.store == "PostgreSQL":
            with psycopg.connect(self.where, autocommit=True) as session:
                said = statement.replace("%", "%%").replace("?", "%s")
                session.execute(said.encode(), values)
            return
        with contextlib.closing(sqlite3.connect(self.where)) as connection, connection:
            connection.execute(statement, values)


@contextlib.contextmanager
def empty(store: Store, server: PostgresServer) -> Iterator[Place]:
    """A database that nobody has used, dropped in the end."""
    if store == "SQLite":
        # Beside the checkout: /tmp may be memory, where a flush costs nothing.
        with tempfile.TemporaryDirectory(dir=_folder()) as folder:
            yield Place(store, f"{folder}/bench.db")
        return
    name = f"bench_{secrets.token_hex(6)}"
    with psycopg.connect(server.conninfo, autocommit=True) as session:
        session.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield Place(store, make_conninfo(server.conninfo, dbname=name))
        finally:
            session.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def _folder() -> Path:
    folder = Path(__file__).parents[2] / "build"
    folder.mkdir(exist_ok=True)
    return folder
