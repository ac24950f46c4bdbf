from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from tests.postgres_server import GivenServer, PostgresServer, fresh_schema, shared_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Checkers read what is in there; nothing runs it.
collect_ignore = ["typing"]

# A noisy machine makes a slow example, not a wrong one.
hypothesis.settings.register_profile("project", deadline=None)
# Each mutant meets the same few examples, so that it lives or dies by the same test every time.
hypothesis.settings.register_profile(
    "mutants", deadline=None, derandomize=True, max_examples=25, database=None
)
hypothesis.settings.load_profile("project")

_DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def vectors() -> Callable[[str], list[dict[str, Any]]]:
    """Exact values by the name of their file in tests/data."""

    def read(name: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads((_DATA / f"{name}.json").read_text())
        return rows

    return read


@pytest.fixture(scope="session")
def postgres_server() -> PostgresServer | GivenServer:
    """The server that all tests of this process share, and the pages of the docs with them."""
    return shared_server()


@pytest.fixture
def conninfo(postgres_server: PostgresServer | GivenServer) -> Iterator[str]:
    """Leads to an empty schema of the test's own."""
    with fresh_schema(postgres_server) as schema:
        yield schema
