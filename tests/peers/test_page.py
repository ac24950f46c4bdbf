"""Page and tests say the same things: this needs none of the peers."""

import re
import tomllib
from pathlib import Path

from tests.peers.comparison import PAGE, ROOT, claims, unnamed

TEST = re.compile(r"^(?:async )?def test_(\w+)\(", re.MULTILINE)
VERSION = re.compile(r"([\w-]+) ([\d.]+\d)")


def names_of_tests() -> list[str]:
    files = sorted(Path(__file__).parent.glob("test_claims_*.py"))
    return [name for file in files for name in TEST.findall(file.read_text(encoding="utf-8"))]


def test_every_claim_of_the_page_has_a_test_and_every_test_a_claim() -> None:
    assert sorted(claims()) == sorted(names_of_tests())


def test_every_row_and_every_point_of_the_page_is_a_claim() -> None:
    assert unnamed() == []


def test_the_page_names_the_oldest_version_of_each_peer_that_its_claims_are_run_against() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    bounds = dict(entry.split(">=") for entry in groups["dependency-groups"]["bench"])
    said = dict(VERSION.findall(PAGE.read_text(encoding="utf-8").partition("\n## ")[0]))
    assert said
    assert said == {name: bounds[name] for name in said}
