"""The process under `run`: signals, terminals, time limits and what a command leaves behind."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from backoff_schedule.cli import child, main

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals and terminals are those of Unix")

PROGRAM = [sys.executable, "-m", "backoff_schedule", "run", "--base", "10ms"]
# Each with and without a process group of the command's own.
GROUPED = pytest.mark.parametrize("limit", [[], ["--timeout", "60s"]], ids=["shared", "own group"])

# Notes every signal, and waits for a second one that should not come.
COUNTING = """
import signal, sys, time
got = []
signal.alarm(60)
for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
    signal.signal(getattr(signal, name), lambda number, frame: got.append(number))
print("ready", flush=True)
while not got:
    time.sleep(0.01)
time.sleep(0.4)
print("got", *got, flush=True)
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture(autouse=True)
def heard_signals() -> Iterator[None]:
    """A background job of a shell ignores SIGINT, and hands that down; a handler is not."""
    names = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
    ignored = [number for number in names if signal.getsignal(number) == signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.default_int_handler)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [*PROGRAM, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        # Away from the terminal that the tests may run in.
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            # A test that has failed does not wait for what it has left.
            process.kill()


def line_of(stream: IO[bytes] | None) -> bytes:
    assert stream is not None
    assert select.select([stream], [], [], 60)[0], "it says nothing"
    return stream.readline()


def read_until(stream: IO[bytes] | None, word: bytes) -> None:
    while word not in (line := line_of(stream)):
        assert line, f"it ended before it said {word!r}"


@GROUPED
@pytest.mark.parametrize("status", ["0", "1"])
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT"])
def test_a_signal_reaches_the_command_once_and_no_run_follows(
    name: str, status: str, limit: list[str]
) -> None:
    number = getattr(signal, name)
    with started(*limit, "--", sys.executable, "-c", COUNTING, status) as process:
        read_until(process.stdout, b"ready")
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (out, err) == (b"got %d\n" % number, b"")
    assert process.returncode == 128 + number


@GROUPED
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT"])
def test_a_signal_ends_a_wait_at_once(name: str, limit: list[str]) -> None:
    number = getattr(signal, name)
    with started("--base", "1h", *limit, "--", "false") as process:
        assert b"next in 1h" in line_of(process.stderr)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (128 + number, b"", b"")


def test_in_process_a_signal_is_passed_on_and_ends_the_retries(
    capfd: pytest.CaptureFixture[str],
) -> None:
    script = "trap 'echo told; exit 0' TERM; kill -TERM $PPID; while :; do sleep 0.05; done"
    assert main(["run", "--", "sh", "-c", script]) == 143
    assert capfd.readouterr() == ("told\n", "")


@pytest.mark.parametrize("name", ["TERM", "INT"])
def test_in_process_a_signal_ends_a_wait(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    script = f"(sleep 0.3; kill -{name} $PPID) > /dev/null 2>&1 & exit 1"
    assert (
        main(["run", "--base", "1h", "--", "sh", "-c", script]) == {"TERM": 143, "INT": 130}[name]
    )
    assert capfd.readouterr().err.count("\n") == 1


def test_a_signal_that_comes_while_the_command_starts_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def slow(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
        process: subprocess.Popen[bytes] = subprocess.Popen(*arguments, **options)  # type: ignore[call-overload]
        signal.raise_signal(signal.SIGTERM)
        processes.append(process)
        return process

    processes: list[subprocess.Popen[bytes]] = []
    monkeypatch.setattr(child, "Popen", slow)
    assert main(["run", "--", "sleep", "20"]) == 143
    assert [process.returncode for process in processes] == [-signal.SIGTERM]
    assert capfd.readouterr().err == ""


def test_a_signal_while_a_command_that_does_not_exist_starts_ends_the_retries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGTERM)
        raise FileNotFoundError(2, "No such file or directory", "missing")

    monkeypatch.setattr(child, "Popen", missing)
    assert main(["run", "--on-exit", "127", "--", "missing"]) == 143


def test_what_was_ignored_stays_ignored_here_and_in_the_command() -> None:
    words = " ".join(PROGRAM)
    script = f"trap '' HUP; exec {words} -- sh -c 'echo $$; kill -HUP $$ $PPID; echo alive'"
    done = subprocess.run(["sh", "-c", script], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.split()[1:], done.stderr) == (0, [b"alive"], b"")


def test_in_process_what_was_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert main(["run", "--", "sh", "-c", "kill -HUP $PPID"]) == 0
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_what_a_terminal_has_sent_already_is_not_sent_again(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(child, "_terminal_signals_us", lambda: True)
    assert main(["run", "--", "sh", "-c", "kill -INT $PPID; sleep 0.2; echo ended"]) == 130
    assert capfd.readouterr() == ("ended\n", "")


def test_a_parent_that_ignores_the_end_of_children_takes_no_status_away() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert main(["run", "--attempts", "1", "--", "sh", "-c", "exit 7"]) == 7
        assert signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGCHLD, before)


class Terminal:
    """A command with a pseudo-terminal of its own as stdin, stdout, stderr and for Ctrl-C."""

    def __init__(self, *arguments: str) -> None:
        import pty

        self._ours, theirs = pty.openpty()
        claim = (
            "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
            "os.execv(sys.argv[1], sys.argv[1:])"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", claim, *PROGRAM, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.shown = b""

    def type(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def read_until(self, word: bytes) -> None:
        while word not in self.shown:
            assert self._read(), self.shown

    def ended(self) -> int:
        while self._read():
            pass
        os.close(self._ours)
        return self.process.wait(timeout=60)

    def _read(self) -> bool:
        assert select.select([self._ours], [], [], 60)[0], self.shown
        try:
            chunk = os.read(self._ours, 4096)
        except OSError:
            # Linux says so when the last writer has gone.
            return False
        self.shown += chunk
        return bool(chunk)


@GROUPED
@pytest.mark.parametrize(("key", "number"), [(b"\x03", signal.SIGINT), (b"\x1c", signal.SIGQUIT)])
def test_a_key_in_a_terminal_reaches_the_command_exactly_once(
    key: bytes, number: int, limit: list[str]
) -> None:
    terminal = Terminal(*limit, "--", sys.executable, "-c", COUNTING, "1")
    terminal.read_until(b"ready")
    terminal.type(key)
    assert terminal.ended() == 128 + number
    assert terminal.shown.count(b"ready") == 1
    assert b"got %d\r\n" % number in terminal.shown
    assert b"attempt" not in terminal.shown


def test_ctrl_c_in_a_terminal_ends_a_wait() -> None:
    terminal = Terminal("--base", "1h", "--", "false")
    terminal.read_until(b"next in 1h")
    terminal.type(b"\x03")
    assert terminal.ended() == 130


def test_the_command_keeps_the_terminal() -> None:
    script = 'test -t 0 && test -t 1 && test -t 2 && echo ready && read a && echo "<$a>"'
    terminal = Terminal("--", "sh", "-c", script)
    terminal.read_until(b"ready")
    terminal.type(b"typed\n")
    assert terminal.ended() == 0
    assert b"<typed>" in terminal.shown


@pytest.mark.parametrize(
    ("foreground", "answer"), [(os.getpgrp(), True), (1, False), (OSError(), False)]
)
def test_only_a_terminal_that_has_us_in_front_signals_us(
    foreground: int | OSError, answer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(path: str, flags: int) -> int:
        assert path == "/dev/tty"
        return os.dup(0)

    def front(_: int) -> int:
        if isinstance(foreground, OSError):
            raise foreground
        return foreground

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", opened)
        patched.setattr(os, "tcgetpgrp", front)
        assert child._terminal_signals_us() is answer


def test_without_a_terminal_nothing_else_signals_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def absent(path: str, flags: int) -> int:
        raise OSError(6, "No such device or address")

    monkeypatch.setattr(os, "open", absent)
    assert child._terminal_signals_us() is False


def test_a_console_signals_all_that_run_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "tcgetpgrp")
    assert child._terminal_signals_us() is True


def test_a_run_that_takes_too_long_may_end_in_its_own_way(
    capfd: pytest.CaptureFixture[str],
) -> None:
    script = "trap 'echo cleaning; exit 0' TERM; echo begun; sleep 600 & wait"
    limits = ["--attempts=2", "--base=1ms", "--timeout=1s", "--kill-after=20s"]
    assert main(["run", *limits, "--", "sh", "-c", script]) == 124
    assert capfd.readouterr().out == "begun\ncleaning\n" * 2


@pytest.mark.parametrize(
    "script",
    [
        "trap '' TERM; sleep 600",
        "(trap '' TERM; sleep 600) & sleep 600",
    ],
    ids=["ignores SIGTERM", "its child ignores SIGTERM"],
)
def test_a_run_that_takes_too_long_is_killed_with_all_that_it_started(script: str) -> None:
    limits = ["--attempts=1", "--timeout=300ms", "--kill-after=100ms"]
    # Each of them holds the pipe, which ends only when all of them have.
    with started(*limits, "--", "sh", "-c", script) as process:
        out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (124, b"")


def test_what_outlives_the_command_is_killed_after_the_grace() -> None:
    limits = ["--attempts=1", "--timeout=1s", "--kill-after=100ms"]
    script = "(trap '' TERM; sleep 60) > /dev/null 2>&1 & sleep 60"
    assert main(["run", *limits, "--", "sh", "-c", script]) == 124


def test_a_stopped_run_meets_its_sigterm(capfd: pytest.CaptureFixture[str]) -> None:
    limits = ["--attempts=1", "--timeout=1s", "--kill-after=20s"]
    script = "trap 'echo asked; exit 0' TERM; kill -STOP $$; sleep 60"
    assert main(["run", *limits, "--", "sh", "-c", script]) == 124
    assert capfd.readouterr().out == "asked\n"


def test_where_processes_have_no_groups_the_command_alone_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(child, "_HAS_GROUPS", False)
    limits = ["--attempts=1", "--timeout=100ms"]
    assert main(["run", *limits, "--", "sleep", "600"]) == 124
    stubborn = ["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"]
    assert main(["run", *limits, "--kill-after=50ms", "--", *stubborn]) == 124


def test_a_signal_while_a_run_is_being_ended_stops_the_retries() -> None:
    script = "trap 'echo asked; sleep 0.5; exit 1' TERM; echo ready; while :; do sleep 0.05; done"
    limits = ["--timeout=300ms", "--kill-after=1m"]
    with started(*limits, "--", "sh", "-c", script) as process:
        read_until(process.stdout, b"asked")
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=60)
    assert process.returncode == 129


def test_what_a_command_leaves_in_the_background_holds_nothing_up() -> None:
    with started("--", "sh", "-c", "sleep 600 & echo $!") as process:
        left = int(line_of(process.stdout))
        try:
            # The pipe is still open, so this waits for the process alone.
            assert process.wait(timeout=60) == 0
            os.kill(left, 0)
        finally:
            os.kill(left, signal.SIGKILL)


def test_a_command_that_we_may_not_signal_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(subprocess.Popen, "send_signal", refused)
    assert main(["run", "--", "sh", "-c", "kill -TERM $PPID; sleep 0.2; echo ended"]) == 143
    assert capfd.readouterr().out == "ended\n"


def test_a_module_without_hangups_and_groups_can_be_loaded() -> None:
    program = (
        "import os, signal\n"
        "for name in ('SIGHUP', 'SIGQUIT', 'SIGCHLD', 'SIGCONT', 'SIGKILL'):\n"
        "    delattr(signal, name)\n"
        "for name in ('killpg', 'getpgrp', 'tcgetpgrp', 'memfd_create', 'O_NOCTTY'):\n"
        "    if hasattr(os, name): delattr(os, name)\n"
        "import sys; from backoff_schedule.cli import main\n"
        "sys.exit(main(['run', '--attempts', '1', '--timeout', '100ms', '--', 'sleep', '600']))"
    )
    done = subprocess.run([sys.executable, "-c", program], timeout=60, check=False)
    assert done.returncode == 124
