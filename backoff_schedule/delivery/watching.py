"""What a worker tells whoever watches it: one event for each thing that it does with a row."""

from __future__ import annotations

from dataclasses import dataclass
from logging import getLogger
from typing import Literal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .model import Claim, Decision, Outcome

_logger = getLogger("backoff_schedule")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEvent:
    """Something that a worker did with a row.

    | name | when | decision | outcome |
    |---|---|---|---|
    | `"claimed"` | its send begins | None | None |
    | `"delivered"`, `"retried"`, `"failed"`, `"dead"` | its result is written | yes | yes |
    | `"dead"`, `"expired"` | its time was over before a send | yes | None |
    | `"released"` | it was given back unsent, and no try was counted | None | None |
    | `"late"` | its result came after its lease, so nothing was written | None | yes |

    A row whose try before was lost is claimed with `claim.lost`.

    Attributes:
        name: What happened.
        claim: The claim that it happened to.
        decision: What was decided, with the next attempt's time; None where nothing was.
        outcome: What the sender answered; None where nothing was sent.
    """

    name: Literal[
        "claimed", "delivered", "retried", "failed", "dead", "expired", "released", "late"
    ]
    claim: Claim
    decision: Decision | None = None
    outcome: Outcome | None = None


class Watched:
    """Hands events to a hook. What the hook raises is logged, and ends nothing."""

    def __init__(self, hook: Callable[[WorkerEvent], object] | None) -> None:
        self._hook = hook

    def claimed(self, claim: Claim) -> None:
        if self._hook is not None:
            self._tell(WorkerEvent(name="claimed", claim=claim))

    def released(self, claim: Claim) -> None:
        if self._hook is not None:
            self._tell(WorkerEvent(name="released", claim=claim))

    def ended(self, claim: Claim, decision: Decision, outcome: Outcome | None = None) -> None:
        """A decision was written."""
        if self._hook is not None:
            name = "retried" if decision.state == "pending" else decision.state
            self._tell(WorkerEvent(name=name, claim=claim, decision=decision, outcome=outcome))

    def late(self, claim: Claim, outcome: Outcome) -> None:
        if self._hook is not None:
            self._tell(WorkerEvent(name="late", claim=claim, outcome=outcome))

    def _tell(self, event: WorkerEvent) -> None:
        hook = self._hook
        if hook is None:
            return
        try:
            hook(event)
        except Exception:
            _logger.exception("the hook of a worker failed at %r of %r", event.name, event.claim)
