from __future__ import annotations

from typing import TYPE_CHECKING

from tests.delivery.stress import prepare, stress

if TYPE_CHECKING:
    from pathlib import Path


def test_twenty_kills_at_random_points_lose_nothing(place: tuple[str, str], tmp_path: Path) -> None:
    prepare(place)
    became = stress(place, tmp_path, kills=20, events=600)
    assert became["delivered"] + became["failed"] + became["dead"] == 600
    assert became["lost tries"] > 0
