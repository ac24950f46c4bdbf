"""The end of the story: what is in both files, counted, and whether it fits together."""

from __future__ import annotations

from dataclasses import dataclass

from .shop import EVENTS, event_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .ledger import Ledger
    from .narrator import Narrator
    from .shop import Shop


@dataclass(frozen=True, kw_only=True)
class Books:
    """What has to fit together.

    - `orders`: the numbers of the orders that were kept.
    - `states`: the state of each event that was enqueued.
    - `heard`: how many tries reached a receiver, as the shop has it.
    - `requests`: how many requests came, as the receivers have it.
    - `effects`: how many effects each event has had.
    """

    orders: Sequence[int]
    states: Mapping[str, str]
    heard: int
    requests: int
    effects: Mapping[str, int]

    def faults(self) -> Iterator[str]:
        """What does not fit."""
        if self.heard != self.requests:
            yield f"{self.heard} tries reached a receiver, and {self.requests} requests came"
        wanted = {event_id(kind, number) for number in self.orders for kind in EVENTS.values()}
        for event in sorted({*wanted, *self.states, *self.effects}):
            if event not in wanted:
                yield f"{event} belongs to no order"
            state = self.states.get(event, "not in the outbox")
            if state != "delivered":
                yield f"{event} is {state}"
            effects = self.effects.get(event, 0)
            if effects != 1:
                yield f"{event} has had {effects} effects"


def tell(narrator: Narrator, shop: Shop, ledger: Ledger) -> list[str]:
    """Count, and hand back what does not fit."""
    narrator.chapter("The count")
    rows = shop.outbox.list()
    tries = [entry for row in rows for entry in shop.outbox.history(row.event_id, row.endpoint)]
    unheard = sum("cannot be reached" in (entry.error or "") for entry in tries)
    requests, put_off = ledger.requests()
    books = Books(
        orders=shop.orders(),
        states={row.event_id: row.state for row in rows},
        heard=len(tries) - unheard,
        requests=requests,
        effects=ledger.effects(),
    )
    sources = ledger.inbox.stats().values()
    narrator.table(
        ("in the shop's file", ""),
        ("  orders", len(books.orders)),
        ("  events enqueued", len(rows)),
        ("  events delivered", sum(row.state == "delivered" for row in rows)),
        ("  tries", len(tries)),
        ("  tries that reached nobody", unheard),
        ("in the receivers' file", ""),
        ("  requests received", requests),
        ("  requests put off with 503 or 429", put_off),
        ("  duplicates refused by the inbox", sum(source.duplicates for source in sources)),
        ("  effects", sum(books.effects.values())),
    )
    faults = list(books.faults())
    if not faults:
        narrator.say(
            f"Exactly one effect per event: each of the {len(rows)} has one, and nothing else has "
            "any."
        )
    return faults
