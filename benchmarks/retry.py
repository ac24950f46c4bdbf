"""Calling again: what our decorator costs, next to a loop written out by hand and to each peer.

Where code and dictionaries happen to lie in a process moves its nanoseconds by more than the
limits allow for, so several fresh processes measure, each for a short while, one after another,
and the medians of their medians are what counts.
"""

from __future__ import annotations

from statistics import median, quantiles
from typing import TYPE_CHECKING

from .decorators import ATTEMPTS, HAND, LIMITED, OURS, PREDICATE, TUPLE, decorators
from .measure import PROCESSES, Effort, Spread, in_a_process
from .report import Row, Section
from .retry_jobs import (
    ASYNC,
    CALLS,
    EXHAUSTION,
    FAILURES,
    KINDS,
    SUCCESS,
    garbage,
    sizes,
    times,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .retry_jobs import Times

LIMITS = {
    (SUCCESS, OURS): 0.85,
    (SUCCESS, LIMITED): 1.1,
    (ASYNC, OURS): 0.95,
    (FAILURES, OURS): 1.5,
    (KINDS, f"{TUPLE}, {FAILURES}"): 1.2,
    (KINDS, f"{PREDICATE}, {FAILURES}"): 1.2,
}
TITLES = {
    SUCCESS: "a decorated function that returns",
    ASYNC: "a decorated async function that returns",
    FAILURES: "two failures, then success",
    EXHAUSTION: f"{ATTEMPTS} failures, and the exception comes out",
    KINDS: "a tuple or a predicate in place of one type",
}
_NOTES = {
    SUCCESS: (
        "ratio: each over a loop written out by hand (baseline), so below 1x is quicker than that;",
        f"the loop that measures is subtracted. All make {ATTEMPTS} attempts at most. A time or",
        f"ratio is the median over {PROCESSES} fresh processes of the median in each, and the",
        "quartiles are of those. The collector is off in a sample: a peer's garbage costs nothing.",
    ),
    ASYNC: ("a coroutine awaits the calls, and is driven by `send` alone: without an event loop.",),
    FAILURES: (
        "waits are stubbed: the hand-written loop, ours, tenacity and backoffs are given a sleep",
        "that does nothing; for stamina, backoff, opnieuw and retrying `time.sleep` is patched,",
        "since stamina's test mode would skip work too. stamina's log is silenced.",
    ),
    KINDS: ("ratio: over ours with one type (baseline).",),
}
_GARBAGE_NOTES = (
    f"objects that only the collector can free after {CALLS} calls: they wait in reference",
    "cycles, and with them whatever the exception's frames hold.",
)
_SIZE_NOTES = (
    "bytes that tracemalloc counts for one more decorated function, its policy included.",
    "backoffs has no decorator: counted is the wrapper that a program writes.",
)


def sections(effort: Effort) -> list[Section]:
    """The times of each job, then what is left behind, and what a decorated function takes."""
    # Some 45 samplers and five processes: fewer rounds each, and as many in all.
    short = Effort(effort.rounds // PROCESSES, effort.sample_seconds, effort.processes)
    runs = [in_a_process(times, short) for _ in range(PROCESSES)]
    left, held = in_a_process(garbage), in_a_process(sizes)
    found, absent = decorators()
    remarks = {decorator.name: decorator.remark for decorator in found}
    missing = [Row(name, remark=why) for name, why in absent.items()]
    timed = [
        Section("retry", title, rows(job, runs, remarks) + _unless(job, missing), _notes(job))
        for job, title in TITLES.items()
    ]
    return [
        *timed,
        Section("retry", f"garbage of {CALLS} calls", _garbage(left) + missing, _GARBAGE_NOTES),
        Section("retry", "bytes of one decorated function", _sizes(held) + missing, _SIZE_NOTES),
    ]


def rows(job: str, runs: Sequence[Times], remarks: Mapping[str, str]) -> list[Row]:
    """The contenders of one job: medians over the runs, each of which is one process."""
    written = []
    for name in runs[0][job]:
        seconds = median(run[job][name][0] for run in runs)
        ratios = [run[job][name][1] for run in runs]
        low, middle, high = quantiles(ratios, n=4, method="inclusive")
        baseline = median(seconds_of_baseline(run, job, name) for run in runs)
        # How a wait is stubbed matters where something waits.
        remark = remarks.get(name, "") if job in (FAILURES, EXHAUSTION) else ""
        spread = None if name == HAND else Spread(middle, low, high)
        written.append(Row(name, seconds, baseline, spread, LIMITS.get((job, name)), remark))
    return written


def seconds_of_baseline(run: Times, job: str, name: str) -> float:
    """The hand-written loop's time; for a kind of `on`, that of one type in the same job."""
    if job != KINDS:
        return run[job][HAND][0]
    return next(run[of][OURS][0] for of in run if name.endswith(f", {of}"))


def _notes(job: str) -> tuple[str, ...]:
    return _NOTES.get(job, ())


def _unless(job: str, missing: list[Row]) -> list[Row]:
    return [] if job == KINDS else missing


def _garbage(left: Mapping[str, Mapping[str, int]]) -> list[Row]:
    return [
        Row(
            name,
            remark=", ".join(f"{job} {count:,}" for job, count in counts.items()),
            facts={"garbage": sum(counts.values())},
        )
        for name, counts in left.items()
    ]


def _sizes(held: Mapping[str, int]) -> list[Row]:
    return [
        Row(name, remark=f"{size:,} bytes", facts={"bytes": size}) for name, size in held.items()
    ]
