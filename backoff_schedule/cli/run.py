"""`backoff-schedule run`: a command, run until it succeeds."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import NamedTuple

from ..durations import to_seconds
from ..refusals import refusal
from ..retrying import retry
from ..schedule import create_backoff
from .child import NOT_EXECUTABLE, NOT_FOUND, Command, CommandError
from .parser import Parser
from .readable import readable_duration
from .schedule_options import add_schedule_options, schedule_from, whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from ..backoff import Backoff
    from ..retry_run import RetryEvent

_DESCRIPTION = """\
Run a command until it exits with 0, and wait between the runs as a schedule says. Without
--base, --steps or --preset that is --base 1s --max 1m --jitter 0.2, changed by the other
options.

What the command writes passes straight through; each retry and giving up are one line on
stderr. The first run has the stdin of this command, later runs an empty one. Every status but
0, 126 and 127 is retried.

Ends with the status of the last run: 124 if --timeout ended it, 126 if it cannot be executed,
127 if it is not found, 128 + N if signal N ended it. SIGINT, SIGTERM and SIGHUP reach the
command, no run follows, and the status is 128 + N.
"""

_EXAMPLES = """\
examples:
  backoff-schedule run -- curl --fail --silent https://example.com/health
  backoff-schedule run --base 5s --max 5m --attempts 10 --timeout 1m -- ./deploy --dry-run
  backoff-schedule run --on-exit 75 --max-elapsed 10m -- rsync -a src/ backup:src/
  pg_dump shop | backoff-schedule run --replay-stdin -- ./upload shop.sql
"""

_DEFAULT = create_backoff(base=1, max=60, jitter=0.2)
_MOST_REPLAYED = 16 * 2**20

_ATTEMPTS_RULE = "a whole number of runs, 1 or more, or forever"
_ON_EXIT_RULE = "exit statuses from 1 to 255 with commas between them, such as 1,75"


class _Request(NamedTuple):
    """What was asked for, checked."""

    schedule: Backoff
    attempts: int | None
    max_elapsed: float | None
    on_exit: frozenset[int] | None
    timeout: float | None
    kill_after: float

    def retries(self, error: Exception) -> bool:
        """Whether another run may follow this error."""
        if not isinstance(error, CommandError):
            return False
        if self.on_exit is None:
            return error.status not in (NOT_EXECUTABLE, NOT_FOUND)
        return error.status in self.on_exit

    def tell_retry(self, event: RetryEvent) -> None:
        wait = readable_duration(event.wait or 0.0)
        self._tell(event.attempt, event.exception, f"next in {wait}")

    def tell_giving_up(self, event: RetryEvent) -> None:
        if event.reason == "attempts":
            why = "no attempt is left"
        elif event.reason == "unbounded":
            why = "the next wait would have no end"
        else:
            limit = readable_duration(self.max_elapsed or 0.0)
            wait = readable_duration(event.wait or 0.0)
            why = f"a wait of {wait} would end later than {limit} after the start"
        self._tell(event.attempt, event.exception, f"gave up: {why}")

    def tell_end(self, attempt: int, error: CommandError) -> None:
        """Say that an error is none that `retries` is for."""
        rule = "is not retried" if self.on_exit is None else "is not named by --on-exit"
        self._tell(attempt, error, f"gave up: {error.status} {rule}")

    def _tell(self, attempt: int, error: Exception | None, then: str) -> None:
        count = f"{attempt}" if self.attempts is None else f"{attempt} of {self.attempts}"
        # What nobody can read any more is no reason to end the command.
        if sys.stderr is not None:
            with suppress(OSError):
                line = f"backoff-schedule run: attempt {count} {error}; {then}"
                print(line, file=sys.stderr, flush=True)


def run(arguments: list[str]) -> int:
    parser = _parser()
    options, words = parser.read_before_command(arguments)
    # An empty word is what a shell makes of a variable that is not set.
    if not words or not words[0]:
        parser.error("it needs a command: backoff-schedule run [options] -- COMMAND; see --help")
    try:
        request = _request(options)
        stdin = _whole_stdin() if options.replay_stdin else None
    except (TypeError, ValueError) as refused:
        parser.error(str(refused))
    command = Command(words, request.timeout, request.kill_after, stdin)
    policy = retry(
        request.schedule,
        attempts=request.attempts,
        on=request.retries,
        max_elapsed=request.max_elapsed,
        on_retry=request.tell_retry,
        on_give_up=request.tell_giving_up,
    )
    try:
        with command:
            policy.call(command.run)
    except CommandError as failed:
        if not request.retries(failed):
            request.tell_end(command.runs, failed)
        return failed.status
    return 0


def _parser() -> Parser:
    parser = Parser("run", "[options] -- COMMAND [ARGUMENT ...]", _DESCRIPTION, _EXAMPLES)
    parser.hint = "see --help; the command goes last, after --"
    add_schedule_options(parser)
    group = parser.add_argument_group("how often and how long")
    group.add_argument(
        "--attempts",
        metavar="N",
        default="5",
        help="how many runs at most, the first one included: 5 by default, or forever",
    )
    group.add_argument(
        "--max-elapsed",
        metavar="TIME",
        help="start no wait that would end later than this after the first run began",
    )
    group.add_argument(
        "--on-exit",
        metavar="N,...",
        help="retry these statuses only; any other one ends at once, 124 and 128 + N too",
    )
    group.add_argument(
        "--timeout",
        metavar="TIME",
        help="end a run, and what it has started, after this time. It runs in a process group of "
        "its own then, and cannot read from a terminal",
    )
    group.add_argument(
        "--kill-after",
        metavar="TIME",
        help="how long after the SIGTERM of --timeout what still runs gets SIGKILL, 5s by default",
    )
    group.add_argument(
        "--replay-stdin",
        action="store_true",
        help="read stdin to its end, 16 MiB at most, and give the same bytes to each run",
    )
    return parser


def _request(options: Namespace) -> _Request:
    if options.kill_after is not None and options.timeout is None:
        raise ValueError("--kill-after goes with --timeout, which says when to end a run")
    timeout = None if options.timeout is None else to_seconds(options.timeout, "timeout")
    if timeout == 0.0:
        raise ValueError(refusal("timeout", options.timeout, "longer than nothing, such as 30s"))
    limit = options.max_elapsed
    return _Request(
        schedule_from(options, _DEFAULT),
        None if options.attempts == "forever" else _attempts(options.attempts),
        None if limit is None else to_seconds(limit, "max-elapsed"),
        None if options.on_exit is None else _statuses(options.on_exit),
        timeout,
        to_seconds(options.kill_after or "5s", "kill-after"),
    )


def _attempts(text: str) -> int:
    attempts = whole_number(text, "attempts", _ATTEMPTS_RULE)
    if attempts < 1:
        raise ValueError(refusal("attempts", text, _ATTEMPTS_RULE))
    return attempts


def _statuses(text: str) -> frozenset[int]:
    statuses = [whole_number(part, "on-exit", _ON_EXIT_RULE) for part in text.split(",")]
    if not all(1 <= status <= 255 for status in statuses):
        raise ValueError(refusal("on-exit", text, _ON_EXIT_RULE))
    return frozenset(statuses)


def _whole_stdin() -> bytes:
    if sys.stdin is None:
        return b""
    content = sys.stdin.buffer.read(_MOST_REPLAYED + 1)
    if len(content) > _MOST_REPLAYED:
        raise ValueError("--replay-stdin holds 16 MiB, and stdin has more: nothing was run")
    return content
