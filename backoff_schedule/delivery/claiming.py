"""Claim due rows: lock the gates, count what is in flight, take rows, in this order.

The count and the taking are two statements after the lock, since one statement would count what it
saw before it waited, and go over the cap.
"""

from __future__ import annotations

import json
from dataclasses import replace

from ..database.clock import from_microseconds
from .deciding import before_send
from .endpoints import unexpired
from .gate_rows import gates_to_claim, write_gates
from .model import Claim
from .policy import merged
from .settling import END_UNSENT
from .statements import CLAIMED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from typing import Any

    from ..breaker import CircuitState
    from ..database.transaction import Transaction
    from .gate import Gate
    from .gate_rows import Terms
    from .model import Decision
    from .policy import DeliveryPolicy
    from .ring import Ring
    from .statements import Statements

# Beyond a send's own timeout, so that its result is settled before the lease ends.
MARGIN = 10.0
_MANY = 2**31 - 1

_IN_FLIGHT = """
SELECT endpoint_id, count(*) FROM {prefix}deliveries
WHERE state = 'sending' AND endpoint_id {among} AND next_attempt_at > {as_of}
GROUP BY endpoint_id
"""
_LOST = """
SELECT id, event_id, attempts, redrives, claimed_at FROM {prefix}deliveries
WHERE state = 'sending' AND endpoint_id = ? AND next_attempt_at <= {as_of}
ORDER BY next_attempt_at, id LIMIT 1 {take_free}
"""
# Written once, also where the row was released and is found lost again.
_LOST_TRY = """
INSERT INTO {prefix}tries
    (delivery_id, redrive, number, event_id, started_at, seconds, status, error, outcome)
VALUES (?, ?, ?, ?, ?, NULL, NULL, ?, 'lost')
ON CONFLICT (delivery_id, redrive, number) DO NOTHING
"""
_TAKE_LOST = (
    """
UPDATE {prefix}deliveries
SET attempts = attempts + 1, token = token + 1, next_attempt_at = {now} + ?, claimed_at = {now},
    last_status = NULL, last_error = ?
WHERE id = ?
RETURNING """
    + CLAIMED
    + """
"""
)
LOST_ERROR = "the lease ended without a result: the worker died, or lost the database"


class Claiming:
    """One claim of one store, from the ring to the claims.

    - `policy`: the worker's own, over which an endpoint's options are merged.
    - `lease`: seconds that a lease lasts at least.
    - `lost`: whether a row whose last try was lost may be among them; one at most.

    Afterwards `ended` has the rows that ended unsent and how, and `lost_tries` how many tries
    were found lost.
    """

    def __init__(
        self,
        statements: Statements,
        ring: Ring,
        policies: PolicyCache,
        *,
        limit: int,
        lease: float,
        lost: bool,
    ) -> None:
        self._statements = statements
        self._ring = ring
        self._policies = policies
        self._limit = limit
        self._lease = lease
        self._lost = lost
        self._tries = 0
        self._fresh = False
        self._turn: list[int] = []
        self._lost_turn: list[int] = []
        self._visited: set[int] = set()
        self.is_over = False
        self.ended: list[tuple[Claim, Decision]] = []
        self.lost_tries = 0
        self._ended: list[tuple[Claim, Decision]] = []
        self._lost_tries = 0

    def __call__(self, transaction: Transaction) -> list[Claim]:
        """The claims of one transaction. `is_over` says that there is nothing more to look for."""
        self._ended, self._lost_tries = [], 0
        self._tries += 1
        # Asked again, a gate was in the way for longer than a claim waits: without it, then.
        if self._tries == 1 and not self._found_a_turn(transaction):
            self.is_over = True
            return []
        numbers = (*self._turn, *self._lost_turn)
        gates = gates_to_claim(transaction, self._statements, numbers, wait=self._tries == 1)
        claims = self._claimed(transaction, gates)
        write_gates(transaction, self._statements, (gate for gate, _ in gates))
        return claims

    def written(self) -> None:
        """What the last call did is kept. The next one goes on to endpoints not asked yet."""
        self._tries = 0
        self.ended += self._ended
        self.lost_tries += self._lost_tries

    def _found_a_turn(self, transaction: Transaction) -> bool:
        """Whether there is an endpoint that was not asked yet. "No" is from a fresh look."""
        while True:
            if self._ring.is_stale():
                self._ring.look(transaction)
                self._fresh = True
                self._visited.clear()
            self._turn = self._ring.turn(self._limit, self._visited)
            self._lost_turn = self._ring.lost_turn(self._limit, self._visited) if self._lost else []
            self._visited.update(self._turn, self._lost_turn)
            if self._turn or self._lost_turn:
                return True
            if self._fresh:
                return False
            self._ring.forget()

    def _claimed(
        self, transaction: Transaction, gates: Sequence[tuple[Gate, Terms]]
    ) -> list[Claim]:
        # Before a wait for the lock; what depends on it, the statements compare themselves.
        now = transaction.began()
        rooms = self._rooms(transaction, gates, now)
        claims: list[Claim] = []
        for number in self._lost_turn:
            room = rooms.get(number)
            if room is None or room.places < 1:
                continue
            claims += room.sendable(self._take_lost(transaction, room, now), lost=True)
            if claims:
                self._ring.lost_taken(number)
                break
        open_rooms = [
            rooms[number] for number in self._turn if number in rooms and rooms[number].left > 0
        ]
        found = {gate.endpoint_id for gate, _ in gates}
        drained = found.intersection(self._turn) - {
            number for number, room in rooms.items() if not room.is_shut
        }
        while open_rooms and len(claims) < self._limit:
            wanted = _shares(open_rooms, self._limit - len(claims))
            rows = self._statements.take(
                transaction,
                [(room.gate.endpoint_id, share, room.lease) for room, share in wanted],
            )
            for room, share in wanted:
                own = rows.get(room.gate.endpoint_id, [])
                claims += room.sendable(own)
                if len(own) < share:
                    room.left = 0
                    drained.add(room.gate.endpoint_id)
            open_rooms = [room for room in open_rooms if room.left > 0]
        self._ring.drained(drained)
        for room in rooms.values():
            for claim, decision in room.unsent:
                self._ended.append((claim, decision))
                transaction.change(
                    END_UNSENT, (decision.state, decision.reason, claim.id, claim.token)
                )
        return claims

    def _rooms(
        self, transaction: Transaction, gates: Sequence[tuple[Gate, Terms]], now: int
    ) -> dict[int, Room]:
        """The endpoints to which something may be sent now, and how much."""
        capped = [gate.endpoint_id for gate, terms in gates if terms.max_in_flight is not None]
        flying: dict[int, int] = {}
        if capped:
            flying = {
                row[0]: row[1]
                for row in transaction.rows(_IN_FLIGHT, (transaction.numbers(capped),))
            }
        moment = from_microseconds(now)
        rooms = {}
        for gate, terms in gates:
            if gate.disabled_at is not None:
                continue
            try:
                policy = self._policies.of(terms.policy)
            except (TypeError, ValueError) as refused:
                # One endpoint's mistake does not stop the others; somebody has to mend it.
                gate.disable(now / 1_000_000, "worker", f"its policy is refused: {refused}")
                continue
            room = Room(gate, terms, policy, self._lease, now, moment)
            if terms.max_in_flight is not None:
                room.places = terms.max_in_flight - flying.get(gate.endpoint_id, 0)
                room.left = min(room.left, room.places)
            rooms[gate.endpoint_id] = room
        return rooms

    def _take_lost(self, transaction: Transaction, room: Room, now: int) -> list[tuple[Any, ...]]:
        gate = room.gate
        found = transaction.rows(_LOST, (gate.endpoint_id,))
        if not found:
            return []
        row_id, event_id, attempts, redrives, claimed_at = found[0]
        lost = (row_id, redrives, attempts, event_id, claimed_at, LOST_ERROR)
        if transaction.change(_LOST_TRY, lost):
            gate.count_lost()
            self._lost_tries += 1
        gate.free_probe(room.policy.breaker, row_id, now / 1_000_000)
        if not room.ask():
            return []
        return transaction.rows(_TAKE_LOST, (room.lease, LOST_ERROR, row_id))


class Room:
    """How much may be sent to one endpoint in one claim."""

    def __init__(
        self,
        gate: Gate,
        terms: Terms,
        policy: DeliveryPolicy,
        lease: float,
        now: int,
        moment: datetime,
    ) -> None:
        self.gate = gate
        self.terms = terms
        self.policy = policy
        self.lease = round(max(policy.timeout + MARGIN, lease) * 1_000_000)
        # What the cap leaves, and what the breaker leaves of that.
        self.places = self.left = _MANY
        self.unsent: list[tuple[Claim, Decision]] = []
        self._now = now
        self._moment = moment
        self._secrets = () if terms.secrets == "[]" else unexpired(json.loads(terms.secrets), now)
        self._probe: CircuitState | None = None
        self.is_shut = not self.ask()

    def ask(self) -> bool:
        """Ask the breaker. Half-open, one row at a time may become the probe."""
        self._probe = None
        if self.policy.breaker is None or self.gate.status == "closed":
            return True
        answer = self.gate.permit(self.policy, self._now / 1_000_000)
        if answer is None:
            self.left = 0
            return False
        self._probe = answer[0]
        self.left = min(self.places, 1)
        return True

    def sendable(self, rows: Sequence[Sequence[Any]], *, lost: bool = False) -> list[Claim]:
        """Claims of these rows, without those that end unsent."""
        claims = []
        for row in rows:
            claim = self._claim(row, lost)
            decision = before_send(claim, max(self._moment, claim.claimed_at))
            if decision is not None:
                self.unsent.append((claim, decision))
                self.gate.count_unsent(claim, decision)
                continue
            self.places -= 1
            self.left -= 1
            if self._probe is not None:
                self.gate.admit(self._probe, claim.id)
                claim = replace(claim, generation=self.gate.generation, probe=True)
                self.left, self._probe = 0, None
            claims.append(claim)
        return claims

    def _claim(self, row: Sequence[Any], lost: bool) -> Claim:
        (number, endpoint_id, event_id, kind, payload, attempt, token, redrives) = row[:8]
        created_at, expires_at, first_claimed_at, claimed_at = row[8:12]
        terms, policy = self.terms, self.policy
        return Claim(
            id=number,
            event_id=event_id,
            endpoint=terms.name,
            url=terms.url,
            type=kind,
            payload=payload if isinstance(payload, bytes) else bytes(payload),
            attempt=attempt,
            timeout=policy.timeout,
            created_at=from_microseconds(created_at),
            deadline_at=self._deadline(first_claimed_at),
            expires_at=None if expires_at is None else from_microseconds(expires_at),
            secrets=self._secrets,
            policy=policy,
            token=token,
            redrives=redrives,
            endpoint_id=endpoint_id,
            generation=self.gate.generation,
            probe=False,
            lost=lost,
            claimed_at=from_microseconds(claimed_at),
        )

    def _deadline(self, first_claimed_at: int) -> datetime | None:
        if self.policy.deadline is None:
            return None
        begun = max(first_claimed_at, self.terms.enabled_at or 0)
        return from_microseconds(begun + round(self.policy.deadline * 1_000_000))


class PolicyCache:
    """Merged policies by the text of an endpoint's options; merging takes 70 us."""

    def __init__(self, default: DeliveryPolicy) -> None:
        self.default = default
        self._merged: dict[str, DeliveryPolicy] = {}

    def of(self, options: str) -> DeliveryPolicy:
        """The policy of an endpoint with these options, as JSON."""
        policy = self._merged.get(options)
        if policy is None:
            policy = self._merged[options] = merged(self.default, json.loads(options))
        return policy


def _shares(rooms: Sequence[Room], limit: int) -> list[tuple[Room, int]]:
    """How many rows each endpoint gets: one for each before a second for any."""
    share, rest = divmod(limit, len(rooms))
    wanted = [(room, min(room.left, share + (place < rest))) for place, room in enumerate(rooms)]
    return [(room, count) for room, count in wanted if count > 0]
