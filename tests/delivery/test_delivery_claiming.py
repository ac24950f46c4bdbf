from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from backoff_schedule import create_backoff
from backoff_schedule.delivery import Delivered, DeliveryPolicy, Transient
from backoff_schedule.delivery.claiming import LOST_ERROR
from backoff_schedule.delivery.postgres import PostgresOutbox
from tests.delivery.conftest import STEPS, Clock, every_row

if TYPE_CHECKING:
    from collections.abc import Callable

    from backoff_schedule.delivery.outbox import Outbox


def enqueue(outbox: Outbox, count: int, endpoint: str = "acme", **options: Any) -> None:
    for number in range(count):
        outbox.enqueue(endpoint, b"x", event_id=f"{endpoint}-{number}", **options)


def test_a_claim_carries_what_a_sender_needs(outbox: Outbox, clock: Clock) -> None:
    outbox.add_endpoint("acme", secrets=["whsec_new", "whsec_old"], policy={"timeout": "5 seconds"})
    outbox.enqueue("acme", b"\0\xff", type="t", event_id="e", ttl="1 hour")
    clock.forward(3)
    (claim,) = outbox.claim(10, STEPS)
    assert (claim.event_id, claim.endpoint, claim.url) == (
        "e",
        "acme",
        "https://acme.example/hooks",
    )
    assert (claim.type, claim.payload, claim.attempt) == ("t", b"\0\xff", 1)
    assert claim.secrets == ("whsec_new", "whsec_old")
    assert claim.timeout == 5.0
    assert claim.policy == DeliveryPolicy(**{**STEPS.options, "timeout": 5})
    assert claim.created_at == clock.after(-3)
    assert claim.claimed_at == clock.now
    assert claim.expires_at == clock.after(3597)
    assert claim.deadline_at is None
    assert not claim.lost
    row = outbox.get("e", "acme")
    assert row is not None
    assert (row.state, row.attempts, row.next_attempt_at) == ("sending", 1, clock.after(15))


def test_a_row_is_claimed_when_it_is_due_and_not_a_moment_before(
    outbox: Outbox, clock: Clock
) -> None:
    outbox.enqueue("acme", b"x", at=clock.after(10))
    clock.forward(9.999999)
    assert outbox.claim(10) == []
    clock.forward(0.000001)
    assert len(outbox.claim(10)) == 1
    assert outbox.claim(10) == []


def test_the_oldest_due_rows_come_first_and_never_more_than_were_asked_for(
    outbox: Outbox, clock: Clock
) -> None:
    for number, due in enumerate([5, 1, 4, 2, 3]):
        outbox.enqueue("acme", b"x", event_id=str(number), at=clock.after(due))
    clock.forward(5)
    first = {claim.event_id for claim in outbox.claim(2)}
    second = {claim.event_id for claim in outbox.claim(2)}
    assert (first, second) == ({"1", "3"}, {"4", "2"})


def test_one_row_for_each_endpoint_before_a_second_for_any(outbox: Outbox) -> None:
    for name, count in (("bob", 50), ("cy", 1), ("dan", 3)):
        outbox.add_endpoint(name, max_in_flight=None)
        enqueue(outbox, count, name)
    enqueue(outbox, 50)
    claims = outbox.claim(12)
    counts = {
        name: sum(c.endpoint == name for c in claims) for name in ("acme", "bob", "cy", "dan")
    }
    assert counts["cy"] == 1
    assert counts["dan"] == 3
    assert counts["acme"] == counts["bob"] == 4


def test_each_endpoint_has_its_turn_when_there_are_more_of_them_than_places(
    outbox: Outbox,
) -> None:
    names = [f"n{number}" for number in range(10)]
    for name in names:
        outbox.add_endpoint(name, max_in_flight=None)
        enqueue(outbox, 5, name)
    seen = [claim.endpoint for _ in range(5) for claim in outbox.claim(4)]
    assert {name: seen.count(name) for name in names} == dict.fromkeys(names, 2)


def test_a_cap_holds_over_claims_and_a_settled_row_frees_its_place(outbox: Outbox) -> None:
    outbox.add_endpoint("acme", max_in_flight=3)
    enqueue(outbox, 10)
    claims = outbox.claim(10)
    assert len(claims) == 3
    assert outbox.claim(10) == []
    outbox.settle([(claims[0], Delivered())])
    assert len(outbox.claim(10)) == 1
    outbox.release(claims[1:])
    assert len(outbox.claim(10)) == 2


def test_a_cap_holds_when_many_workers_claim_at_once(
    outbox: Outbox, open_outbox: Callable[..., Outbox], clock: Clock
) -> None:
    outbox.add_endpoint("acme", max_in_flight=8)
    enqueue(outbox, 100)
    stores = [open_outbox(clock=clock) for _ in range(6)]
    for _ in range(5):
        barrier = threading.Barrier(6)

        def claim(store: Outbox, barrier: threading.Barrier = barrier) -> list[Any]:
            barrier.wait(30)
            return store.claim(5, STEPS)

        with ThreadPoolExecutor(6) as threads:
            claims = [claim for taken in threads.map(claim, stores) for claim in taken]
        assert len(claims) == 8
        assert len({claim.id for claim in claims}) == 8
        outbox.settle([(claim, Delivered()) for claim in claims])


def test_many_workers_never_claim_the_same_row(
    outbox: Outbox, open_outbox: Callable[..., Outbox], clock: Clock
) -> None:
    enqueue(outbox, 200)
    stores = [open_outbox(clock=clock) for _ in range(4)]

    def drain(store: Outbox) -> list[int]:
        taken: list[int] = []
        while claims := store.claim(7):
            taken += [claim.id for claim in claims]
        return taken

    with ThreadPoolExecutor(4) as threads:
        ids = [number for taken in threads.map(drain, stores) for number in taken]
    assert sorted(ids) == [row.id for row in outbox.list(limit=1000)]


# Leases, and rows that were lost.


def test_a_lease_is_the_rows_own_timeout_and_ten_seconds_or_longer_if_asked(
    outbox: Outbox, clock: Clock
) -> None:
    outbox.add_endpoint("slow", policy={"timeout": "1 minute"})
    for endpoint in ("acme", "slow"):
        outbox.enqueue(endpoint, b"x", event_id="e")
    outbox.claim(10, STEPS, lease="45 seconds")
    for endpoint, lease in (("acme", 45), ("slow", 70)):
        row = outbox.get("e", endpoint)
        assert row is not None
        assert row.next_attempt_at == clock.after(lease)


def test_a_row_whose_lease_ended_is_due_again_and_its_try_is_in_the_history(
    outbox: Outbox, clock: Clock
) -> None:
    enqueue(outbox, 1)
    (first,) = outbox.claim(10, STEPS)
    clock.forward(39.999999)
    assert outbox.claim(10, STEPS) == []
    clock.forward(0.000001)
    (second,) = outbox.claim(10, STEPS)
    assert (second.attempt, second.lost, second.token) == (2, True, first.token + 1)
    (lost,) = outbox.history("acme-0", "acme")
    assert (lost.outcome, lost.number, lost.seconds, lost.error) == ("lost", 1, None, LOST_ERROR)
    assert lost.started_at == first.claimed_at


def test_the_late_result_of_a_lost_try_writes_nothing(outbox: Outbox, clock: Clock) -> None:
    enqueue(outbox, 1)
    (late,) = outbox.claim(10, STEPS)
    clock.forward(40)
    (current,) = outbox.claim(10, STEPS)
    assert outbox.settle([(late, Delivered())]) == [None]
    outbox.release([late])
    row = outbox.get("acme-0", "acme")
    assert row is not None
    assert (row.state, row.attempts) == ("sending", 2)
    (decision,) = outbox.settle([(current, Transient("busy"))])
    assert decision is not None
    assert [entry.outcome for entry in outbox.history("acme-0", "acme")] == ["lost", "retry"]
    assert outbox.settle([(late, Delivered()), (current, Delivered())]) == [None, None]


def test_a_claim_has_at_most_one_row_whose_last_try_was_lost_in_turn_over_the_endpoints(
    outbox: Outbox, clock: Clock
) -> None:
    outbox.add_endpoint("bob", max_in_flight=None)
    enqueue(outbox, 5)
    enqueue(outbox, 5, "bob")
    outbox.claim(10, STEPS)
    clock.forward(40)
    outbox.enqueue("acme", b"x", event_id="fresh")
    assert [claim.event_id for claim in outbox.claim(10, STEPS, lost=False)] == ["fresh"]
    endpoints = []
    for _ in range(4):
        claims = outbox.claim(10, STEPS)
        assert [claim.lost for claim in claims] == [True]
        endpoints.append(claims[0].endpoint)
        outbox.settle([(claims[0], Delivered())])
    assert endpoints in (["acme", "bob"] * 2, ["bob", "acme"] * 2)


def test_a_lost_row_that_is_released_is_claimed_alone_again_and_counted_once(
    outbox: Outbox, clock: Clock
) -> None:
    enqueue(outbox, 3)
    outbox.claim(10, STEPS)
    clock.forward(40)
    for _ in range(3):
        (claim,) = outbox.claim(10, STEPS)
        assert (claim.attempt, claim.lost) == (2, True)
        outbox.release([claim])
    assert len(outbox.history(claim.event_id, "acme")) == 1


def test_a_row_that_is_lost_at_every_try_dies_with_its_budget_and_was_never_sent_past_it(
    outbox: Outbox, clock: Clock
) -> None:
    enqueue(outbox, 1)
    attempts = []
    for _ in range(10):
        attempts += [claim.attempt for claim in outbox.claim(10, STEPS)]
        clock.forward(40)
    assert attempts == [1, 2, 3, 4]
    row = outbox.get("acme-0", "acme")
    assert row is not None
    assert (row.state, row.reason, row.attempts, row.last_error) == ("dead", "lost", 4, LOST_ERROR)
    assert row.next_attempt_at is None
    assert [entry.outcome for entry in outbox.history("acme-0", "acme")] == ["lost"] * 4


def test_a_release_costs_no_attempt_and_the_row_is_due_at_once(
    outbox: Outbox, clock: Clock
) -> None:
    enqueue(outbox, 2)
    claims = outbox.claim(10)
    clock.forward(1)
    outbox.release(claims)
    row = outbox.get("acme-0", "acme")
    assert row is not None
    assert (row.state, row.attempts, row.next_attempt_at) == ("pending", 0, clock.now)
    assert outbox.history("acme-0", "acme") == []
    assert [claim.attempt for claim in outbox.claim(10)] == [1, 1]
    assert outbox.settle([(claim, Delivered()) for claim in claims]) == [None, None]


# What ends unsent.


def test_a_row_whose_ttl_is_over_expires_unsent_also_at_its_first_try(
    outbox: Outbox, clock: Clock
) -> None:
    outbox.enqueue("acme", b"x", event_id="first", ttl=60)
    outbox.enqueue("acme", b"x", event_id="second", ttl=65)
    clock.forward(60)
    (claim,) = outbox.claim(10, STEPS)
    assert claim.event_id == "second"
    row = outbox.get("first", "acme")
    assert row is not None
    assert (row.state, row.reason, row.attempts, row.finished_at) == (
        "expired",
        "ttl",
        0,
        clock.now,
    )
    outbox.settle([(claim, Transient("busy"))])
    clock.forward(10)
    assert outbox.claim(10, STEPS) == []
    row = outbox.get("second", "acme")
    assert row is not None
    assert (row.state, row.attempts) == ("expired", 1)
    assert [entry.outcome for entry in outbox.history("second", "acme")] == ["retry"]


def test_a_row_past_its_deadline_dies_unsent_though_its_retry_was_due_before(
    outbox: Outbox, clock: Clock
) -> None:
    policy = DeliveryPolicy(create_backoff(steps=[30] * 9), deadline="5 minutes", breaker=None)
    enqueue(outbox, 1)
    (claim,) = outbox.claim(10, policy)
    assert claim.deadline_at == clock.after(300)
    outbox.settle([(claim, Transient("busy"))])
    clock.forward(600)
    assert outbox.claim(10, policy) == []
    row = outbox.get("acme-0", "acme")
    assert row is not None
    assert (row.state, row.reason, row.attempts) == ("dead", "deadline", 1)


def test_a_row_that_was_never_claimed_has_no_deadline_yet(outbox: Outbox, clock: Clock) -> None:
    policy = DeliveryPolicy(create_backoff(steps=[30]), deadline="5 minutes", breaker=None)
    enqueue(outbox, 1)
    clock.forward(100_000)
    (claim,) = outbox.claim(10, policy)
    assert claim.deadline_at == clock.after(300)


def test_enabling_an_endpoint_moves_the_deadline_and_changes_no_row(
    outbox: Outbox, place: tuple[str, str], clock: Clock
) -> None:
    policy = DeliveryPolicy(create_backoff(steps=[30] * 9), deadline="5 minutes", breaker=None)
    enqueue(outbox, 1)
    (claim,) = outbox.claim(10, policy)
    outbox.settle([(claim, Transient("busy"))])
    outbox.disable("acme", reason="maintenance")
    before = every_row(place, "SELECT * FROM backoff_deliveries")
    clock.forward(86_400)
    assert outbox.claim(10, policy) == []
    outbox.enable("acme")
    assert every_row(place, "SELECT * FROM backoff_deliveries") == before
    (claim,) = outbox.claim(10, policy)
    assert (claim.attempt, claim.deadline_at) == (2, clock.after(300))


# Policies.


def test_an_endpoints_policy_stands_over_the_workers(outbox: Outbox) -> None:
    outbox.add_endpoint("bob", policy=DeliveryPolicy(create_backoff(steps=[7]), timeout=3))
    outbox.add_endpoint("cy", policy={"schedule": {"steps": [1, 2]}})
    for endpoint in ("acme", "bob", "cy"):
        outbox.enqueue(endpoint, b"x")
    policies = {claim.endpoint: claim.policy for claim in outbox.claim(10, STEPS)}
    assert policies["acme"] == STEPS
    assert (policies["bob"].max_attempts, policies["bob"].timeout) == (2, 3.0)
    assert policies["bob"].breaker is not None
    assert (policies["cy"].max_attempts, policies["cy"].breaker) == (3, None)


def test_a_policy_that_cannot_be_merged_disables_its_endpoint_and_stops_no_other(
    outbox: Outbox,
) -> None:
    outbox.add_endpoint("bob", policy={"schedule": {"base": 1}})
    for endpoint in ("bob", "acme"):
        outbox.enqueue(endpoint, b"x")
    assert [claim.endpoint for claim in outbox.claim(10, STEPS)] == ["acme"]
    bob = outbox.endpoints()[1]
    assert bob.disabled_reason is not None
    assert "max_attempts" in bob.disabled_reason
    outbox.add_endpoint("bob", policy={"schedule": {"base": 1}, "max_attempts": 3})
    outbox.enable("bob")
    assert [claim.endpoint for claim in outbox.claim(10, STEPS)] == ["bob"]


# PostgreSQL alone.


def test_a_gate_that_somebody_holds_is_waited_for_and_then_gone_without(conninfo: str) -> None:
    outbox = PostgresOutbox(conninfo)
    outbox.migrate()
    for name in ("acme", "bob"):
        outbox.add_endpoint(name)
        outbox.enqueue(name, b"x")
    with psycopg.connect(conninfo) as holder:
        holder.execute("SELECT * FROM backoff_gates WHERE endpoint_id = 1 FOR UPDATE")
        assert [claim.endpoint for claim in outbox.claim(10)] == ["bob"]
        holder.rollback()
    assert [claim.endpoint for claim in outbox.claim(10)] == ["acme"]
    outbox.close()


def test_the_gate_of_an_endpoint_without_a_cap_is_not_waited_for(conninfo: str) -> None:
    outbox = PostgresOutbox(conninfo)
    outbox.migrate()
    outbox.add_endpoint("acme", max_in_flight=None)
    enqueue(outbox, 1)
    with psycopg.connect(conninfo) as holder:
        holder.execute("SELECT * FROM backoff_gates FOR UPDATE")
        assert [claim.endpoint for claim in outbox.claim(10)] == ["acme"]
        holder.rollback()
    outbox.close()


def test_what_a_claim_counts_without_the_lock_undoes_nothing_that_was_written_meanwhile(
    conninfo: str, clock: Clock
) -> None:
    outbox = PostgresOutbox(conninfo, clock=clock)
    outbox.migrate()
    outbox.add_endpoint("acme", max_in_flight=None)
    outbox.enqueue("acme", b"x", ttl=1)
    clock.forward(2)
    look = "SELECT delivered, expired, status, disabled_reason FROM backoff_gates"
    with psycopg.connect(conninfo) as holder, ThreadPoolExecutor(1) as pool:
        holder.execute(
            "UPDATE backoff_gates SET delivered = 5, status = 'open', disabled_reason = 'theirs'"
        )
        claiming = pool.submit(outbox.claim, 10)
        with pytest.raises(TimeoutError):
            claiming.result(timeout=0.3)
        holder.commit()
        assert claiming.result(timeout=10) == []
        assert holder.execute(look).fetchall() == [(5, 1, "open", "theirs")]
    outbox.close()


def test_rows_that_somebody_holds_are_passed_over(conninfo: str) -> None:
    outbox = PostgresOutbox(conninfo)
    outbox.migrate()
    outbox.add_endpoint("acme")
    enqueue(outbox, 3)
    with psycopg.connect(conninfo) as holder:
        holder.execute("SELECT * FROM backoff_deliveries WHERE id = 1 FOR UPDATE")
        assert [claim.id for claim in outbox.claim(10)] == [2, 3]
        holder.rollback()
    outbox.close()


def test_workers_whose_clocks_differ_agree_since_the_servers_counts(
    conninfo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = PostgresOutbox(conninfo)
    outbox.migrate()
    outbox.add_endpoint("acme")
    monkeypatch.setattr("time.time", lambda: 4e9)
    monkeypatch.setattr("time.time_ns", lambda: 4 * 10**18)
    outbox.enqueue("acme", b"x", event_id="e", ttl="1 hour")
    (claim,) = outbox.claim(10, STEPS)
    assert claim.created_at.year < 2080
    assert (claim.claimed_at - claim.created_at).total_seconds() < 30
    assert outbox.claim(10, STEPS) == []
    outbox.close()


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "1"])
def test_a_limit_is_a_whole_number_of_rows(outbox: Outbox, limit: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"limit .* needs to be a whole number"):
        outbox.claim(limit)
