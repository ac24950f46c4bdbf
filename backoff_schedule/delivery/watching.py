"""What is told to whoever watches: what a worker does with rows, and what endpoints become."""

from __future__ import annotations

from dataclasses import dataclass
from logging import getLogger
from typing import Literal

from ..refusals import refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .model import Claim, Decision, Outcome, Transition

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


def listener_for(
    hook: Callable[[str, Transition], object] | None,
) -> Callable[[object], object] | None:
    """A listener of a database, for a hook that is told each change of an endpoint.

    Raises `TypeError` for a hook that cannot be called.
    """
    if hook is None:
        return None
    if not callable(hook):
        rule = "a function of a name and a transition, or None"
        raise TypeError(f"{refusal('on_transition', hook, rule)}, not {type(hook).__name__}")

    def tell(note: Any) -> None:
        name, transition = note
        try:
            hook(name, transition)
        except Exception:
            _logger.exception("the hook of an outbox failed at %r of %r", transition.event, name)

    return tell
