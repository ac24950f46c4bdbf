"""The command as a shell runs it: exit statuses, pipes, terminals and odd environments."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib.util import find_spec

import pytest

COMMAND = [sys.executable, "-m", "backoff_schedule"]


def started(
    *arguments: str | bytes,
    stdout: int = subprocess.PIPE,
    environment: dict[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, **(environment or {})},
    )


def ended(
    *arguments: str | bytes, environment: dict[str, str] | None = None
) -> tuple[int, str, str]:
    with started(*arguments, environment=environment) as process:
        out, err = process.communicate(timeout=60)
    return process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["show", "--preset", "svix"], 0),
        (["retry-after", "-1"], 1),
        (["show", "--bse", "1m"], 2),
        ([], 2),
    ],
)
def test_the_exit_status_is_that_of_the_process(arguments: list[str], status: int) -> None:
    code, out, err = ended(*arguments)
    assert code == status
    assert bool(out) == (status == 0 or not arguments)
    assert err.count("\n") == (1 if arguments and status else 0)


def test_the_core_does_not_load_the_command_line() -> None:
    program = (
        "import sys, backoff_schedule, backoff_schedule.presets;"
        "print({'argparse', 'backoff_schedule.cli'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.split() == [b"set()"]


@pytest.mark.parametrize("form", ["--csv", "--json", "--fits=1d"])
@pytest.mark.parametrize("attempts", ["3", "50000"])
def test_a_reader_that_goes_away_is_met_quietly(form: str, attempts: str) -> None:
    reader, writer = os.pipe()
    with started("show", "--base=1s", f"--attempts={attempts}", form, stdout=writer) as process:
        os.close(writer)
        os.close(reader)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (141, b"")


def test_an_interrupt_ends_quietly_with_130() -> None:
    # A shell's background job ignores SIGINT and would hand that down; a handler is not.
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = started("demo")
    finally:
        signal.signal(signal.SIGINT, inherited)
    with process:
        assert process.stdout is not None
        # Once it has spoken of the wait, it waits.
        while b"so wait" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, b"")


def test_the_demo_ends_well() -> None:
    code, out, err = ended("demo")
    assert (code, err) == (0, "")
    assert "Exactly one effect per event" in out


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "ascii:strict", "PYTHONUTF8": "0"},
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="arguments are bytes on POSIX only")
def test_odd_bytes_and_odd_locales_do_no_harm(environment: dict[str, str]) -> None:
    for text in (b"\xff\xe9", "Füße\N{PILE OF POO}".encode()):
        code, out, err = ended("show", "--base", "1s", "--seed", text, environment=environment)
        assert (code, err) == (0, "")
        assert out.isascii()
        for arguments in (["show", "--base"], ["show"], ["retry-after"]):
            code, out, err = ended(*arguments, text, environment=environment)
            assert code == (1 if arguments == ["retry-after"] else 2)
            assert (out, err.count("\n")) == ("", 1)
    assert ended("--help", environment=environment)[0] == 0


def on_a_terminal(columns: int, environment: dict[str, str]) -> str:
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    arguments = ("show", "--base", "1s", "--max", "8s", "--jitter", "0.5", "--attempts", "4")
    with started(*arguments, stdout=theirs, environment=environment) as process:
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 4096):
                shown += chunk
        except OSError:
            # Linux says so when the last writer has gone.
            pass
        finally:
            os.close(ours)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    return shown.decode().replace("\r\n", "\n")


PLAIN = """\
create_backoff(base=1.0, max=8.0, jitter=0.5)

                                 --- elapsed in total ---
attempt  delay  lowest  highest  earliest  middle  latest
      1     1s   500ms     1.5s     500ms      1s    1.5s
      2     2s      1s       3s      1.5s      3s    4.5s
      3     4s      2s       6s      3.5s      7s   10.5s
      4     8s      4s      12s      7.5s     15s   22.5s
"""
WITH_BARS = """\
create_backoff(base=1.0, max=8.0, jitter=0.5)

                                 --- elapsed in total ---
attempt  delay  lowest  highest  earliest  middle  latest
      1     1s   500ms     1.5s     500ms      1s    1.5s  █░░
      2     2s      1s       3s      1.5s      3s    4.5s  ██░░░░
      3     4s      2s       6s      3.5s      7s   10.5s  ████░░░░░░░░
      4     8s      4s      12s      7.5s     15s   22.5s  ████████░░░░░░░░░░░░░░░░
"""


@pytest.mark.skipif(find_spec("pty") is None, reason="needs pseudo-terminals")
@pytest.mark.parametrize(
    ("columns", "encoding", "shown"),
    [(84, "utf-8", WITH_BARS), (60, "utf-8", PLAIN), (1, "utf-8", PLAIN), (84, "ascii", PLAIN)],
)
def test_a_terminal_shows_bars_where_it_can(columns: int, encoding: str, shown: str) -> None:
    # An empty COLUMNS leaves the size to the terminal.
    assert on_a_terminal(columns, {"PYTHONIOENCODING": encoding, "COLUMNS": ""}) == shown
