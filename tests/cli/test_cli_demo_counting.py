"""What the last count of the demo finds wrong."""

from __future__ import annotations

from typing import Any

import pytest

from backoff_schedule.cli.demo.counting import Books

STATES = {"invoice-7": "delivered", "parcel-7": "delivered"}
EFFECTS = {"invoice-7": 1, "parcel-7": 1}


def faults(**differences: Any) -> list[str]:
    good = {"orders": [7], "states": STATES, "heard": 2, "requests": 2, "effects": EFFECTS}
    return list(Books(**{**good, **differences}).faults())


def test_books_that_fit_have_no_fault() -> None:
    assert faults() == []
    assert faults(orders=[], states={}, effects={}) == []


@pytest.mark.parametrize(
    ("differences", "wrong"),
    [
        ({"effects": EFFECTS | {"parcel-7": 2}}, ["parcel-7 has had 2 effects"]),
        ({"effects": {"parcel-7": 1}}, ["invoice-7 has had 0 effects"]),
        ({"states": STATES | {"parcel-7": "dead"}}, ["parcel-7 is dead"]),
        ({"states": {"parcel-7": "delivered"}}, ["invoice-7 is not in the outbox"]),
        ({"requests": 3}, ["2 tries reached a receiver, and 3 requests came"]),
        ({"orders": []}, ["invoice-7 belongs to no order", "parcel-7 belongs to no order"]),
        (
            {"effects": EFFECTS | {"gift-1": 1}},
            ["gift-1 belongs to no order", "gift-1 is not in the outbox"],
        ),
    ],
)
def test_what_does_not_fit_is_named(differences: dict[str, Any], wrong: list[str]) -> None:
    assert faults(**differences) == wrong
