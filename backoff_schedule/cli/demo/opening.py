"""How the demo begins: what a schedule answers, and a call that asks it."""

from __future__ import annotations

from urllib.request import ProxyHandler, build_opener

from ...http_errors import http_retry_after, transient_http
from ...retrying import retry
from ...schedule import create_backoff
from ..flaky_server import flaky_server
from ..readable import readable_duration
from .shop import MORNING, POLICY, clock_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ...retry_run import RetryEvent
    from .narrator import Narrator


def tell(narrator: Narrator, sleep: Callable[[float], object]) -> None:
    _schedule(narrator)
    _call(narrator, sleep)


def _schedule(narrator: Narrator) -> None:
    narrator.chapter("A schedule: how long after the Nth failure?")
    schedule = POLICY.schedule
    narrator.say("One value answers that, and everything below asks it.")
    narrator.line(f"schedule = {schedule!r}")
    narrator.line()
    moment = MORNING
    rows = []
    for failures in (1, 2, 3, 4):
        moment = schedule.at(failures, moment)
        wait = readable_duration(schedule.delay(failures))
        rows.append((failures, wait, clock_time(moment)))
    narrator.table(("failure", "wait", f"next, if the first was at {clock_time(MORNING)}"), *rows)
    narrator.say("It has no jitter, so that every time below can be checked by hand.")


def _call(narrator: Narrator, sleep: Callable[[float], object]) -> None:
    narrator.chapter("A call that is made again, and a server that asks for a pause")
    narrator.say(
        "A server on this machine fails. The wait is the schedule's own, or what the server asks "
        "for if that is longer. These waits are real; after them the clock is fast-forwarded."
    )
    schedule = create_backoff(base="200ms", max="2s")
    calls = 0

    def explain(event: RetryEvent) -> None:
        asked = http_retry_after(event.exception)
        server = "nothing" if asked is None else readable_duration(asked)
        own = readable_duration(schedule.delay(event.attempt))
        wait = readable_duration(event.wait or 0.0)
        narrator.line(f"call {event.attempt}: {event.exception}")
        narrator.line(f"        the schedule says {own}, the server {server}, so wait {wait}")

    @retry(
        schedule,
        attempts=5,
        on=transient_http,
        retry_after=http_retry_after,
        on_retry=explain,
        sleep=sleep,
    )
    def fetch(url: str) -> int:
        nonlocal calls
        calls += 1
        # The proxies that an environment names do not reach this machine's loopback.
        with build_opener(ProxyHandler({})).open(url, timeout=10) as answer:
            return int(answer.status)

    narrator.line(f"@retry({schedule!r}, attempts=5,")
    narrator.line("       on=transient_http, retry_after=http_retry_after)")
    narrator.line()
    with flaky_server(iter([(503, "1"), (429, None), (200, None)])) as url:
        status = fetch(url)
    narrator.line(f"call {calls}: {status}")
    narrator.line()
