"""Import: a fresh process that imports a package and asks it for one delay, or for a retry.

The processes run without site-packages and the environment (`-I -S`), so that what is timed is
the interpreter's start and the import, and take turns like every other contender.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import backoff_schedule

from .measure import Effort, interleaved, ratio, time_of
from .report import Row, Section

if TYPE_CHECKING:
    from .measure import Sampler

HEAVY = (
    "asyncio",
    "sqlite3",
    "email",
    "logging",
    "inspect",
    "argparse",
    "dataclasses",
    "hashlib",
    "tempfile",
)
LIMIT = 0.5
OURS, RETRY = "ours", "ours, with retry"
BASELINE, EMPTY = "dataclasses, random, functools, datetime", "an empty process"


@dataclass(frozen=True)
class Program:
    """What a process runs."""

    name: str
    code: str


_STATE = "tenacity.RetryCallState(tenacity.Retrying(), None, (), {})"
PROGRAMS = (
    Program(EMPTY, ""),
    Program(BASELINE, "import dataclasses, random, functools, datetime"),
    Program(
        OURS,
        "import backoff_schedule\nbackoff_schedule.create_backoff(base=1.0, max=60.0).delay(3)",
    ),
    Program(
        RETRY,
        "from backoff_schedule import create_backoff, retry\n"
        "retry(create_backoff(base=1.0, max=60.0), attempts=3, on=OSError)(lambda: None)()",
    ),
    Program("tenacity", f"import tenacity\ntenacity.wait_exponential(max=60.0)({_STATE})"),
    Program("stamina", "import stamina\nstamina._core._compute_backoff(3, 60, 1, 2, 0)"),
    Program(
        "backoff",
        "import backoff\nwaits = backoff.expo(max_value=60.0)\nnext(waits), next(waits)",
    ),
    Program(
        "backoffs",
        "import backoffs\nnext(backoffs.Policy(backoffs.Exponential(1.0), cap=60.0).delays())",
    ),
    Program(
        "redress",
        "import redress\nredress.equal_jitter(1.0, 60.0)(3, redress.ErrorClass.TRANSIENT, None)",
    ),
    Program(
        "opnieuw", "import opnieuw\nopnieuw.retry(retry_on_exceptions=OSError)(lambda: None)()"
    ),
    Program("retrying", "import retrying\nretrying.retry(wait_fixed=1)(lambda: None)()"),
)
_NOTES = (
    "`python -I -S -c ...`: the time of the whole process, from its start to its exit; nothing is",
    f"subtracted. Baseline: a process that imports {BASELINE}.",
    "opnieuw and retrying answer no delay, and call a decorated function instead, as does ours",
    "with retry: `from backoff_schedule import retry` loads what a schedule does without.",
    "Named are those loaded of: " + ", ".join(HEAVY) + ".",
)


def sections(effort: Effort) -> list[Section]:
    """Ours, the baseline, an empty process and each peer; one that fails says why."""
    # Asking what a program loads also leaves its .pyc files behind for the timed runs.
    loaded, failed = {}, {}
    for program in PROGRAMS:
        try:
            loaded[program.name] = modules_loaded(program.code)
        except subprocess.CalledProcessError as error:
            failed[program.name] = error.stderr.strip().rpartition("\n")[2]
    samplers = {
        program.name: _sampler(program.code) for program in PROGRAMS if program.name in loaded
    }
    samples = interleaved(samplers, effort.processes)
    rows = []
    for program in PROGRAMS:
        if program.name in failed:
            rows.append(Row(program.name, remark=f"not measured: {failed[program.name]}"))
            continue
        names = loaded[program.name]
        heavy = [name for name in HEAVY if name in names]
        rows.append(
            Row(
                program.name,
                time_of(samples, program.name),
                time_of(samples, BASELINE),
                None if program.name == BASELINE else ratio(samples, program.name, BASELINE),
                LIMIT if program.name == OURS else None,
                f"{len(names)} modules" + (f", {', '.join(heavy)}" if heavy else ""),
                {"modules": len(names), "heavy": heavy},
            )
        )
    return [Section("import", "import in a fresh process, and one delay or one call", rows, _NOTES)]


def modules_loaded(code: str) -> list[str]:
    """The modules that `code` loads beyond those of an empty process."""
    before = "import sys\nbefore = set(sys.modules)\n"
    after = "\nprint(*sorted(set(sys.modules) - before))"
    return _run(before + code + after).split()


def _sampler(code: str) -> Sampler:
    def sample() -> float:
        started = perf_counter()
        _run(code)
        return perf_counter() - started

    return sample


def _run(code: str) -> str:
    # Ours is the one in this checkout, from wherever it is run.
    ours = Path(backoff_schedule.__file__).parent.parent
    found = [str(ours), sysconfig.get_path("purelib")]
    command = [sys.executable, "-I", "-S", "-c", f"import sys\nsys.path[:0] = {found}\n{code}"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    return done.stdout
