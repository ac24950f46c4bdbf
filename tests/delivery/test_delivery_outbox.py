"""Any interleaving of what workers and operators do keeps the promises, on both databases."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis.stateful as stateful
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from backoff_schedule import CircuitBreaker, create_backoff
from backoff_schedule.delivery import (
    Delivered,
    DeliveryPolicy,
    Permanent,
    PostgresOutbox,
    SQLiteOutbox,
    Transient,
)
from tests.delivery.conftest import Clock, every_row
from tests.postgres_server import fresh_schema, shared_server

if TYPE_CHECKING:
    from backoff_schedule.delivery import Claim, Delivery, Outbox

POLICY = DeliveryPolicy(
    create_backoff(steps=[5, 10]),
    timeout=20,
    deadline=300,
    breaker=CircuitBreaker(threshold=0.7, min_attempts=4, cooldown=15, probe_timeout=10),
)
NAMES = ("acme", "bob")
OUTCOMES = [Delivered(status=200), Transient("busy", status=503), Permanent("no", status=400)]
LIVE = ("pending", "sending")


class AnyInterleaving(stateful.RuleBasedStateMachine):
    """A worker is a set of claims; a claim may be settled late, twice, or never."""

    place: tuple[str, str]
    outbox: Outbox

    @stateful.initialize()
    def open(self) -> None:
        self.clock = Clock()
        self.held: list[Claim] = []
        self.late: list[Claim] = []
        self.due: dict[int, Any] = {}
        self.enqueued = 0
        self.outbox = self.opened()
        self.outbox.migrate()
        self.outbox.add_endpoint("acme", max_in_flight=2)
        self.outbox.add_endpoint("bob", max_in_flight=None)

    def opened(self) -> Outbox:
        raise NotImplementedError

    @stateful.rule(name=st.sampled_from(NAMES), ttl=st.sampled_from([None, 30]))
    def enqueue(self, name: str, ttl: int | None) -> None:
        self.outbox.enqueue(name, b"x", event_id=f"e{self.enqueued}", ttl=ttl)
        self.enqueued += 1

    @stateful.rule(limit=st.integers(1, 5), lost=st.booleans())
    def claim(self, limit: int, lost: bool) -> None:
        before = {row.id: row for row in self.rows()}
        shut = {endpoint.name for endpoint in self.outbox.endpoints() if endpoint.disabled_at}
        claims = self.outbox.claim(limit, POLICY, lost=lost)
        assert len(claims) <= limit
        assert sum(claim.lost for claim in claims) <= (1 if lost else 0)
        for claim in claims:
            row = before[claim.id]
            assert row.state in LIVE
            assert claim.endpoint not in shut
            assert row.next_attempt_at is not None
            # Never early, never past the budget, and never while somebody's lease lasts.
            assert row.next_attempt_at <= self.clock.now
            assert claim.lost == (row.state == "sending")
            assert claim.attempt == row.attempts + 1 <= POLICY.max_attempts
            assert row.expires_at is None or self.clock.now < row.expires_at
            assert claim.deadline_at is not None
            assert self.clock.now <= claim.deadline_at
            if claim.lost:
                self.late += [held for held in self.held if held.id == claim.id]
                self.held = [held for held in self.held if held.id != claim.id]
        # A row whose lease ended may end unsent when it is claimed again.
        sending = {row.id for row in self.rows() if row.state == "sending"}
        self.late += [held for held in self.held if held.id not in sending]
        self.held = [held for held in self.held if held.id in sending] + claims

    @stateful.precondition(lambda self: self.held)
    @stateful.rule(data=st.data(), outcome=st.sampled_from(OUTCOMES))
    def settle(self, data: st.DataObject, outcome: Any) -> None:
        claim = data.draw(st.sampled_from(self.held))
        self.held.remove(claim)
        (decision,) = self.outbox.settle([(claim, outcome)])
        assert decision is not None
        if decision.next_attempt_at is not None:
            wait = (decision.next_attempt_at - self.clock.now).total_seconds()
            assert wait == POLICY.schedule.delay(claim.attempt)
        self.late.append(claim)

    @stateful.precondition(lambda self: self.late)
    @stateful.rule(data=st.data(), outcome=st.sampled_from(OUTCOMES))
    def settle_late(self, data: st.DataObject, outcome: Any) -> None:
        claim = data.draw(st.sampled_from(self.late))
        before = self.outbox.list(limit=1000)
        assert self.outbox.settle([(claim, outcome)]) == [None]
        self.outbox.release([claim])
        assert self.outbox.list(limit=1000) == before

    @stateful.precondition(lambda self: self.held)
    @stateful.rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        claim = data.draw(st.sampled_from(self.held))
        self.held.remove(claim)
        self.outbox.release([claim])
        row = self.outbox.get(claim.event_id, claim.endpoint)
        assert row is not None
        assert row.attempts == claim.attempt - 1

    @stateful.rule(seconds=st.sampled_from([0.000001, 1, 5, 16, 31, 400]))
    def time_goes_on(self, seconds: float) -> None:
        self.clock.forward(seconds)

    @stateful.rule(name=st.sampled_from(NAMES), enabled=st.booleans())
    def switch(self, name: str, enabled: bool) -> None:
        if enabled:
            self.outbox.enable(name)
        else:
            self.outbox.disable(name, reason="maintenance")

    @stateful.rule(ttl=st.sampled_from([None, 60]), limit=st.sampled_from([1, None]))
    def redrive(self, ttl: int | None, limit: int | None) -> None:
        ended = {row.id for row in self.rows() if row.state in ("dead", "failed")}
        expired = {row.id for row in self.rows() if row.state == "expired"}
        moved = set(self.outbox.redrive(limit=limit, ttl=ttl))
        allowed = ended | expired if ttl else ended
        assert moved <= allowed
        assert len(moved) == (len(allowed) if limit is None else min(1, len(allowed)))

    def rows(self) -> list[Delivery]:
        return self.outbox.list(limit=1000)

    @stateful.invariant()
    def nothing_is_lost_and_every_try_is_in_the_history(self) -> None:
        if not hasattr(self, "held"):
            return
        rows = self.rows()
        assert len(rows) == self.enqueued
        counted: Counter[str] = Counter()
        for row in rows:
            tries = self.outbox.history(row.event_id, row.endpoint)
            counted.update(entry.outcome for entry in tries)
            own = [entry.number for entry in tries if entry.redrive == row.redrives]
            # The try that is under way has no entry yet.
            ended = row.attempts - (row.state == "sending")
            if row.state == "sending" and len(own) == row.attempts:
                # Lost, released, and not claimed again yet.
                ended = row.attempts
            assert own == list(range(1, ended + 1)), (row, tries)
            assert row.attempts <= POLICY.max_attempts
            assert (row.finished_at is None) == (row.state in LIVE)
        (gates,) = every_row(
            self.place,
            "SELECT sum(delivered), sum(retried), sum(failed), sum(lost), sum(dead) "
            "FROM backoff_gates",
        )
        wanted = [counted[name] for name in ("delivered", "retry", "failed", "lost")]
        assert list(gates[:4]) == wanted
        # Rows die unsent too: without a try, past their deadline.
        assert gates[4] >= counted["dead"]

    def teardown(self) -> None:
        if hasattr(self, "outbox"):
            self.outbox.close()


class OnSQLite(AnyInterleaving):
    def opened(self) -> Outbox:
        # In memory where that is possible: each step is a commit that waits for the disk.
        memory = Path("/dev/shm")
        self.folder = tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)
        self.place = ("sqlite", f"{self.folder.name}/app.db")
        return SQLiteOutbox(self.place[1], clock=self.clock)

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "folder"):
            self.folder.cleanup()


class OnPostgres(AnyInterleaving):
    def opened(self) -> Outbox:
        self.schema = fresh_schema(shared_server())
        self.place = ("postgres", self.schema.__enter__())
        return PostgresOutbox(self.place[1], clock=self.clock)

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "schema"):
            self.schema.__exit__(None, None, None)


@pytest.mark.parametrize(("machine", "examples"), [(OnSQLite, 20), (OnPostgres, 8)])
def test_any_interleaving_keeps_the_promises(machine: type[AnyInterleaving], examples: int) -> None:
    stateful.run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
