"""Makes every code block of README.md and docs/ a test.

- `python`: runs; the blocks of a page share their names, as a reader would type them in.
- `py`: a whole file, which runs in a process of its own.
- `pycon`: an interactive session, whose answers are compared.
- `console`: a shell session, `$ ` before each command; what it prints is compared.
- `shell`: install lines, which only tests/test_docs.py reads and counts.

`...` in an expected answer stands for anything. A page runs in an empty folder of its own. One that
speaks of DATABASE_URL finds there an empty schema of its own.
"""

from __future__ import annotations

import contextlib
import doctest
import os
import subprocess
import sys
import sysconfig
import tempfile
from typing import TYPE_CHECKING, Any

from sybil import Sybil
from sybil.evaluators.doctest import DocTestEvaluator
from sybil.parsers.abstract.doctest import DocTestStringParser
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

from tests.postgres_server import as_url, close_shared_server, fresh_schema, shared_server

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sybil import Document, Example, Region

_DATABASE = "DATABASE_URL"
_OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


class PythonSessionParser:
    """`pycon` blocks, each `>>>` an example of its own."""

    def __init__(self) -> None:
        self._blocks = CodeBlockParser("pycon", _never_evaluated)
        self._sessions = DocTestStringParser(DocTestEvaluator(_OPTIONS))

    def __call__(self, document: Document) -> Iterable[Region]:
        for block in self._blocks(document):
            for region in self._sessions(block.parsed, document.path):
                region.adjust(block, block.parsed)
                yield region


def run_shell_session(example: Example) -> str | None:
    """Run each `$ ` line and compare what it prints with the lines below it."""
    commands = example.parsed.rstrip("\n").removeprefix("$ ").split("\n$ ")
    environment = os.environ | {
        "PATH": f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
    }
    for session in commands:
        command, _, expected = session.partition("\n")
        run = subprocess.run(
            ["bash", "-c", command.replace("\\\n", "")],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environment,
            text=True,
            timeout=120,
            check=False,
        )
        printed = "\n".join(line.rstrip() for line in run.stdout.rstrip("\n").split("\n"))
        if not doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS):
            return f"$ {command}\nexpected:\n{expected}\nprinted:\n{printed}"
    return None


def run_file(example: Example) -> str | None:
    """Run a file as a reader would who has saved it."""
    run = subprocess.run(
        [sys.executable, "-c", example.parsed],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=120,
        check=False,
    )
    return f"ended with {run.returncode}:\n{run.stdout}" if run.returncode else None


def note_database(document: Document) -> Iterable[Region]:
    """Leave a note for `enter_empty_folder`, which does not see the text."""
    document.namespace["_wants_database"] = _DATABASE in document.text
    return ()


def enter_empty_folder(namespace: dict[str, Any]) -> None:
    namespace["_left_after_the_page"] = after = contextlib.ExitStack()
    namespace["__name__"] = "__main__"
    if namespace["_wants_database"]:
        os.environ[_DATABASE] = as_url(after.enter_context(fresh_schema(shared_server())))
        after.callback(os.environ.pop, _DATABASE)
    after.enter_context(contextlib.chdir(after.enter_context(tempfile.TemporaryDirectory())))


def leave_folder(namespace: dict[str, Any]) -> None:
    namespace["_left_after_the_page"].close()


def pytest_unconfigure() -> None:
    close_shared_server()


def _never_evaluated(example: Example) -> None:
    raise AssertionError(example)


pytest_collect_file = Sybil(
    parsers=[
        PythonCodeBlockParser(doctest_optionflags=_OPTIONS),
        PythonSessionParser(),
        CodeBlockParser("console", run_shell_session),
        CodeBlockParser("py", run_file),
        note_database,
    ],
    patterns=["README.md", "docs/*.md", "docs/**/*.md"],
    setup=enter_empty_folder,
    teardown=leave_folder,
).pytest()
