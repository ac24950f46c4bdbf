"""The `backoff-schedule` command: which verb runs, and how every run ends.

| ends with | when |
|---|---|
| 0 | it did what was asked |
| 1 | the answer is no, or the system failed: the reason stands on stderr |
| 2 | the options are wrong: one line on stderr says what would be right |
| 130 | Ctrl-C |
| 141 | the reader of the output went away, as for any Unix tool |

`run` ends with the status of its command instead.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Each in a module that is loaded only when its verb runs.
VERBS = {
    "show": "show",
    "retry-after": "retry_after",
    "run": "run",
    "outbox": "outbox",
    "demo": "demo",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and answer its exit status. `arguments` are those of the process."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        status = _status_of(given)
        # Flushed here, where a closed pipe can still be met, and not while Python shuts down.
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        _discard_output()
        return 130
    except BrokenPipeError:
        _discard_output()
        return 141
    except OSError as failure:
        _discard_output()
        print(f"backoff-schedule: {failure}", file=sys.stderr)
        return 1
    return status


def _status_of(arguments: list[str]) -> int:
    try:
        if arguments and arguments[0] in VERBS:
            verb = import_module(f".{VERBS[arguments[0]]}", __package__)
            return int(verb.run(arguments[1:]))
        from .overview import run

        return run(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)


def _discard_output() -> None:
    """Send what is still buffered nowhere, so that the last flush of Python cannot fail."""
    # A stand-in for stdout that has no descriptor is not flushed by Python either.
    with suppress(AttributeError, OSError):
        descriptor = sys.stdout.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
