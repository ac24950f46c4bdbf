"""Settle: the results of tries, their history, and then each gate once, in one transaction."""

from __future__ import annotations

from ..database.clock import from_microseconds, to_microseconds
from .deciding import decide
from .gate_rows import locked_gates, write_gates
from .model import Delivered, as_outcome
from .statements import Result
from .text import stored_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..database.transaction import Transaction
    from .model import Claim, Decision, Outcome
    from .statements import Statements

_RELEASE = """
UPDATE {prefix}deliveries
SET state = 'pending', attempts = attempts - 1, next_attempt_at = {now},
    first_claimed_at = CASE WHEN attempts = 1 THEN NULL ELSE first_claimed_at END
WHERE id = ? AND token = ? AND state = 'sending'
"""
# A lost row stays one, so that wherever it is claimed next, it is alone again.
_RELEASE_LOST = """
UPDATE {prefix}deliveries SET attempts = attempts - 1, next_attempt_at = {now}
WHERE id = ? AND token = ? AND state = 'sending'
"""
# The attempt was counted at the claim, and is given back since nothing was sent.
END_UNSENT = """
UPDATE {prefix}deliveries
SET state = ?, attempts = attempts - 1, next_attempt_at = NULL, finished_at = {now}, reason = ?
WHERE id = ? AND token = ? AND state = 'sending'
"""


def settle(
    transaction: Transaction, statements: Statements, results: Sequence[tuple[Claim, object]]
) -> list[Decision | None]:
    """What became of each row; None where the row was no longer this claim's."""
    now = transaction.began()
    moment = from_microseconds(now)
    seen: set[int] = set()
    decided = []
    for place, (claim, answer) in enumerate(results):
        # A row that stands twice in one batch is settled by its first result.
        if claim.id in seen:
            continue
        seen.add(claim.id)
        outcome = as_outcome(answer)
        decided.append((place, claim, outcome, decide(outcome, claim, claim.policy, moment)))
    rows = [(claim, _result(outcome, decision)) for _, claim, outcome, decision in decided]
    matched = statements.finish(transaction, rows, now)
    fed = [entry for entry in decided if entry[1].id in matched]
    gates = locked_gates(transaction, (claim.endpoint_id for _, claim, *_ in fed))
    answers: list[Decision | None] = [None] * len(results)
    for place, claim, outcome, decision in fed:
        gates[claim.endpoint_id].count(claim, outcome, decision, now)
        answers[place] = decision
    write_gates(transaction, statements, gates.values())
    return answers


def _result(outcome: Outcome, decision: Decision) -> Result:
    due = decision.next_attempt_at
    return Result(
        decision.state,
        None if due is None else to_microseconds(due),
        outcome.status,
        None if isinstance(outcome, Delivered) else stored_text(outcome.reason),
        None if decision.reason is None else stored_text(decision.reason),
        "retry" if decision.state == "pending" else decision.state,
    )


def release(transaction: Transaction, statements: Statements, claims: Sequence[Claim]) -> None:
    """Give rows back that were not sent: due now, the attempt not counted."""
    freed = []
    for claim in claims:
        statement = _RELEASE_LOST if claim.lost else _RELEASE
        if transaction.change(statement, (claim.id, claim.token)) and claim.probe:
            freed.append(claim)
    _free_probes(transaction, statements, freed)


def end_unsent(
    transaction: Transaction,
    statements: Statements,
    ended: Sequence[tuple[Claim, Decision]],
) -> None:
    """End rows whose time ran out between the claim and the send."""
    counted = [
        (claim, decision)
        for claim, decision in ended
        if transaction.change(END_UNSENT, (decision.state, decision.reason, claim.id, claim.token))
    ]
    gates = locked_gates(transaction, (claim.endpoint_id for claim, _ in counted))
    now = transaction.now() / 1_000_000
    for claim, decision in counted:
        gate = gates[claim.endpoint_id]
        gate.count_unsent(claim, decision)
        gate.free_probe(claim.policy.breaker, claim.id, now)
    write_gates(transaction, statements, gates.values())


def _free_probes(transaction: Transaction, statements: Statements, claims: Sequence[Claim]) -> None:
    if not claims:
        return
    gates = locked_gates(transaction, (claim.endpoint_id for claim in claims))
    now = transaction.now() / 1_000_000
    for claim in claims:
        gates[claim.endpoint_id].free_probe(claim.policy.breaker, claim.id, now)
    write_gates(transaction, statements, gates.values())
