"""`backoff-schedule demo`: the main job on real input, scene by scene.

A scene is a function of the sleep that it waits with; it tells what happens line by line.
"""

from __future__ import annotations

import time
from contextlib import closing
from email.utils import formatdate
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

from ..http_errors import http_retry_after, transient_http
from ..http_retry import classify_status, retry_after_from, wait_after
from ..retrying import retry
from ..schedule import create_backoff
from ..seeded import SeededRandom
from ..timetable import rows_of
from .flaky_server import flaky_server
from .parser import Parser
from .readable import readable_duration
from .table import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from typing import TypeAlias

    from ..retry_run import RetryEvent

    Sleep: TypeAlias = Callable[[float], object]
    Scene: TypeAlias = Callable[[Sleep], Generator[str, None, None]]

_DESCRIPTION = """\
Watch the package do its job: a timetable, a real HTTP server on this machine that fails and
is called again until it works, by hand and by a policy, and delays that a seed or a key pins.
Takes a few seconds and nothing from the network.
"""


def timetable(_sleep: Sleep) -> Generator[str, None, None]:
    schedule = create_backoff(base="1m", max="30m", jitter=0.2)
    yield repr(schedule)
    yield ""
    yield from table(list(rows_of(schedule, 6)))


def failing_server(sleep: Sleep) -> Generator[str, None, None]:
    schedule = create_backoff(base="500ms", max="4s")
    yield repr(schedule)
    with flaky_server(_failing_answers()) as url:
        attempt = 1
        status, headers = _get(url)
        while classify_status(status) == "retry":
            asked = headers.get("Retry-After", "nothing")
            wait = wait_after(schedule, attempt, retry_after_from(headers))
            yield f"call {attempt}: {status}, try again; Retry-After says {asked}"
            yield (
                f"        the schedule says {readable_duration(schedule.delay(attempt))}, "
                f"so wait {readable_duration(wait)}"
            )
            sleep(wait)
            attempt += 1
            status, headers = _get(url)
        yield f"call {attempt}: {status}, {classify_status(status)}"


def retry_policy(sleep: Sleep) -> Generator[str, None, None]:
    told: list[str] = []

    def tell(event: RetryEvent) -> None:
        wait = readable_duration(event.wait or 0.0)
        told.append(f"attempt {event.attempt}: {event.exception}; wait {wait}")

    policy = retry(
        create_backoff(base="200ms", max="2s"),
        attempts=5,
        on=transient_http,
        retry_after=http_retry_after,
        on_retry=tell,
        sleep=sleep,
    )
    with flaky_server(iter([(503, "1"), (429, None), (200, None)])) as url:
        fetch = policy(_get_or_raise)
        status = fetch(url)
    yield "policy = retry(schedule, attempts=5, on=transient_http, retry_after=http_retry_after)"
    yield from told
    yield f"returned {status}"


def pinned_delays(_sleep: Sleep) -> Generator[str, None, None]:
    polling = create_backoff(base="15 minutes", max="1 day", jitter=0.1)
    seeded = polling.replace(random=SeededRandom("feeds"))
    yield repr(polling)
    yield f'SeededRandom("feeds") draws  {_listed(seeded.delay(n) for n in (1, 2, 3, 4))}'
    keyed = polling.keyed("feed-42")
    forwards = [keyed.delay(n) for n in (1, 2, 3, 4)]
    backwards = [keyed.delay(n) for n in (4, 3, 2, 1)]
    yield f'keyed("feed-42") answers     {_listed(forwards)}'
    yield f"and asked in reverse order   {_listed(reversed(backwards))}"


SCENES: tuple[tuple[str, Scene], ...] = (
    ("A schedule: how long after the Nth failure?", timetable),
    ("A server that fails, called until it works", failing_server),
    ("A policy that does the calling again", retry_policy),
    ("The same delays on every machine", pinned_delays),
)


def run(arguments: list[str], sleep: Sleep = time.sleep) -> int:
    Parser("demo", "", _DESCRIPTION, "").read(arguments)
    for number, (title, scene) in enumerate(SCENES, 1):
        print(f"{number}. {title}\n")
        with closing(scene(sleep)) as lines:
            for line in lines:
                # A reader at the other end of a pipe watches too.
                print(f"   {line}".rstrip(), flush=True)
        print()
    return 0


def _failing_answers() -> Iterator[tuple[int, str | None]]:
    yield 503, "1"
    # A date has whole seconds, so this one is two to three seconds ahead.
    yield 503, formatdate(time.time() + 3, usegmt=True)
    yield 503, None
    yield 200, None


def _get_or_raise(url: str) -> int:
    with build_opener(ProxyHandler({})).open(url, timeout=10) as answer:
        return int(answer.status)


def _get(url: str) -> tuple[int, dict[str, str]]:
    # The proxies that an environment names do not reach this machine's loopback.
    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(url, timeout=10) as answer:
            return answer.status, dict(answer.headers.items())
    except HTTPError as failed:
        with failed:
            return failed.code, dict(failed.headers.items())


def _listed(delays: Iterator[float] | list[float]) -> str:
    return ", ".join(f"{delay:.3f}" for delay in delays)
