"""`backoff-schedule outbox worker`: a process that delivers over HTTP."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict

from ...delivery import DEFAULT_POLICY, DeliveryPolicy
from ...durations import to_seconds
from ..schedule_options import add_schedule_options, schedule_from, whole_number
from .columns import as_json
from .looking import add_json
from .verb import Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from ...delivery import Counts, Outbox
    from ..parser import Parser

_COUNT_RULE = "a whole number, 1 or more"


def _add_worker(parser: Parser) -> None:
    add_schedule_options(parser, random=False)
    group = parser.add_argument_group("the tries")
    group.add_argument("--attempts", metavar="N", help="how many tries a row has")
    group.add_argument("--timeout", metavar="TIME", help="of one try, 30s by default")
    group.add_argument("--deadline", metavar="TIME", help="of all tries of a row")
    group.add_argument(
        "--allow-private", action="store_true", help="send to addresses that are not public, too"
    )
    group = parser.add_argument_group("the worker")
    group.add_argument(
        "--concurrency", metavar="N", default="64", help="sends at once, 64 by default"
    )
    group.add_argument("--lease", metavar="TIME", help="how long a lease lasts at least")
    group.add_argument(
        "--poll", metavar="TIME", default="1s", help="how often it looks for rows, 1s by default"
    )
    group.add_argument("--once", action="store_true", help="send what is due now, count, and end")
    add_json(parser)


def _worker(outbox: Outbox, options: Namespace) -> int:
    from ...delivery import HTTPSender, Worker

    sender = HTTPSender(allow_private=options.allow_private)
    worker = Worker(
        outbox,
        sender,
        _policy(options),
        concurrency=whole_number(options.concurrency, "--concurrency", _COUNT_RULE),
        lease=None if options.lease is None else to_seconds(options.lease, "--lease"),
        poll=to_seconds(options.poll, "--poll"),
    )
    if not options.once:
        if options.json:
            raise ValueError("--json goes with --once, which has something to count")
        print("backoff-schedule outbox worker: delivering", file=sys.stderr, flush=True)
        worker.run_forever()
        return 0

    async def once() -> Counts:
        async with sender:
            return await worker.run_once()

    counts = asdict(asyncio.run(once()))
    if options.json:
        print(as_json(counts))
    else:
        print(", ".join(f"{name} {count}" for name, count in counts.items()))
    return 0


def _policy(options: Namespace) -> DeliveryPolicy:
    given: dict[str, Any] = dict(DEFAULT_POLICY.options)
    schedule = schedule_from(options, DEFAULT_POLICY.schedule)
    if schedule != DEFAULT_POLICY.schedule:
        given["schedule"] = schedule
        if "steps" not in schedule.options and options.attempts is None:
            raise ValueError("how many tries? A schedule without --steps needs --attempts N")
    if options.attempts is not None:
        given["max_attempts"] = whole_number(options.attempts, "--attempts", _COUNT_RULE)
    for name in ("timeout", "deadline"):
        if getattr(options, name) is not None:
            given[name] = to_seconds(getattr(options, name), f"--{name}")
    return DeliveryPolicy(**given)


_WORKER = """\
Deliver what is due, until SIGTERM or SIGINT, which let it end what is under way. Needs the
extra `http`. Without schedule options rows are tried as the default policy says; an
endpoint's own policy goes before both.
"""
_WORKER_EXAMPLES = """\
examples:
  backoff-schedule outbox --db postgresql:///shop worker --preset svix
  backoff-schedule outbox --db app.db worker --base 1s --max 1h --attempts 20
  backoff-schedule outbox --db app.db worker --once --json
"""

VERBS = {
    "worker": Verb("[options]", _WORKER, _WORKER_EXAMPLES, _add_worker, _worker),
}
