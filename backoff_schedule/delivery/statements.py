"""The few statements of delivery that SQLite and PostgreSQL do not have in common."""

from __future__ import annotations

from typing import NamedTuple, Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..database.transaction import Transaction
    from .gate import Gate
    from .model import Claim

CLAIMED = (
    "id, endpoint_id, event_id, type, payload, attempts, token, redrives, created_at, "
    "expires_at, first_claimed_at, claimed_at"
)
"""The columns of a claimed row."""


class Result(NamedTuple):
    """What is written of a try. `due` is in microseconds, None where there is no other try."""

    state: str
    due: int | None
    status: int | None
    error: str | None
    reason: str | None
    outcome: str


class Statements(Protocol):
    """What each store says in its own way.

    Attributes:
        locks_rows: Whether rows are locked; else whoever writes has the whole database.
    """

    locks_rows: bool

    def take(
        self, transaction: Transaction, wanted: Sequence[tuple[int, int, int]]
    ) -> dict[int, list[tuple[Any, ...]]]:
        """Claim pending rows that are due, of each endpoint at most so many, the oldest first.

        `wanted` has the endpoint, the number of rows, and the microseconds of the lease. The answer
        has the columns `CLAIMED`, by endpoint, in the order of their ids.
        """
        ...

    def finish(
        self, transaction: Transaction, results: Sequence[tuple[Claim, Result]], now: int
    ) -> set[int]:
        """Write what became of rows at `now`, a history entry for each; answer whose claim it was.

        A row that is no longer `sending` under the token of its claim matches nothing, and nothing
        is written. The answer has the numbers of the others.
        """
        ...

    def write_gates(self, transaction: Transaction, gates: Sequence[Gate]) -> None:
        """Write these gates, each once."""
        ...


def alike_shares(wanted: Sequence[tuple[int, int, int]]) -> dict[tuple[int, int], list[int]]:
    """The endpoints of which as many rows are wanted for as long, so that it is said once."""
    alike: dict[tuple[int, int], list[int]] = {}
    for endpoint, count, lease in wanted:
        alike.setdefault((count, lease), []).append(endpoint)
    return alike


def alike_results(results: Sequence[tuple[Claim, Result]]) -> dict[Result, list[Claim]]:
    """The claims that have the same result, so that it is said once."""
    alike: dict[Result, list[Claim]] = {}
    for claim, result in results:
        alike.setdefault(result, []).append(claim)
    return alike
