from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from backoff_schedule.delivery import Outbox
    from tests.cli.outbox.conftest import Told

    Command = Callable[..., Told]


@pytest.fixture
def receiver(outbox: Outbox) -> Iterator[list[int]]:
    """Answers with the statuses in the list, the first one first, and then with 204."""
    statuses: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(statuses.pop(0) if statuses else 204)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    outbox.add_endpoint("acme", url=f"http://127.0.0.1:{server.server_port}/hooks")
    yield statuses
    server.shutdown()
    server.server_close()
    thread.join()


def test_once_sends_what_is_due_and_counts(
    outbox: Outbox, command: Command, receiver: list[int]
) -> None:
    receiver += [404]
    for _ in range(3):
        outbox.enqueue("acme", b"{}")
    told = command("worker", "--once", "--allow-private", "--concurrency", "1")
    assert told.status == 0
    assert told.out == "delivered 2, retried 0, failed 1, dead 0, expired 0, lost 0\n"
    outbox.enqueue("acme", b"{}")
    told = command("worker", "--once", "--allow-private", "--json")
    assert json.loads(told.out)["delivered"] == 1


def test_an_address_that_is_not_public_is_refused_unless_it_is_allowed(
    outbox: Outbox, command: Command, receiver: list[int]
) -> None:
    outbox.enqueue("acme", b"{}")
    assert json.loads(command("worker", "--once", "--json").out)["failed"] == 1


def waits(outbox: Outbox) -> float:
    (row,) = outbox.list()
    (tried,) = outbox.history(row.event_id, "acme")
    assert row.next_attempt_at is not None
    return (row.next_attempt_at - tried.started_at).total_seconds()


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        (("--base", "100s", "--attempts", "3"), 100),
        (("--steps", "200s,300s"), 200),
        (("--preset", "svix"), 5),
    ],
)
def test_the_schedule_is_the_one_of_the_options(
    outbox: Outbox,
    command: Command,
    receiver: list[int],
    options: tuple[str, ...],
    seconds: float,
) -> None:
    receiver += [503]
    outbox.enqueue("acme", b"{}")
    told = command("worker", "--once", "--allow-private", *options)
    assert "retried 1" in told.out
    assert seconds <= waits(outbox) < seconds * 1.2 + 1


def test_so_many_tries_as_were_asked_for(
    outbox: Outbox, command: Command, receiver: list[int]
) -> None:
    receiver += [503]
    outbox.enqueue("acme", b"{}")
    told = command("worker", "--once", "--allow-private", "--attempts", "1")
    assert "dead 1" in told.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--base", "1s"), "A schedule without --steps needs --attempts N"),
        (("--json",), "--json goes with --once"),
        (("--concurrency", "0"), "concurrency (0) needs to be a whole number, 1 or more"),
        (("--concurrency", "many"), "--concurrency ('many') needs to be a whole number"),
        (("--timeout", "soon"), "--timeout ('soon')"),
        (("--seed", "x"), "'--seed' is not an option"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_sent(
    outbox: Outbox, command: Command, options: tuple[str, ...], said: str
) -> None:
    outbox.enqueue("acme", b"{}")
    told = command("worker", *options)
    assert told.status == 2
    assert said in told.err
    assert outbox.list()[0].attempts == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_delivers_until_a_signal_ends_it(
    outbox: Outbox, url: str, receiver: list[int], number: signal.Signals
) -> None:
    outbox.enqueue("acme", b"{}")
    command = [sys.executable, "-m", "backoff_schedule", "outbox", "--db", url, "worker"]
    with subprocess.Popen(
        [*command, "--allow-private", "--poll", "50ms"], stderr=subprocess.PIPE, text=True
    ) as process:
        patient_until = time.monotonic() + 30
        while not outbox.list(state="delivered"):
            assert time.monotonic() < patient_until
            time.sleep(0.02)
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 0
    assert said == "backoff-schedule outbox worker: delivering\n"
