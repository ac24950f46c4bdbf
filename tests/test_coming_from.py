"""Every cell of the migration tables runs, theirs against the real package."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import backoff
import pytest
import stamina
import tenacity

import backoff_schedule
from backoff_schedule import Retry, create_backoff
from backoff_schedule.testing import instant

GUIDES = sorted((Path(__file__).parent.parent / "docs/guides").glob("coming-from-*.md"))
ROW = re.compile(r"^\| `(.+)` \| `(.+)` \|$", re.MULTILINE)

NAMES: dict[str, Any] = {
    **{name: getattr(backoff_schedule, name) for name in backoff_schedule.__all__},
    "backoff": backoff,
    "stamina": stamina,
    "tenacity": tenacity,
    "instant": instant,
    "is_none": lambda result: result is None,
    "read_retry_after": lambda _: 0,
    "schedule": create_backoff(base=1),
    "stamina_like": create_backoff(base="100ms", max="5s", jitter="full"),
    "watch": lambda _: None,
    "works": lambda: "fine",
}
ROWS = [
    pytest.param(theirs, ours, id=f"{guide.stem}: {theirs}")
    for guide in GUIDES
    for theirs, ours in ROW.findall(guide.read_text())
]


def test_each_guide_has_its_rows() -> None:
    assert [guide.stem for guide in GUIDES] == [
        "coming-from-backoff",
        "coming-from-stamina",
        "coming-from-tenacity",
    ]
    for guide in GUIDES:
        rows = [line for line in guide.read_text().splitlines() if line.startswith("| `")]
        assert len(rows) == len(ROW.findall(guide.read_text())) >= 8


@pytest.mark.parametrize(("theirs", "ours"), ROWS)
def test_both_sides_of_a_row_run(theirs: str, ours: str) -> None:
    peers = ("backoff.", "stamina.", "tenacity.")
    assert any(peer in theirs for peer in peers)
    assert not any(peer in ours for peer in peers)
    for side in (theirs, ours):
        result = eval(side, dict(NAMES))
        if isinstance(result, Retry):
            assert result.call(NAMES["works"]) == "fine"
        elif "works" in side:
            assert result == "fine"
