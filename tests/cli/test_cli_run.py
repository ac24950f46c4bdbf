"""The verb `run`: what is retried, what is said, and what passes through."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from backoff_schedule import create_backoff, testing
from backoff_schedule.cli import child, main
from backoff_schedule.cli.run import run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the commands are those of a Unix shell")

FAST = ["--base", "1ms"]
PROGRAM = [sys.executable, "-m", "backoff_schedule", "run"]


def lines_of(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    """The status and what stands on stderr, without the name of the command before it."""
    status = main(["run", *FAST, *arguments])
    err = capfd.readouterr().err
    return status, [line.removeprefix("backoff-schedule run: ") for line in err.splitlines()]


def ended(
    *arguments: str | bytes, stdin: bytes = b"", folder: Path | None = None
) -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        [*PROGRAM, *FAST, *arguments],
        input=stdin,
        capture_output=True,
        cwd=folder,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def shell(script: str) -> list[str]:
    return ["--", "sh", "-c", script]


def test_a_command_that_succeeds_runs_once_and_nothing_is_said(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", "--", "echo", "hello"]) == 0
    assert capfd.readouterr() == ("hello\n", "")


def test_a_command_runs_until_it_succeeds(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    script = f"echo run >> {tmp_path}/log; test $(wc -l < {tmp_path}/log) = 3 || exit 75"
    assert lines_of(capfd, *shell(script)) == (
        0,
        [
            "attempt 1 of 5 exited with 75; next in 1ms",
            "attempt 2 of 5 exited with 75; next in 2ms",
        ],
    )


@pytest.mark.parametrize(
    ("script", "status", "how"),
    [
        ("exit 1", 1, "exited with 1"),
        ("exit 255", 255, "exited with 255"),
        ("kill -9 $$", 137, "was ended by SIGKILL"),
        ("kill -40 $$", 168, "was ended by signal 40"),
    ],
)
def test_the_last_status_is_that_of_the_last_run(
    script: str, status: int, how: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert lines_of(capfd, "--attempts", "2", *shell(script)) == (
        status,
        [
            f"attempt 1 of 2 {how}; next in 1ms",
            f"attempt 2 of 2 {how}; gave up: no attempt is left",
        ],
    )


@pytest.mark.parametrize("status", [126, 127])
def test_a_status_that_no_retry_mends_is_retried_only_where_it_is_named(
    status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    line = f"attempt 1 of 5 exited with {status}; gave up: {status} is not retried"
    assert lines_of(capfd, *shell(f"exit {status}")) == (status, [line])
    named = ["--attempts", "2", "--on-exit", f"1,{status}"]
    assert len(lines_of(capfd, *named, *shell(f"exit {status}"))[1]) == 2


def test_a_status_that_is_not_named_ends_at_once(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    script = f"echo run >> {tmp_path}/log; exit $(wc -l < {tmp_path}/log)"
    assert lines_of(capfd, "--on-exit", "1,75", *shell(script)) == (
        2,
        [
            "attempt 1 of 5 exited with 1; next in 1ms",
            "attempt 2 of 5 exited with 2; gave up: 2 is not named by --on-exit",
        ],
    )


@pytest.mark.parametrize(
    ("named", "runs"), [([], 2), (["--on-exit", "124"], 2), (["--on-exit", "1"], 1)]
)
def test_a_timeout_counts_as_124(
    named: list[str], runs: int, capfd: pytest.CaptureFixture[str]
) -> None:
    limits = ["--attempts", "2", "--timeout", "50ms"]
    status, lines = lines_of(capfd, *limits, *named, "--", "sleep", "60")
    assert (status, len(lines)) == (124, runs)
    assert lines[0].startswith("attempt 1 of 2 took longer than 50ms; ")


def test_what_is_not_found_ends_with_127(capfd: pytest.CaptureFixture[str]) -> None:
    for command in ("no such command", "./no/such/file"):
        line = (
            f"attempt 1 of 5 did not start, {command!r} is not found; gave up: 127 is not retried"
        )
        assert lines_of(capfd, "--", command) == (127, [line])


def test_what_cannot_be_executed_ends_with_126(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plain, garbage = tmp_path / "plain", tmp_path / "garbage"
    plain.write_text("echo hello")
    garbage.write_bytes(b"\0\1\2")
    garbage.chmod(0o755)
    for path, why in ((plain, "permission denied"), (garbage, "exec format error")):
        status, lines = lines_of(capfd, "--", str(path))
        assert status == 126
        assert lines[0].endswith(f"cannot be executed: {why}; gave up: 126 is not retried")


def test_a_system_without_room_for_a_process_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(child, "Popen", full)
    status, lines = lines_of(capfd, "true")
    assert (status, len(lines)) == (1, 1)


def test_no_wait_starts_that_would_end_after_max_elapsed(
    capfd: pytest.CaptureFixture[str],
) -> None:
    schedule = ["--steps", "1ms,1h", "--max-elapsed", "30m"]
    assert main(["run", *schedule, "false"]) == 1
    last = capfd.readouterr().err.splitlines()[-1]
    why = "a wait of 1h would end later than 30m after the start"
    assert last == f"backoff-schedule run: attempt 2 of 5 exited with 1; gave up: {why}"


def test_a_wait_without_end_is_not_begun(capfd: pytest.CaptureFixture[str]) -> None:
    endless = ["--base", "1w", "--factor", "1e308"]
    with testing.instant():
        assert main(["run", *endless, "--attempts", "forever", "false"]) == 1
    last = capfd.readouterr().err.splitlines()[-1]
    assert last.endswith(" exited with 1; gave up: the next wait would have no end")


def test_forever_counts_without_an_end(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    script = f"echo run >> {tmp_path}/log; test $(wc -l < {tmp_path}/log) = 8"
    status, lines = lines_of(capfd, "--max", "1ms", "--attempts", "forever", *shell(script))
    assert (status, lines[-1]) == (0, "attempt 7 exited with 1; next in 1ms")


@pytest.mark.parametrize(
    ("options", "schedule"),
    [
        ([], create_backoff(base=1, max=60, jitter=0.2)),
        (["--jitter", "0.5"], create_backoff(base=1, max=60, jitter=0.5)),
        (["--base", "2m"], create_backoff(base=120)),
        (["--preset", "quick"], create_backoff(base=0.2, max=2, jitter="full")),
    ],
)
def test_the_waits_are_those_of_the_schedule(
    options: list[str],
    schedule: object,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert isinstance(schedule, type(create_backoff(base=1)))
    with testing.instant() as waits:
        main(["run", *options, "--key", "deploy", "--", "false"])
    keyed = schedule.keyed("deploy")
    assert waits == [keyed.delay(attempt) for attempt in (1, 2, 3, 4)]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "it needs a command: backoff-schedule run [options] -- COMMAND; see --help"),
        (["--base", "1s", "--"], "it needs a command: backoff-schedule run [options] -- COMMAND"),
        (["--", "", "x"], "it needs a command: backoff-schedule run [options] -- COMMAND"),
        (["--attemps", "2", "true"], "'--attemps' is not an option; did you mean --attempts?"),
        (
            ["--zzz", "true"],
            "'--zzz' is not an option; see --help; the command goes last, after --",
        ),
        (
            ["--attempts", "0", "true"],
            "attempts ('0') needs to be a whole number of runs, 1 or more",
        ),
        (["--attempts", "no", "true"], "attempts ('no') needs to be a whole number of runs, 1 or"),
        (["--on-exit", "0", "true"], "on-exit ('0') needs to be exit statuses from 1 to 255 with"),
        (["--on-exit", "1,256", "true"], "on-exit ('1,256') needs to be exit statuses from 1 to"),
        (["--on-exit", "1,", "true"], "on-exit ('') needs to be exit statuses from 1 to 255"),
        (
            ["--timeout", "0s", "true"],
            "timeout ('0s') needs to be longer than nothing, such as 30s",
        ),
        (["--timeout", "5", "true"], "timeout ('5') needs to be a number and a unit"),
        (["--kill-after", "1s", "true"], "--kill-after goes with --timeout, which says when to"),
        (["--max-elapsed", "soon", "true"], "max-elapsed ('soon') needs to be a number and a unit"),
        (["--max", "1ms", "true"], "max (1ms) needs to be at least base (1s)"),
    ],
)
def test_bad_options_exit_2_with_one_line_and_run_nothing(
    arguments: list[str], sentence: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *arguments]) == 2
    written = capfd.readouterr()
    assert written.out == ""
    assert written.err.startswith(f"backoff-schedule run: {sentence}")
    assert written.err.count("\n") == 1


@pytest.mark.parametrize("separator", [[], ["--"]])
def test_the_words_of_the_command_are_its_own(
    separator: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["echo", "--base", "1m", "--", "--help", "-x"]
    assert main(["run", "--attempts", "1", *separator, *words]) == 0
    assert capfd.readouterr().out == "--base 1m -- --help -x\n"


def test_odd_arguments_reach_the_command_byte_by_byte() -> None:
    words = [b"", b" two words ", "Füße\N{PILE OF POO}".encode(), b"\xff\xe9", b"a\nb", b"$HOME*"]
    words += [b"x" * 100_000, *(b"%d" % number for number in range(1000))]
    program = "import os, sys; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, sys.argv[1:])))"
    status, out, err = ended("--", sys.executable, "-c", program, *words)
    assert (status, err) == (0, b"")
    assert out.split(b"\0") == words


def test_what_the_command_writes_passes_through_untouched() -> None:
    program = (
        "import sys; block = bytes(range(256)) * 4096\n"
        "for _ in range(20): sys.stdout.buffer.write(block)\n"
        "sys.stderr.buffer.write(block)"
    )
    status, out, err = ended("--", sys.executable, "-c", program)
    block = bytes(range(256)) * 4096
    assert (status, out == 20 * block, err == block) == (0, True, True)


def test_an_open_descriptor_is_the_commands_too(tmp_path: Path) -> None:
    script = f"exec 7> {tmp_path}/seven; exec {' '.join(PROGRAM)} -- sh -c 'echo hello >&7'"
    assert subprocess.run(["sh", "-c", script], timeout=60, check=False).returncode == 0
    assert (tmp_path / "seven").read_text() == "hello\n"


def test_the_first_run_has_stdin_and_later_ones_an_empty_one() -> None:
    # `read` takes one line and leaves the other.
    script = "echo run; read -r line && echo $line; exit 1"
    status, out, _ = ended("--attempts", "3", *shell(script), stdin=b"one\ntwo\n")
    assert (status, out) == (1, b"run\none\nrun\nrun\n")


def test_a_replayed_stdin_is_the_same_for_each_run() -> None:
    stdin = bytes(range(256)) * 4096
    replayed = ["--attempts", "3", "--replay-stdin"]
    status, out, _ = ended(*replayed, *shell("cat; exit 1"), stdin=stdin)
    assert (status, out == 3 * stdin) == (1, True)


@pytest.mark.parametrize("script", ["exit 1", "head -c 10 > /dev/null; exit 1", "sleep 3 & exit 1"])
def test_a_command_may_leave_a_replayed_stdin_unread(script: str) -> None:
    done = subprocess.run(
        [*PROGRAM, *FAST, "--attempts=2", "--replay-stdin", *shell(f"{script}")],
        input=b"x" * 16 * 2**20,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1


def test_what_one_run_has_read_the_next_one_reads_again() -> None:
    replayed = ["--attempts", "2", "--replay-stdin"]
    status, out, _ = ended(*replayed, *shell("head -c 1; exit 1"), stdin=b"hello")
    assert (status, out) == (1, b"hh")


def test_a_stdin_too_long_to_replay_is_refused_before_anything_runs() -> None:
    status, out, err = ended("--replay-stdin", "--", "echo", "ran", stdin=b"x" * (16 * 2**20 + 1))
    assert (status, out) == (2, b"")
    assert err == (
        b"backoff-schedule run: --replay-stdin holds 16 MiB, and stdin has more: nothing was run\n"
    )


@pytest.mark.parametrize("system", ["with memory files", "without"])
def test_stdin_is_replayed_on_every_system(
    system: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    if system == "without":
        monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"hello\n")))
    assert main(["run", *FAST, "--attempts=2", "--replay-stdin", *shell("cat; exit 1")]) == 1
    assert capfd.readouterr().out == "hello\nhello\n"


def test_a_stdin_one_byte_too_long_is_refused(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x" * (16 * 2**20 + 1))))
    assert main(["run", "--replay-stdin", "--", "echo", "ran"]) == 2
    assert capfd.readouterr().out == ""


def test_a_closed_stdin_is_replayed_as_an_empty_one(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["run", "--replay-stdin", "--", "cat"]) == 0
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("closed", ["2>&-", "<&- 2>&-", "<&- >&- 2>&-", "<&- >&-"])
@pytest.mark.parametrize("option", ["", "--replay-stdin", "--timeout 50s"])
def test_closed_streams_do_no_harm(closed: str, option: str, tmp_path: Path) -> None:
    inner = f"echo run >> {tmp_path}/log; exit 3"
    script = (
        f"exec {' '.join(PROGRAM)} --base 1ms --attempts 3 {option} -- sh -c '{inner}' {closed}"
    )
    done = subprocess.run(
        ["sh", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (3, b"")
    assert (tmp_path / "log").read_text() == "run\n" * 3


def test_a_reader_of_stderr_that_went_away_ends_no_retry(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    raw = os.fdopen(writer, "wb", buffering=0)
    stream = io.TextIOWrapper(raw, write_through=True)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", stream)
        assert main(["run", *FAST, "--attempts=3", *shell("echo run; exit 3")]) == 3
    raw.close()
    assert capfd.readouterr().out == "run\n" * 3


def test_without_a_stderr_nothing_is_said_on_stdout(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", None)
        assert run([*FAST, "--attempts=2", "false"]) == 1
    assert capfd.readouterr() == ("", "")


def test_the_handlers_of_the_process_are_put_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    assert main(["run", "true"]) == 0
    after = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    assert before == after
