"""One job, done by ours and by others: the ratio is theirs over ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .measure import Effort, interleaved, loop, ratio, time_of
from .report import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

NOTE = "ratio: theirs over ours (baseline), so below 1x is quicker than ours; the loop's overhead"
# The length of a pass: as many as the delays of the other groups.
TIMES = (None,) * 12


@dataclass(frozen=True)
class Contender:
    """How one package does a job: a statement for each `n`, and the names that it uses.

    `names` is called when the peers are known to be there, or raises for want of one.
    """

    name: str
    statement: str
    names: Callable[[], Mapping[str, object]]
    remark: str = ""


def rows(
    ours: Contender,
    others: Sequence[Contender],
    effort: Effort,
    inputs: Sequence[object] = TIMES,
) -> list[Row]:
    """A row for each; one that is not installed, or cannot do the job, says why."""
    measured, absent = [], []
    for contender in (ours, *others):
        try:
            sampler = loop(contender.statement, contender.names(), inputs, effort)
        except Exception as error:  # noqa: BLE001  (what a peer raises is its answer)
            absent.append(Row(contender.name, remark=f"{type(error).__name__}: {error}"))
        else:
            measured.append((contender, sampler))
    samplers = {contender.name: sampler for contender, sampler in measured}
    samplers["empty"] = loop("pass", {}, inputs, effort)
    # Packages differ by more than the noise: half of the rounds tell them apart.
    samples = interleaved(samplers, effort.rounds // 2)
    return [
        Row(
            contender.name,
            time_of(samples, contender.name, "empty"),
            time_of(samples, ours.name, "empty"),
            None if contender is ours else ratio(samples, contender.name, ours.name, "empty"),
            remark=contender.remark,
        )
        for contender, _ in measured
    ] + absent
