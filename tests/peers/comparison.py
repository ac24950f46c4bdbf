"""What docs/comparison.md claims: its rows and points, by the name in the comment of each."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "comparison.md"
CLAIM = re.compile(r" *<!-- (\w+) -->")


def claims() -> list[str]:
    """The names of all claims, in the order of the page."""
    return CLAIM.findall(PAGE.read_text(encoding="utf-8"))


def unnamed() -> list[str]:
    """The rows and points that have no name, or more than one."""
    heading = ""
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("|") and not heading:
            heading = line
        elif line.startswith(("|", "- ")) and not line.startswith("| ---"):
            found += [line] if len(CLAIM.findall(line)) != 1 else []
        if not line.startswith("|"):
            heading = ""
    return found


def row(claim: str) -> dict[str, str]:
    """The cells of a claim's row by the headings of its table, the question left out."""
    headings: list[str] = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [CLAIM.sub("", cell).strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            headings = []
        elif not headings:
            headings = cells
        elif f"<!-- {claim} -->" in line:
            return dict(zip(headings[1:], cells[1:], strict=True))
    raise LookupError(f"{PAGE.name} has no row {claim}")
