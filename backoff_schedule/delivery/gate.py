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

    `successes` are those of a closed breaker that its state does not have yet. They are most of
    what there is, and taking each in would take longer than all else here. They belong to one
    bucket of its window, that of `successes_at`, and are taken in before anything is asked of it.
    """

    endpoint_id: int
    disabled_at: int | None
    status: str
    generation: int
    probe_id: int | None
    successes: int
    successes_at: int | None
    _circuit: str
    _failures: str
    is_locked: int = 1

    disabled_reason: str | None = None
    changed: bool = False
    counts: defaultdict[str, float] = field(default_factory=_zeros)
    events: list[tuple[str, str, str | None]] = field(default_factory=list)
    _counting_at: int | None = None
    _state: CircuitState | None = None
    _window: WindowState | None = None

    @property
    def state(self) -> CircuitState:
        """The breaker's state. It is only read where somebody asks, since most gates are closed."""
        if self._state is None:
            self._state = CircuitState.from_dict(json.loads(self._circuit))
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
        if breaker is not None and self.probe_id == delivery_id:
            self._move(breaker.after_cancel(self.state, Permit(self.generation), now))

    def count(self, claim: Claim, outcome: Outcome, decision: Decision, now_us: int) -> None:
        """Take one result in."""
        self.changed = True
        now = now_us / 1_000_000
        self.counts["tries"] += 1
        self.counts["seconds"] += max(0, now_us - to_microseconds(claim.claimed_at)) / 1_000_000
        self._count_end(claim, decision)
        self._feed_breaker(claim, outcome, now_us)
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
        if self.successes_at is not None:
            state["successes"], state["successes_at"] = self.successes, self.successes_at
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

    def _feed_breaker(self, claim: Claim, outcome: Outcome, now_us: int) -> None:
        breaker = claim.policy.breaker
        # The result of another generation changes nothing.
        if breaker is None or claim.generation != self.generation:
            return
        answered = isinstance(outcome, Delivered) or (
            isinstance(outcome, Permanent) and outcome.status is not None
        )
        if answered and self.status == "closed":
            self._count_success(breaker, now_us)
            return
        self._take_successes_in(breaker)
        state, permit, now = self.state, Permit(self.generation), now_us / 1_000_000
        if answered:
            self._move(breaker.after_success(state, permit, now))
        elif isinstance(outcome, Permanent):
            self._move(breaker.after_cancel(state, permit, now))
        else:
            self._move(breaker.after_failure(state, permit, now))

    def _count_success(self, breaker: CircuitBreaker, now_us: int) -> None:
        if self._counting_at != now_us:
            self._counting_at = now_us
            if self.successes_at is not None and not breaker.counts_together(
                self.successes_at / 1_000_000, now_us / 1_000_000
            ):
                self._take_successes_in(breaker)
        if self.successes_at is None:
            self.successes_at = now_us
        self.successes += 1

    def _take_successes_in(self, breaker: CircuitBreaker) -> None:
        if self.successes_at is not None:
            at, times = self.successes_at / 1_000_000, self.successes
            self.successes_at, self.successes = None, 0
            self._move(breaker.after_success(self.state, Permit(self.generation), at, times))

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


_EVENTS = {
    ("closed", "open"): "opened",
    ("half_open", "open"): "opened",
    ("open", "half_open"): "half_open",
    ("vacant", "half_open"): "half_open",
    ("half_open", "closed"): "closed",
}
