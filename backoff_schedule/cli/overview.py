"""The command without a verb: `--help`, `--version`, and a verb that does not exist."""

from __future__ import annotations

import argparse

from ..refusals import shown
from . import VERBS
from .parser import Parser, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_DESCRIPTION = """\
One schedule answers one question: how long after the Nth failure?

verbs:
  show         the timetable of a schedule: each wait, its band, and the time in all
  retry-after  what the Retry-After field of an HTTP answer means
  run          a command, run until it succeeds
  outbox       deliver from an outbox, look at it, redrive dead letters
  demo         watch events arrive, once each, at a receiver that fails: a few seconds
"""

_EXAMPLES = """\
examples:
  backoff-schedule show --base 1m --max 6h --jitter 0.2
  backoff-schedule show --preset svix --fits 24h
  backoff-schedule retry-after 'Sun, 06 Nov 1994 08:49:37 GMT'
  backoff-schedule run --attempts 5 -- curl --fail https://example.com/health
  backoff-schedule outbox --db app.db dead
  backoff-schedule demo

Each verb has a --help of its own: backoff-schedule show --help
"""


def run(arguments: list[str]) -> int:
    parser = Parser("", "VERB [options]", _DESCRIPTION, _EXAMPLES)
    parser.add_argument("verb", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    options = parser.read(arguments)
    if options.version:
        print(f"backoff-schedule {_version()}")
        return 0
    if options.verb is not None:
        _refuse(parser, options.verb)
    parser.print_help()
    return 2


def _refuse(parser: Parser, verb: str) -> NoReturn:
    if verb in VERBS:
        parser.error(f"the verb goes first: backoff-schedule {verb} ...")
    hint = nearest(verb, VERBS) or f"the verbs are {', '.join(VERBS)}"
    parser.error(f"{shown(verb)} is not a verb; {hint}")


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("backoff-schedule")
    except PackageNotFoundError:
        return "(a source tree that is not installed)"
