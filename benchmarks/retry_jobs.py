"""What one process measures of the decorators: the time of each job, and what is left behind.

`time.sleep` is patched here, and the results are plain numbers, so that they travel to the
process that asked.
"""

from __future__ import annotations

import gc
from contextlib import suppress
from functools import partial
from itertools import cycle, repeat
from typing import TYPE_CHECKING

from .decorators import HAND, OURS, PREDICATE, SHARED, TUPLE, decorators, patch_sleep
from .delay import GROWING
from .measure import interleaved, loop, ratio, time_of
from .memory import bytes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .decorators import Decorator, Function
    from .measure import Effort, Sampler

    # For each job and each contender: seconds, and the ratio to the job's baseline.
    Times = dict[str, dict[str, tuple[float, float]]]

SUCCESS, ASYNC = "success", "success, async"
FAILURES, EXHAUSTION = "two failures", "exhaustion"
KINDS = "kinds of on"
CALLS = 100

_CALL = "call(n)"
_CALL_THAT_FAILS = "try:\n    call(n)\nexcept Exception:\n    pass"
# One coroutine awaits a pass of calls, as a program does: no event loop, and one StopIteration.
_SEND = "try:\n    calls(call, n).send(None)\nexcept StopIteration:\n    pass"


def times(effort: Effort) -> Times:
    """The medians of every contender in every job, from a run of this process alone."""
    patch_sleep()
    found, _ = decorators()
    measured: Times = {KINDS: {}}
    for job, make in _JOBS.items():
        samplers = {decorator.name: make(decorator, effort) for decorator in found}
        usable = {name: sampler for name, sampler in samplers.items() if sampler is not None}
        usable["empty"] = (
            _async(_idle, effort) if job == ASYNC else loop("pass", {}, GROWING, effort)
        )
        samples = interleaved(usable, effort.rounds)
        measured[job] = {
            name: (time_of(samples, name, "empty"), ratio(samples, name, HAND, "empty").median)
            for name in usable
            if name != "empty"
        }
        for kind in (TUPLE, PREDICATE):
            seconds = time_of(samples, kind, "empty")
            measured[KINDS][f"{kind}, {job}"] = (
                seconds,
                ratio(samples, kind, OURS, "empty").median,
            )
    return measured


def garbage(of: str = "") -> dict[str, dict[str, int]]:
    """For each contender whose name begins so and each job, how many objects only the collector
    could free after it.
    """
    patch_sleep()
    found, _ = decorators()
    return {
        decorator.name: {
            job: _uncollected(decorator.plain(function())) for job, function in _OUTCOMES.items()
        }
        for decorator in found
        if decorator.name != SHARED and decorator.name.startswith(of)
    }


def sizes() -> dict[str, int]:
    """The bytes that one more decorated function takes, beyond the function itself."""
    found, _ = decorators()
    return {decorator.name: round(bytes_of(partial(decorator.plain, _echo))) for decorator in found}


def _echo(value: object) -> object:
    return value


async def _async_echo(value: object) -> object:
    return value


def _failing(outcomes: Iterable[bool]) -> Function:
    """A function that fails where an outcome says so, each time with an error of its own."""
    following = iter(outcomes)

    def call(value: object) -> object:
        if next(following):
            raise OSError("refused")
        return value

    return call


_OUTCOMES: dict[str, Callable[[], Function]] = {
    SUCCESS: lambda: _echo,
    FAILURES: lambda: _failing(cycle((True, True, False))),
    EXHAUSTION: lambda: _failing(repeat(True)),
}


def _success(decorator: Decorator, effort: Effort) -> Sampler | None:
    return _plain(decorator, SUCCESS, _CALL, effort)


def _failures(decorator: Decorator, effort: Effort) -> Sampler | None:
    return _plain(decorator, FAILURES, _CALL, effort)


def _exhaustion(decorator: Decorator, effort: Effort) -> Sampler | None:
    return _plain(decorator, EXHAUSTION, _CALL_THAT_FAILS, effort)


def _plain(decorator: Decorator, job: str, statement: str, effort: Effort) -> Sampler | None:
    if decorator.name == SHARED:
        return None
    call = decorator.plain(_OUTCOMES[job]())
    return loop(statement, {"call": call}, GROWING, effort)


def _success_async(decorator: Decorator, effort: Effort) -> Sampler | None:
    if decorator.coroutine is None:
        return None
    call = decorator.coroutine(_async_echo)

    async def calls(call: Function, values: Iterable[object]) -> None:
        for value in values:
            await call(value)

    return _async(calls, effort, call)


async def _idle(_call: Function, values: Iterable[object]) -> None:
    for _ in values:
        pass


def _async(calls: Function, effort: Effort, call: Function = _async_echo) -> Sampler:
    sample = loop(_SEND, {"calls": calls, "call": call}, (GROWING,), effort)
    return lambda: sample() / len(GROWING)


_JOBS: dict[str, Callable[[Decorator, Effort], Sampler | None]] = {
    SUCCESS: _success,
    ASYNC: _success_async,
    FAILURES: _failures,
    EXHAUSTION: _exhaustion,
}


def _uncollected(call: Function) -> int:
    # What is made once, such as a cache, is none of a call's garbage.
    _called(call, 10)
    gc.collect()
    gc.disable()
    try:
        _called(call, CALLS)
        return gc.collect()
    finally:
        gc.enable()


def _called(call: Function, times: int) -> None:
    for _ in range(times):
        with suppress(Exception):
            call(None)
