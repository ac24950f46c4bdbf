from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backoff_schedule.delivery import Delivered, Permanent
from tests.delivery.conftest import STEPS, Clock, every_row

if TYPE_CHECKING:
    from backoff_schedule.delivery.outbox import Outbox


def fill(outbox: Outbox) -> None:
    outbox.add_endpoint("bob", max_in_flight=None)
    for number in range(4):
        for endpoint in ("acme", "bob"):
            outbox.enqueue(endpoint, b"x", event_id=str(number))


def test_what_does_not_exist_is_none_or_empty(outbox: Outbox) -> None:
    assert outbox.get("e", "acme") is None
    assert outbox.get("e", "nobody") is None
    assert outbox.history("e", "acme") == []
    assert outbox.list() == []


def test_pages_go_on_behind_the_last_id(outbox: Outbox) -> None:
    fill(outbox)
    seen, after = [], 0
    while page := outbox.list(limit=3, after=after):
        assert len(page) <= 3
        seen += [(row.event_id, row.endpoint) for row in page]
        after = page[-1].id
    assert seen == [(str(n), endpoint) for n in range(4) for endpoint in ("acme", "bob")]


def test_rows_are_listed_by_state_and_endpoint(outbox: Outbox) -> None:
    fill(outbox)
    claims = [claim for claim in outbox.claim(8, STEPS) if claim.endpoint == "bob"]
    outbox.settle([(claims[0], Delivered()), (claims[1], Permanent("no"))])
    assert len(outbox.list(state="sending")) == 6
    assert len(outbox.list(state="sending", endpoint="bob")) == 2
    assert [row.event_id for row in outbox.list(state="failed")] == [claims[1].event_id]
    assert len(outbox.list(endpoint="acme")) == 4
    assert outbox.list(endpoint="nobody") == []
    with pytest.raises(ValueError, match=r"state .* one of pending, sending"):
        outbox.list(state="Pending")


def test_the_view_of_dead_letters_serves_an_operators_own_sql(
    outbox: Outbox, place: tuple[str, str], clock: Clock
) -> None:
    fill(outbox)
    claims = outbox.claim(8, STEPS)
    outbox.settle([(claims[0], Permanent("404 Not Found", status=404))])
    (row,) = every_row(
        place,
        "SELECT endpoint, event_id, attempts, last_status, last_error, redrives, finished_at "
        "FROM backoff_dead_letters",
    )
    assert row[:6] == (claims[0].endpoint, claims[0].event_id, 1, 404, "404 Not Found", 0)
    shown = "2030-01-01T12:00:00.000Z" if place[0] == "sqlite" else clock.now
    assert row[6] == shown
