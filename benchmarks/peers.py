"""The delay of attempt n from each peer, in the peer's own way, against ours for the same job.

| peer | its own way |
|---|---|
| tenacity | a wait strategy called with a `RetryCallState` whose `attempt_number` is set |
| stamina | the private `_compute_backoff(n, ...)` of its retry loop; nothing public has jitter |
| backoff | a generator that answers the next delay, and a function that jitters it |
| backoffs | an iterator that answers the next delay of a policy |
| redress | a strategy called with the attempt, the class of the error and the delay before |

An iterator cannot be asked for the nth delay, so it is compared with our `delays()`: both are
made anew for every sequence of failures, as a retry loop does, and that counts.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from backoff_schedule import create_backoff

from . import far_attempt
from .delay import GROWING
from .far_attempt import BASE, CAP
from .measure import Effort, interleaved, loop, ratio, time_of
from .report import Row, Section

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

JITTER = 0.1
_SOURCE = random.Random(1)  # noqa: S311  (what most of the peers draw from)

PLAIN, FULL, BAND = "no jitter", "full jitter", "a band of jitter"


@dataclass(frozen=True)
class Way:
    """How one package does one job: a statement for each `n`, one before each sequence."""

    job: str
    name: str
    statement: str
    names: Mapping[str, object] = field(default_factory=dict)
    before: str = ""
    remark: str = ""

    @property
    def baseline(self) -> str:
        return _NEXT if self.before else _NTH


_NTH, _NEXT = "ours: delay(n)", "ours: next(delays())"
_ADDED = "adds up to 0.1 s instead of 10%"
_NOTES = (
    "ratio: theirs over ours (baseline), so above 1x is slower than ours; base 0.5 s, max 1 h,",
    "attempts 1 to 12, loop overhead subtracted. `delay(n)` is the baseline of peers that answer",
    "the nth delay, `next(delays())` of those that answer only the next one and need a new",
    "iterator for each sequence (made every 12 delays, which counts). Ours draws from",
    "random.Random, as the peers do; `default` draws from the operating system's generator.",
)


def sections(effort: Effort) -> list[Section]:
    """A section for each job, and one for what everybody answers at a far attempt."""
    ways, absent = _ours(), []
    for package, ways_of in _PEERS.items():
        try:
            ways += ways_of(import_module(package))
        except ModuleNotFoundError as error:
            absent.append(Row(package, remark=f"not measured: {error}"))
        except AttributeError as error:  # a private name may go in any release
            absent.append(Row(package, remark=f"not measured: its API changed, {error}"))
    found = [
        Section(
            "peers",
            f"the delay of attempt n, {job}",
            _rows([way for way in ways if way.job == job], effort) + absent,
            _NOTES if job == PLAIN else (),
        )
        for job in (PLAIN, FULL, BAND)
    ]
    return [*found, far_attempt.section()]


def _rows(ways: list[Way], effort: Effort) -> list[Row]:
    samplers = {
        way.name: loop(way.statement, way.names, GROWING, effort, before=way.before) for way in ways
    }
    samples = interleaved(samplers | {"empty": loop("pass", {}, GROWING, effort)}, effort.rounds)
    return [
        Row(
            way.name,
            time_of(samples, way.name, "empty"),
            time_of(samples, way.baseline, "empty"),
            None if way.name == way.baseline else ratio(samples, way.name, way.baseline, "empty"),
            remark=way.remark,
            facts={"job": way.job, "baseline": way.baseline},
        )
        for way in ways
    ]


def _ours() -> list[Way]:
    ways = []
    jitters: dict[str, float | Literal["full"]] = {PLAIN: 0.0, FULL: "full", BAND: JITTER}
    for job, jitter in jitters.items():
        default = create_backoff(base=BASE, max=CAP, jitter=jitter)
        names = {"schedule": default.replace(random=_SOURCE)}
        ways += [
            Way(job, _NTH, "wait = schedule.delay(n)", names),
            Way(job, _NEXT, "wait = next(waits)", names, "waits = schedule.delays()"),
        ]
        if job != PLAIN:
            remark = "the system's source"
            call = "wait = schedule.delay(n)"
            ways.append(Way(job, f"{_NTH}, default", call, {"schedule": default}, "", remark))
    return ways


def _tenacity(tenacity: ModuleType) -> list[Way]:
    state = tenacity.RetryCallState(tenacity.Retrying(), None, (), {})

    def way(job: str, name: str, remark: str = "", **options: float) -> Way:
        strategy = getattr(tenacity, name)(multiplier=BASE, max=CAP, **options)
        statement = "state.attempt_number = n\nwait = strategy(state)"
        names = {"state": state, "strategy": strategy}
        return Way(job, f"tenacity {name}", statement, names, "", remark)

    return [
        way(PLAIN, "wait_exponential"),
        way(FULL, "wait_random_exponential"),
        way(BAND, "wait_exponential_jitter", _ADDED, jitter=JITTER),
    ]


def _stamina(stamina: ModuleType) -> list[Way]:
    compute = import_module(f"{stamina.__name__}._core")._compute_backoff

    def way(job: str, jitter: float, remark: str) -> Way:
        names = {"compute": compute, "cap": CAP, "base": BASE, "jitter": jitter}
        statement = "wait = compute(n, cap, base, 2, jitter)"
        return Way(job, "stamina _compute_backoff", statement, names, "", remark)

    return [way(PLAIN, 0.0, "private"), way(BAND, JITTER, f"private; {_ADDED}")]


def _backoff(backoff: ModuleType) -> list[Way]:
    names = {"expo": backoff.expo, "full_jitter": backoff.full_jitter, "base": BASE, "cap": CAP}
    # The first value is None: the package's own loop sends it away like this.
    before = "waits = expo(factor=base, max_value=cap)\nnext(waits)"
    return [
        Way(PLAIN, "backoff expo", "wait = next(waits)", names, before),
        Way(FULL, "backoff expo, full_jitter", "wait = full_jitter(next(waits))", names, before),
    ]


def _backoffs(backoffs: ModuleType) -> list[Way]:
    def way(job: str, jitter: str, *arguments: float) -> Way:
        policy = backoffs.Policy(
            backoffs.Exponential(BASE), getattr(backoffs, jitter)(*arguments), cap=CAP
        )
        # Without a source each iterator seeds a new one, some 11 us that a caller can avoid.
        names = {"policy": policy, "source": _SOURCE}
        before = "waits = policy.delays(rng=source)"
        return Way(job, f"backoffs {jitter}", "wait = next(waits)", names, before)

    return [
        way(PLAIN, "NoJitter"),
        way(FULL, "FullJitter"),
        way(BAND, "ProportionalJitter", JITTER),
    ]


def _redress(redress: ModuleType) -> list[Way]:
    names = {"strategy": redress.equal_jitter(BASE, CAP), "kind": redress.ErrorClass.TRANSIENT}
    statement = "wait = strategy(n, kind, None)"
    remark = "from half to the whole; starts at twice the base"
    return [Way(BAND, "redress equal_jitter", statement, names, "", remark)]


_PEERS: dict[str, Callable[[ModuleType], list[Way]]] = {
    "tenacity": _tenacity,
    "stamina": _stamina,
    "backoff": _backoff,
    "backoffs": _backoffs,
    "redress": _redress,
}
