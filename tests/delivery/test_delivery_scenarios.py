"""What a sender of webhooks has to do, over real HTTP, on both databases."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from backoff_schedule import create_backoff
from backoff_schedule.delivery import (
    Counts,
    Delivery,
    DeliveryPolicy,
    HTTPSender,
    SignatureRefused,
    Try,
    Worker,
    verify,
)
from tests.delivery.conftest import STEPS, Clock, every_row
from tests.delivery.receiver import Receiver, Request, answer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from backoff_schedule.delivery import Outbox

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NEW_SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
BODY = b'{"order": 7}'


class MovableClock:
    """The real time, and what a test adds to it."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@pytest.fixture
def live(open_outbox: Callable[..., Outbox]) -> Outbox:
    """On the database's own clock."""
    outbox = open_outbox()
    outbox.migrate()
    return outbox


def waits(*steps: float | str, **options: Any) -> DeliveryPolicy:
    """Without jitter, and without a breaker."""
    return DeliveryPolicy(create_backoff(steps=list(steps)), breaker=None, **options)


@contextlib.asynccontextmanager
async def working(outbox: Outbox, policy: DeliveryPolicy) -> AsyncIterator[Worker]:
    """A worker that runs meanwhile, and drains at the end."""
    async with HTTPSender(allow_private=True) as sender:
        worker = Worker(outbox, sender, policy, concurrency=1)
        running = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            worker.stop()
            await running


async def work(outbox: Outbox, policy: DeliveryPolicy = STEPS) -> Counts:
    """One round of a worker."""
    async with HTTPSender(allow_private=True) as sender:
        return await Worker(outbox, sender, policy).run_once()


def row(outbox: Outbox, event_id: str) -> Delivery:
    found = outbox.get(event_id, "acme")
    assert found is not None
    return found


def outcomes(outbox: Outbox, event_id: str) -> list[str]:
    return [entry.outcome for entry in outbox.history(event_id, "acme")]


async def until_settled(outbox: Outbox, event_id: str, tries: int, patience: float = 10) -> None:
    """Until so many tries are in the history."""
    async with asyncio.timeout(patience):
        while len(outbox.history(event_id, "acme")) < tries:
            await asyncio.sleep(0.01)


async def delivering(
    outbox: Outbox, policy: DeliveryPolicy, *answers: Any, tries: int, longer: float = 0.0
) -> tuple[list[Request], list[Try], Delivery]:
    """Deliver one event to a receiver with these answers, until there were so many tries."""
    async with Receiver(*answers) as there, working(outbox, policy) as worker:
        outbox.add_endpoint("acme", url=there.url, secrets=[SECRET])
        ticket = outbox.enqueue("acme", BODY, type="order.created")
        worker.wake()
        await until_settled(outbox, ticket.event_id, tries)
        await asyncio.sleep(longer)
    history = outbox.history(ticket.event_id, "acme")
    return there.requests, history, row(outbox, ticket.event_id)


# Retries, in time.


def test_a_refusal_is_final_after_one_request(live: Outbox) -> None:
    requests, history, delivery = asyncio.run(
        delivering(live, waits(0.1, 0.1), answer("400 Bad Request"), tries=1, longer=0.5)
    )
    assert len(requests) == 1
    assert [(entry.outcome, entry.status) for entry in history] == [("failed", 400)]
    assert (delivery.state, delivery.reason) == ("failed", "permanent")


def test_a_retry_comes_a_first_step_after_the_failure(live: Outbox) -> None:
    requests, history, delivery = asyncio.run(
        delivering(live, waits(1), answer("503 Busy"), answer("200 OK"), tries=2)
    )
    assert 0.8 <= requests[1].at - requests[0].at <= 1.5
    assert [entry.outcome for entry in history] == ["retry", "delivered"]
    assert (delivery.state, delivery.attempts) == ("delivered", 2)


def test_a_retry_comes_no_sooner_than_the_receiver_asks(live: Outbox) -> None:
    busy = answer("429 Too Many Requests", "Retry-After: 2")
    requests, history, _ = asyncio.run(
        delivering(live, waits(0.1), busy, answer("200 OK"), tries=2)
    )
    assert 1.8 <= requests[1].at - requests[0].at <= 3.0
    assert [entry.outcome for entry in history] == ["retry", "delivered"]


def test_an_endpoint_s_own_schedule_and_budget_hold(live: Outbox) -> None:
    async def main() -> tuple[list[Request], str]:
        own = {"schedule": {"steps": ["500ms", "500ms"]}, "max_attempts": 2}
        async with Receiver(answer("500 Oh")) as there, working(live, waits("1h")) as worker:
            live.add_endpoint("acme", url=there.url, policy=own)
            ticket = live.enqueue("acme", BODY)
            worker.wake()
            await until_settled(live, ticket.event_id, 2)
        return there.requests, ticket.event_id

    requests, event_id = asyncio.run(main())
    assert 0.5 <= requests[1].at - requests[0].at <= 1.5
    assert outcomes(live, event_id) == ["retry", "dead"]


def test_the_last_failure_makes_a_dead_letter(live: Outbox, place: tuple[str, str]) -> None:
    requests, history, delivery = asyncio.run(
        delivering(
            live,
            waits(0.1, 0.1, max_attempts=2),
            answer("500 Oh", body=b"down"),
            tries=2,
            longer=0.4,
        )
    )
    assert len(requests) == 2
    assert [entry.outcome for entry in history] == ["retry", "dead"]
    assert (delivery.state, delivery.reason) == ("dead", "attempts")
    assert delivery.last_error == "500 Oh: down"
    letters = every_row(place, "SELECT event_id, last_status FROM backoff_dead_letters")
    assert letters == [(delivery.event_id, 500)]


def test_a_receiver_that_is_too_slow_has_failed(live: Outbox) -> None:
    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(2)
        writer.write(answer("200 OK"))

    requests, (entry,), delivery = asyncio.run(
        delivering(live, waits("1h", timeout="200ms"), slow, tries=1, longer=0.3)
    )
    assert len(requests) == 1
    assert (entry.outcome, entry.error) == ("retry", "timed out after 200ms")
    assert entry.seconds is not None
    assert 0.2 <= entry.seconds < 1.5
    assert (delivery.state, delivery.attempts) == ("pending", 1)


@pytest.mark.parametrize(
    ("status", "policy", "known"),
    [
        ("204 No Content", waits(0.1), ["delivered"]),
        ("400 Bad", waits(0.1, max_attempts=1), ["failed"]),
        ("500 Oh", waits(0.1), ["retry", "dead"]),
    ],
)
def test_what_became_of_a_try_is_one_plain_word(
    live: Outbox, status: str, policy: DeliveryPolicy, known: list[str]
) -> None:
    _, history, _ = asyncio.run(delivering(live, policy, answer(status), tries=len(known)))
    assert [entry.outcome for entry in history] == known


# One event, one id.


def test_an_event_that_is_enqueued_twice_is_sent_once_and_signed(live: Outbox) -> None:
    async def main() -> list[Request]:
        async with Receiver() as there, working(live, waits(0.1)) as worker:
            live.add_endpoint("acme", url=there.url, secrets=[SECRET])
            first = live.enqueue("acme", BODY, event_id="order-1")
            second = live.enqueue("acme", BODY, event_id="order-1")
            assert (first.event_id, first.created) == (second.event_id, True)
            assert not second.created
            worker.wake()
            await until_settled(live, "order-1", 1)
            await asyncio.sleep(0.3)
        return there.requests

    (request,) = asyncio.run(main())
    assert request.headers["webhook-id"] == "order-1"
    assert verify([SECRET], request.headers, request.body).event_id == "order-1"


def test_two_events_are_two_requests(live: Outbox) -> None:
    async def main() -> list[Request]:
        async with Receiver() as there, working(live, waits(0.1)) as worker:
            live.add_endpoint("acme", url=there.url)
            live.enqueue("acme", b'{"id": 1}', event_id="order-1")
            live.enqueue("acme", b'{"id": 2}', event_id="order-2")
            worker.wake()
            await until_settled(live, "order-1", 1)
            await until_settled(live, "order-2", 1)
        return there.requests

    sent = {request.headers["webhook-id"]: request.body for request in asyncio.run(main())}
    assert sent == {"order-1": b'{"id": 1}', "order-2": b'{"id": 2}'}


# What is too late.


@pytest.mark.parametrize(("ttl", "state", "count"), [("1s", "expired", 0), ("10m", "delivered", 1)])
def test_an_event_is_sent_only_within_its_ttl(
    open_outbox: Callable[..., Outbox], ttl: str, state: str, count: int
) -> None:
    clock = MovableClock()
    outbox = open_outbox(clock=clock)
    outbox.migrate()

    async def main() -> list[Request]:
        async with Receiver() as there:
            outbox.add_endpoint("acme", url=there.url)
            outbox.enqueue("acme", BODY, event_id="e", ttl=ttl)
            clock.ahead = timedelta(seconds=2)
            async with working(outbox, waits(0.1)), asyncio.timeout(10):
                while row(outbox, "e").state in ("pending", "sending"):
                    await asyncio.sleep(0.01)
            return there.requests

    assert len(asyncio.run(main())) == count
    assert row(outbox, "e").state == state


def test_nothing_is_sent_past_the_deadline_though_tries_are_left(
    open_outbox: Callable[..., Outbox],
) -> None:
    clock = MovableClock()
    outbox = open_outbox(clock=clock)
    outbox.migrate()

    async def main() -> list[Request]:
        policy = waits("30s", max_attempts=5, deadline="5m")
        async with Receiver(answer("503 Busy")) as there, working(outbox, policy) as worker:
            outbox.add_endpoint("acme", url=there.url)
            outbox.enqueue("acme", BODY, event_id="e")
            worker.wake()
            await until_settled(outbox, "e", 1)
            clock.ahead = timedelta(minutes=10)
            worker.wake()
            async with asyncio.timeout(10):
                while row(outbox, "e").state == "pending":
                    await asyncio.sleep(0.01)
            return there.requests

    assert len(asyncio.run(main())) == 1
    delivery = row(outbox, "e")
    assert (delivery.state, delivery.reason, delivery.attempts) == ("dead", "deadline", 1)


# Awkward receivers. The time is the test's here.


class Shop:
    """A receiver's application: it checks signatures, and takes each event once."""

    def __init__(self, *secrets: str, clock: Clock) -> None:
        self.secrets = secrets
        self.clock = clock
        self.orders: list[str] = []

    def takes(self, request: Request) -> bool:
        event_id = verify(self.secrets, request.headers, request.body, now=self.clock.now).event_id
        if event_id in self.orders:
            return False
        self.orders.append(event_id)
        return True


def test_a_connection_that_drops_after_the_receiver_s_commit_repeats_the_event(
    outbox: Outbox, clock: Clock
) -> None:
    shop = Shop(SECRET, clock=clock)

    async def commit_and_drop(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert shop.takes(there.requests[-1])
        writer.transport.abort()

    async def know_it(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert not shop.takes(there.requests[-1])
        writer.write(answer("200 OK"))

    there = Receiver(commit_and_drop, know_it)

    async def main() -> None:
        async with there:
            outbox.add_endpoint("acme", url=there.url, secrets=[SECRET])
            outbox.enqueue("acme", BODY, event_id="order-1")
            assert await work(outbox) == Counts(retried=1)
            clock.forward(10)
            assert await work(outbox) == Counts(delivered=1)

    asyncio.run(main())
    assert shop.orders == ["order-1"]
    first, second = there.requests
    # Signed anew, at the time of each try.
    stamps = [int(request.headers["webhook-timestamp"]) for request in (first, second)]
    assert stamps[1] - stamps[0] == 10
    assert first.headers["webhook-signature"] != second.headers["webhook-signature"]
    assert outcomes(outbox, "order-1") == ["retry", "delivered"]


def test_the_same_signed_request_twice_is_one_order(outbox: Outbox, clock: Clock) -> None:
    shop = Shop(SECRET, clock=clock)

    async def main() -> list[Request]:
        async with Receiver() as there, HTTPSender(allow_private=True) as sender:
            outbox.add_endpoint("acme", url=there.url, secrets=[SECRET])
            outbox.enqueue("acme", BODY, event_id="order-1")
            # A worker that is thought dead, and the one that has taken over.
            (claim,) = outbox.claim(1, STEPS)
            await sender(claim)
            await sender(claim)
            return there.requests

    first, second = asyncio.run(main())
    assert first.headers == second.headers
    assert [shop.takes(first), shop.takes(second)] == [True, False]
    with pytest.raises(SignatureRefused):
        verify([SECRET], first.headers, first.body + b" ", now=clock.now)


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
@pytest.mark.parametrize(
    ("fields", "wait"),
    [
        (["Retry-After: 120"], 120),
        (
            ["Retry-After: Tue, 01 Jan 2030 12:05:00 GMT", "Date: Tue, 01 Jan 2030 12:00:00 GMT"],
            300,
        ),
        # The receiver's clock is a year behind: what counts is the difference.
        (
            ["Retry-After: Mon, 01 Jan 2029 12:05:00 GMT", "Date: Mon, 01 Jan 2029 12:00:00 GMT"],
            300,
        ),
        # Shorter than the schedule's own first step, or no time at all.
        (["Retry-After: 1"], 10),
        (["Retry-After: when we are done"], 10),
        (["Retry-After: -1"], 10),
        ([], 10),
        # A year is more than anybody waits: the limit of a policy is a day.
        (["Retry-After: 31536000"], 86400),
        (["Retry-After: Wed, 01 Jan 2031 12:00:00 GMT"], 86400),
    ],
)
def test_a_pause_is_a_floor_within_the_limit(
    outbox: Outbox, clock: Clock, status: str, fields: list[str], wait: float
) -> None:
    async def main() -> None:
        async with Receiver(answer(status, *fields)) as there:
            outbox.add_endpoint("acme", url=there.url)
            outbox.enqueue("acme", BODY, event_id="e")
            assert await work(outbox) == Counts(retried=1)

    asyncio.run(main())
    assert row(outbox, "e").next_attempt_at == clock.after(wait)


def test_an_endpoint_that_is_down_for_several_tries_gets_its_event_in_the_end(
    outbox: Outbox, clock: Clock
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]

    async def main() -> list[Request]:
        outbox.add_endpoint("acme", url=f"http://127.0.0.1:{port}/hook")
        outbox.enqueue("acme", BODY, event_id="e")
        for step in (10, 20, 40):
            assert await work(outbox) == Counts(retried=1)
            assert row(outbox, "e").next_attempt_at == clock.after(step)
            assert "cannot be reached" in str(row(outbox, "e").last_error)
            clock.forward(step - 0.001)
            assert await work(outbox) == Counts()
            clock.forward(0.001)
        async with Receiver(port=port) as there:
            assert await work(outbox) == Counts(delivered=1)
            return there.requests

    (request,) = asyncio.run(main())
    assert request.headers["webhook-id"] == "e"
    assert outcomes(outbox, "e") == ["retry", "retry", "retry", "delivered"]


def test_a_poison_event_is_redriven_under_its_own_id_once_the_receiver_is_repaired(
    outbox: Outbox, clock: Clock
) -> None:
    async def main() -> list[Request]:
        unreadable = answer("422 Unprocessable", body=b"no field 'order'")
        async with Receiver(unreadable, answer("200 OK")) as there:
            outbox.add_endpoint("acme", url=there.url)
            outbox.enqueue("acme", BODY, event_id="e")
            assert await work(outbox) == Counts(failed=1)
            assert row(outbox, "e").last_error == "422 Unprocessable: no field 'order'"
            clock.forward(3600)
            assert await work(outbox) == Counts()
            # The receiver has learned to read it.
            assert outbox.redrive(endpoint="acme") == [row(outbox, "e").id]
            assert await work(outbox) == Counts(delivered=1)
            return there.requests

    first, second = asyncio.run(main())
    assert (first.headers["webhook-id"], first.body) == (second.headers["webhook-id"], second.body)
    assert [(entry.redrive, entry.outcome) for entry in outbox.history("e", "acme")] == [
        (0, "failed"),
        (1, "delivered"),
    ]


def test_an_endpoint_that_is_gone_is_left_alone_until_somebody_enables_it(outbox: Outbox) -> None:
    async def main() -> None:
        async with Receiver(answer("410 Gone"), answer("200 OK")) as there:
            outbox.add_endpoint("acme", url=there.url)
            outbox.enqueue("acme", BODY, event_id="first")
            assert await work(outbox) == Counts(failed=1)
            outbox.enqueue("acme", BODY, event_id="second")
            assert await work(outbox) == Counts()
            assert len(there.requests) == 1
            (endpoint,) = outbox.endpoints()
            assert endpoint.disabled_at is not None
            assert row(outbox, "second").state == "pending"
            outbox.enable("acme", reason="moved back")
            assert await work(outbox) == Counts(delivered=1)
            assert there.requests[1].headers["webhook-id"] == "second"

    asyncio.run(main())


def test_while_a_secret_is_exchanged_both_sign(outbox: Outbox, clock: Clock) -> None:
    async def main() -> list[Request]:
        async with Receiver() as there:
            outbox.add_endpoint("acme", url=there.url, secrets=[SECRET])
            for number in range(3):
                outbox.enqueue("acme", BODY, event_id=f"e{number}")
                assert await work(outbox) == Counts(delivered=1)
                if number == 0:
                    outbox.rotate_secret("acme", NEW_SECRET, overlap="1 hour")
                clock.forward(1800)
            return there.requests

    def fits(request: Request, secret: str) -> bool:
        try:
            verify([secret], request.headers, request.body, tolerance="1 day", now=clock.now)
        except SignatureRefused:
            return False
        return True

    signers = [
        [secret for secret in (SECRET, NEW_SECRET) if fits(request, secret)]
        for request in asyncio.run(main())
    ]
    assert signers == [[SECRET], [SECRET, NEW_SECRET], [NEW_SECRET]]


def test_a_receiver_that_hangs_costs_the_others_nothing(outbox: Outbox) -> None:
    async def main() -> float:
        async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()

        async with Receiver(hang) as dead, Receiver() as there:
            outbox.add_endpoint("dead", url=dead.url, max_in_flight=2)
            outbox.add_endpoint("acme", url=there.url)
            for number in range(10):
                outbox.enqueue("dead", BODY, event_id=f"d{number}")
                outbox.enqueue("acme", BODY, event_id=f"e{number}")
            policy = waits(10, timeout="2s")
            async with HTTPSender(allow_private=True) as sender:
                worker = Worker(outbox, sender, policy, concurrency=4)
                running = asyncio.create_task(worker.run())
                await there.until_asked(10)
                last = there.requests[-1].at - there.requests[0].at
                worker.stop()
                await running
        return last

    assert asyncio.run(main()) < 1.5
