"""The report: one table for people, one JSON document for everything else."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .measure import Spread

PACKAGES = (
    "backoff-schedule",
    "tenacity",
    "stamina",
    "backoff",
    "backoffs",
    "redress",
    "urllib3",
    "httpx-retries",
    "opnieuw",
    "retrying",
    "pytimeparse2",
    "psycopg",
    "procrastinate",
    "pgqueuer",
    "asyncpg",
    "huey",
    "litequeue",
)
_HEADINGS = ("what", "time", "baseline", "ratio", "quartiles", "limit", "remark")
# The columns of numbers; text reads better from its left edge.
_RIGHT = ("time", "baseline", "ratio", "quartiles")


@dataclass(frozen=True)
class Row:
    """One contender. Times are in seconds.

    The project promises a ratio of at most `limit`, or of at least `least`.
    """

    what: str
    seconds: float | None = None
    baseline_seconds: float | None = None
    ratio: Spread | None = None
    limit: float | None = None
    remark: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    least: float | None = None

    @property
    def promise(self) -> str:
        """The limit in words; nothing where there is none."""
        if self.least is not None:
            return f"{self.least:g}x or more"
        return "" if self.limit is None else f"{self.limit:g}x"


@dataclass(frozen=True)
class Section:
    """The rows of one comparison, with what a reader has to know to judge them."""

    name: str
    title: str
    rows: Sequence[Row]
    notes: Sequence[str] = ()


def machine(now: datetime | None = None) -> dict[str, Any]:
    """Where and with what the numbers were taken."""
    return {
        "date": (now or datetime.now(UTC)).isoformat(timespec="seconds"),
        "platform": platform.platform(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "cpus": os.cpu_count(),
        "cpu": _cpu_model(),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def document(machine: Mapping[str, Any], sections: Sequence[Section]) -> dict[str, Any]:
    """The whole run, ready for JSON; `within` is None where there is no limit."""
    return {
        "machine": dict(machine),
        "sections": [
            {
                "name": section.name,
                "title": section.title,
                "notes": list(section.notes),
                "rows": [{**asdict(row), "within": _within(row)} for row in section.rows],
            }
            for section in sections
        ],
    }


def table(sections: Sequence[Section]) -> str:
    """All sections in one table, their columns aligned throughout."""
    lines = {id(row): _cells(row) for section in sections for row in section.rows}
    widths = [
        max(len(cells[column]) for cells in (_HEADINGS, *lines.values()))
        for column in range(len(_HEADINGS))
    ]
    text = [_line(_HEADINGS, widths), "-" * (sum(widths) + 2 * len(widths) - 2)]
    for section in sections:
        text += ["", f"{section.name}: {section.title}"]
        text += [f"  {note}" for note in section.notes]
        text += [_line(lines[id(row)], widths) for row in section.rows]
    return "\n".join(text)


def duration(seconds: float) -> str:
    """A measured time with three digits, in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(seconds) >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _cells(row: Row) -> tuple[str, ...]:
    spread, limit = row.ratio, row.promise
    if limit:
        limit += " met" if _within(row) else " MISSED"
    return (
        row.what,
        "" if row.seconds is None else duration(row.seconds),
        "" if row.baseline_seconds is None else duration(row.baseline_seconds),
        "" if spread is None else f"{spread.median:.2f}x",
        "" if spread is None else f"{spread.low:.2f}-{spread.high:.2f}",
        limit,
        row.remark,
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        cell.rjust(width) if heading in _RIGHT else cell.ljust(width)
        for heading, cell, width in zip(_HEADINGS, cells, widths, strict=True)
    )
    return "  ".join(padded).rstrip()


def _within(row: Row) -> bool | None:
    if row.ratio is None:
        return None
    if row.least is not None:
        return row.ratio.median >= row.least
    return None if row.limit is None else row.ratio.median <= row.limit


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
