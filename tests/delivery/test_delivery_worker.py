from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
import pytest

from backoff_schedule import create_backoff
from backoff_schedule.delivery import (
    Claim,
    Counts,
    Delivered,
    DeliveryPolicy,
    Permanent,
    PostgresOutbox,
    SQLiteOutbox,
    Transient,
    Worker,
    claiming,
)
from tests.delivery.conftest import STEPS, Clock
from tests.postgres_server import PostgresServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from backoff_schedule.delivery import Outbox, Outcome

OK = Delivered(status=200)


@pytest.fixture
def live(open_outbox: Callable[..., Outbox]) -> Outbox:
    """On the real clock, with the endpoint "acme"."""
    outbox = open_outbox()
    outbox.migrate()
    outbox.add_endpoint("acme", max_in_flight=None)
    return outbox


def enqueue(outbox: Outbox, count: int, endpoint: str = "acme", **options: Any) -> None:
    for number in range(count):
        outbox.enqueue(endpoint, b"x", event_id=f"e{number}", **options)


def states(outbox: Outbox) -> list[str]:
    return [row.state for row in outbox.list(limit=10_000)]


def run_once(outbox: Outbox, send: Callable[[Claim], Any], **options: Any) -> Counts:
    return asyncio.run(Worker(outbox, send, STEPS, **options).run_once())


async def until(worker: Worker, condition: Callable[[], bool], patience: float = 30.0) -> None:
    """Run the worker until the condition holds, and let it drain."""
    running = asyncio.ensure_future(worker.run())
    patient_until = time.monotonic() + patience
    while not condition() and time.monotonic() < patient_until and not running.done():
        await asyncio.sleep(0.01)
    worker.stop()
    await running
    assert condition()


# One round.


@pytest.mark.parametrize("kind", ["sync", "async", "awaitable"])
def test_what_is_due_is_sent_and_counted(outbox: Outbox, kind: str) -> None:
    enqueue(outbox, 25)
    answers: dict[str, Outcome] = {
        "e0": Transient("busy"),
        "e1": Permanent("no"),
    }
    sent = []

    def answer(claim: Claim) -> Outcome:
        sent.append(claim.event_id)
        return answers.get(claim.event_id, OK)

    async def answer_async(claim: Claim) -> Outcome:
        await asyncio.sleep(0)
        return answer(claim)

    senders = {"sync": answer, "async": answer_async, "awaitable": lambda c: answer_async(c)}
    counts = run_once(outbox, senders[kind], concurrency=10)
    assert counts == Counts(delivered=23, retried=1, failed=1)
    assert sorted(sent) == sorted(f"e{number}" for number in range(25))


def test_each_row_is_sent_once_in_a_round_though_its_retry_is_due_at_once(outbox: Outbox) -> None:
    policy = DeliveryPolicy(create_backoff(steps=[0] * 5), breaker=None)
    enqueue(outbox, 5)
    sent = []

    async def send(claim: Claim) -> Outcome:
        sent.append(claim.id)
        return Transient("busy")

    counts = asyncio.run(Worker(outbox, send, policy, concurrency=2).run_once())
    assert counts == Counts(retried=5)
    assert len(sent) == len(set(sent)) == 5
    assert [row.attempts for row in outbox.list()] == [1] * 5


def test_a_round_ends_although_rows_are_enqueued_all_the_while(
    live: Outbox,
) -> None:
    enqueue(live, 3)
    more = iter(range(100))

    def send(claim: Claim) -> Outcome:
        live.enqueue("acme", b"x", event_id=f"more{next(more)}")
        return OK

    assert run_once(live, send, concurrency=1) == Counts(delivered=3)


def test_a_round_counts_what_ended_unsent_and_what_was_lost(outbox: Outbox, clock: Clock) -> None:
    outbox.enqueue("acme", b"x", event_id="expires", ttl=60, at=clock.after(10))
    outbox.enqueue("acme", b"x", event_id="lost")
    assert len(outbox.claim(1, STEPS)) == 1
    clock.forward(100)
    assert run_once(outbox, lambda _: OK) == Counts(delivered=1, expired=1, lost=1)


def test_a_cap_holds_while_a_round_sends_all(live: Outbox) -> None:
    live.add_endpoint("acme", max_in_flight=3)
    enqueue(live, 12)
    now, most = 0, 0

    async def send(claim: Claim) -> Outcome:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        now -= 1
        return OK

    assert run_once(live, send, concurrency=8) == Counts(delivered=12)
    assert most == 3


@pytest.mark.parametrize("concurrency", [1, 7])
def test_no_more_sends_are_under_way_than_there_are_slots(live: Outbox, concurrency: int) -> None:
    enqueue(live, 20)
    now, most, begun, lock = 0, 0, 0, threading.Lock()
    all_slots = threading.Barrier(concurrency)

    def send(claim: Claim) -> Outcome:
        nonlocal now, most, begun
        with lock:
            now += 1
            begun += 1
            most = max(most, now)
            is_first = begun <= concurrency
        if is_first:
            all_slots.wait(30)
        with lock:
            now -= 1
        return OK

    assert run_once(live, send, concurrency=concurrency) == Counts(delivered=20)
    assert most == concurrency


# What senders do.


@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_sender_raises_is_a_transient_failure(outbox: Outbox, is_async: bool) -> None:
    enqueue(outbox, 1)

    def fail(claim: Claim) -> Outcome:
        raise KeyError("lost keys")

    async def fail_async(claim: Claim) -> Outcome:
        return fail(claim)

    assert run_once(outbox, fail_async if is_async else fail) == Counts(retried=1)
    row = outbox.get("e0", "acme")
    assert row is not None
    assert row.last_error == "KeyError('lost keys')"


def test_an_error_without_a_repr_harms_nobody(outbox: Outbox) -> None:
    class Broken(Exception):
        def __repr__(self) -> str:
            raise RuntimeError

    enqueue(outbox, 1)

    def fail(claim: Claim) -> Outcome:
        raise Broken

    assert run_once(outbox, fail) == Counts(retried=1)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_send_past_its_timeout_is_settled_then(live: Outbox, is_async: bool) -> None:
    policy = DeliveryPolicy(STEPS.schedule, timeout=0.2, breaker=None)
    enqueue(live, 2)
    free = threading.Event()
    cancelled = []

    def hang(claim: Claim) -> Outcome:
        if claim.event_id == "e0":
            free.wait(30)
        return OK

    async def hang_async(claim: Claim) -> Outcome:
        try:
            if claim.event_id == "e0":
                await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.append(claim.event_id)
            raise
        return OK

    send: Callable[[Claim], Any] = hang_async if is_async else hang
    counts = asyncio.run(Worker(live, send, policy, concurrency=2).run_once())
    free.set()
    assert counts == Counts(delivered=1, retried=1)
    row = live.get("e0", "acme")
    assert row is not None
    assert row.last_error == "timed out after 200ms"
    assert cancelled == (["e0"] if is_async else [])


# Kept until their timeout, those of 30 seconds filled the memory.
@pytest.mark.parametrize("is_async", [False, True])
def test_a_claim_is_let_go_of_when_its_result_is_written_and_not_at_its_timeout(
    live: Outbox, is_async: bool
) -> None:
    # Other tests may have left claims behind.
    mine = [f"{uuid4()}-{number}" for number in range(5)]
    for event_id in mine:
        live.enqueue("acme", b"x", event_id=event_id)
    free = threading.Event()

    def send(claim: Claim) -> Outcome:
        if claim.event_id == mine[4]:
            free.wait(30)
        return OK

    async def send_async(claim: Claim) -> Outcome:
        if claim.event_id == mine[4]:
            await asyncio.to_thread(free.wait, 30)
        return OK

    def kept() -> list[str]:
        gc.collect()
        claims = [found for found in gc.get_objects() if type(found) is Claim]
        return [found.event_id for found in claims if found.event_id in mine]

    async def main() -> None:
        worker = Worker(live, send_async if is_async else send, STEPS, concurrency=5)
        running = asyncio.ensure_future(worker.run())
        while states(live).count("delivered") < 4:
            await asyncio.sleep(0.01)
        patient_until = time.monotonic() + 5
        while len(kept()) > 1 and time.monotonic() < patient_until:
            await asyncio.sleep(0.01)
        assert kept() == mine[4:]
        free.set()
        worker.stop()
        await running

    asyncio.run(main())


def test_the_slot_of_a_sync_send_stays_taken_until_its_thread_ends(live: Outbox) -> None:
    policy = DeliveryPolicy(STEPS.schedule, timeout=0.1, breaker=None)
    enqueue(live, 2)
    free, begun = threading.Event(), []

    def hang(claim: Claim) -> Outcome:
        begun.append(claim.event_id)
        free.wait(30)
        return OK

    async def main() -> None:
        worker = Worker(live, hang, policy, concurrency=1, poll=0.05)
        running = asyncio.ensure_future(worker.run())
        while not live.history("e0", "acme"):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        assert begun == ["e0"]
        free.set()
        while len(begun) < 2:
            await asyncio.sleep(0.01)
        worker.stop()
        await running

    asyncio.run(main())
    assert begun == ["e0", "e1"]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_send_that_ends_the_process_ends_the_worker_and_its_row_is_left_to_its_lease(
    live: Outbox, is_async: bool
) -> None:
    enqueue(live, 1)

    def leave(claim: Claim) -> Outcome:
        raise SystemExit(3)

    async def leave_async(claim: Claim) -> Outcome:
        return leave(claim)

    with pytest.raises(SystemExit) as left:
        asyncio.run(Worker(live, leave_async if is_async else leave, STEPS).run())
    assert left.value.code == 3
    assert states(live) == ["sending"]


# Lost rows.


def test_one_row_whose_last_try_was_lost_is_in_flight_at_a_time(
    live: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claiming, "MARGIN", 0.1)
    policy = DeliveryPolicy(STEPS.schedule, timeout=0.6, breaker=None)
    enqueue(live, 4)
    assert len(live.claim(4, policy)) == 4
    time.sleep(0.75)
    flying, most, fresh = 0, 0, []

    async def send(claim: Claim) -> Outcome:
        nonlocal flying, most
        if not claim.lost:
            fresh.append(claim.event_id)
            return OK
        flying += 1
        most = max(most, flying)
        await asyncio.sleep(0.1)
        flying -= 1
        return OK

    live.enqueue("acme", b"x", event_id="fresh")
    counts = asyncio.run(Worker(live, send, policy).run_once())
    assert counts == Counts(delivered=5, lost=4)
    assert most == 1
    assert fresh == ["fresh"]


def test_the_place_for_lost_rows_is_free_again_after_a_second(
    live: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claiming, "MARGIN", 0.1)
    short = DeliveryPolicy(STEPS.schedule, timeout=0.1, breaker=None)
    enqueue(live, 2)
    live.claim(2, short)
    time.sleep(0.25)
    began: list[float] = []

    async def send(claim: Claim) -> Outcome:
        began.append(time.monotonic())
        await asyncio.sleep(3)
        return OK

    worker = Worker(live, send, STEPS, poll=0.05)
    asyncio.run(until(worker, lambda: len(began) == 2))
    assert 0.95 < began[1] - began[0] < 2.9


# Polling.


def test_a_retry_is_sent_when_it_is_due_and_not_at_the_next_poll(live: Outbox) -> None:
    policy = DeliveryPolicy(create_backoff(steps=[0.4]), breaker=None)
    enqueue(live, 1)
    sent: list[float] = []

    async def send(claim: Claim) -> Outcome:
        sent.append(time.monotonic())
        return OK if len(sent) > 1 else Transient("busy")

    worker = Worker(live, send, policy, poll="30 seconds")
    asyncio.run(until(worker, lambda: len(sent) == 2))
    assert 0.4 <= sent[1] - sent[0] < 15


def test_wake_makes_it_look_at_once(live: Outbox) -> None:
    sent: list[str] = []

    def send(claim: Claim) -> Outcome:
        sent.append(claim.event_id)
        return OK

    async def main() -> None:
        worker = Worker(live, send, STEPS, poll="30 seconds")
        running = asyncio.ensure_future(worker.run())
        await asyncio.sleep(0.3)
        live.enqueue("acme", b"x", event_id="e")
        threading.Thread(target=worker.wake).start()
        began = time.monotonic()
        while not sent:
            await asyncio.sleep(0.01)
        assert time.monotonic() - began < 15
        worker.stop()
        await running

    asyncio.run(main())


@pytest.mark.parametrize("held_back_by", ["nothing", "cap", "breaker", "disabled"])
def test_an_idle_worker_does_not_spin(
    live: Outbox, held_back_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = DeliveryPolicy(
        STEPS.schedule,
        breaker={"threshold": 1.0, "min_attempts": 1, "cooldown": "1 hour"},
    )
    if held_back_by != "nothing":
        enqueue(live, 5)
    if held_back_by == "cap":
        live.add_endpoint("acme", max_in_flight=1)
        assert len(live.claim(1, policy)) == 1
    elif held_back_by == "breaker":
        live.settle([(claim, Transient("down")) for claim in live.claim(1, policy)])
    elif held_back_by == "disabled":
        live.disable("acme", reason="maintenance")
    asked = 0
    claimed = live._claimed

    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal asked
        asked += 1
        return claimed(*args, **kwargs)

    monkeypatch.setattr(live, "_claimed", counted)

    async def main() -> None:
        worker = Worker(live, lambda _: OK, policy, poll=0.25)
        running = asyncio.ensure_future(worker.run())
        await asyncio.sleep(1.1)
        worker.stop()
        await running

    asyncio.run(main())
    assert 2 <= asked <= 6


# Stopping.


def test_a_stop_waits_for_what_is_under_way_and_claims_nothing_more(live: Outbox) -> None:
    enqueue(live, 6)
    begun, free = [], threading.Event()

    def send(claim: Claim) -> Outcome:
        begun.append(claim.event_id)
        free.wait(30)
        return OK

    async def main() -> None:
        worker = Worker(live, send, STEPS, concurrency=2)
        running = asyncio.ensure_future(worker.run())
        while len(begun) < 2:
            await asyncio.sleep(0.01)
        threading.Thread(target=worker.stop).start()
        await asyncio.sleep(0.1)
        assert not running.done()
        free.set()
        await running

    asyncio.run(main())
    assert len(begun) == 2
    assert sorted(states(live)) == ["delivered"] * 2 + ["pending"] * 4


def test_a_stop_before_the_run_ends_it_at_once(live: Outbox) -> None:
    enqueue(live, 1)
    worker = Worker(live, lambda _: OK, STEPS)
    worker.stop()
    asyncio.run(worker.run())
    assert states(live) == ["pending"]
    assert asyncio.run(worker.run_once()) == Counts(delivered=1)


def test_a_cancelled_run_cancels_its_sends_which_count_as_failed(live: Outbox) -> None:
    enqueue(live, 2)
    begun = []

    async def send(claim: Claim) -> Outcome:
        begun.append(claim.event_id)
        await asyncio.sleep(30)
        return OK

    async def main() -> None:
        running = asyncio.ensure_future(Worker(live, send, STEPS).run())
        while len(begun) < 2:
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    assert [(row.state, row.attempts) for row in live.list()] == [("pending", 1)] * 2
    assert {row.last_error for row in live.list()} == {"the send was cancelled"}


def test_a_worker_runs_once_at_a_time_and_again_afterwards(live: Outbox) -> None:
    async def main() -> None:
        worker = Worker(live, lambda _: OK, STEPS)
        running = asyncio.ensure_future(worker.run())
        await asyncio.sleep(0.05)
        with pytest.raises(RuntimeError, match="runs already"):
            await worker.run_once()
        worker.stop()
        await running
        enqueue(live, 1)
        assert await worker.run_once() == Counts(delivered=1)

    asyncio.run(main())


FOREVER = """
import sys, time
from backoff_schedule.delivery import Delivered, PostgresOutbox, SQLiteOutbox, Worker

outbox = (SQLiteOutbox if sys.argv[1] == "sqlite" else PostgresOutbox)(sys.argv[2])

def send(claim):
    print("begun", flush=True)
    time.sleep(1)
    return Delivered()

Worker(outbox, send, concurrency=1).run_forever()
print("drained", flush=True)
outbox.close()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_a_worker_in_a_process_of_its_own(
    live: Outbox, place: tuple[str, str], number: signal.Signals
) -> None:
    enqueue(live, 3)
    command = [sys.executable, "-c", FOREVER, *place]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(number)
        assert process.stdout.read() == "drained\n"
        assert process.wait(30) == 0
    assert sorted(states(live)) == ["delivered", "pending", "pending"]


# The same name, frozen clocks, and leases that end in mid-send.


def test_a_lease_that_ends_in_mid_send_makes_one_more_send_and_one_result(
    live: Outbox, open_outbox: Callable[..., Outbox], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claiming, "MARGIN", -0.4)
    policy = DeliveryPolicy(STEPS.schedule, timeout=0.6, breaker=None)
    enqueue(live, 1)
    sends = []

    async def slow(claim: Claim) -> Outcome:
        sends.append(claim.attempt)
        await asyncio.sleep(0.5)
        return Transient("late")

    async def quick(claim: Claim) -> Outcome:
        sends.append(claim.attempt)
        return OK

    async def main() -> None:
        first = asyncio.ensure_future(Worker(live, slow, policy).run_once())
        while not sends:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        assert await Worker(open_outbox(), quick, policy).run_once() == Counts(delivered=1, lost=1)
        await first

    asyncio.run(main())
    assert sends == [1, 2]
    assert states(live) == ["delivered"]
    assert [entry.outcome for entry in live.history("e0", "acme")] == ["lost", "delivered"]


def test_two_workers_with_a_frozen_clock_send_each_row_once(
    outbox: Outbox, open_outbox: Callable[..., Outbox], clock: Clock
) -> None:
    enqueue(outbox, 60)
    sent: list[int] = []

    async def send(claim: Claim) -> Outcome:
        sent.append(claim.id)
        await asyncio.sleep(0)
        return OK

    async def main() -> None:
        workers = [
            Worker(store, send, STEPS, concurrency=5)
            for store in (outbox, open_outbox(clock=clock))
        ]
        counts = await asyncio.gather(*(worker.run_once() for worker in workers))
        assert sum(count.delivered for count in counts) == 60

    asyncio.run(main())
    assert len(sent) == len(set(sent)) == 60


# A database that is away.


def test_a_server_that_is_stopped_under_load_loses_and_repeats_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with PostgresServer() as server, closing(PostgresOutbox(server.conninfo)) as outbox:
        outbox._database._patience = 0.5  # type: ignore[attr-defined]
        outbox.migrate()
        outbox.add_endpoint("acme", max_in_flight=None)
        enqueue(outbox, 60)
        sent: list[str] = []

        async def send(claim: Claim) -> Outcome:
            sent.append(claim.event_id)
            await asyncio.sleep(0.05)
            return OK

        async def main() -> None:
            worker = Worker(outbox, send, STEPS, concurrency=5, poll=0.05)
            running = asyncio.ensure_future(worker.run())
            while len(sent) < 10:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(server.kill)
            await asyncio.sleep(1.5)
            await asyncio.to_thread(server.start)
            while len(sent) < 60:
                await asyncio.sleep(0.01)
            worker.stop()
            await running

        with caplog.at_level(logging.INFO, logger="backoff_schedule"):
            asyncio.run(main())
        assert sorted(sent) == sorted(f"e{number}" for number in range(60))
        assert states(outbox) == ["delivered"] * 60
        assert {row.attempts for row in outbox.list()} == {1}
        told = [record.levelname for record in caplog.records]
        assert told[0] == "WARNING"
        assert "INFO" in told


def test_a_full_disk_is_waited_out_and_nothing_is_lost_or_repeated(tmp_path: Path) -> None:
    path = str(tmp_path / "app.db")
    with closing(SQLiteOutbox(path)) as outbox:
        outbox.migrate()
        outbox.add_endpoint("acme", max_in_flight=None)
        enqueue(outbox, 20)
        sent: list[str] = []
        is_full = threading.Event()
        write = outbox._database.write

        def full(work: Any) -> Any:
            if not is_full.is_set():
                return write(work)

            def and_then_nothing_fits(transaction: Any) -> Any:
                pages = transaction.rows("PRAGMA page_count")[0][0]
                transaction.rows(f"PRAGMA max_page_count = {pages}")
                work(transaction)
                transaction.change("CREATE TABLE filler AS SELECT zeroblob(10000000) AS b")

            try:
                return write(and_then_nothing_fits)
            finally:
                write(lambda transaction: transaction.rows("PRAGMA max_page_count = 1000000"))

        outbox._database.write = full  # type: ignore[method-assign]

        async def send(claim: Claim) -> Outcome:
            sent.append(claim.event_id)
            if len(sent) == 5:
                is_full.set()
                asyncio.get_running_loop().call_later(1.0, is_full.clear)
            return OK

        worker = Worker(outbox, send, STEPS, concurrency=5, poll=0.05)
        asyncio.run(until(worker, lambda: len(sent) >= 20))
        assert sorted(sent) == sorted(f"e{number}" for number in range(20))
        assert states(outbox) == ["delivered"] * 20


def test_a_mistake_is_raised_and_not_waited_out(open_outbox: Callable[..., Outbox]) -> None:
    worker = Worker(open_outbox(), lambda _: OK, STEPS)
    with pytest.raises((sqlite3.OperationalError, psycopg.errors.UndefinedTable)):
        asyncio.run(worker.run())


# Poison.


def test_a_payload_that_kills_its_worker_dies_alone(live: Outbox, place: tuple[str, str]) -> None:
    live.enqueue("acme", b"kill", event_id="poison")
    enqueue(live, 63)
    program = KILLED.replace("KIND", repr(place[0])).replace("WHERE", repr(place[1]))
    for _ in range(40):
        run = subprocess.run([sys.executable, "-c", program], check=False, timeout=120)
        if run.returncode == 0:
            break
        assert run.returncode == 1
    row = live.get("poison", "acme")
    assert row is not None
    assert (row.state, row.reason, row.attempts) == ("dead", "lost", 3)
    assert [entry.outcome for entry in live.history("poison", "acme")] == ["lost"] * 3
    others = [row for row in live.list(limit=100) if row.event_id != "poison"]
    assert [row.state for row in others] == ["delivered"] * 63


KILLED = """
import asyncio, os, time
from backoff_schedule import create_backoff
from backoff_schedule.delivery import (
    Delivered, DeliveryPolicy, PostgresOutbox, SQLiteOutbox, Worker, claiming
)

claiming.MARGIN = 0.2
policy = DeliveryPolicy(create_backoff(steps=[0.1, 0.1]), timeout=0.5, breaker=None)
outbox = (SQLiteOutbox if KIND == "sqlite" else PostgresOutbox)(WHERE)

def send(claim):
    if claim.payload == b"kill":
        os._exit(1)
    time.sleep(0.1)
    return Delivered()

async def main():
    worker = Worker(outbox, send, policy, concurrency=64, poll=0.05)
    running = asyncio.ensure_future(worker.run())
    while outbox.list(state="pending", limit=1) or outbox.list(state="sending", limit=1):
        await asyncio.sleep(0.05)
    worker.stop()
    await running

asyncio.run(main())
outbox.close()
"""


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"outbox": 7}, TypeError, "outbox .* needs to be an outbox, not int"),
        ({"send": 7}, TypeError, "send .* a function of a claim, not int"),
        ({"send": dict}, TypeError, "send"),
        ({"policy": STEPS.schedule}, TypeError, "policy .* a DeliveryPolicy, not Backoff"),
        ({"concurrency": 0}, ValueError, "concurrency"),
        ({"concurrency": True}, TypeError, "concurrency"),
        ({"poll": 0}, ValueError, "poll"),
        ({"poll": "soon"}, ValueError, "poll"),
        ({"lease": -1}, ValueError, "lease"),
    ],
)
def test_what_a_worker_cannot_use_is_refused(
    outbox: Outbox, arguments: dict[str, Any], error: type[Exception], said: str
) -> None:
    call: dict[str, Any] = {"outbox": outbox, "send": lambda _: OK, **arguments}
    with pytest.raises(error, match=said):
        Worker(call.pop("outbox"), call.pop("send"), **call)
