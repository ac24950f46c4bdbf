from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from backoff_schedule import CircuitBreaker, create_backoff
from backoff_schedule.delivery import (
    Decision,
    Delivered,
    DeliveryPolicy,
    EndpointStats,
    Permanent,
    PostgresOutbox,
    Transient,
    Worker,
    counting,
    redriving,
)
from tests.delivery.conftest import STEPS, Clock, connect

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backoff_schedule.delivery import Claim, Outbox, Outcome

ONCE = DeliveryPolicy(create_backoff(steps=[10]), max_attempts=1, breaker=None)
DOWN = Transient("down")
NOTHING = EndpointStats(
    **dict.fromkeys(("delivered", "failed", "dead", "expired", "tries", "retried", "lost"), 0),
    **dict.fromkeys(("redriven", "redelivered", "died_again", "pending", "due", "sending"), 0),
    **dict.fromkeys(("dead_letters", "repeated_deaths", "most_redrives"), 0),
    **dict.fromkeys(("seconds", "oldest_pending_age", "lag", "oldest_dead_age"), 0),
    breaker="closed",
    disabled=False,
)


def acme(outbox: Outbox) -> EndpointStats:
    return outbox.stats()["acme"]


def enqueue(outbox: Outbox, *event_ids: str, endpoint: str = "acme", **options: Any) -> None:
    for event_id in event_ids:
        outbox.enqueue(endpoint, b"x", event_id=event_id, **options)


def send_all(outbox: Outbox, outcome: Outcome, policy: DeliveryPolicy = ONCE) -> list[Claim]:
    claims = outbox.claim(100, policy)
    outbox.settle([(claim, outcome) for claim in claims])
    return claims


# Totals.


def test_an_endpoint_without_rows_has_tried_nothing_and_nothing_waits(outbox: Outbox) -> None:
    outbox.add_endpoint("bob")
    assert outbox.stats() == {"acme": NOTHING, "bob": NOTHING}
    assert acme(outbox).success_rate is None
    assert acme(outbox).mean_seconds is None


def test_without_endpoints_there_is_nothing(open_outbox: Callable[..., Outbox]) -> None:
    outbox = open_outbox()
    outbox.migrate()
    assert outbox.stats() == {}


def test_what_a_worker_does_is_counted_for_each_endpoint(outbox: Outbox, clock: Clock) -> None:
    outbox.add_endpoint("bob", policy={"max_attempts": 1})
    enqueue(outbox, "expires", ttl=5)
    clock.forward(5)
    enqueue(outbox, "well-1", "well-2", "refused", "busy-1", "busy-2", "busy-3")
    enqueue(outbox, "well-4", "busy-4", endpoint="bob")

    def send(claim: Claim) -> Outcome:
        if claim.event_id.startswith("well"):
            return Delivered(status=200)
        return Permanent("no", status=404) if claim.event_id == "refused" else DOWN

    asyncio.run(Worker(outbox, send, STEPS).run_once())
    counted = outbox.stats()
    first = counted["acme"]
    assert (first.delivered, first.failed, first.dead, first.expired) == (2, 1, 0, 1)
    assert (first.retried, first.tries, first.lost) == (3, 6, 0)
    assert (first.pending, first.due, first.sending, first.dead_letters) == (3, 0, 0, 1)
    assert first.success_rate == 2 / 6
    second = counted["bob"]
    assert (second.delivered, second.dead, second.tries, second.pending) == (1, 1, 2, 0)
    assert second.success_rate == 0.5


def test_the_seconds_of_tries_are_added_up(outbox: Outbox, clock: Clock) -> None:
    enqueue(outbox, "a", "b")
    first, second = outbox.claim(2, STEPS)
    clock.forward(1.5)
    outbox.settle([(first, Delivered())])
    clock.forward(1)
    outbox.settle([(second, DOWN)])
    assert acme(outbox).seconds == 4.0
    assert acme(outbox).mean_seconds == 2.0


def test_a_try_whose_lease_ended_is_lost_and_no_result(outbox: Outbox, clock: Clock) -> None:
    enqueue(outbox, "a")
    (late,) = outbox.claim(1, ONCE)
    clock.forward(41)
    assert outbox.claim(1, ONCE) == []
    outbox.settle([(late, Delivered())])
    counted = acme(outbox)
    assert (counted.lost, counted.dead, counted.tries, counted.delivered) == (1, 1, 0, 0)
    assert counted.success_rate is None


def test_a_purge_takes_nothing_off_the_totals(outbox: Outbox, clock: Clock) -> None:
    enqueue(outbox, "a", "b")
    send_all(outbox, Delivered())
    clock.forward(1)
    assert outbox.purge(0) == 2
    assert (acme(outbox).delivered, acme(outbox).tries) == (2, 2)


# What waits.


def test_waiting_rows_are_counted_with_the_age_of_the_oldest_and_the_lag(
    outbox: Outbox, clock: Clock
) -> None:
    outbox.add_endpoint("bob")
    enqueue(outbox, "old")
    clock.forward(100)
    send_all(outbox, DOWN, STEPS)
    enqueue(outbox, "new", "newer")
    enqueue(outbox, "later", at=clock.after(60))
    enqueue(outbox, "a", "b", endpoint="bob")
    assert (acme(outbox).pending, acme(outbox).due, acme(outbox).lag) == (4, 2, 0.0)
    clock.forward(10)
    waiting = acme(outbox)
    assert (waiting.pending, waiting.due, waiting.sending) == (4, 3, 0)
    assert (waiting.oldest_pending_age, waiting.lag) == (110.0, 10.0)
    outbox.claim(4, STEPS)
    counted = outbox.stats()
    assert (counted["acme"].pending, counted["acme"].due, counted["acme"].sending) == (2, 1, 2)
    assert (counted["acme"].oldest_pending_age, counted["acme"].lag) == (110.0, 0.0)
    assert (counted["bob"].pending, counted["bob"].sending) == (0, 2)
    assert counted["bob"].oldest_pending_age == counted["bob"].lag == 0.0


def test_a_row_that_is_not_due_yet_makes_no_lag(outbox: Outbox, clock: Clock) -> None:
    enqueue(outbox, "later", at=clock.after(0.000001))
    assert (acme(outbox).due, acme(outbox).lag) == (0, 0.0)
    clock.forward(0.000001)
    assert (acme(outbox).due, acme(outbox).lag) == (1, 0.0)
    clock.forward(0.25)
    assert acme(outbox).lag == 0.25


def test_a_claimed_row_makes_a_lag_from_the_end_of_its_lease_on(
    outbox: Outbox, clock: Clock
) -> None:
    enqueue(outbox, "a")
    outbox.claim(1, ONCE)
    clock.forward(40)
    assert (acme(outbox).sending, acme(outbox).lag) == (1, 0.0)
    clock.forward(7)
    assert (acme(outbox).sending, acme(outbox).due, acme(outbox).lag) == (1, 0, 7.0)
    enqueue(outbox, "b", at=clock.after(-9))
    assert acme(outbox).lag == 9.0


def test_the_ages_of_one_answer_are_all_from_one_instant_of_the_database(
    open_outbox: Callable[..., Outbox],
) -> None:
    outbox = open_outbox()
    outbox.migrate()
    for number in range(3):
        outbox.add_endpoint(f"e{number}", policy={"max_attempts": 1})
    for number in range(3):
        enqueue(outbox, "a", endpoint=f"e{number}")
    for counted in outbox.stats().values():
        assert counted.lag == counted.oldest_pending_age > 0.0
    claims = outbox.claim(3)
    outbox.settle([(claim, DOWN) for claim in claims])
    # All three ended at one instant, and are as old as each other.
    assert len({counted.oldest_dead_age for counted in outbox.stats().values()}) == 1


# The dead.


def test_the_dead_are_counted_with_the_age_of_the_oldest(outbox: Outbox, clock: Clock) -> None:
    enqueue(outbox, "a")
    send_all(outbox, DOWN)
    enqueue(outbox, "expires", ttl=5)
    clock.forward(60)
    enqueue(outbox, "b")
    send_all(outbox, Permanent("no", status=400))
    clock.forward(0.5)
    counted = acme(outbox)
    assert (counted.dead_letters, counted.oldest_dead_age) == (2, 60.5)
    assert (counted.repeated_deaths, counted.most_redrives) == (0, 0)
    outbox.purge(10, states=["dead"])
    assert (acme(outbox).dead_letters, acme(outbox).oldest_dead_age) == (1, 0.5)


def test_what_a_redrive_moved_is_delivered_dies_again_or_is_on_its_way(
    outbox: Outbox, clock: Clock
) -> None:
    enqueue(outbox, "a", "b", "c", "d", "e")
    send_all(outbox, DOWN)
    assert acme(outbox).redriven == 0
    outbox.redrive(limit=None)
    assert (acme(outbox).redriven, acme(outbox).redelivered, acme(outbox).died_again) == (5, 0, 0)
    well, dies, fails, waits, _ = outbox.claim(10, STEPS)
    outbox.settle([(well, Delivered()), (fails, Permanent("no")), (waits, DOWN)])
    clock.forward(10)
    outbox.settle([(dies, DOWN)])
    counted = acme(outbox)
    assert (counted.redriven, counted.redelivered, counted.died_again) == (5, 1, 1)
    assert counted.redriven - counted.redelivered - counted.died_again == (
        counted.pending + counted.sending
    )
    assert (counted.dead_letters, counted.repeated_deaths, counted.most_redrives) == (1, 1, 1)


def test_the_most_redrives_are_those_of_a_row_that_is_dead_now(outbox: Outbox) -> None:
    enqueue(outbox, "a", "b", "c")
    send_all(outbox, DOWN)
    ids = [row.id for row in outbox.list(state="dead")]
    for times in (3, 2):
        for _ in range(2):
            outbox.redrive(ids[: times - 1])
            send_all(outbox, DOWN)
    counted = acme(outbox)
    assert (counted.dead_letters, counted.repeated_deaths, counted.most_redrives) == (3, 2, 4)
    assert (counted.redriven, counted.died_again) == (6, 6)
    outbox.redrive(ids[:1])
    send_all(outbox, Delivered())
    counted = acme(outbox)
    assert (counted.dead_letters, counted.repeated_deaths, counted.most_redrives) == (2, 1, 2)
    assert (counted.redriven, counted.redelivered, counted.died_again) == (7, 1, 6)


def test_a_redriven_row_that_ends_unsent_has_died_again(outbox: Outbox, clock: Clock) -> None:
    enqueue(outbox, "at-the-claim", "before-the-send")
    send_all(outbox, DOWN)
    outbox.redrive(limit=None, ttl=30, rate=1)
    clock.forward(0.5)
    claims = outbox.claim(10, ONCE)
    outbox.end_unsent([(claim, Decision("expired", reason="ttl")) for claim in claims])
    assert (acme(outbox).expired, acme(outbox).died_again) == (1, 1)
    clock.forward(31)
    assert outbox.claim(10, ONCE) == []
    assert (acme(outbox).expired, acme(outbox).died_again, acme(outbox).tries) == (2, 2, 2)


def test_a_redrive_is_counted_for_each_endpoint_over_all_its_batches(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redriving, "BATCH", 2)
    outbox.add_endpoint("bob", max_in_flight=None)
    enqueue(outbox, "a", "b", "c")
    enqueue(outbox, "a", "b", endpoint="bob")
    send_all(outbox, DOWN)
    assert len(outbox.redrive(limit=None)) == 5
    assert {name: counted.redriven for name, counted in outbox.stats().items()} == {
        "acme": 3,
        "bob": 2,
    }


def test_two_operators_at_once_count_one_redrive_of_each_row(
    outbox: Outbox, open_outbox: Callable[..., Outbox], clock: Clock
) -> None:
    outbox.add_endpoint("bob", max_in_flight=None)
    numbers = [str(number) for number in range(25)]
    enqueue(outbox, *numbers)
    enqueue(outbox, *numbers, endpoint="bob")
    send_all(outbox, DOWN)
    stores = [open_outbox(clock=clock) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda store: store.redrive(limit=None), stores))
    assert [counted.redriven for counted in outbox.stats().values()] == [25, 25]


# Endpoints.


def test_a_breaker_is_half_open_from_when_its_cool_down_is_over(
    outbox: Outbox, clock: Clock
) -> None:
    breaker = CircuitBreaker(threshold=1.0, min_attempts=2, cooldown=60, probe_timeout=30)
    policy = DeliveryPolicy(create_backoff(steps=[5] * 9), breaker=breaker)
    enqueue(outbox, "a", "b", "c")
    send_all(outbox, DOWN, policy)
    assert acme(outbox).breaker == "open"
    clock.forward(59.999999)
    assert acme(outbox).breaker == "open"
    clock.forward(0.000001)
    assert acme(outbox).breaker == "half_open"
    (probe,) = outbox.claim(10, policy)
    assert acme(outbox).breaker == "half_open"
    outbox.release([probe])
    assert acme(outbox).breaker == "half_open"
    send_all(outbox, Delivered(), policy)
    assert acme(outbox).breaker == "closed"


def test_a_disabled_endpoint_is_shown_and_its_lag_grows(outbox: Outbox, clock: Clock) -> None:
    enqueue(outbox, "a")
    outbox.disable("acme", reason="gone")
    clock.forward(3600)
    assert acme(outbox).disabled
    assert (acme(outbox).due, acme(outbox).lag) == (1, 3600.0)
    outbox.enable("acme")
    assert not acme(outbox).disabled


# What it costs.


def fill(place: tuple[str, str], outbox: Outbox, **counts: int) -> None:
    """Rows in these states, for twenty endpoints, as many as are kept after a while."""
    for number in range(20):
        outbox.add_endpoint(f"e{number}")
    session = connect(place)
    series = (
        "generate_series(1, {}) AS n"
        if place[0] == "postgres"
        else "(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {}) "
        "SELECT n FROM s) AS s"
    )
    empty = "''" if place[0] == "postgres" else "x''"
    for state, count in counts.items():
        due, ended = ("n", "NULL") if state in ("pending", "sending") else ("NULL", "n")
        session.execute(
            "INSERT INTO backoff_deliveries (endpoint_id, event_id, payload, digest, state, "
            f"created_at, next_attempt_at, finished_at) SELECT 1 + n % 20, '{state}' || n, {empty},"
            f" {empty}, '{state}', n, {due}, {ended} FROM {series.format(count)}"
        )
    session.commit()
    session.execute("ANALYZE")
    session.commit()
    session.close()


class Explaining:
    """A transaction that also asks how each of its answers is found."""

    def __init__(self, transaction: Any, explain: str) -> None:
        self.transaction = transaction
        self.explain = explain
        self.plan = ""

    def rows(self, statement: str, values: Sequence[Any] = ()) -> Any:
        told = self.transaction.rows(self.explain + statement, values)
        self.plan += "".join(f"{row[-1]}\n" for row in told)
        return self.transaction.rows(statement, values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transaction, name)


def plan(outbox: Outbox, place: tuple[str, str], work: Callable[[Any], object]) -> str:
    """How the database finds what the work reads."""

    def explained(transaction: Any) -> str:
        kind = "EXPLAIN QUERY PLAN " if place[0] == "sqlite" else "EXPLAIN "
        explaining = Explaining(transaction, kind)
        work(explaining)
        return explaining.plan

    return outbox._database.write(explained)


def whole_scans(explained: str) -> list[str]:
    """The lines that read all deliveries, or all tries."""
    lines = [line.strip(" ->") for line in explained.splitlines()]
    return [
        line
        for line in lines
        if line.startswith(("Seq Scan on backoff_deliveries", "Seq Scan on backoff_tries"))
        or line in ("SCAN d", "SCAN t", "SCAN backoff_deliveries", "SCAN backoff_tries")
    ]


@pytest.mark.parametrize("waiting", [100, 20_000])
def test_counting_reads_the_index_of_each_state_and_never_the_whole_table(
    outbox: Outbox, place: tuple[str, str], waiting: int
) -> None:
    fill(place, outbox, delivered=20_000, pending=waiting, sending=50, dead=100, expired=100)
    explained = plan(outbox, place, counting.stats)
    for index in ("pending", "sending", "dead"):
        assert f"backoff_deliveries_{index}" in explained
    assert whole_scans(explained) == []
    assert "backoff_tries" not in explained
    assert sum(counted.pending for counted in outbox.stats().values()) == waiting


def test_what_is_asked_for_one_count_holds_for_that_transaction_only(conninfo: str) -> None:
    outbox = PostgresOutbox(conninfo)
    outbox.migrate()
    outbox.stats()
    shown = outbox._database.read(lambda transaction: transaction.rows("SHOW enable_seqscan"))
    assert shown == [("on",)]
    outbox.close()


def test_redrive_and_purge_read_their_own_indexes_beside_that_of_the_dead(
    outbox: Outbox, place: tuple[str, str]
) -> None:
    fill(place, outbox, delivered=20_000, pending=100, dead=2_000, failed=500, expired=500)
    wanted = redriving.checked_wanted(None, None, None, None, None, None, False, False, 10**18)
    before = redriving.beginning(wanted)
    found = plan(outbox, place, lambda t: redriving.redrive(t, wanted, before, 1000))
    assert "backoff_deliveries_ended" in found
    purged = plan(outbox, place, lambda t: redriving.purge(t, ["dead"], 10**18, 0, 1000))
    assert "backoff_deliveries_dead" not in found + purged
    assert whole_scans(found + purged) == []


def test_a_database_that_stays_busy_is_waited_for_as_long_as_was_said(
    outbox: Outbox, open_outbox: Callable[..., Outbox], place: tuple[str, str]
) -> None:
    outbox.close()
    session = connect(place)
    if place[0] == "sqlite":
        # In WAL nobody waits to read.
        session.execute("PRAGMA journal_mode = DELETE")
    again = open_outbox()
    assert again.stats() == {"acme": NOTHING}
    lock = "BEGIN EXCLUSIVE" if place[0] == "sqlite" else "LOCK TABLE backoff_deliveries"
    session.execute(lock)
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        again.stats(timeout="200ms")
    assert time.monotonic() - began < 5
    session.rollback()
    session.close()
    assert again.stats() == {"acme": NOTHING}
