from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")
# What the conftest at the root runs; `shell` holds the install lines, which nothing runs.
EXECUTED = {"python", "pycon", "py", "console"}
INSTALL_LINES = {
    "README.md": ["make demo", "make test", "pip install backoff-schedule"],
    "docs/benchmarks.md": ["make bench", ".venv/bin/python -m benchmarks.page"],
    "docs/index.md": ["pip install backoff-schedule"],
    "docs/guides/deliver-webhooks.md": ['pip install "backoff-schedule[http]"'],
    "docs/guides/lock-out-guessers.md": ["uvicorn sign_in:app --workers 4"],
    "docs/guides/receive-webhooks.md": ["uvicorn receiver:app --workers 4"],
    "docs/guides/see-a-schedule.md": ['pip install "backoff-schedule[plot]"'],
    "docs/guides/watch-deliveries.md": ['pip install "backoff-schedule[prometheus]"'],
    "docs/tutorial.md": ["pip install backoff-schedule"],
}


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_code_block_is_executed_but_for_the_install_lines(page: Path) -> None:
    blocks = FENCE.findall(page.read_text())
    assert 2 * len(blocks) == page.read_text().count("```")
    assert {language for language, _ in blocks} <= EXECUTED | {"shell"}
    install_lines = "".join(code for language, code in blocks if language == "shell")
    assert install_lines.splitlines() == INSTALL_LINES.get(name(page), [])


def test_every_page_that_has_install_lines_is_there() -> None:
    assert INSTALL_LINES.keys() <= {name(page) for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_relative_link_leads_to_a_file(page: Path) -> None:
    for target, _ in LINK.findall(page.read_text()):
        # The pictures are drawn when the site is built; test_site.py finds them there.
        elsewhere = target.startswith("https://") or "pictures/" in target
        assert elsewhere or (page.parent / target).exists(), target
