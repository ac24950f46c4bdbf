from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backoff_schedule import CircuitBreaker, CircuitState, create_backoff
from backoff_schedule.breaker import Permit
from backoff_schedule.database.clock import from_microseconds
from backoff_schedule.delivery import (
    AutoDisable,
    Decision,
    Delivered,
    DeliveryPolicy,
    Permanent,
    Transient,
)
from backoff_schedule.delivery.gate import Gate
from tests.delivery.conftest import STEPS, Clock, every_row

if TYPE_CHECKING:
    from collections.abc import Callable

    from backoff_schedule.delivery import Claim
    from backoff_schedule.delivery.outbox import Outbox

BREAKER = CircuitBreaker(threshold=1.0, min_attempts=3, cooldown=60, probe_timeout=30)
POLICY = DeliveryPolicy(create_backoff(steps=[5] * 20), breaker=BREAKER)
DOWN = Transient("refused")


def enqueue(outbox: Outbox, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        outbox.enqueue("acme", b"x", event_id=str(number))


def opened(outbox: Outbox) -> list[Claim]:
    """Three failures open the circuit; the last claims are still out."""
    enqueue(outbox, 10)
    claims = outbox.claim(5, POLICY)
    outbox.settle([(claim, DOWN) for claim in claims[:3]])
    return claims[3:]


def events(outbox: Outbox) -> list[str]:
    return [entry.event for entry in reversed(outbox.transitions("acme"))]


def attempts(place: tuple[str, str]) -> Any:
    return every_row(place, "SELECT id, state, attempts, next_attempt_at FROM backoff_deliveries")


def test_rows_behind_an_open_circuit_are_not_claimed_and_spend_nothing(
    outbox: Outbox, place: tuple[str, str], clock: Clock
) -> None:
    opened(outbox)
    before = sorted(attempts(place))
    for _ in range(5):
        clock.forward(11)
        assert outbox.claim(100, POLICY) == []
    assert sorted(attempts(place)) == before
    assert events(outbox) == ["opened"]


def test_after_the_cool_down_one_row_is_the_probe_and_its_success_lets_the_rest_through(
    outbox: Outbox, clock: Clock
) -> None:
    opened(outbox)
    clock.forward(60)
    (probe,) = outbox.claim(100, POLICY)
    assert probe.probe
    assert outbox.claim(100, POLICY) == []
    outbox.settle([(probe, Delivered())])
    assert len(outbox.claim(100, POLICY)) > 1
    assert events(outbox) == ["opened", "half_open", "closed"]


def test_a_probe_that_fails_opens_the_circuit_again(outbox: Outbox, clock: Clock) -> None:
    opened(outbox)
    clock.forward(60)
    (probe,) = outbox.claim(100, POLICY)
    outbox.settle([(probe, DOWN)])
    clock.forward(59)
    assert outbox.claim(100, POLICY) == []
    clock.forward(1)
    assert [claim.probe for claim in outbox.claim(100, POLICY)] == [True]
    assert events(outbox) == ["opened", "half_open", "opened", "half_open"]


def test_a_late_success_of_before_the_opening_does_not_close_the_circuit(
    outbox: Outbox, clock: Clock
) -> None:
    (late, _) = opened(outbox)
    (decision,) = outbox.settle([(late, Delivered())])
    assert decision is not None
    assert outbox.claim(100, POLICY) == []
    assert events(outbox) == ["opened"]


def test_a_probe_that_is_released_frees_its_place_at_once(outbox: Outbox, clock: Clock) -> None:
    opened(outbox)
    clock.forward(60)
    (probe,) = outbox.claim(100, POLICY)
    outbox.release([probe])
    (again,) = outbox.claim(100, POLICY)
    assert again.probe
    assert again.generation > probe.generation
    outbox.settle([(again, Delivered())])
    assert len(outbox.claim(100, POLICY)) > 1


# D-06 (c): the process of the probe is killed.


def test_a_probe_whose_worker_died_frees_its_place_with_its_lease(
    outbox: Outbox, clock: Clock
) -> None:
    outbox.settle([(claim, Delivered()) for claim in opened(outbox)])
    long = CircuitBreaker(threshold=1.0, min_attempts=3, cooldown=60, probe_timeout="1 day")
    policy = DeliveryPolicy(POLICY.schedule, timeout=5, breaker=long)
    clock.forward(60)
    (probe,) = outbox.claim(100, policy)
    clock.forward(14.9)
    assert outbox.claim(100, policy) == []
    clock.forward(0.1)
    (again,) = outbox.claim(100, policy)
    assert again.probe
    assert again.lost
    assert again.id == probe.id
    assert outbox.settle([(probe, Delivered())]) == [None]
    outbox.settle([(again, Delivered())])
    assert len(outbox.claim(100, policy)) > 1


def test_a_probe_without_an_answer_frees_its_place_after_the_probe_timeout(
    outbox: Outbox, clock: Clock
) -> None:
    opened(outbox)
    clock.forward(60)
    (probe,) = outbox.claim(100, POLICY, lease="1 hour")
    clock.forward(30)
    claims = outbox.claim(100, POLICY, lease="1 hour")
    assert [claim.probe for claim in claims] == [True]
    assert claims[0].id != probe.id
    outbox.settle([(probe, Delivered())])
    assert outbox.claim(100, POLICY) == []
    outbox.settle([(claims[0], Delivered())])
    assert len(outbox.claim(100, POLICY)) > 1


def test_of_ten_workers_that_claim_after_the_cool_down_exactly_one_gets_the_probe(
    outbox: Outbox, open_outbox: Callable[..., Outbox], clock: Clock
) -> None:
    opened(outbox)
    stores = [open_outbox(clock=clock) for _ in range(10)]
    for _ in range(3):
        clock.forward(60)
        barrier = threading.Barrier(10)

        def claim(store: Outbox, barrier: threading.Barrier = barrier) -> list[Claim]:
            barrier.wait(30)
            return store.claim(5, POLICY)

        with ThreadPoolExecutor(10) as threads:
            claims = [claim for taken in threads.map(claim, stores) for claim in taken]
        assert [claim.probe for claim in claims] == [True]
        outbox.settle([(claims[0], DOWN)])


def test_a_row_that_ends_unsent_is_not_made_the_probe(outbox: Outbox, clock: Clock) -> None:
    opened(outbox)
    outbox.enqueue("acme", b"x", event_id="first", ttl=30, at=clock.after(-100))
    clock.forward(60)
    (probe,) = outbox.claim(100, POLICY)
    assert probe.event_id != "first"
    row = outbox.get("first", "acme")
    assert row is not None
    assert row.state == "expired"


def test_permanent_answers_show_that_somebody_is_there_and_do_not_open_the_circuit(
    outbox: Outbox,
) -> None:
    enqueue(outbox, 20)
    outbox.settle([(c, Permanent("no", status=400)) for c in outbox.claim(5, POLICY)])
    outbox.settle([(c, Permanent("cannot encode")) for c in outbox.claim(5, POLICY)])
    assert len(outbox.claim(5, POLICY)) == 5
    assert events(outbox) == []


def test_lost_tries_feed_neither_breaker_nor_auto_disable(outbox: Outbox, clock: Clock) -> None:
    policy = DeliveryPolicy(
        create_backoff(steps=[5] * 20),
        breaker=BREAKER,
        auto_disable=AutoDisable(failure_rate=0.5, min_attempts=2),
    )
    enqueue(outbox, 6)
    outbox.claim(6, policy)
    for _ in range(6):
        clock.forward(100)
        assert len(outbox.claim(6, policy)) == 1
    assert events(outbox) == []


def test_the_state_survives_a_restart(
    outbox: Outbox, open_outbox: Callable[..., Outbox], clock: Clock
) -> None:
    opened(outbox)
    outbox.close()
    again = open_outbox(clock=clock)
    again.migrate()
    assert again.claim(100, POLICY) == []
    (endpoint,) = again.endpoints()
    assert endpoint.circuit.phase == "open"


def test_breakers_of_two_endpoints_have_nothing_to_do_with_each_other(outbox: Outbox) -> None:
    opened(outbox)
    outbox.add_endpoint("bob")
    outbox.enqueue("bob", b"x")
    assert [claim.endpoint for claim in outbox.claim(100, POLICY)] == ["bob"]


def test_a_cool_down_without_end_is_stored(outbox: Outbox) -> None:
    never = CircuitBreaker(
        threshold=1.0, min_attempts=1, cooldown=create_backoff(base=1e300, growth="constant")
    )
    policy = DeliveryPolicy(create_backoff(steps=[5]), breaker=never)
    enqueue(outbox, 2)
    outbox.settle([(claim, DOWN) for claim in outbox.claim(1, policy)])
    assert outbox.claim(10, policy) == []


# Disabled endpoints.


def test_auto_disable_counts_real_tries_and_says_why(outbox: Outbox, clock: Clock) -> None:
    policy = DeliveryPolicy(
        create_backoff(steps=[5] * 50),
        breaker=None,
        auto_disable=AutoDisable(failure_rate=0.9, window="1 hour", min_attempts=20),
    )
    enqueue(outbox, 40)
    claims = outbox.claim(19, policy)
    outbox.settle([(claim, DOWN) for claim in claims[:17]])
    outbox.settle([(claim, Delivered()) for claim in claims[17:]])
    assert events(outbox) == []
    outbox.settle([(claim, DOWN) for claim in outbox.claim(1, policy)])
    assert outbox.endpoints()[0].disabled_at == clock.now
    (entry,) = outbox.transitions("acme")
    assert (entry.event, entry.actor, entry.reason) == (
        "disabled",
        "auto_disable",
        "18 of 20 tries failed",
    )


def test_rows_of_a_disabled_endpoint_wait_and_go_on_when_it_is_enabled(
    outbox: Outbox, clock: Clock
) -> None:
    enqueue(outbox, 3)
    outbox.disable("acme", reason="maintenance", actor="ann")
    outbox.disable("acme", reason="again")
    clock.forward(86_400)
    assert outbox.claim(10, POLICY) == []
    outbox.enqueue("acme", b"x", event_id="meanwhile")
    outbox.enable("acme", reason="repaired", actor="bob")
    assert len(outbox.claim(10, POLICY)) == 4
    told = [(t.event, t.actor, t.reason) for t in reversed(outbox.transitions("acme"))]
    assert told == [("disabled", "ann", "maintenance"), ("enabled", "bob", "repaired")]


def test_a_gone_receiver_disables_its_endpoint(outbox: Outbox) -> None:
    enqueue(outbox, 3)
    (claim,) = outbox.claim(1, POLICY)
    outbox.settle([(claim, Permanent("410 Gone", status=410, disable_endpoint=True))])
    row = outbox.get("0", "acme")
    assert row is not None
    assert row.state == "failed"
    assert outbox.claim(10, POLICY) == []
    assert outbox.endpoints()[0].disabled_reason == "410 Gone"


def test_what_led_to_a_disabling_is_forgotten_when_it_is_enabled(outbox: Outbox) -> None:
    policy = DeliveryPolicy(
        create_backoff(steps=[5] * 50), breaker=None, auto_disable=AutoDisable(min_attempts=3)
    )
    enqueue(outbox, 10)
    outbox.settle([(claim, DOWN) for claim in outbox.claim(3, policy)])
    outbox.enable("acme")
    outbox.settle([(claim, DOWN) for claim in outbox.claim(2, policy)])
    assert outbox.endpoints()[0].disabled_at is None


@pytest.mark.parametrize("call", ["disable", "enable", "rotate_secret"])
def test_an_endpoint_that_does_not_exist_is_a_lookup_error(outbox: Outbox, call: str) -> None:
    arguments: dict[str, Any] = {"disable": {"reason": "x"}, "rotate_secret": {"new": "s"}}
    with pytest.raises(LookupError, match="there is no endpoint 'nobody'"):
        getattr(outbox, call)("nobody", **arguments.get(call, {}))


# Successes wait in the row until the breaker's state is looked at.


def test_successes_that_the_breaker_has_not_taken_in_yet_count_when_failures_come(
    outbox: Outbox, clock: Clock, place: tuple[str, str]
) -> None:
    policy = DeliveryPolicy(
        STEPS.schedule, breaker=CircuitBreaker(threshold=0.5, min_attempts=4, window="1 minute")
    )
    for number in range(13):
        outbox.enqueue("acme", b"x", event_id=f"{number:02}")
    clock.forward(1)
    claims = outbox.claim(8, policy)
    outbox.settle([(claim, Delivered()) for claim in claims[:4]])
    waiting = "SELECT successes, circuit FROM backoff_gates"
    ((successes, circuit),) = every_row(place, waiting)
    assert (successes, json.loads(circuit)["window"]) == (4, [])
    outbox.settle([(claim, Transient("x")) for claim in claims[4:7]])
    ((successes, circuit),) = every_row(place, waiting)
    assert (successes, [entry[1:] for entry in json.loads(circuit)["window"]]) == (0, [[7, 3]])
    assert outbox.endpoints()[0].circuit.phase == "closed"
    outbox.settle([(claims[7], Transient("x"))])
    assert outbox.endpoints()[0].circuit.phase == "open"


results = st.lists(
    st.tuples(
        st.floats(0.0, 40.0).map(lambda gap: round(gap * 1_000_000)),
        st.lists(st.booleans(), min_size=1, max_size=5),
    ),
    max_size=12,
)


@given(results)
def test_a_gate_ends_in_the_state_of_a_breaker_that_is_told_each_result_at_once(
    batches: list[tuple[int, list[bool]]],
) -> None:
    breaker = CircuitBreaker(threshold=0.5, min_attempts=6, window="1 minute")
    claim: Any = SimpleNamespace(
        policy=DeliveryPolicy(STEPS.schedule, breaker=breaker),
        generation=0,
        redrives=0,
        claimed_at=from_microseconds(0),
    )
    now, told = 1_900_000_000_000_000, CircuitState()
    row: dict[str, Any] = {"status": "closed", "generation": 0, "circuit": told.as_dict()}
    for gap, batch in batches:
        now += gap
        gate = Gate(
            1,
            None,
            row["status"],
            row["generation"],
            row.get("probe_id"),
            row.get("successes", 0),
            row.get("successes_at"),
            json.dumps(row["circuit"]),
            "[]",
        )
        for failed in batch:
            after = breaker.after_failure if failed else breaker.after_success
            told = after(told, Permit(0), now / 1_000_000)
            outcome = Transient("x") if failed else Delivered()
            gate.count(claim, outcome, Decision("pending" if failed else "delivered"), now)
        row = {"circuit": row["circuit"], **gate.state_to_write()}
    found = CircuitState.from_dict(row["circuit"])
    if row.get("successes_at") is not None:
        at = row["successes_at"] / 1_000_000
        found = breaker.after_success(found, Permit(0), at, row["successes"])
    assert found == told
