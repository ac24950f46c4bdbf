"""The ways to have a function called again: written out by hand, ours, and each peer's decorator.

All make three attempts at most, retry on OSError, wait 0.5 s and twice that after it, and wait
with a stub, so that what is measured is everything but the wait:

| peer | how its wait is stubbed |
|---|---|
| ours, tenacity, backoffs | an argument |
| stamina, backoff, opnieuw, retrying | `time.sleep` is patched |

stamina's test mode would leave out the computing of the wait too, so it is not used.
`patch_sleep` changes the whole process, so only a process that does nothing else calls it.
"""

from __future__ import annotations

import functools
import logging
import time
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from backoff_schedule import create_backoff, retry

from .far_attempt import BASE, CAP

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    Function = Callable[..., Any]
    Decorate = Callable[[Function], Function]

ATTEMPTS = 3
SCHEDULE = create_backoff(base=BASE, max=CAP)
HAND, OURS = "a hand-written loop", "ours"
TUPLE, PREDICATE = "ours, on a tuple", "ours, on a predicate"
LIMITED, SHARED = "ours, with max_elapsed", "ours, one policy for all"
# Further than any run, so that only the clock is read for it.
_WINDOW = 3600


@dataclass(frozen=True)
class Decorator:
    """How one package decorates: `plain` a function, `coroutine` an async one where it can."""

    name: str
    plain: Decorate
    coroutine: Decorate | None = None
    remark: str = ""


def stub(_seconds: float) -> None:
    """A wait that takes no time."""


async def async_stub(_seconds: float) -> None:
    """The same for async code."""


def patch_sleep() -> None:
    """Take the wait from the peers that look `time.sleep` up when they wait."""
    time.sleep = stub  # type: ignore[assignment]
    # Its hook is called and logs a warning, which nobody wants to read here.
    logging.getLogger("stamina").setLevel(logging.CRITICAL)


def decorators() -> tuple[list[Decorator], dict[str, str]]:
    """What can be measured, the hand-written loop and ours first; and why a peer cannot."""
    found = [Decorator(HAND, _hand, _hand_async), *_ours()]
    absent = {}
    for package, decorator in _PEERS.items():
        try:
            found.append(decorator(import_module(package)))
        except ModuleNotFoundError as error:
            absent[package] = f"not measured: {error}"
    return found, absent


def _hand(function: Function) -> Function:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return function(*args, **kwargs)
            except OSError:
                if attempt == ATTEMPTS:
                    raise
                stub(SCHEDULE.delay(attempt))
        return None

    return wrapper


def _hand_async(function: Function) -> Function:
    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await function(*args, **kwargs)
            except OSError:
                if attempt == ATTEMPTS:
                    raise
                await async_stub(SCHEDULE.delay(attempt))
        return None

    return wrapper


def _ours() -> list[Decorator]:
    def way(name: str, **options: Any) -> Decorator:
        chosen: dict[str, Any] = {"attempts": ATTEMPTS, "on": OSError} | options

        # A policy for each function, as with the peers, is what most programs write.
        def plain(function: Function) -> Function:
            return retry(SCHEDULE, sleep=stub, **chosen)(function)

        def coroutine(function: Function) -> Function:
            return retry(SCHEDULE, sleep=async_stub, **chosen)(function)

        return Decorator(name, plain, coroutine)

    shared = retry(SCHEDULE, attempts=ATTEMPTS, on=OSError, sleep=stub)
    return [
        way(OURS),
        way(LIMITED, max_elapsed=_WINDOW),
        way(TUPLE, on=(OSError, EOFError)),
        way(PREDICATE, on=lambda error: isinstance(error, OSError)),
        Decorator(SHARED, shared),
    ]


def _tenacity(tenacity: ModuleType) -> Decorator:
    def decorating(sleep: Function) -> Decorate:
        def decorate(function: Function) -> Function:
            decorated: Function = tenacity.retry(
                stop=tenacity.stop_after_attempt(ATTEMPTS),
                wait=tenacity.wait_exponential(multiplier=BASE, max=CAP),
                retry=tenacity.retry_if_exception_type(OSError),
                reraise=True,
                sleep=sleep,
            )(function)
            return decorated

        return decorate

    return Decorator("tenacity", decorating(stub), decorating(async_stub), "sleep=")


def _stamina(stamina: ModuleType) -> Decorator:
    def decorate(function: Function) -> Function:
        options = {"attempts": ATTEMPTS, "timeout": None, "wait_jitter": 0.0}
        decorated: Function = stamina.retry(on=OSError, wait_initial=BASE, wait_max=CAP, **options)(
            function
        )
        return decorated

    return Decorator("stamina", decorate, decorate, "time.sleep patched")


def _backoff(backoff: ModuleType) -> Decorator:
    def decorate(function: Function) -> Function:
        options = {"max_tries": ATTEMPTS, "jitter": None, "factor": BASE, "max_value": CAP}
        decorated: Function = backoff.on_exception(backoff.expo, OSError, **options)(function)
        return decorated

    return Decorator("backoff", decorate, decorate, "time.sleep patched")


def _opnieuw(opnieuw: ModuleType) -> Decorator:
    def decorate(function: Function) -> Function:
        decorated: Function = opnieuw.retry(
            retry_on_exceptions=OSError,
            max_calls_total=ATTEMPTS,
            retry_window_after_first_call_in_seconds=_WINDOW,
        )(function)
        return decorated

    return Decorator("opnieuw", decorate, decorate, "time.sleep patched; always full jitter")


def _retrying(retrying: ModuleType) -> Decorator:
    def decorate(function: Function) -> Function:
        decorated: Function = retrying.retry(
            stop_max_attempt_number=ATTEMPTS,
            wait_exponential_multiplier=BASE * 1000 / 2,
            wait_exponential_max=CAP * 1000,
            retry_on_exception=(OSError,),
        )(function)
        return decorated

    return Decorator("retrying", decorate, None, "time.sleep patched; logs each failure")


def _backoffs(backoffs: ModuleType) -> Decorator:
    policy = backoffs.Policy(backoffs.Exponential(BASE), cap=CAP, max_retries=ATTEMPTS - 1)

    # It calls functions and decorates none: the least that a program would write around it.
    def plain(function: Function) -> Function:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            call = functools.partial(function, *args, **kwargs)
            return backoffs.retry(call, policy, retry_on=OSError, sleep=stub)

        return wrapper

    def coroutine(function: Function) -> Function:
        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            call = functools.partial(function, *args, **kwargs)
            return await backoffs.aretry(call, policy, retry_on=OSError, sleep=async_stub)

        return wrapper

    return Decorator("backoffs", plain, coroutine, "sleep=; a call, decorated by hand")


_PEERS: dict[str, Callable[[ModuleType], Decorator]] = {
    "tenacity": _tenacity,
    "stamina": _stamina,
    "backoff": _backoff,
    "opnieuw": _opnieuw,
    "retrying": _retrying,
    "backoffs": _backoffs,
}
