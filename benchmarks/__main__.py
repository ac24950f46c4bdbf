"""`python -m benchmarks [--quick] [GROUP ...]`: measure, print one table, write the JSON."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from . import (
    delay,
    durations,
    importing,
    making,
    memory,
    peers,
    questions,
    retry,
    retry_after,
)
from .delivery import group as delivery
from .measure import FULL, QUICK, Effort
from .report import Section, document, machine, table

if TYPE_CHECKING:
    from collections.abc import Callable

# A group is a module with `sections(effort)`: a new one is a file and a line here.
GROUPS: dict[str, Callable[[Effort], list[Section]]] = {
    "delay": delay.sections,
    "questions": questions.sections,
    "peers": peers.sections,
    "making": making.sections,
    "retry-after": retry_after.sections,
    "durations": durations.sections,
    "retry": retry.sections,
    "delivery": delivery.sections,
    "memory": memory.sections,
    "import": importing.sections,
}
ROOT = Path(__file__).parent.parent
OUTPUT = ROOT / "build" / "bench.json"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a rough answer within seconds, of deliveries within a minute",
    )
    asked = parser.parse_args()
    unknown = [name for name in asked.groups if name not in GROUPS]
    if unknown:
        parser.error(f"no group {unknown[0]!r}; there are {', '.join(GROUPS)}")

    effort = QUICK if asked.quick else FULL
    sections = [
        section
        for name, measured in GROUPS.items()
        if name in asked.groups or not asked.groups
        for section in measured(effort)
    ]
    taken = machine() | {"effort": "quick" if asked.quick else "full"}
    versions = ", ".join(f"{name} {number}" for name, number in taken["packages"].items())
    print(f"{taken['date']}, {taken['python']}, {taken['cpus']} CPUs, {taken['platform']}")
    print(f"{versions}\n")
    print(table(sections))

    OUTPUT.parent.mkdir(exist_ok=True)
    written = json.dumps(document(taken, sections), indent=2, allow_nan=False)
    OUTPUT.write_text(written + "\n", encoding="utf-8")
    print(f"\nwritten to {OUTPUT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
