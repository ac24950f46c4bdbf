"""Interleaved timing: every contender once in each round, and medians of ratios.

A busy machine slows everything down for a while. Contenders that take turns meet the same slow
spells, so a ratio within a round cancels most of a spell, and the median over many rounds
drops the rest. Times are medians too and say less: compare the ratios.

| what | how |
|---|---|
| a time | the median over the rounds of (sample - overhead) |
| a ratio | the median over the rounds of (sample - overhead) / (baseline - overhead) |

All three are of the same round; the overhead is an empty loop's, or nothing.
"""

from __future__ import annotations

import timeit
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from statistics import median, quantiles
from textwrap import indent
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    T = TypeVar("T")

    Sampler = Callable[[], float]
    Samples = Mapping[str, Sequence[float]]

# Where code happens to lie in a process moves its nanoseconds by more than some limits allow for.
# What has a limit is measured in so many fresh processes, and their medians count.
PROCESSES = 5
_PROBE_PASSES = 20


@dataclass(frozen=True)
class Effort:
    """How long to measure: many short samples beat a few long ones on a noisy machine."""

    rounds: int
    sample_seconds: float
    processes: int


FULL = Effort(rounds=1000, sample_seconds=0.001, processes=41)
QUICK = Effort(rounds=60, sample_seconds=0.0005, processes=5)


@dataclass(frozen=True)
class Spread:
    """The median of a ratio, and the quartiles that half of the rounds lie between."""

    median: float
    low: float
    high: float


def in_a_process(measure: Callable[..., T], *arguments: Any) -> T:
    """What `measure(*arguments)` answers in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, *arguments).result()


def loop(
    statement: str,
    names: Mapping[str, object],
    attempts: Sequence[object],
    effort: Effort,
    *,
    before: str = "",
    clock: Callable[[], float] = perf_counter,
) -> Sampler:
    """A sampler of `statement` for `n` in `attempts`: the seconds that one attempt takes.

    `names` are local to the statement, as they would be in a caller's own function. `before`
    runs once for each pass through the attempts, and its time counts.
    """
    timer = timeit.Timer(
        f"{before}\nfor n in attempts:\n{indent(statement, '    ')}",
        "\n".join(f"{name} = given_{name}" for name in ("attempts", *names)),
        clock,
        {"given_attempts": attempts} | {f"given_{name}": value for name, value in names.items()},
    )
    timer.timeit(_PROBE_PASSES)  # the interpreter specialises code that has run a little
    one_pass = timer.timeit(_PROBE_PASSES) / _PROBE_PASSES
    passes = max(1, int(effort.sample_seconds / one_pass))
    return lambda: timer.timeit(passes) / passes / len(attempts)


def interleaved(samplers: Mapping[str, Sampler], rounds: int) -> dict[str, list[float]]:
    """`rounds` samples of each, taken in turns, after one round that does not count."""
    samples: dict[str, list[float]] = {name: [] for name in samplers}
    for number in range(rounds + 1):
        for name, sampler in samplers.items():
            sample = sampler()
            if number > 0:
                samples[name].append(sample)
    return samples


def time_of(samples: Samples, name: str, overhead: str | None = None) -> float:
    """The median of what a contender takes beyond the overhead."""
    return median(_beyond(samples, name, overhead))


def ratio(samples: Samples, name: str, baseline: str, overhead: str | None = None) -> Spread:
    """The median of a contender's time over the baseline's of the same round."""
    pairs = zip(_beyond(samples, name, overhead), _beyond(samples, baseline, overhead), strict=True)
    # A slow spell may hit the empty loop alone: such a round has nothing to compare with.
    ratios = [above / below for above, below in pairs if below > 0.0]
    if len(ratios) == 1:
        return Spread(ratios[0], ratios[0], ratios[0])
    low, middle, high = quantiles(ratios, n=4, method="inclusive")
    return Spread(middle, low, high)


def _beyond(samples: Samples, name: str, overhead: str | None) -> list[float]:
    if overhead is None:
        return list(samples[name])
    return [sample - empty for sample, empty in zip(samples[name], samples[overhead], strict=True)]
