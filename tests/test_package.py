from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import backoff_schedule

ROOT = Path(backoff_schedule.__file__).parent.parent
HEAVY = [
    *["argparse", "asyncio", "dataclasses", "email", "hashlib", "inspect", "logging", "random"],
    *["re", "sqlite3", "tempfile", "typing"],
]


def modules_after(code: str) -> set[str]:
    """What an interpreter that loads nothing by itself has loaded after `code`."""
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}\nprint(*sys.modules)"
    command = [sys.executable, "-I", "-S", "-c", program]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import backoff_schedule",
        "import backoff_schedule as b; b.create_backoff(base='1m', jitter=0.2).delay(3)",
        "import backoff_schedule as b; b.create_backoff(base=1).keyed('a')",
        "import backoff_schedule as b; b.parse_retry_after('Sun Nov  6 08:49:37 1994')",
        "from backoff_schedule import presets",
    ],
)
def test_using_the_core_loads_nothing_heavy(code: str) -> None:
    assert sorted(modules_after(code).intersection(HEAVY)) == []


def test_the_hash_of_a_key_is_loaded_by_its_first_draw() -> None:
    code = "import backoff_schedule as b; b.create_backoff(base=1, jitter=0.5).keyed('a').delay(1)"
    assert "hashlib" in modules_after(code)


def test_the_presets_are_loaded_on_first_use() -> None:
    assert "backoff_schedule.presets" not in modules_after("import backoff_schedule")
    assert "backoff_schedule.presets" in modules_after(
        "import backoff_schedule; backoff_schedule.presets"
    )


def test_every_public_name_is_there_and_nothing_else_is_public() -> None:
    code = (
        "import backoff_schedule, json; from backoff_schedule import *; "
        "print(json.dumps(sorted(name for name in dir() if name[0] != '_')))"
    )
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    assert set(json.loads(run.stdout)) == {*backoff_schedule.__all__, "backoff_schedule", "json"}


def test_a_name_that_the_package_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'backoff_schedule' has no attribute 'retyr'"):
        _ = backoff_schedule.retyr  # type: ignore[attr-defined]


def test_no_module_bears_the_name_of_a_public_function() -> None:
    modules = {path.stem for path in (ROOT / "backoff_schedule").glob("*.py")}
    functions = {
        name for name in backoff_schedule.__all__ if callable(getattr(backoff_schedule, name))
    }
    assert not modules & functions
