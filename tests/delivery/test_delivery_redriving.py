from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from backoff_schedule import create_backoff
from backoff_schedule.delivery import Delivered, DeliveryPolicy, Permanent, Transient, redriving
from tests.delivery.conftest import STEPS, Clock, every_row

if TYPE_CHECKING:
    from collections.abc import Callable

    from backoff_schedule.delivery import Delivery
    from backoff_schedule.delivery.outbox import Outbox

ONCE = DeliveryPolicy(create_backoff(steps=[10]), max_attempts=1, breaker=None)


def row(outbox: Outbox, event_id: str, endpoint: str = "acme") -> Delivery:
    found = outbox.get(event_id, endpoint)
    assert found is not None
    return found


def bury(outbox: Outbox, *event_ids: str, endpoint: str = "acme", error: str = "busy") -> None:
    for event_id in event_ids:
        outbox.enqueue(endpoint, b"x", event_id=event_id)
    claims = outbox.claim(len(event_ids), ONCE)
    assert len(claims) == len(event_ids)
    outbox.settle([(claim, Transient(error)) for claim in claims])


# D-05: a redriven row dies again without being tried.


def test_a_redriven_row_gets_a_whole_budget_from_its_first_delay_on(
    outbox: Outbox, clock: Clock
) -> None:
    policy = DeliveryPolicy(STEPS.schedule, max_attempts=3, deadline="10 minutes", breaker=None)
    outbox.enqueue("acme", b"x", event_id="well")
    outbox.enqueue("acme", b"x", event_id="ill")
    for _ in range(3):
        outbox.settle([(claim, Transient("down")) for claim in outbox.claim(2, policy)])
        clock.forward(40)
    assert row(outbox, "well").state == row(outbox, "ill").state == "dead"
    clock.forward(2 * 86_400)
    assert len(outbox.redrive(limit=None)) == 2
    well, ill = outbox.claim(2, policy)
    assert (well.attempt, ill.attempt, well.redrives) == (1, 1, 1)
    assert well.deadline_at == clock.after(600)
    outbox.settle([(well, Delivered()), (ill, Transient("down"))])
    assert row(outbox, "well").state == "delivered"
    assert row(outbox, "ill").next_attempt_at == clock.after(10)
    for _ in range(2):
        clock.forward(40)
        outbox.settle([(claim, Transient("down")) for claim in outbox.claim(2, policy)])
    dead = row(outbox, "ill")
    assert (dead.state, dead.attempts, dead.redrives) == ("dead", 3, 1)
    tries = [(entry.redrive, entry.number) for entry in outbox.history("ill", "acme")]
    assert tries == [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)]


def test_a_redrive_moves_one_row_unless_told_otherwise_and_keeps_its_event_id(
    outbox: Outbox, clock: Clock
) -> None:
    bury(outbox, "a", "b", "c")
    clock.forward(5)
    moved = outbox.redrive()
    assert moved == [row(outbox, "a").id]
    found = row(outbox, "a")
    assert (found.state, found.attempts, found.redrives) == ("pending", 0, 1)
    assert (found.next_attempt_at, found.finished_at, found.reason) == (clock.now, None, None)
    assert row(outbox, "b").state == "dead"
    assert len(outbox.redrive(limit=5)) == 2
    assert outbox.redrive(limit=None) == []


def test_a_redrive_under_the_same_id_is_really_sent(outbox: Outbox) -> None:
    bury(outbox, "a")
    outbox.redrive()
    (claim,) = outbox.claim(10, ONCE)
    assert claim.event_id == "a"


def test_rows_are_chosen_by_id_endpoint_time_and_error(outbox: Outbox, clock: Clock) -> None:
    outbox.add_endpoint("bob", max_in_flight=None)
    bury(outbox, "a", error="timeout")
    bury(outbox, "b", endpoint="bob", error="timeout")
    clock.forward(60)
    since = clock.now
    bury(outbox, "c", error="refused")
    bury(outbox, "d", error="timeout")
    number = {name: row(outbox, name).id for name in "acd"} | {"b": row(outbox, "b", "bob").id}
    assert outbox.redrive(endpoint="bob", limit=None) == [number["b"]]
    assert outbox.redrive(since=since, error="timeout", limit=None) == [number["d"]]
    assert outbox.redrive([number["a"], number["c"], number["b"], 10**9]) == [
        number["a"],
        number["c"],
    ]


def test_failed_rows_are_moved_and_delivered_ones_never(outbox: Outbox) -> None:
    for event_id in ("failed", "delivered"):
        outbox.enqueue("acme", b"x", event_id=event_id)
    failed, delivered = outbox.claim(2, ONCE)
    outbox.settle([(failed, Permanent("404")), (delivered, Delivered())])
    assert outbox.redrive([failed.id, delivered.id]) == [failed.id]


def test_expired_rows_are_moved_only_with_a_new_ttl(outbox: Outbox, clock: Clock) -> None:
    outbox.enqueue("acme", b"x", event_id="e", ttl=60)
    clock.forward(61)
    outbox.claim(10, ONCE)
    assert row(outbox, "e").state == "expired"
    assert outbox.redrive(limit=None) == []
    assert len(outbox.redrive(limit=None, ttl="5 minutes")) == 1
    assert row(outbox, "e").expires_at == clock.after(300)
    assert len(outbox.claim(10, ONCE)) == 1


def test_a_rate_spreads_the_rows_of_each_endpoint_over_all_batches(
    outbox: Outbox, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redriving, "BATCH", 2)
    outbox.add_endpoint("bob", max_in_flight=None)
    bury(outbox, "a", "b", "c", "d", "e")
    bury(outbox, "f", "g", endpoint="bob")
    assert len(outbox.redrive(limit=None, rate=2)) == 7
    due = [row(outbox, name).next_attempt_at for name in "abcde"]
    assert due == [clock.after(k / 2) for k in range(5)]
    assert [row(outbox, name, "bob").next_attempt_at for name in "fg"] == [
        clock.now,
        clock.after(0.5),
    ]


def test_a_fresh_event_id_is_new_to_the_receiver_and_the_old_one_stays_in_the_history(
    outbox: Outbox,
) -> None:
    bury(outbox, "old")
    (number,) = outbox.redrive(fresh_event_id=True)
    assert outbox.get("old", "acme") is None
    (found,) = outbox.list()
    assert found.id == number
    assert found.event_id != "old"
    (claim,) = outbox.claim(10, ONCE)
    outbox.settle([(claim, Delivered())])
    sent_as = [entry.event_id for entry in outbox.history(found.event_id, "acme")]
    assert sent_as == ["old", found.event_id]


def test_redriving_all_touches_each_row_once_and_ends_though_they_die_again_meanwhile(
    outbox: Outbox, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redriving, "BATCH", 3)
    bury(outbox, *(str(number) for number in range(10)))
    whole = redriving.redrive

    def and_they_die_again(*args: Any, **kwargs: Any) -> redriving.Moved:
        clock.forward(1)
        return whole(*args, **kwargs)

    monkeypatch.setattr(redriving, "redrive", and_they_die_again)
    write = outbox._database.write

    def then_send(work: Any) -> Any:
        answer = write(work)
        if isinstance(answer, redriving.Moved) and answer.ids:
            clock.forward(1)
            outbox._database.write = write  # type: ignore[method-assign]
            outbox._ring.forget()
            outbox.settle([(claim, Transient("busy")) for claim in outbox.claim(100, ONCE)])
            outbox._database.write = then_send  # type: ignore[method-assign]
        return answer

    monkeypatch.setattr(outbox._database, "write", then_send)
    moved = outbox.redrive(limit=None)
    assert len(moved) == len(set(moved)) == 10
    assert {found.redrives for found in outbox.list()} == {1}
    assert {found.state for found in outbox.list()} == {"dead"}


def test_two_operators_at_once_make_one_redrive_of_each_row(
    outbox: Outbox, open_outbox: Callable[..., Outbox], clock: Clock
) -> None:
    bury(outbox, *(str(number) for number in range(50)))
    stores = [open_outbox(clock=clock) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        moved = [n for ids in threads.map(lambda s: s.redrive(limit=None), stores) for n in ids]
    assert len(moved) == len(set(moved)) == 50
    assert {found.redrives for found in outbox.list()} == {1}


def test_a_redrive_does_not_touch_the_breaker(outbox: Outbox) -> None:
    policy = DeliveryPolicy(
        create_backoff(steps=[1]),
        max_attempts=1,
        breaker={"threshold": 1.0, "min_attempts": 2, "cooldown": 60},
    )
    for event_id in ("a", "b"):
        outbox.enqueue("acme", b"x", event_id=event_id)
    outbox.settle([(claim, Transient("down")) for claim in outbox.claim(2, policy)])
    assert len(outbox.redrive(limit=None)) == 2
    assert outbox.claim(10, policy) == []


def test_purge_drops_what_is_finished_and_old_with_its_history(
    outbox: Outbox, place: tuple[str, str], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redriving, "BATCH", 2)
    for number in range(5):
        outbox.enqueue("acme", b"x", event_id=str(number))
    outbox.settle([(claim, Delivered()) for claim in outbox.claim(5)])
    bury(outbox, "dead")
    outbox.enqueue("acme", b"x", event_id="waits")
    clock.forward(3599)
    assert outbox.purge("1 hour") == 0
    clock.forward(1)
    assert outbox.purge("1 hour") == 5
    assert [found.event_id for found in outbox.list()] == ["dead", "waits"]
    assert every_row(place, "SELECT count(*) FROM backoff_tries") == [(1,)]
    assert outbox.purge("1 hour", states=["dead"]) == 1
    # What is gone is not recognised any more.
    assert outbox.enqueue("acme", b"y", event_id="0").created


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"limit": 0}, ValueError, r"limit .* 1 or more"),
        ({"limit": "all"}, TypeError, "limit"),
        ({"rate": 0}, ValueError, r"rate .* above 0"),
        ({"rate": float("nan")}, ValueError, "rate"),
        ({"rate": "fast"}, TypeError, "rate"),
        ({"since": datetime(2026, 1, 1)}, ValueError, r"since .* aware"),
        ({"ttl": 0}, ValueError, "ttl"),
        ({"endpoint": ""}, ValueError, "endpoint"),
    ],
)
def test_what_cannot_be_redriven_is_refused(
    outbox: Outbox, arguments: dict[str, Any], error: type[Exception], said: str
) -> None:
    bury(outbox, "a")
    with pytest.raises(error, match=said):
        outbox.redrive(**arguments)
    assert row(outbox, "a").state == "dead"


@pytest.mark.parametrize("states", [["pending"], "sending", ["delivered", "lost"]])
def test_rows_that_still_wait_are_never_purged(outbox: Outbox, states: Any) -> None:
    with pytest.raises(ValueError, match=r"states .* needs to be among delivered, failed"):
        outbox.purge(0, states=states)
