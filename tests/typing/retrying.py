"""What a user's strict type checker must accept of the retry helpers, and what it must reject.

mypy and pyright read this file; nothing runs it.
"""

# mypy: disallow-any-decorated

from __future__ import annotations

from typing import TYPE_CHECKING, assert_type

from backoff_schedule import (
    Attempt,
    Retry,
    RetryBudget,
    RetryEvent,
    create_backoff,
    http_retry_after,
    presets,
    retry,
    transient_http,
)
from backoff_schedule.testing import instant

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

policy = retry(presets.QUICK, attempts=4, on=ConnectionError)
assert_type(policy, Retry)
assert_type(policy.attempts, int | None)


# A decorated function keeps its type.
@policy
def fetch(url: str, *, timeout: float = 5.0) -> bytes:
    return url.encode()


@policy
async def fetch_later(url: str) -> bytes:
    return url.encode()


class Client:
    @policy
    def method(self, url: str) -> bytes:
        return fetch(url)

    @staticmethod
    @policy
    def static_method(url: str) -> bytes:
        return fetch(url)

    @classmethod
    @policy
    def class_method(cls, url: str) -> bytes:
        return fetch(url)


assert_type(fetch("a", timeout=1), bytes)
assert_type(Client().method("a"), bytes)
assert_type(Client.static_method("a"), bytes)
assert_type(Client.class_method("a"), bytes)

fetch(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
fetch("a", wait=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


# Calls keep their types too.
assert_type(policy.call(fetch, "a", timeout=1), bytes)
policy.call(fetch, 5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def main() -> None:
    assert_type(await fetch_later("a"), bytes)
    assert_type(await policy.acall(fetch_later, "a"), bytes)
    await policy.acall(fetch, "a")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    async for attempt in policy:
        with attempt:
            assert_type(attempt, Attempt)


# The loop, in a function with a return type.
def looped(url: str) -> bytes:
    for attempt in policy:
        with attempt as entered:
            assert_type(attempt.number, int)
            assert_type(attempt.elapsed, float)
            assert_type(entered.remaining, float | None)
            return fetch(url)
    raise AssertionError("the loop returns or raises")


def looped_with_a_name(url: str) -> bytes:
    for attempt in policy:
        with attempt:
            body = fetch(url)
    return body  # pyright: ignore[reportPossiblyUnboundVariable]


# Options.
def watch(event: RetryEvent) -> None:
    assert_type(event.attempt, int)
    assert_type(event.wait, float | None)
    assert_type(event.exception, Exception | None)


def is_busy(answer: bytes) -> bool:
    return answer == b"busy"


async def pause(seconds: float) -> None: ...


class Doubling:
    def delay(self, attempt: int) -> float:
        return 2.0**attempt


retry(Doubling(), attempts=None, on=(OSError, KeyError), max_elapsed="2m", max_wait=30)
retry(create_backoff(base=1), attempts=3, on=transient_http, retry_after=http_retry_after)
retry(presets.QUICK, attempts=3, on=OSError, on_result=is_busy, budget=RetryBudget())
retry(presets.QUICK, attempts=3, on=OSError, on_retry=watch, on_give_up=print, sleep=pause)

retry(presets.QUICK)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
retry(presets.QUICK, attempts=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
retry(presets.QUICK, attempts="3", on=OSError)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
retry(5, attempts=3, on=OSError)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
retry(presets.QUICK, attempts=3, on=KeyboardInterrupt)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
retry(presets.QUICK, attempts=3, on="OSError")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

with instant() as waits:
    fetch("a")
assert_type(list(waits), list[float])


# A decorator of the user's own keeps the types through a policy.
def twice(function: Callable[[str], Awaitable[bytes]]) -> Callable[[str], Awaitable[bytes]]:
    return retry(presets.QUICK, attempts=2, on=OSError)(function)
