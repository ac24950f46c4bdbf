"""A command that can be run again and again, and the signals that reach it.

Without a time limit a run stays in our process group, so that a terminal takes both for one job:
it may read from it, and Ctrl-C reaches both. With one it leads a group of its own, which can be
ended as a whole; it is then in the background of a terminal.

| signal to us | while the command runs | else |
|---|---|---|
| SIGINT, SIGQUIT | passed on, unless a terminal sent it to both | ends us |
| SIGTERM, SIGHUP | passed on | ends us |

What comes while the command is being started is passed on once it runs. When the command has
ended, so do we. What was ignored when we were started stays ignored, here and in the command.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import nullcontext, suppress
from subprocess import DEVNULL, Popen, TimeoutExpired
from tempfile import TemporaryFile

from ..refusals import shown
from .readable import readable_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from types import FrameType
    from typing import IO, Any, Self

TIMED_OUT, NOT_EXECUTABLE, NOT_FOUND = 124, 126, 127

_HAS_GROUPS = hasattr(os, "killpg")
_HANDLED = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP")
    if hasattr(signal, name)
]
_OF_A_TERMINAL = ("SIGINT", "SIGQUIT")
_POLL = 0.02


class CommandError(Exception):
    """A run that did not end with 0: its status as a shell gives it, and how it came about."""

    def __init__(self, status: int, how: str) -> None:
        super().__init__(how)
        self.status = status


class Command:
    """A command, its arguments, and what each run of it gets.

    - `limit`: seconds that one run may take, None for any.
    - `grace`: seconds between the SIGTERM after that and the SIGKILL.
    - `stdin`: bytes that each run reads; with None the first run has ours, and later ones none.

    It runs inside its `with` block, which handles the signals.
    """

    def __init__(
        self, words: list[str], limit: float | None, grace: float, stdin: bytes | None
    ) -> None:
        self.runs = 0
        self._words = words
        self._limit = limit
        self._grace = grace
        self._stdin = stdin
        self._grouped = limit is not None and _HAS_GROUPS
        self._running = False
        self._process: Popen[bytes] | None = None
        self._received: list[int] = []
        self._undelivered: list[int] = []
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in _HANDLED:
            if signal.getsignal(number) != signal.SIG_IGN:
                self._handlers[number] = signal.signal(number, self._on_signal)
        if hasattr(signal, "SIGCHLD"):
            # Ignored, as some parents leave it, it would take every exit status away.
            self._handlers[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def run(self) -> None:
        """Run it to its end. Raises `CommandError` unless that is 0, `SystemExit` after a signal.

        Raises `OSError` where the system has no room for another process.
        """
        self.runs += 1
        self._running = True
        try:
            failed = self._outcome()
        finally:
            self._running, self._process = False, None
        if self._received:
            raise SystemExit(128 + self._received[0])
        if failed is not None:
            raise failed

    def _outcome(self) -> CommandError | None:
        try:
            process = self._started()
        except OSError as failure:
            # Only what the system says about the command itself bears a name.
            if failure.filename is None:
                raise
            return _not_started(self._words[0], failure)
        self._process = process
        while self._undelivered:
            self._pass_on(process, self._undelivered.pop(0))
        try:
            status = process.wait(self._limit)
        except TimeoutExpired as late:
            self._end(process)
            return CommandError(TIMED_OUT, f"took longer than {readable_duration(late.timeout)}")
        return _failure(status)

    def _started(self) -> Popen[bytes]:
        with self._input() as stdin:
            return Popen(  # noqa: S603  (to run it is the job)
                self._words,
                stdin=stdin,
                # A descriptor that the caller opened for the command is the command's.
                close_fds=False,
                process_group=0 if self._grouped else None,
            )

    def _input(self) -> AbstractContextManager[IO[bytes] | int | None]:
        if self._stdin is None:
            return nullcontext(None if self.runs == 1 else DEVNULL)
        # A file and no pipe: a command that does not read holds nothing up. Each run has its own,
        # so that what an earlier one has left behind reads nothing away.
        copy = _nameless_file()
        copy.write(self._stdin)
        copy.seek(0)
        return copy

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if not self._running:
            # Raised, because a wait goes on after a handler that returns.
            raise SystemExit(128 + number)
        self._received.append(number)
        if self._process is None:
            self._undelivered.append(number)
        else:
            self._pass_on(self._process, number)

    def _pass_on(self, process: Popen[bytes], number: int) -> None:
        shared = not self._grouped and signal.Signals(number).name in _OF_A_TERMINAL
        if not (shared and _terminal_signals_us()):
            self._send(process, number)

    def _send(self, process: Popen[bytes], number: int) -> None:
        # It has ended, or it runs as a user whom we may not signal.
        with suppress(ProcessLookupError, PermissionError):
            if self._grouped:
                os.killpg(process.pid, number)
            else:
                process.send_signal(number)

    def _end(self, process: Popen[bytes]) -> None:
        self._send(process, signal.SIGTERM)
        if self._grouped:
            # What is stopped would not meet its SIGTERM before it goes on.
            self._send(process, signal.SIGCONT)
        deadline = time.monotonic() + self._grace
        while self._alive(process):
            if time.monotonic() >= deadline:
                self._send(process, getattr(signal, "SIGKILL", signal.SIGTERM))
                break
            time.sleep(_POLL)
        process.wait()

    def _alive(self, process: Popen[bytes]) -> bool:
        """Whether the command or, in its group, anything that it started still runs."""
        if process.poll() is None:
            return True
        if not self._grouped:
            return False
        try:
            os.killpg(process.pid, 0)
        except OSError:
            return False
        return True


def _failure(status: int) -> CommandError | None:
    if status == 0:
        return None
    if status > 0:
        return CommandError(status, f"exited with {status}")
    try:
        name = signal.Signals(-status).name
    except ValueError:
        # A real-time signal has a number only.
        name = f"signal {-status}"
    return CommandError(128 - status, f"was ended by {name}")


def _not_started(word: str, failure: OSError) -> CommandError:
    if isinstance(failure, FileNotFoundError):
        return CommandError(NOT_FOUND, f"did not start, {shown(word)} is not found")
    why = (failure.strerror or "").lower()
    return CommandError(NOT_EXECUTABLE, f"did not start, {shown(word)} cannot be executed: {why}")


def _nameless_file() -> IO[bytes]:
    """A file that no other process can open, in memory where the system has such."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("stdin"), "w+b")
    return TemporaryFile()


def _terminal_signals_us() -> bool:
    """Whether Ctrl-C in our terminal signals our process group, and with it the command."""
    if not hasattr(os, "tcgetpgrp"):
        # A console signals all that run in it.
        return True
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
