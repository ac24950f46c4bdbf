"""How many bytes a schedule holds, and a peer's policy: many made, and the growth divided."""

from __future__ import annotations

import gc
import tracemalloc
from importlib import import_module
from typing import TYPE_CHECKING

from backoff_schedule import create_backoff

from .report import Row, Section

if TYPE_CHECKING:
    from collections.abc import Callable

    from .measure import Effort

COUNT = 1000
_NOTES = (
    f"bytes that tracemalloc counts for each of {COUNT:,} made alike; what they share counts once.",
    "A schedule of ours holds a table of the delays below its ceiling: the slower it grows, the",
    "longer the table, up to the limit beyond which delays are computed when asked for.",
)
_HOUR = 3600.0
_STEPS = (15.0, 60.0, 300.0, 900.0, 3600.0, 7200.0)
_JITTERED = create_backoff(base=1.0, max=_HOUR, jitter=0.1)

OURS: dict[str, Callable[[], object]] = {
    "ours, exponential to 1 h": lambda: create_backoff(base=1.0, max=_HOUR),
    "ours, jittered": lambda: create_backoff(base=1.0, max=_HOUR, jitter=0.1),
    "ours, without max": lambda: create_backoff(base=1.0),
    "ours, constant": lambda: create_backoff(base=1.0, growth="constant"),
    "ours, six steps": lambda: create_backoff(steps=_STEPS),
    "ours, factor 1.01 to 1 h": lambda: create_backoff(base=1.0, factor=1.01, max=_HOUR),
    "ours, keyed": lambda: _JITTERED.keyed("dlv_1"),
}


def sections(effort: Effort) -> list[Section]:
    """Ours of each kind, then what each peer makes for exponential growth to an hour."""
    del effort  # counted, not timed: once is enough
    rows = [_row(name, make) for name, make in OURS.items()]
    for package, expression in _PEERS.items():
        try:
            rows.append(_row(package, expression(import_module(package.split()[0]))))
        except ModuleNotFoundError as error:
            rows.append(Row(package, remark=f"not measured: {error}"))
    return [Section("memory", "bytes of one schedule", rows, _NOTES)]


def bytes_of(make: Callable[[], object]) -> float:
    """What one of many alike adds to the memory in use."""
    make()  # whatever is made once for all, such as a cache
    kept: list[object] = [None] * COUNT
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for index in range(COUNT):
            kept[index] = make()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return (after - before) / COUNT


def _row(name: str, make: Callable[[], object]) -> Row:
    size = round(bytes_of(make))
    return Row(name, remark=f"{size:,} bytes", facts={"bytes": size})


# Each entry takes the peer's module, so that a peer that is missing is only a row.
_PEERS: dict[str, Callable[..., Callable[[], object]]] = {
    "tenacity": lambda peer: lambda: peer.wait_exponential(max=_HOUR),
    "tenacity Retrying": lambda peer: lambda: peer.Retrying(wait=peer.wait_exponential(max=_HOUR)),
    "stamina": lambda peer: lambda: peer.RetryingCaller(wait_initial=1.0, wait_max=_HOUR),
    "backoff": lambda peer: lambda: peer.expo(max_value=_HOUR),
    "backoffs": lambda peer: lambda: peer.Policy(peer.Exponential(1.0), cap=_HOUR),
    "redress": lambda peer: lambda: peer.equal_jitter(1.0, _HOUR),
    "redress RetryPolicy": lambda peer: (
        lambda: peer.RetryPolicy(
            classifier=peer.default_classifier, strategy=peer.equal_jitter(1.0, _HOUR)
        )
    ),
}
