from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backoff_schedule.cli.outbox.opening import open_outbox
from backoff_schedule.delivery import PostgresOutbox, SQLiteOutbox

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("app.db", "app.db"),
        ("/var/lib/app.db", "/var/lib/app.db"),
        ("sqlite:///app.db", "app.db"),
        ("sqlite:////var/lib/app.db", "/var/lib/app.db"),
        ("sqlite:///with%20space.db", "with space.db"),
    ],
)
def test_a_file_is_named_by_its_path_or_as_sqlalchemy_does(url: str, path: str) -> None:
    outbox = open_outbox(url, None, new=True)
    assert isinstance(outbox, SQLiteOutbox)
    assert outbox.path == path
    outbox.close()


@pytest.mark.parametrize(
    "url", ["postgresql://host/shop", "postgres://host/shop", "host=h dbname=shop"]
)
def test_postgresql_is_named_as_libpq_does(url: str) -> None:
    outbox = open_outbox(url, "app", new=False)
    assert isinstance(outbox, PostgresOutbox)
    assert outbox.conninfo == url
    outbox.close()


def test_a_mistyped_name_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a file that exists"):
        open_outbox(str(tmp_path / "mistyped.db"), None, new=False)
    assert list(tmp_path.iterdir()) == []
