"""The shop of the demo: an order and its events, or nothing."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from backoff_schedule.cli.demo.shop import Clock, Shop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with closing(Shop(tmp_path / "shop.db", Clock())) as shop:
        yield shop


def kept(shop: Shop) -> tuple[list[int], list[tuple[str, str]]]:
    return shop.orders(), [(row.endpoint, row.event_id) for row in shop.outbox.list()]


def test_an_order_is_kept_with_an_event_for_each_endpoint(shop: Shop) -> None:
    shop.place_order(5)
    assert kept(shop) == ([5], [("billing", "invoice-5"), ("warehouse", "parcel-5")])


def test_of_an_order_that_is_rolled_back_nothing_is_kept(shop: Shop) -> None:
    shop.place_order(5, is_paid=False)
    assert kept(shop) == ([], [])


def test_each_endpoint_has_a_secret_of_its_own(shop: Shop) -> None:
    assert {endpoint.name: endpoint.secrets for endpoint in shop.outbox.endpoints()} == {
        "billing": 1,
        "warehouse": 1,
    }
    assert len(set(shop.secrets.values())) == 2
