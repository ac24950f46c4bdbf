"""`delay(n)` against the expression that a program would write in its place.

Every kind is measured against one of two bare expressions, at the same attempts: exponential
growth under a ceiling, and the same with a fraction of jitter. Where a kind has a shorter
expression of its own, the ratio against that is a remark without a limit.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from hashlib import blake2b
from statistics import median, quantiles
from typing import TYPE_CHECKING

from backoff_schedule import Backoff, create_backoff

from .measure import (
    PROCESSES,
    Effort,
    Spread,
    in_a_process,
    interleaved,
    loop,
    ratio,
    time_of,
)
from .report import Row, Section

if TYPE_CHECKING:
    from collections.abc import Sequence

BASE, CAP, JITTER = 1.0, 3600.0, 0.1
# Twelve doublings of a second stay below an hour.
GROWING = tuple(range(1, 13))
_PLATEAU = tuple(range(21, 33))
_STEPS = (15.0, 60.0, 300.0, 900.0, 3600.0, 7200.0)
_FREE = 3

_PLAIN = "d = base * 2.0 ** (n - 1)\nwait = d if d < cap else cap"
_FRACTION = "d = base * 2.0 ** (n - 1)\nwait = (d if d < cap else cap) * (1 - j + 2 * j * random())"
_SOURCE = random.Random(1)  # noqa: S311  (the peers draw from this kind of source)


@dataclass(frozen=True)
class Kind:
    """A schedule, the limit on its ratio, and its own bare expression if it has one."""

    name: str
    schedule: Backoff
    limit: float | None = None
    attempts: tuple[int, ...] = GROWING
    own_name: str = ""
    own: str = ""

    @property
    def jittered(self) -> bool:
        return bool(self.schedule.options["jitter"])


_FREE_OWN = """\
if n <= free:
    wait = 0.0
else:
    d = base * 2.0 ** (n - 1 - free)
    wait = d if d < cap else cap"""
_KEYED_OWN = """\
d = base * 2.0 ** (n - 1)
digest = blake2b(b"%b\\0%d" % (key, n), digest_size=8).digest()
u = (int.from_bytes(digest, "big") >> 11) * 2.0 ** -53
wait = (d if d < cap else cap) * (1 - j + 2 * j * u)"""

_PLAIN_SCHEDULE = create_backoff(base=BASE, max=CAP)
_JITTERED = create_backoff(base=BASE, max=CAP, jitter=JITTER)
_FULL = create_backoff(base=BASE, max=CAP, jitter="full")

KINDS = (
    Kind("no jitter, growing", _PLAIN_SCHEDULE, 1.2),
    Kind("no jitter, on the plateau", _PLAIN_SCHEDULE, 1.3, _PLATEAU),
    Kind(
        "linear",
        create_backoff(base=BASE, growth="linear", max=CAP),
        1.3,
        own_name="base * n",
        own="d = base * n\nwait = d if d < cap else cap",
    ),
    Kind(
        "steps",
        create_backoff(steps=_STEPS),
        1.3,
        own_name="an index",
        own="wait = steps[n - 1] if n < last else steps[-1]",
    ),
    Kind(
        "factor 1.1",
        create_backoff(base=BASE, factor=1.1, max=CAP),
        own_name="base * 1.1 ** (n - 1)",
        own=_PLAIN.replace("2.0", "1.1"),
    ),
    Kind(
        "three free attempts",
        create_backoff(base=BASE, max=CAP, free=_FREE),
        own_name="0.0 if n <= free",
        own=_FREE_OWN,
    ),
    Kind(
        "fraction jitter, random.Random",
        _JITTERED.replace(random=_SOURCE),
        1.4,
        own_name="low and width computed once",
        own=_FRACTION.replace("1 - j + 2 * j * random()", "low + width * random()"),
    ),
    Kind(
        "full jitter, random.Random",
        _FULL.replace(random=_SOURCE),
        own_name="... * random()",
        own=_PLAIN.replace("wait = d if d < cap else cap", "wait = (d if d < cap else cap)")
        + " * random()",
    ),
    Kind(
        "fraction jitter, the system's source",
        _JITTERED,
        own_name="SystemRandom().random",
        own=_FRACTION.replace("random()", "system_random()"),
    ),
    Kind(
        "fraction jitter, keyed",
        _JITTERED.keyed("dlv_1"),
        own_name="BLAKE2b inline",
        own=_KEYED_OWN,
    ),
)

NOTES = (
    "baseline: `d = base*2.0**(n-1); d if d < cap else cap`, for jitter the same times",
    "`(1-j+2*j*random())` with random.Random, both inline and at the same attempts.",
    "An empty loop is timed in each round and subtracted from both sides, so a ratio is of the",
    "work alone. A time or ratio is the median over 5 fresh processes of the median in each, and",
    "the quartiles are of those. `own` is the ratio against the kind's own bare expression, which",
    "has no limit.",
)


def sections(effort: Effort) -> list[Section]:
    """Every kind of schedule, one row each: the medians of several processes."""
    short = Effort(effort.rounds // PROCESSES, effort.sample_seconds, effort.processes)
    runs = [in_a_process(measured, short) for _ in range(PROCESSES)]
    rows = [_combined(of_one_kind) for of_one_kind in zip(*runs, strict=True)]
    return [Section("delay", "delay(n) against the bare inline expression", rows, NOTES)]


def _combined(rows: Sequence[Row]) -> Row:
    ratios = [row.ratio.median for row in rows if row.ratio is not None]
    low, middle, high = quantiles(ratios, n=4, method="inclusive")
    facts, remark = dict(rows[0].facts), ""
    if facts:
        facts["own_ratio"] = median(row.facts["own_ratio"] for row in rows)
        remark = f"own {facts['own_ratio']:.2f}x: {facts['own']}"
    return Row(
        rows[0].what,
        median(row.seconds or 0.0 for row in rows),
        median(row.baseline_seconds or 0.0 for row in rows),
        Spread(middle, low, high),
        rows[0].limit,
        remark,
        facts,
    )


def measured(effort: Effort) -> list[Row]:
    """A row for every kind, as this process measures it."""
    names = {
        "base": BASE,
        "cap": CAP,
        "j": JITTER,
        "low": 1 - JITTER,
        "width": 2 * JITTER,
        "random": _SOURCE.random,
        "system_random": random.SystemRandom().random,
        "blake2b": blake2b,
        "key": b"dlv_1",
        "steps": _STEPS,
        "last": len(_STEPS),
        "free": _FREE,
    }
    samplers = {"empty": loop("pass", {}, GROWING, effort)}
    for kind in KINDS:
        samplers[kind.name] = loop(
            "wait = schedule.delay(n)", {"schedule": kind.schedule}, kind.attempts, effort
        )
        bare = _FRACTION if kind.jittered else _PLAIN
        samplers.setdefault(_bare_name(kind), loop(bare, names, kind.attempts, effort))
        if kind.own:
            samplers[f"own {kind.name}"] = loop(kind.own, names, kind.attempts, effort)
    samples = interleaved(samplers, effort.rounds)

    rows = []
    for kind in KINDS:
        facts: dict[str, object] = {}
        if kind.own:
            own = ratio(samples, kind.name, f"own {kind.name}", "empty").median
            facts = {"own": kind.own_name, "own_ratio": own}
        rows.append(
            Row(
                kind.name,
                time_of(samples, kind.name, "empty"),
                time_of(samples, _bare_name(kind), "empty"),
                ratio(samples, kind.name, _bare_name(kind), "empty"),
                kind.limit,
                facts=facts,
            )
        )
    return rows


def _bare_name(kind: Kind) -> str:
    return f"bare {'fraction' if kind.jittered else 'plain'} from {kind.attempts[0]}"
