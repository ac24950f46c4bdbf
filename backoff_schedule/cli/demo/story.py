"""The chapters of the story in which something is sent. They need the extra `http`."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import timedelta

from ..readable import readable_duration
from . import counting
from .ledger import Ledger
from .receiver import PAUSE, Behaviour, Receiver
from .rounds import Rounds, brief, came_back
from .shop import POLICY, clock_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from .narrator import Narrator
    from .shop import Shop


@dataclass(frozen=True)
class _Story:
    narrator: Narrator
    shop: Shop
    ledger: Ledger
    rounds: Rounds
    billing: Receiver


def tell(narrator: Narrator, shop: Shop, path: Path) -> list[str]:
    """Tell it to the end, and hand back what is wrong there.

    - `path`: the receivers' file, which is made.
    """
    with ExitStack() as stack:
        ledger = stack.enter_context(closing(Ledger(path, shop.clock)))
        receivers = {}
        for endpoint, secret in shop.secrets.items():
            receiver = stack.enter_context(closing(Receiver(ledger, secret, shop.clock)))
            receiver.start()
            shop.outbox.add_endpoint(endpoint, url=f"http://{endpoint}.test:{receiver.port}/hooks")
            receivers[endpoint] = receiver
        rounds = stack.enter_context(Rounds(narrator, shop, ledger))
        story = _Story(narrator, shop, ledger, rounds, receivers["billing"])
        for chapter in (_fails, _is_busy, _hangs_up, _stays_down, _dead_letters, _repair, _rest):
            chapter(story)
        return counting.tell(narrator, shop, ledger)


def _fails(story: _Story) -> None:
    narrator, breaker = story.narrator, POLICY.options["breaker"]
    narrator.chapter("A receiver that fails, and one that works")
    narrator.say(
        "The endpoints billing and warehouse are two HTTP servers on this machine. Each verifies "
        "the signature, and in one transaction claims the event in its inbox and writes its "
        "effect; then it answers. A real worker sends, on a clock that is fast-forwarded to each "
        "due time."
    )
    narrator.say(
        f"The schedule is the one above, with {POLICY.max_attempts} tries in all. An endpoint's "
        f"breaker opens when {breaker['min_attempts']} tries or more were made within "
        f"{readable_duration(breaker['window'])} and at least {breaker['threshold']:.0%} of them "
        "failed. At first, billing is broken:"
    )
    story.billing.behaviour = Behaviour.FAILS
    story.rounds.heading()
    story.rounds.send_at(story.shop.clock.now)
    narrator.line()


def _is_busy(story: _Story) -> None:
    narrator = story.narrator
    narrator.chapter("A receiver that asks for a pause")
    story.billing.behaviour = Behaviour.IS_BUSY
    story.rounds.heading()
    story.rounds.forward()
    narrator.line()
    own = readable_duration(POLICY.schedule.delay(2))
    narrator.say(
        f"The schedule says {own} after a second failure, and the answer said Retry-After: "
        f"{PAUSE}, which is {readable_duration(PAUSE)}. The longer one holds."
    )


def _hangs_up(story: _Story) -> None:
    narrator = story.narrator
    narrator.chapter("A receiver that drops the connection after its commit")
    story.billing.behaviour = Behaviour.HANGS_UP
    story.rounds.heading()
    story.rounds.forward()
    narrator.line()
    effects = story.ledger.effects()
    done = [
        row.event_id for row in story.shop.outbox.list(state="pending") if row.event_id in effects
    ]
    narrator.say(
        f"So {' and '.join(done)} had their effects, but the shop cannot know that. It will send "
        "them again, under the same ids."
    )


def _stays_down(story: _Story) -> None:
    narrator, clock = story.narrator, story.shop.clock
    narrator.chapter("A receiver that stays down, and its breaker")
    narrator.say(
        "Now nobody listens at billing's port. A fourth order comes in; the warehouse does not "
        "notice anything. Once billing's breaker is open, what is due for it waits, and that costs "
        "no try. After each cool-down, longer every time, one event is sent as a probe."
    )
    story.billing.stop()
    story.rounds.heading()
    clock.now += timedelta(minutes=1)
    story.shop.place_order(4)
    story.rounds.send_at(clock.now)
    while story.rounds.forward():
        pass
    narrator.line()


def _dead_letters(story: _Story) -> None:
    narrator = story.narrator
    narrator.chapter("Dead letters")
    narrator.say(
        "Nothing is pending any more. What has used up its tries is kept, and can say why:"
    )
    narrator.line('outbox.list(state="dead")')
    narrator.table(
        ("event", "tries", "died at", "reason", "last error"),
        *(
            (
                row.event_id,
                row.attempts,
                clock_time(row.finished_at),
                row.reason,
                brief(row.last_error or ""),
            )
            for row in story.shop.outbox.list(state="dead")
            if row.finished_at is not None
        ),
    )


def _repair(story: _Story) -> None:
    narrator, outbox = story.narrator, story.shop.outbox
    narrator.chapter("Repair, and a redrive of one")
    narrator.say(
        "After lunch somebody starts billing again, and it works. A redrive gives a dead letter a "
        "new budget of tries. To the inbox, what had its effect before the connection was dropped "
        "is a duplicate: it is acknowledged, and has no second effect. First one, to see how it "
        "goes:"
    )
    story.billing.behaviour = Behaviour.WORKS
    story.billing.start()
    story.shop.clock.now = story.shop.clock.now.replace(hour=13, minute=0)
    moved = outbox.redrive(limit=1)
    narrator.line(f"outbox.redrive(limit=1) moved {_names(story, moved)}")
    narrator.line()
    story.rounds.heading()
    story.rounds.send_at(story.shop.clock.now)
    narrator.line()
    narrator.say("Its history is kept, and tells all of it:")
    for row in outbox.list():
        if row.id in moved:
            narrator.line(f"outbox.history({row.event_id!r}, {row.endpoint!r})")
            narrator.table(
                ("redrive", "try", "at", "outcome", "what came back"),
                *(
                    (
                        entry.redrive,
                        entry.number,
                        clock_time(entry.started_at),
                        entry.outcome,
                        came_back(entry),
                    )
                    for entry in outbox.history(row.event_id, row.endpoint)
                ),
            )


def _rest(story: _Story) -> None:
    narrator, clock = story.narrator, story.shop.clock
    narrator.chapter("A redrive of the rest")
    clock.now += timedelta(minutes=5)
    moved = story.shop.outbox.redrive(limit=None)
    narrator.line(f"outbox.redrive(limit=None) moved {_names(story, moved)}")
    narrator.line()
    story.rounds.heading()
    story.rounds.send_at(clock.now)
    narrator.line()


def _names(story: _Story, moved: list[int]) -> str:
    return " and ".join(row.event_id for row in story.shop.outbox.list() if row.id in moved)
