"""What else a schedule is asked, against the code that a program would write in its place.

`delay` has a group of its own. A key is compared with the usual way to fix a draw: a
`random.Random` seeded with the key's text.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from backoff_schedule import create_backoff

from .contest import TIMES
from .delay import BASE, CAP, GROWING, JITTER
from .measure import Effort, interleaved, loop, ratio, time_of
from .report import Row, Section

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_SOURCE = random.Random(1)  # noqa: S311  (what a program would draw from)
_PLAIN = create_backoff(base=BASE, max=CAP)
_JITTERED = create_backoff(base=BASE, max=CAP, jitter=JITTER, random=_SOURCE)
_KEYED = _JITTERED.keyed("dlv_1")
_NOTES = (
    "ratio: ours over the code written out (baseline), so above 1x is slower than that; the",
    "loop's overhead is subtracted. `delays` is the whole sequence of 12, made and drawn.",
)


def _plain_waits() -> Iterator[float]:
    wait = BASE
    while True:
        yield wait
        wait = min(wait * 2.0, CAP)


def _jittered_waits() -> Iterator[float]:
    draw = _SOURCE.random
    wait = BASE
    while True:
        yield wait * (1 - JITTER + 2 * JITTER * draw())
        wait = min(wait * 2.0, CAP)


@dataclass(frozen=True)
class Question:
    """The same answer from a schedule and from plain code."""

    what: str
    ours: str
    bare: str
    names: Mapping[str, object] = field(default_factory=dict)
    inputs: Sequence[object] = GROWING
    remark: str = ""


_DELAYS = ("list(islice(schedule.delays(), 12))", "list(islice(waits(), 12))")
_CURVE = "d = base * 2.0 ** (n - 1)\nd = d if d < cap else cap\n"
_SEEDED = "u = Random(key).random()"
QUESTIONS = (
    Question("12 delays, no jitter", *_DELAYS, {"schedule": _PLAIN, "waits": _plain_waits}, TIMES),
    Question(
        "12 delays, jittered", *_DELAYS, {"schedule": _JITTERED, "waits": _jittered_waits}, TIMES
    ),
    Question(
        "bounds, no jitter", "schedule.bounds(n)", f"{_CURVE}band = d, d", {"schedule": _PLAIN}
    ),
    Question(
        "bounds, jittered",
        "schedule.bounds(n)",
        f"{_CURVE}band = d * (1 - j), d * (1 + j)",
        {"schedule": _JITTERED},
    ),
    Question(
        "a keyed schedule",
        'schedule.keyed("dlv_1")',
        'Random("dlv_1")',
        {"schedule": _JITTERED},
        remark="baseline: Random(key)",
    ),
    Question(
        "one delay of a key",
        'schedule.keyed("dlv_1").delay(n)',
        f'{_CURVE}wait = d * (1 - j + 2 * j * Random(f"dlv_1 {{n}}").random())',
        {"schedule": _JITTERED},
        remark="a new key; baseline: Random(key and n)",
    ),
    Question(
        "one more delay of it",
        "schedule.delay(n)",
        f'{_CURVE}wait = d * (1 - j + 2 * j * Random(f"dlv_1 {{n}}").random())',
        {"schedule": _KEYED},
        remark="the key is at hand; baseline: Random(key and n)",
    ),
)


def sections(effort: Effort) -> list[Section]:
    """One row for each question."""
    names = {"base": BASE, "cap": CAP, "j": JITTER, "islice": islice, "Random": random.Random}
    samplers = {"empty": loop("pass", {}, GROWING, effort)}
    for question in QUESTIONS:
        known = names | dict(question.names)
        samplers[question.what] = loop(question.ours, known, question.inputs, effort)
        samplers[_bare(question)] = loop(question.bare, known, question.inputs, effort)
    samples = interleaved(samplers, effort.rounds)
    rows = [
        Row(
            question.what,
            time_of(samples, question.what, "empty"),
            time_of(samples, _bare(question), "empty"),
            ratio(samples, question.what, _bare(question), "empty"),
            remark=question.remark,
        )
        for question in QUESTIONS
    ]
    return [Section("questions", "what else a schedule is asked", rows, _NOTES)]


def _bare(question: Question) -> str:
    return f"bare {question.what}"
