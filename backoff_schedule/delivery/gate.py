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
from dataclasses import dataclass, field

from ..breaker import CircuitState, Permit
from ..lockout import LAST_SECOND
from .endpoints import log
from .model import Delivered, Permanent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..breaker import CircuitBreaker
    from ..database.transaction import Transaction
    from ..failure_window import WindowState
    from .model import Claim, Decision, Outcome
    from .policy import DeliveryPolicy
    from .statements import Statements

_COLUMNS = """
SELECT g.endpoint_id, g.max_in_flight, g.disabled_at, g.enabled_at, g.status, g.generation,
    g.circuit, g.failures, g.probe_id, e.name, e.url, e.secrets, e.policy, LOCKED
FROM {prefix}gates AS g JOIN {prefix}endpoints AS e ON e.id = g.endpoint_id
WHERE g.endpoint_id {among}
"""
_LOCKED = _COLUMNS.replace("LOCKED", "1 AS locked")
_ORDER = "ORDER BY g.endpoint_id\n"
_LOCK = _LOCKED + _ORDER + "{lock}"
# Nothing is decided at such a gate that another claim or a result could be in the way of.
_WIDE_OPEN = "(g.max_in_flight IS NULL AND g.status = 'closed')"
_LOCK_OTHERS = (
    f"SELECT * FROM ({_LOCKED} AND NOT {_WIDE_OPEN} {_ORDER} LOCK) AS locked UNION ALL "
    + _COLUMNS.replace("LOCKED", "0")
    + f" AND {_WIDE_OPEN}"
)
_LOCK_NARROW = _LOCK_OTHERS.replace("LOCK)", "{lock})")
_LOCK_NARROW_FREE = _LOCK_OTHERS.replace("LOCK)", "{lock_free})")


@dataclass(slots=True)
class Gate:
    """A gate. What is set or counted here is written by the store, which has it locked by then."""

    endpoint_id: int
    max_in_flight: int | None
    disabled_at: int | None
    enabled_at: int | None
    status: str
    generation: int
    _circuit: str
    _failures: str
    probe_id: int | None
    name: str
    url: str | None
    secrets: str
    policy: str
    is_locked: int = 1

    disabled_reason: str | None = None
    changed: bool = False
    delivered: int = 0
    retried: int = 0
    failed: int = 0
    dead: int = 0
    expired: int = 0
    lost: int = 0
    tries: int = 0
    seconds: float = 0.0
    redelivered: int = 0
    died_again: int = 0
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
        self.take_successes_in()
        if breaker is not None and self.probe_id == delivery_id:
            self._move(breaker.after_cancel(self.state, Permit(self.generation), now))

    def count(
        self, claim: Claim, outcome: Outcome, decision: Decision, seconds: float, now: float
    ) -> None:
        """Take one result in."""
        self.changed = True
        self.tries += 1
        self.seconds += seconds
        if claim.redrives:
            self._count_redriven(decision)
        if decision.state == "delivered":
            self.delivered += 1
        elif decision.state == "pending":
            self.retried += 1
        elif decision.state == "failed":
            self.failed += 1
        else:
            self.dead += 1
        self._feed_breaker(claim, outcome, now)
        self._feed_auto_disable(claim.policy, outcome, now)
        if isinstance(outcome, Permanent) and outcome.disable_endpoint:
            self.disable(now, "worker", outcome.reason)

    def count_unsent(self, claim: Claim, decision: Decision) -> None:
        """Take a row in that ended before it was sent."""
        self.changed = True
        if claim.redrives:
            self._count_redriven(decision)
        if decision.state == "expired":
            self.expired += 1
        else:
            self.dead += 1

    def count_lost(self) -> None:
        """Take a try in whose lease ended."""
        self.changed = True
        self.lost += 1

    def take_over(self, unlocked: Gate) -> None:
        """Add what a claim has counted at this gate without a lock."""
        self.changed = True
        self.dead += unlocked.dead
        self.expired += unlocked.expired
        self.lost += unlocked.lost
        self.died_again += unlocked.died_again
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

    @property
    def row(self) -> tuple[Any, ...]:
        """What is written: the state as it is, and what is added to each count."""
        return (
            *(self.status, self.until, self.generation, self.circuit, self.failures),
            *(self.probe_id, self.disabled_at, self.disabled_reason),
            *(self.delivered, self.retried, self.failed, self.dead, self.expired),
            *(self.lost, self.tries, self.seconds, self.redelivered, self.died_again),
        )

    @property
    def circuit(self) -> str:
        """The breaker's state as it is stored."""
        return self._circuit if self._state is None else json.dumps(self._state.as_dict())

    @property
    def failures(self) -> str:
        """The auto-disable's window as it is stored."""
        return self._failures if self._window is None else json.dumps(self._window)

    @property
    def until(self) -> int | None:
        """From when on a claim may ask the breaker again, in microseconds; None while closed."""
        until = self.state.until
        return None if until is None else int(min(until, LAST_SECOND) * 1_000_000)

    def _count_redriven(self, decision: Decision) -> None:
        if decision.state == "delivered":
            self.redelivered += 1
        elif decision.state != "pending":
            self.died_again += 1

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


_EVENTS = {
    ("closed", "open"): "opened",
    ("half_open", "open"): "opened",
    ("open", "half_open"): "half_open",
    ("vacant", "half_open"): "half_open",
    ("half_open", "closed"): "closed",
}


def write_gates(transaction: Transaction, statements: Statements, gates: Iterable[Gate]) -> None:
    """Write what has changed, and what happened to whom."""
    changed = []
    unlocked = {}
    for gate in gates:
        gate.take_successes_in()
        if gate.changed and gate.is_locked:
            changed.append(gate)
        elif gate.changed:
            unlocked[gate.endpoint_id] = gate
    if unlocked:
        for gate in locked_gates(transaction, sorted(unlocked)):
            gate.take_over(unlocked[gate.endpoint_id])
            changed.append(gate)
    if not changed:
        return
    statements.write_gates(transaction, changed)
    for gate in changed:
        for event, actor, reason in gate.events:
            log(transaction, gate.name, gate.endpoint_id, event, actor, reason)


def locked_gates(transaction: Transaction, endpoints: list[int]) -> list[Gate]:
    """The gates of these endpoints, locked in ascending order."""
    return [Gate(*row) for row in transaction.rows(_LOCK, (transaction.numbers(endpoints),))]


def gates_to_claim(
    transaction: Transaction, statements: Statements, endpoints: list[int], *, wait: bool
) -> list[Gate]:
    """The gates of these endpoints; the free ones if not `wait`.

    Locked in ascending order, but for those without a cap whose breaker is closed: a claim that
    read one of these before a result or an operator shut it, came before that.
    """
    if not statements.locks_rows:
        return locked_gates(transaction, endpoints)
    numbers = transaction.numbers(endpoints)
    statement = _LOCK_NARROW if wait else _LOCK_NARROW_FREE
    return [Gate(*row) for row in transaction.rows(statement, (numbers, numbers))]
