"""Kill workers at random points under load, and look whether anything was lost.

`python -m tests.delivery.stress --kills 200` does it on SQLite and on PostgreSQL. Every event is
delivered at least once or ends with a reason, no row is tried past its budget, none is stuck, there
is one history entry for each try, and the counters are those of the history.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from backoff_schedule import CircuitBreaker, create_backoff
from backoff_schedule.delivery import (
    Delivered,
    DeliveryPolicy,
    Permanent,
    PostgresOutbox,
    SQLiteOutbox,
    Transient,
    Worker,
    claiming,
)
from tests.postgres_server import PostgresServer

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess
    from multiprocessing.synchronize import Event

    from backoff_schedule.delivery import Claim, Outbox, Outcome

FORK = multiprocessing.get_context("forkserver")
POLICY = DeliveryPolicy(
    create_backoff(steps=[0.02, 0.05, 0.1, 0.1, 0.1, 0.1, 0.1]),
    timeout=0.5,
    breaker=CircuitBreaker(min_attempts=20, cooldown=0.2, probe_timeout=1, window=5),
)
ENDPOINTS = ("acme", "bob", "cy", "dan")
# So that a dead worker's rows are due again within a second.
MARGIN = 0.3
COUNTERS = ("delivered", "retry", "failed", "dead", "lost")


def outbox_at(place: tuple[str, str]) -> Outbox:
    kind, where = place
    return SQLiteOutbox(where) if kind == "sqlite" else PostgresOutbox(where)


def work(place: tuple[str, str], sent: str, margin: float, ready: Event) -> None:
    """One worker process, whose sends are written down before they answer."""
    claiming.MARGIN = margin
    log = os.open(sent, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    chance = random.Random(os.getpid())

    outcomes: list[Outcome] = [
        Delivered(status=200),
        Transient("busy", status=503),
        Permanent("no", status=400),
    ]

    def send(claim: Claim) -> Outcome:
        (outcome,) = chance.choices(outcomes, [75, 20, 5])
        time.sleep(chance.random() * 0.01)
        os.write(log, f"{claim.id} {claim.attempt} {type(outcome).__name__}\n".encode())
        return outcome

    with closing(outbox_at(place)) as outbox:
        worker = Worker(outbox, send, POLICY, concurrency=16, poll="50ms")
        # A signal that comes before the worker runs would end the process, and not the worker.
        signal.signal(signal.SIGTERM, lambda *_: worker.stop())
        ready.set()
        worker.run_forever()


def stress(
    place: tuple[str, str], folder: Path, kills: int, events: int, processes: int = 3
) -> Counter[str]:
    """Kill `kills` workers while `events` are enqueued and delivered; what became of them.

    Raises `AssertionError` where a promise is broken.
    """
    sent = str(folder / "sent.log")
    chance = random.Random(kills)
    FORK.set_forkserver_preload([__name__])
    # Where nobody is killed, no lease may end: a slow machine is no dead worker.
    margin = MARGIN if kills else claiming.MARGIN
    ready = [FORK.Event() for _ in range(processes)]
    workers = [_started(place, sent, margin, each) for each in ready]
    with closing(outbox_at(place)) as outbox:
        killed = enqueued = 0
        while killed < kills or enqueued < events:
            # The events arrive over the whole of the killing.
            while enqueued < events and enqueued * kills <= events * (killed + 1):
                outbox.enqueue(ENDPOINTS[enqueued % 4], b"x", event_id=f"e{enqueued}")
                enqueued += 1
            time.sleep(chance.random() * 0.15)
            if killed < kills:
                victim = chance.randrange(len(workers))
                pid = workers[victim].pid
                assert pid is not None
                os.kill(pid, signal.SIGKILL)
                workers[victim].join()
                ready[victim] = FORK.Event()
                workers[victim] = _started(place, sent, margin, ready[victim])
                killed += 1
        _wait_until_all_ended(outbox)
        for worker, began in zip(workers, ready, strict=True):
            assert began.wait(30)
            worker.terminate()
        for worker in workers:
            worker.join(30)
        exits = [worker.exitcode for worker in workers]
        assert exits == [0] * len(workers), exits
        return _checked(place, outbox, sent, events)


def _started(place: tuple[str, str], sent: str, margin: float, ready: Event) -> BaseProcess:
    process = FORK.Process(target=work, args=(place, sent, margin, ready), daemon=True)
    process.start()
    return process


def _wait_until_all_ended(outbox: Outbox) -> None:
    patient_until = time.monotonic() + 120
    while outbox.list(state="pending", limit=1) or outbox.list(state="sending", limit=1):
        if time.monotonic() > patient_until:
            stuck = outbox.list(state="pending", limit=3) + outbox.list(state="sending", limit=3)
            raise AssertionError(f"stuck: {stuck}, {outbox.endpoints()}")
        time.sleep(0.1)


def _checked(place: tuple[str, str], outbox: Outbox, sent: str, events: int) -> Counter[str]:
    states: Counter[str] = Counter()
    history: Counter[str] = Counter()
    sends: Counter[int] = Counter()
    delivered = set()
    for line in Path(sent).read_text().splitlines():
        row_id, attempt, outcome = line.split()
        assert 1 <= int(attempt) <= POLICY.max_attempts, line
        sends[int(row_id)] += 1
        if outcome == "Delivered":
            delivered.add(int(row_id))
    rows, after = 0, 0
    while page := outbox.list(limit=500, after=after):
        for row in page:
            rows += 1
            after = row.id
            states[row.state] += 1
            assert row.state in ("delivered", "failed", "dead"), row
            assert row.attempts <= POLICY.max_attempts, row
            assert sends[row.id] <= row.attempts, row
            assert (row.state != "delivered") or row.id in delivered, row
            tries = outbox.history(row.event_id, row.endpoint)
            assert [entry.number for entry in tries] == list(range(1, row.attempts + 1)), row
            history.update(entry.outcome for entry in tries)
            # A row that was lost at its last try has no try that ended it.
            ends = {"delivered": "delivered", "failed": "failed", "dead": "dead"}
            last = "lost" if row.reason == "lost" else ends[row.state]
            assert tries[-1].outcome == last, (row, tries)
    assert rows == events
    lost_dead = history["lost"] and sum(
        row.reason == "lost" for row in outbox.list(state="dead", limit=10**6)
    )
    counted = _counters(place)
    assert counted["delivered"] == history["delivered"]
    assert counted["retry"] == history["retry"]
    assert counted["failed"] == history["failed"]
    assert counted["lost"] == history["lost"]
    assert counted["dead"] == history["dead"] + lost_dead
    return states + Counter({"lost tries": history["lost"]})


def _counters(place: tuple[str, str]) -> dict[str, Any]:
    statement = (
        "SELECT sum(delivered), sum(retried), sum(failed), sum(dead), sum(lost) FROM backoff_gates"
    )
    kind, where = place
    connection: Any = sqlite3.connect(where) if kind == "sqlite" else psycopg.connect(where)
    with closing(connection):
        row = connection.execute(statement).fetchone()
    return dict(zip(COUNTERS, row, strict=True))


def prepare(place: tuple[str, str]) -> None:
    """Make the tables and the endpoints."""
    with closing(outbox_at(place)) as outbox:
        outbox.migrate()
        for name in ENDPOINTS:
            outbox.add_endpoint(name, max_in_flight=8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--events", type=int, default=4000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, PostgresServer() as server:
        for kind, where in (("sqlite", f"{folder}/app.db"), ("postgres", server.conninfo)):
            place = (kind, where)
            own = Path(folder) / kind
            own.mkdir()
            started = time.monotonic()
            prepare(place)
            became = stress(place, own, options.kills, options.events)
            seconds = time.monotonic() - started
            told = ", ".join(f"{count} {what}" for what, count in sorted(became.items()))
            print(f"{kind}: {options.kills} kills in {seconds:.0f} s, nothing lost: {told}")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
