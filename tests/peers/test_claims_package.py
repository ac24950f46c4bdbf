"""What an import brings in, what is installed along with it, and the command."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import distribution

from benchmarks.importing import modules_loaded
from tests.peers.asking import yes_or_no

PACKAGES = {
    "this package": "backoff_schedule",
    "tenacity": "tenacity",
    "stamina": "stamina",
    "backoff": "backoff",
    "backoffs": "backoffs",
    "redress": "redress",
}


def test_its_import_loads_asyncio(row: dict[str, str]) -> None:
    loaded = {name: modules_loaded(f"import {module}") for name, module in PACKAGES.items()}
    assert row == {name: yes_or_no("asyncio" in modules) for name, modules in loaded.items()}


def test_its_import_is_the_lightest(row: dict[str, str]) -> None:
    loaded = {name: len(modules_loaded(f"import {module}")) for name, module in PACKAGES.items()}
    lightest = min(loaded.values())
    assert row == {name: yes_or_no(count == lightest) for name, count in loaded.items()}


def test_what_is_installed_along(row: dict[str, str]) -> None:
    def needs(module: str) -> str:
        wanted = distribution(module.replace("_", "-")).requires or []
        return ", ".join(name for name in wanted if "extra ==" not in name) or "nothing"

    assert row == {name: needs(module) for name, module in PACKAGES.items()}


def test_the_command(row: dict[str, str]) -> None:
    def command(module: str) -> str:
        scripts = distribution(module.replace("_", "-")).entry_points
        return next((script.value for script in scripts if script.group == "console_scripts"), "")

    said = {
        "this package": ("show", "retry-after", "demo"),
        "backoffs": ("schedule", "run", "retry-after"),
        "redress": ("doctor",),
    }
    for name, subcommands in said.items():
        module, _, function = command(PACKAGES[name]).partition(":")
        code = f"import sys, {module}\nsys.argv[1:] = ['--help']\n{module}.{function}()"
        shown = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        for subcommand in subcommands:
            assert subcommand in shown
    words = {name: ", ".join(f"`{one}`" for one in said.get(name, ())) for name in PACKAGES}
    assert {name for name, module in PACKAGES.items() if command(module)} == set(said)
    assert row == {name: said_words or "none" for name, said_words in words.items()}
