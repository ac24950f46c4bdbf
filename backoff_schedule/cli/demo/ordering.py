"""The chapter of the story that needs no network: orders, and the events that tell of them."""

from __future__ import annotations

from .shop import EVENTS, event_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .narrator import Narrator
    from .shop import Shop


def tell(narrator: Narrator, shop: Shop) -> None:
    narrator.chapter("Orders, and the events that tell of them")
    narrator.say(
        "A shop has its orders and its outbox in one SQLite file. An order is one transaction: "
        "the row of the order, an event for billing and an event for the warehouse. "
        "The third customer's payment is declined, and that transaction is rolled back."
    )
    shop.place_order(1)
    shop.place_order(2)
    shop.place_order(3, is_paid=False)
    narrator.table(
        ("transaction", "in the orders", "in the outbox"),
        *(
            (f"order {number}", _kept(shop, number), ", ".join(_events(shop, number)) or "nothing")
            for number in (1, 2, 3)
        ),
    )


def _kept(shop: Shop, number: int) -> str:
    return "yes" if number in shop.orders() else "no"


def _events(shop: Shop, number: int) -> Iterator[str]:
    for endpoint, kind in EVENTS.items():
        row = shop.outbox.get(event_id(kind, number), endpoint)
        if row is not None:
            yield f"{row.event_id} {row.state}"
