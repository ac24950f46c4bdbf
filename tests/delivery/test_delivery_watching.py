from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from backoff_schedule import CircuitBreaker, create_backoff
from backoff_schedule.delivery import (
    Delivered,
    DeliveryPolicy,
    Permanent,
    Transient,
    Worker,
    endpoints,
)
from tests.delivery.conftest import STEPS, Clock, outbox_at

if TYPE_CHECKING:
    from backoff_schedule.database.transaction import Transaction
    from backoff_schedule.delivery import Claim, Transition, WorkerEvent
    from backoff_schedule.delivery.outbox import Outbox


def watched(outbox: Outbox, send: Any, seen: list[WorkerEvent], **options: Any) -> None:
    worker = Worker(outbox, send, STEPS, on_event=seen.append, **options)
    asyncio.run(worker.run_once())


def told(seen: list[WorkerEvent]) -> list[tuple[str, str]]:
    return [(event.claim.event_id, event.name) for event in seen]


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (Delivered(status=204), "delivered"),
        (Transient("busy", status=503), "retried"),
        (Permanent("no", status=404), "failed"),
    ],
)
def test_a_send_is_told_at_its_begin_and_when_its_result_is_written(
    outbox: Outbox, clock: Clock, answer: Any, name: str
) -> None:
    outbox.enqueue("acme", b"x", event_id="e")
    seen: list[WorkerEvent] = []
    watched(outbox, lambda _: answer, seen)
    assert told(seen) == [("e", "claimed"), ("e", name)]
    begun, written = seen
    assert (begun.decision, begun.outcome) == (None, None)
    assert written.outcome == answer
    assert written.decision is not None
    assert written.decision.next_attempt_at == (clock.after(10) if name == "retried" else None)


def test_the_last_try_is_told_as_dead(outbox: Outbox, clock: Clock) -> None:
    outbox.enqueue("acme", b"x", event_id="e")
    seen: list[WorkerEvent] = []
    for wait in (0, 10, 20, 40):
        clock.forward(wait)
        watched(outbox, lambda _: Transient("busy"), seen)
    assert [event.name for event in seen] == [*["claimed", "retried"] * 3, "claimed", "dead"]
    assert seen[-1].decision is not None
    assert seen[-1].decision.reason == "attempts"


def test_what_ends_unsent_is_told_without_an_outcome(outbox: Outbox, clock: Clock) -> None:
    outbox.enqueue("acme", b"x", event_id="e", ttl=1)
    clock.forward(2)
    seen: list[WorkerEvent] = []
    watched(outbox, lambda _: Delivered(), seen)
    assert told(seen) == [("e", "expired")]
    assert seen[0].outcome is None


def test_a_result_that_comes_after_its_lease_is_told_as_late(outbox: Outbox, clock: Clock) -> None:
    outbox.enqueue("acme", b"x", event_id="e")
    seen: list[WorkerEvent] = []

    def send(claim: Claim) -> Delivered:
        clock.forward(3600)
        (again,) = outbox.claim(1, STEPS)
        outbox.settle([(again, Delivered())])
        return Delivered(status=200)

    watched(outbox, send, seen)
    assert told(seen) == [("e", "claimed"), ("e", "late")]
    assert seen[1].outcome == Delivered(status=200)


def test_a_row_that_is_given_back_unsent_is_told(outbox: Outbox, clock: Clock) -> None:
    for number in range(2):
        outbox.enqueue("acme", b"x", event_id=str(number))
    seen: list[WorkerEvent] = []

    async def send(claim: Claim) -> Delivered:
        # Enqueued while the round is under way, so it is none of this round's.
        clock.forward(1)
        outbox.enqueue("acme", b"x", event_id=f"later than {claim.event_id}")
        return Delivered()

    watched(outbox, send, seen, concurrency=1)
    names = [name for event, name in told(seen) if event.startswith("later")]
    assert names
    assert set(names) == {"released"}


def test_a_hook_that_fails_is_logged_and_ends_nothing(
    outbox: Outbox, caplog: pytest.LogCaptureFixture
) -> None:
    outbox.enqueue("acme", b"x", event_id="e")

    def hook(event: WorkerEvent) -> None:
        raise ValueError(event.name)

    counts = asyncio.run(Worker(outbox, lambda _: Delivered(), STEPS, on_event=hook).run_once())
    assert counts.delivered == 1
    assert [record.getMessage().split(" of <")[0] for record in caplog.records] == [
        "the hook of a worker failed at 'claimed'",
        "the hook of a worker failed at 'delivered'",
    ]


def failing_thrice(place: tuple[str, str], clock: Clock, hook: Any) -> Outbox:
    """An outbox whose endpoint's breaker is opened by three failures."""
    breaker = CircuitBreaker(threshold=1.0, min_attempts=3, cooldown=60)
    policy = DeliveryPolicy(create_backoff(steps=[5] * 20), breaker=breaker)
    outbox = outbox_at(place, clock=clock, on_transition=hook)
    outbox.migrate()
    outbox.add_endpoint("acme")
    for _ in range(3):
        outbox.enqueue("acme", b"x")
    outbox.settle([(claim, Transient("down")) for claim in outbox.claim(3, policy)])
    clock.forward(60)
    outbox.settle([(claim, Delivered()) for claim in outbox.claim(3, policy)])
    return outbox


def test_every_change_of_an_endpoint_is_told_as_the_log_has_it(
    place: tuple[str, str], clock: Clock
) -> None:
    seen: list[tuple[str, Transition]] = []
    outbox = failing_thrice(place, clock, lambda *told: seen.append(told))
    outbox.disable("acme", reason="they asked us to", actor="ann")
    outbox.disable("acme", reason="once more", actor="ann")
    outbox.enable("acme", actor="ann")
    assert [(name, each.event, each.actor) for name, each in seen] == [
        ("acme", "opened", "worker"),
        ("acme", "half_open", "worker"),
        ("acme", "closed", "worker"),
        ("acme", "disabled", "ann"),
        ("acme", "enabled", "ann"),
    ]
    assert [each for _, each in seen] == list(reversed(outbox.transitions("acme")))
    outbox.close()


def test_a_change_that_is_rolled_back_is_not_told(place: tuple[str, str], clock: Clock) -> None:
    seen: list[Any] = []
    outbox = failing_thrice(place, clock, lambda *told: seen.append(told))
    seen.clear()

    def work(transaction: Transaction) -> None:
        endpoints.disable(transaction, "acme", "ann", "they asked us to")
        raise KeyError

    with pytest.raises(KeyError):
        outbox._database.write(work)
    assert seen == []
    outbox.close()


def test_a_hook_of_an_outbox_that_fails_is_logged_and_undoes_nothing(
    place: tuple[str, str], clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    def hook(name: str, transition: Transition) -> None:
        raise ValueError(transition.event)

    outbox = failing_thrice(place, clock, hook)
    assert [entry.event for entry in outbox.transitions("acme")] == [
        "closed",
        "half_open",
        "opened",
    ]
    assert [record.getMessage() for record in caplog.records] == [
        f"the hook of an outbox failed at {event!r} of 'acme'"
        for event in ("opened", "half_open", "closed")
    ]
    outbox.close()


def test_a_hook_of_an_outbox_is_a_function(place: tuple[str, str]) -> None:
    with pytest.raises(TypeError, match=r"on_transition \('x'\) needs to be a function of a name"):
        outbox_at(place, on_transition="x")


def test_a_hook_is_a_function(outbox: Outbox) -> None:
    with pytest.raises(TypeError, match=r"on_event \('x'\) needs to be a function of an event"):
        Worker(outbox, lambda _: Delivered(), on_event="x")  # type: ignore[arg-type]
