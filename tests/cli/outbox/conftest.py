from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from backoff_schedule import create_backoff
from backoff_schedule.cli import main
from backoff_schedule.delivery import DeliveryPolicy, Permanent, Transient
from tests.delivery.conftest import outbox_at, place
from tests.postgres_server import as_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from backoff_schedule.delivery import Outbox

__all__ = ["place"]

ONE_TRY = DeliveryPolicy(create_backoff(steps=[10]), max_attempts=1, breaker=None)


@pytest.fixture
def url(place: tuple[str, str]) -> str:
    """What `--db` is given."""
    kind, where = place
    return where if kind == "sqlite" else as_url(where)


@pytest.fixture
def outbox(place: tuple[str, str]) -> Iterator[Outbox]:
    """The same outbox, with its tables and the endpoints acme and bob."""
    opened = outbox_at(place)
    opened.migrate()
    opened.add_endpoint("acme", url="https://acme.example/hooks")
    opened.add_endpoint("bob", max_in_flight=None)
    yield opened
    opened.close()


class Told:
    """What a run of the command told, and how it ended."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status = status
        self.out = out
        self.err = err
        self.rows = [line.split() for line in out.splitlines()]


@pytest.fixture
def command(url: str, capsys: pytest.CaptureFixture[str]) -> Callable[..., Told]:
    def run(*arguments: str) -> Told:
        status = main(["outbox", "--db", url, *arguments])
        told = capsys.readouterr()
        return Told(status, told.out, told.err)

    return run


def die(outbox: Outbox, endpoint: str, *errors: str, status: int | None = None) -> None:
    """One dead letter for each error, in this order."""
    for error in errors:
        outbox.enqueue(endpoint, b"{}")
        (claim,) = outbox.claim(1, ONE_TRY)
        answer: Any = Transient(error) if status is None else Permanent(error, status=status)
        outbox.settle([(claim, answer)])
