"""The gate of an endpoint: whether more may be sent to it, and what its results change.

A gate is read under a lock, changed as a value, and written once. The rules of its breaker are
those of `CircuitBreaker`, whose state is stored as it is; there is no second set of them here.
Instants are epoch seconds.

| result | breaker | auto-disable |
|---|---|---|
| delivered | success | success |
| transient | failure | failure |
| permanent, with a status | success: somebody answers | failure |
| permanent, without a status | cancel: it says nothing of the endpoint | failure |
| lost, unsent | nothing, but the probe's place is free | nothing |
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache

from ..breaker import CircuitState, Permit
from ..database.clock import to_microseconds
from ..lockout import LAST_SECOND
from .model import Delivered, Permanent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..breaker import CircuitBreaker
    from ..failure_window import WindowState
    from .model import Claim, Decision, Outcome
    from .policy import DeliveryPolicy

COUNTS = (
    *("delivered", "retried", "failed", "dead", "expired", "lost", "tries", "seconds"),
    *("redelivered", "died_again"),
)
"""What is counted at a gate, by column."""


def _zeros() -> defaultdict[str, float]:
    return defaultdict(int)


@dataclass(slots=True)
class Gate:
    """A gate. What is set or counted here is written by `write_gates`, which locks it if need be.

    One that is not locked has no breaker and no window to look at.
    """

    endpoint_id: int
    disabled_at: int | None
    status: str
    generation: int
    probe_id: int | None
    _circuit: str
    _failures: str
    is_locked: int = 1

    disabled_reason: str | None = None
    changed: bool = False
    counts: defaultdict[str, float] = field(default_factory=_zeros)
    events: list[tuple[str, str, str | None]] = field(default_factory=list)
    # Successes in a row are taken in together: they are most of what there is.
    _successes: int = 0
    _fed: tuple[CircuitBreaker, Permit, float] | None = None
    _state: CircuitState | None = None
    _window: WindowState | None = None

    @property
    def state(self) -> CircuitState:
        """The breaker's state. It is only read where somebody asks, since most gates are closed."""
        if self._state is None:
            self._state = _state(self._circuit)
        return self._state

    def permit(self, policy: DeliveryPolicy, now: float) -> tuple[CircuitState, Permit] | None:
        """The state after one more claim, and its permit; None if the breaker lets nothing through.

        Nothing is changed before `admit` says that it was used.
        """
        if policy.breaker is None:
            return self.state, Permit(self.generation)
        state, permit = policy.breaker.ask(self.state, now)
        return None if permit is None else (state, permit)

    def admit(self, state: CircuitState, delivery_id: int) -> None:
        """Make a claimed row the probe."""
        self._move(state)
        self.probe_id = delivery_id

    def free_probe(self, breaker: CircuitBreaker | None, delivery_id: int, now: float) -> None:
        """Free the probe's place if this row has it, since there will be no result."""
        self.take_successes_in()
        if breaker is not None and self.probe_id == delivery_id:
            self._move(breaker.after_cancel(self.state, Permit(self.generation), now))

    def count(self, claim: Claim, outcome: Outcome, decision: Decision, now_us: int) -> None:
        """Take one result in."""
        self.changed = True
        now = now_us / 1_000_000
        self.counts["tries"] += 1
        self.counts["seconds"] += max(0, now_us - to_microseconds(claim.claimed_at)) / 1_000_000
        self._count_end(claim, decision)
        self._feed_breaker(claim, outcome, now)
        self._feed_auto_disable(claim.policy, outcome, now)
        if isinstance(outcome, Permanent) and outcome.disable_endpoint:
            self.disable(now, "worker", outcome.reason)

    def count_unsent(self, claim: Claim, decision: Decision) -> None:
        """Take a row in that ended before it was sent."""
        self.changed = True
        self._count_end(claim, decision)

    def count_lost(self) -> None:
        """Take a try in whose lease ended."""
        self.changed = True
        self.counts["lost"] += 1

    def take_over(self, unlocked: Gate) -> None:
        """Add what a claim has counted at this gate without a lock."""
        self.changed = True
        for name, count in unlocked.counts.items():
            self.counts[name] += count
        if unlocked.disabled_at is not None and self.disabled_at is None:
            self.disabled_at, self.disabled_reason = unlocked.disabled_at, unlocked.disabled_reason
            self.events += unlocked.events

    def disable(self, now: float, actor: str, reason: str) -> None:
        """Let the rows of this endpoint wait until somebody enables it."""
        if self.disabled_at is not None:
            return
        self.changed = True
        self.disabled_at = round(now * 1_000_000)
        self.disabled_reason = reason
        self.events.append(("disabled", actor, reason))

    def state_to_write(self) -> dict[str, Any]:
        """What is written as it is now, by column, without what is None.

        A breaker, a window or a reason that was not touched is None.
        """
        state: dict[str, Any] = {"status": self.status, "generation": self.generation}
        if self._state is not None:
            state["circuit"] = self._state.as_dict()
        if self._window is not None:
            state["failures"] = self._window
        if self.status != "closed":
            state["until"], state["probe_id"] = self._until(), self.probe_id
        if self.disabled_at is not None:
            state["disabled_at"] = self.disabled_at
            state["disabled_reason"] = self.disabled_reason
        return state

    def _until(self) -> int | None:
        """From when on a claim may ask the breaker again, in microseconds."""
        until = self.state.until
        return None if until is None else int(min(until, LAST_SECOND) * 1_000_000)

    def _count_end(self, claim: Claim, decision: Decision) -> None:
        state = decision.state
        self.counts["retried" if state == "pending" else state] += 1
        if claim.redrives and state != "pending":
            self.counts["redelivered" if state == "delivered" else "died_again"] += 1

    def _feed_breaker(self, claim: Claim, outcome: Outcome, now: float) -> None:
        breaker = claim.policy.breaker
        if breaker is None:
            return
        answered = isinstance(outcome, Delivered) or (
            isinstance(outcome, Permanent) and outcome.status is not None
        )
        if answered:
            fed = self._fed
            if fed is None or fed[0] is not breaker or fed[1].generation != claim.generation:
                self.take_successes_in()
                self._fed = (breaker, Permit(claim.generation), now)
            self._successes += 1
            return
        self.take_successes_in()
        after = breaker.after_cancel if isinstance(outcome, Permanent) else breaker.after_failure
        self._move(after(self.state, Permit(claim.generation), now))

    def take_successes_in(self) -> None:
        """Hand the breaker the successes that were counted since it was last asked."""
        if self._fed is not None:
            (breaker, permit, now), times = self._fed, self._successes
            self._fed, self._successes = None, 0
            self._move(breaker.after_success(self.state, permit, now, times))

    def _feed_auto_disable(self, policy: DeliveryPolicy, outcome: Outcome, now: float) -> None:
        rule = policy.auto_disable
        if rule is None:
            return
        if self._window is None:
            kept = json.loads(self._failures)
            self._window = tuple((int(b), int(a), int(f)) for b, a, f in kept)
        failed = not isinstance(outcome, Delivered)
        self._window = rule.failure_window.add(self._window, now, failed)
        attempts, failures = rule.failure_window.totals(self._window, now)
        if rule.trips(attempts, failures):
            reason = f"{failures} of {attempts} tries failed"
            self.disable(now, "auto_disable", reason)

    def _move(self, state: CircuitState) -> None:
        before = self.state
        if state is before:
            return
        self.changed = True
        self._state = state
        self.status = state.phase
        self.generation = state.generation
        if state.phase != "half_open":
            self.probe_id = None
        event = _EVENTS.get((before.phase, state.phase))
        if event is not None:
            self.events.append((event, "worker", None))


@lru_cache(maxsize=1024)
def _state(circuit: str) -> CircuitState:
    # Endpoints with few results are alike, and reading a state takes as long as changing it.
    return CircuitState.from_dict(json.loads(circuit))


_EVENTS = {
    ("closed", "open"): "opened",
    ("half_open", "open"): "opened",
    ("open", "half_open"): "half_open",
    ("vacant", "half_open"): "half_open",
    ("half_open", "closed"): "closed",
}
