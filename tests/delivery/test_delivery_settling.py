from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from backoff_schedule import create_backoff
from backoff_schedule.delivery import (
    Decision,
    Delivered,
    DeliveryPolicy,
    Permanent,
    Transient,
)
from backoff_schedule.delivery.postgres import PostgresOutbox
from tests.delivery.conftest import STEPS, Clock, every_row

if TYPE_CHECKING:
    from backoff_schedule.delivery import Claim, Delivery
    from backoff_schedule.delivery.outbox import Outbox


def claimed(outbox: Outbox, policy: DeliveryPolicy = STEPS, **options: Any) -> Claim:
    outbox.enqueue("acme", b"x", event_id="e", **options)
    (claim,) = outbox.claim(1, policy)
    return claim


def row(outbox: Outbox, event_id: str = "e") -> Delivery:
    found = outbox.get(event_id, "acme")
    assert found is not None
    return found


def test_a_delivery_is_final_and_its_try_is_in_the_history(outbox: Outbox, clock: Clock) -> None:
    claim = claimed(outbox)
    clock.forward(1.5)
    assert outbox.settle([(claim, Delivered(status=204))]) == [Decision("delivered")]
    found = row(outbox)
    assert (found.state, found.attempts, found.last_status, found.last_error) == (
        "delivered",
        1,
        204,
        None,
    )
    assert (found.finished_at, found.next_attempt_at) == (clock.now, None)
    (entry,) = outbox.history("e", "acme")
    assert (entry.number, entry.redrive, entry.outcome) == (1, 0, "delivered")
    assert (entry.started_at, entry.seconds, entry.status) == (clock.after(-1.5), 1.5, 204)
    clock.forward(10**6)
    assert outbox.claim(10) == []


def test_the_first_retry_comes_after_the_first_step_and_the_last_step_is_used(
    outbox: Outbox, clock: Clock
) -> None:
    claim = claimed(outbox)
    waits = []
    for _ in range(3):
        (decision,) = outbox.settle([(claim, Transient("503", status=503))])
        assert decision is not None
        assert decision.next_attempt_at is not None
        waits.append((decision.next_attempt_at - clock.now).total_seconds())
        found = row(outbox)
        assert (found.state, found.next_attempt_at) == ("pending", decision.next_attempt_at)
        clock.forward(waits[-1] - 0.000001)
        assert outbox.claim(10, STEPS) == []
        clock.forward(0.000001)
        (claim,) = outbox.claim(10, STEPS)
    assert waits == [10.0, 20.0, 40.0]
    assert claim.attempt == 4
    assert outbox.settle([(claim, Transient("503", status=503))]) == [
        Decision("dead", reason="attempts")
    ]
    found = row(outbox)
    assert (found.state, found.attempts, found.last_status, found.last_error) == (
        "dead",
        4,
        503,
        "503",
    )
    assert (found.reason, found.finished_at) == ("attempts", clock.now)
    assert [entry.outcome for entry in outbox.history("e", "acme")] == ["retry"] * 3 + ["dead"]


def test_what_the_receiver_asks_for_is_waited_for_within_the_limit(
    outbox: Outbox, clock: Clock
) -> None:
    claim = claimed(outbox)
    outbox.settle([(claim, Transient("429", status=429, retry_after=60))])
    assert row(outbox).next_attempt_at == clock.after(60)
    clock.forward(60)
    (claim,) = outbox.claim(1, STEPS)
    year = 365 * 86_400
    outbox.settle([(claim, Transient("503", status=503, retry_after=year))])
    assert row(outbox).next_attempt_at == clock.after(86_400)


def test_the_same_row_has_the_same_timetable_on_every_store(outbox: Outbox, clock: Clock) -> None:
    jittered = DeliveryPolicy(
        create_backoff(base=10, max=3600, jitter=0.5), max_attempts=9, breaker=None
    )
    claim = claimed(outbox, jittered)
    outbox.settle([(claim, Transient("busy"))])
    due = row(outbox).next_attempt_at
    assert due is not None
    keyed = jittered.schedule.keyed("acme/e")
    assert (due - clock.now).total_seconds() == pytest.approx(keyed.delay(1), abs=1e-6)


def test_a_permanent_failure_is_final_at_once(outbox: Outbox) -> None:
    claim = claimed(outbox)
    assert outbox.settle([(claim, Permanent("404 Not Found", status=404))]) == [
        Decision("failed", reason="permanent")
    ]
    found = row(outbox)
    assert (found.state, found.last_status, found.last_error) == ("failed", 404, "404 Not Found")


def test_a_schedule_that_cannot_answer_makes_the_row_dead_and_says_why(outbox: Outbox) -> None:
    def broken(attempt: int) -> float:
        raise ZeroDivisionError("mine")

    for compute, reason in ((broken, "schedule: ZeroDivisionError('mine')"), (None, "unbounded")):
        schedule = (
            create_backoff(compute=compute)
            if compute
            else create_backoff(base=1e300, growth="constant")
        )
        policy = DeliveryPolicy(schedule, max_attempts=5, breaker=None)
        event_id = f"e{reason[:3]}"
        outbox.enqueue("acme", b"x", event_id=event_id)
        (claim,) = outbox.claim(1, policy)
        outbox.settle([(claim, Transient("busy"))])
        found = row(outbox, event_id)
        assert (found.state, found.reason) == ("dead", reason)


def test_a_sender_that_answers_nonsense_is_a_transient_failure(outbox: Outbox) -> None:
    claim = claimed(outbox)
    outbox.settle([(claim, None)])
    assert row(outbox).last_error == "the sender answered None, not an outcome"
    assert row(outbox).state == "pending"


def test_whatever_a_receiver_says_can_be_stored(outbox: Outbox) -> None:
    claim = claimed(outbox)
    outbox.settle([(claim, Transient("\0 \ud800 \U0001f4a9 " + "x" * 10_000, status=-1))])
    error = row(outbox).last_error
    assert error is not None
    assert error.startswith("? ? \U0001f4a9 xxx")
    assert len(error) == 2048
    assert row(outbox).last_status == -1


def test_a_batch_is_settled_row_by_row_and_only_what_matched_counts(
    outbox: Outbox, place: tuple[str, str]
) -> None:
    for number in range(6):
        outbox.enqueue("acme", b"x", event_id=str(number))
    claims = outbox.claim(6, STEPS)
    outbox.settle([(claims[0], Delivered())])
    answers = outbox.settle(
        [
            (claims[0], Transient("again")),
            (claims[1], Delivered()),
            (claims[1], Transient("twice")),
            (claims[2], Transient("busy")),
            (claims[3], Permanent("no")),
        ]
    )
    states = [None if answer is None else answer.state for answer in answers]
    assert states == [None, "delivered", None, "pending", "failed"]
    counters = "SELECT delivered, retried, failed, dead, expired, lost FROM backoff_gates"
    assert every_row(place, counters) == [(2, 1, 1, 0, 0, 0)]
    assert every_row(place, "SELECT count(*) FROM backoff_tries") == [(4,)]
    assert outbox.settle([]) == []


def test_rows_with_like_results_and_rows_with_others_are_each_written_as_their_own(
    outbox: Outbox, clock: Clock, place: tuple[str, str]
) -> None:
    for number in range(7):
        outbox.enqueue("acme", b"x", event_id=str(number))
    clock.forward(0.5)
    claims = outbox.claim(7, STEPS)
    clock.forward(0.25)
    outbox.settle(
        zip(
            claims,
            [
                Delivered(status=200),
                Transient("busy", status=503),
                Delivered(status=200),
                Transient("busy", status=503, retry_after=15),
                Delivered(),
                Transient('"quoted" \\ ü', status=503),
                Permanent("no", status=404),
            ],
            strict=True,
        )
    )
    now, later = clock.now, (clock.after(10), clock.after(15))
    assert [
        (row.state, row.next_attempt_at, row.finished_at, row.last_status, row.last_error)
        for row in outbox.list()
    ] == [
        ("delivered", None, now, 200, None),
        ("pending", later[0], None, 503, "busy"),
        ("delivered", None, now, 200, None),
        ("pending", later[1], None, 503, "busy"),
        ("delivered", None, now, None, None),
        ("pending", later[0], None, 503, '"quoted" \\ ü'),
        ("failed", None, now, 404, "no"),
    ]
    tries = "SELECT event_id, seconds, status, outcome FROM backoff_tries ORDER BY event_id"
    assert every_row(place, tries) == [
        ("0", 0.25, 200, "delivered"),
        ("1", 0.25, 503, "retry"),
        ("2", 0.25, 200, "delivered"),
        ("3", 0.25, 503, "retry"),
        ("4", 0.25, None, "delivered"),
        ("5", 0.25, 503, "retry"),
        ("6", 0.25, 404, "failed"),
    ]


def test_retry_on_any_tries_a_404_again_and_a_410_never(outbox: Outbox) -> None:
    policy = DeliveryPolicy(create_backoff(steps=[10]), retry_on="any", breaker=None)
    for event_id, status in (("a", 404), ("b", 410)):
        outbox.enqueue("acme", b"x", event_id=event_id)
        (claim,) = outbox.claim(1, policy)
        outbox.settle([(claim, Permanent("gone", status=status))])
    assert (row(outbox, "a").state, row(outbox, "b").state) == ("pending", "failed")


def test_settles_in_opposite_order_end_both_though_their_locks_cross(conninfo: str) -> None:
    outbox = PostgresOutbox(conninfo)
    outbox.migrate()
    for name in ("acme", "bob"):
        outbox.add_endpoint(name, max_in_flight=None)
        for number in range(40):
            outbox.enqueue(name, b"x", event_id=str(number))
    claims = outbox.claim(80, STEPS)
    assert len(claims) == 80

    forward = [(claim, Delivered()) for claim in claims]
    with ThreadPoolExecutor(4) as threads:
        batches = [forward[:40], forward[40:][::-1], forward[::-1][:40], forward[20:60]]
        answers = [a for batch in threads.map(outbox.settle, batches) for a in batch]
    assert sum(answer is not None for answer in answers) == 80
    with psycopg.connect(conninfo) as session:
        assert session.execute("SELECT sum(delivered) FROM backoff_gates").fetchone() == (80,)
    outbox.close()


def test_a_connection_that_is_cut_in_the_middle_of_a_settle_repeats_all_of_it(
    conninfo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = PostgresOutbox(conninfo)
    outbox.migrate()
    outbox.add_endpoint("acme", max_in_flight=None)
    for number in range(5):
        outbox.enqueue("acme", b"x", event_id=str(number))
    claims = outbox.claim(5, STEPS)
    finish, tries = outbox._statements.finish, []

    def cut(transaction: Any, results: Any, now: int) -> set[int]:
        matched = finish(transaction, results, now)
        tries.append(transaction.rows("SELECT pg_backend_pid()")[0][0])
        if len(tries) == 1:
            with psycopg.connect(conninfo, autocommit=True) as killer:
                killer.execute("SELECT pg_terminate_backend(%s, 5000)", tries)
        return matched

    monkeypatch.setattr(outbox._statements, "finish", cut)
    answers = outbox.settle([(claim, Delivered()) for claim in claims])
    assert answers == [Decision("delivered")] * 5
    assert len(set(tries)) == 2
    with psycopg.connect(conninfo) as session:
        counts = "SELECT (SELECT count(*) FROM backoff_tries), sum(delivered) FROM backoff_gates"
        assert session.execute(counts).fetchone() == (5, 5)
    outbox.close()
