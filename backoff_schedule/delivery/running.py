"""One run of a worker: what is under way, and what comes next.

One loop decides; the database is asked in threads. A slot is taken from the claim until the result
is on its way to the database, so what is claimed and what is not yet written stay bounded.

| polls for rows | when |
|---|---|
| at once | at the start, after `wake()`, after a claim that was full, when a result is written |
| later | when a retry is due that this worker wrote |
| at the latest | `poll` after the last claim |
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from heapq import heappop, heappush
from logging import getLogger

from ..schedule import create_backoff
from . import claiming as leases
from .deciding import before_send
from .sending import Flight, Sender
from .watching import Watched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from datetime import datetime
    from typing import Any

    from .claiming import Claiming
    from .model import Claim, Decision, Outcome
    from .worker import Worker

_logger = getLogger("backoff_schedule")
_PAUSES = create_backoff(base="100ms", max="5s", jitter=0.2)
# A row whose last try was lost has shown after a second that it does not kill its worker at once.
_TRIAL = 1.0
# How long a send that is cancelled may take to end.
_GRACE = 1.0
_SECOND = timedelta(seconds=1)


@dataclass(slots=True)
class Counts:
    """What became of rows.

    Attributes:
        delivered: The receiver has them.
        retried: They failed and wait for another try.
        failed: The receiver will never take them.
        dead: Their budget or their time was over.
        expired: Their ttl was over before they were sent.
        lost: Tries whose lease had ended without a result.
    """

    delivered: int = 0
    retried: int = 0
    failed: int = 0
    dead: int = 0
    expired: int = 0
    lost: int = 0

    def add(self, decision: Decision) -> None:
        """Count one row."""
        name = "retried" if decision.state == "pending" else decision.state
        setattr(self, name, getattr(self, name) + 1)


class Run:
    """One run of a worker. Everything but the database calls happens in the loop's thread."""

    def __init__(self, worker: Worker, *, once: bool) -> None:
        self._worker = worker
        self._outbox = worker.outbox
        self._once = once
        self.loop = asyncio.get_running_loop()
        self.news = asyncio.Event()
        self.counts = Counts()
        self.is_due = True
        self._watched = Watched(worker.on_event)
        self._sender = Sender(worker.send, self._on_result, self._on_end, self._on_crash)
        self._threads = ThreadPoolExecutor(2 if self._outbox.overlaps else 1)
        self._flights: set[Flight] = set()
        self._results: list[tuple[Claim, Outcome]] = []
        self._jobs: set[asyncio.Task[None]] = set()
        self._claims_now = self._settles_now = False
        self._next_poll = self._claim_began = 0.0
        # Whether nothing else was under way when the claim of now began.
        self._quiet = False
        self._retries: list[float] = []
        self._claimed: dict[int, float] = {}
        self._started_at: datetime | None = None
        self._lost: Flight | None = None
        self._crash: BaseException | None = None
        self._failures = 0
        self._away_until = 0.0
        self._seen: set[int] = set()
        self._again: list[Claim] = []
        self._is_done = False

    async def go(self) -> None:
        try:
            while True:
                self._step()
                if self._is_over():
                    break
                alarm = self.loop.call_later(self._patience(), self.news.set)
                await self.news.wait()
                alarm.cancel()
                self.news.clear()
            if self._crash is not None:
                raise self._crash
        finally:
            await asyncio.shield(self._end())

    def _is_over(self) -> bool:
        if self._crash is not None:
            return True
        if not (self._worker._stopping or self._is_done) or self._jobs or self._results:
            return False
        return self._all_settled()

    def _all_settled(self) -> bool:
        """Whether no result is waited for. One that is past its timeout is settled, too."""
        return all(flight.settled for flight in self._flights)

    def _free(self) -> int:
        taken = len(self._flights) + len(self._results)
        return self._worker.concurrency - taken

    def _step(self) -> None:
        now = time.monotonic()
        if now < self._away_until:
            return
        while self._retries and self._retries[0] <= now:
            heappop(self._retries)
            self.is_due = True
        if now >= self._next_poll:
            self.is_due = True
        claims = (
            self.is_due
            and not self._claims_now
            and not self._worker._stopping
            and not self._is_done
            and len(self._flights) < self._worker.concurrency
        )
        settles = bool(self._results) and not self._settles_now
        if self._outbox.overlaps:
            if settles:
                self._begin(self._settle(self._taken()))
            # What is not on its way to the database yet takes the places of what is to come.
            if claims and self._free() > 0:
                self._begin(self._claim(self._asking()))
        elif not self._settles_now and not self._claims_now:
            if claims and settles:
                self._begin(self._settle_and_claim(self._taken(), self._asking()))
            elif claims:
                self._begin(self._claim(self._asking()))
            elif settles:
                self._begin(self._settle(self._taken()))

    def _taken(self) -> list[tuple[Claim, Outcome]]:
        """The results to settle now."""
        batch, self._results = self._results, []
        self._settles_now = True
        return batch

    def _asking(self) -> int:
        """How many rows to claim now."""
        self._claims_now, self.is_due = True, False
        written = not self._results and not (self._settles_now and self._outbox.overlaps)
        self._quiet = self._once and written and self._all_settled()
        self._claim_began = time.monotonic()
        self._next_poll = self._claim_began + self._worker.poll
        return self._free()

    def _patience(self) -> float:
        now = time.monotonic()
        if now < self._away_until:
            return self._away_until - now
        if self._is_done or self._worker._stopping or self._free() < 1:
            return self._worker.poll
        until = self._next_poll
        if self._retries:
            until = min(until, self._retries[0])
        return max(0.0, until - now)

    def _begin(self, job: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(job)
        self._jobs.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._jobs.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._crash = self._crash or task.exception()
        self.news.set()

    # The database

    async def _settle(self, batch: list[tuple[Claim, Outcome]]) -> None:
        try:
            answers = await self._asked(self._outbox.settle, batch)
            self._written(batch, answers)
        except Exception as error:  # noqa: BLE001  (a mistake is raised again)
            self._results = batch + self._results
            self._wait_out(error)
        finally:
            self._settles_now = False

    async def _claim(self, limit: int) -> None:
        worker = self._worker
        try:
            claims, claiming = await self._asked(
                self._outbox._claimed, limit, worker.policy, worker.lease, lost=self._place()
            )
            await self._send(claims, claiming, limit)
        except Exception as error:  # noqa: BLE001  (a mistake is raised again)
            self.is_due = True
            self._wait_out(error)
        finally:
            self._claims_now = False

    async def _settle_and_claim(self, batch: list[tuple[Claim, Outcome]], limit: int) -> None:
        worker = self._worker
        try:
            answers, claims, claiming = await self._asked(
                self._outbox._settled_and_claimed,
                batch,
                limit,
                worker.policy,
                worker.lease,
                lost=self._place(),
            )
        except Exception as error:  # noqa: BLE001  (a mistake is raised again)
            self._results = batch + self._results
            self.is_due = True
            self._wait_out(error)
        else:
            self._written(batch, answers)
            await self._send(claims, claiming, limit)
        finally:
            self._settles_now = self._claims_now = False

    async def _asked(self, ask: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        answer = await self.loop.run_in_executor(self._threads, lambda: ask(*args, **kwargs))
        if self._failures:
            _logger.info("the database is back after %d failures", self._failures)
            self._failures, self._away_until = 0, 0.0
        return answer

    def _wait_out(self, error: Exception) -> None:
        """Wait for a database that is away; a mistake is raised, and ends the run."""
        if self._once or not self._outbox._is_away(error):
            raise error
        self._failures += 1
        if self._failures == 1:
            _logger.warning("the database is away, its results are kept: %s", error)
        self._away_until = time.monotonic() + _PAUSES.delay(self._failures)

    # Sends

    async def _send(self, claims: Sequence[Claim], claiming: Claiming, limit: int) -> None:
        """Begin what was claimed."""
        began = self._claim_began
        for unsent, ended in claiming.ended:
            self._count(unsent, ended)
        self.counts.lost += claiming.lost_tries
        now = time.monotonic()
        if len(claims) >= limit or claiming.ended:
            self.is_due = True
        good, back, late = [], [], []
        for claim in claims:
            if now - began > max(claim.timeout + leases.MARGIN, self._worker.lease or 0.0):
                # Its lease is over, so somebody else may have it.
                continue
            if claim.expires_at is None and claim.deadline_at is None:
                decision = None
            else:
                decision = before_send(claim, claim.claimed_at + (now - began) * _SECOND)
            if decision is not None:
                late.append((claim, decision))
            elif self._worker._stopping or (self._once and self._is_newer(claim)):
                back.append(claim)
            elif self._once and claim.id in self._seen:
                # Kept until the round is over, so that the next claim finds others.
                self._again.append(claim)
                self.is_due = True
            else:
                good.append(claim)
        if self._once:
            self._seen.update(claim.id for claim in good)
            went_on = good or claiming.ended or len(claims) > len(back) + len(late)
            self._is_done = self._is_done or (self._quiet and not went_on)
        for claim in good:
            self._watched.claimed(claim)
        for flight in self._sender.begin(good):
            self._flights.add(flight)
            self._claimed[flight.claim.id] = now
            if flight.claim.lost:
                self._lost = flight
                self.loop.call_later(_TRIAL, self._outlive_trial, flight)
        if late:
            await self._asked(self._outbox.end_unsent, late)
            for unsent, ended in late:
                self._count(unsent, ended)
        if back:
            await self._asked(self._outbox.release, back)
            for claim in back:
                self._watched.released(claim)

    def _count(self, claim: Claim, decision: Decision, outcome: Outcome | None = None) -> None:
        self.counts.add(decision)
        self._watched.ended(claim, decision, outcome)

    def _is_newer(self, claim: Claim) -> bool:
        """Whether a row was enqueued after the first claim of this run."""
        if self._started_at is None:
            self._started_at = claim.claimed_at
        return claim.created_at > self._started_at

    def _place(self) -> bool:
        return self._lost is None

    def _outlive_trial(self, flight: Flight) -> None:
        # One that has ended keeps its place until its result is written: the next lost row could
        # kill the worker before that, and this one would be lost again.
        if self._lost is flight and not flight.settled:
            self._lost = None
            self.is_due = True
            self.news.set()

    def _on_result(self, flight: Flight, answer: Outcome) -> None:
        self._results.append((flight.claim, answer))
        self.news.set()

    def _on_end(self, flight: Flight) -> None:
        self._flights.discard(flight)
        self.news.set()

    def _on_crash(self, error: BaseException) -> None:
        self._crash = self._crash or error
        self.news.set()

    def _written(
        self, batch: Sequence[tuple[Claim, Outcome]], answers: Sequence[Decision | None]
    ) -> None:
        for (claim, outcome), decision in zip(batch, answers, strict=True):
            claimed = self._claimed.pop(claim.id, time.monotonic())
            if self._lost is not None and self._lost.claim is claim:
                self._lost = None
            if decision is None:
                self._watched.late(claim, outcome)
                continue
            self._count(claim, decision, outcome)
            if decision.next_attempt_at is not None:
                wait = (decision.next_attempt_at - claim.claimed_at).total_seconds()
                heappush(self._retries, claimed + wait)
        # A slot, a place under a cap or that of a probe is free.
        self.is_due = True

    async def _end(self) -> None:
        """End what is under way, write what is known, and let the threads go."""
        self._worker._stopping = True
        while self._jobs:
            await asyncio.wait(self._jobs)
        pending = [flight for flight in self._flights if not flight.settled]
        self._sender.cancel(pending)
        tasks = [flight.task for flight in pending if flight.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=_GRACE)
        try:
            last = self._results
            self._written(last, await self._asked(self._outbox.settle, last))
            await self._asked(self._outbox.release, self._again)
        except Exception as error:  # noqa: BLE001  (their leases end, and they are due again)
            _logger.warning("the last results could not be written: %s", error)
        self._threads.shutdown(wait=False)
