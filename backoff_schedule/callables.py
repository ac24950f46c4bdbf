"""What kind of callable is this, and what has it handed back?

A retry that guesses wrong does nothing in silence: calling an async function only makes a
coroutine, and calling a generator function only makes a generator. So every kind is told apart
before the first call where Python can tell, and by what comes back where it cannot.
"""

from __future__ import annotations

from functools import partial

from .refusals import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The flags of code objects that `inspect` names CO_GENERATOR, CO_COROUTINE,
# CO_ITERABLE_COROUTINE and CO_ASYNC_GENERATOR.
_GENERATOR, _COROUTINE, _ITERABLE_COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x100, 0x200

# Results of these types are what they are: the usual ones, told apart in one look-up.
PLAIN = frozenset(
    {type(None), bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset}
)


def _generator() -> Any:
    yield


async def _async_generator() -> Any:
    yield


_GENERATORS = (type(_generator()), type(_async_generator()))


def is_async(function: object) -> bool:
    """Whether calling `function` is known to make an awaitable."""
    function = _unwrapped(function)
    if _flags(function) & (_COROUTINE | _ITERABLE_COROUTINE):
        return True
    # What `inspect.markcoroutinefunction` and its forerunner in asyncio leave behind.
    marks = ("_is_coroutine_marker", "_is_coroutine")
    return any(mark in getattr(function, "__dict__", ()) for mark in marks)


def check_retryable(function: object) -> None:
    """Refuse what cannot be called again to the same end."""
    if isinstance(function, type):
        problem = "a class: decorate its method, or a function that makes an instance"
    elif not callable(function):
        problem = f"not callable: {type(function).__name__}"
    elif _flags(_unwrapped(function)) & (_GENERATOR | _ASYNC_GENERATOR):
        problem = "a generator function: its body runs after the call, where nothing retries it"
    else:
        return
    raise TypeError(f"cannot retry {shown(function)}, which is {problem}")


def name_of(function: object) -> str:
    """The name that reports call a callable; a partial has that of its function."""
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__qualname__", None)
    return name if isinstance(name, str) else type(function).__qualname__


def is_awaitable(result: Any) -> bool:
    return hasattr(type(result), "__await__") or (
        isinstance(result, _GENERATORS[0]) and bool(result.gi_code.co_flags & _ITERABLE_COROUTINE)
    )


def refuse_deferred(result: object, name: str) -> None:
    """Refuse a result whose work is still to come: nothing would retry that."""
    if is_awaitable(result):
        discard(result)
        raise TypeError(
            f"{name} returned an awaitable ({type(result).__name__}), which a sync retry cannot "
            "repeat: make it an async def, or use acall or async for"
        )
    if isinstance(result, _GENERATORS):
        raise TypeError(
            f"{name} returned a generator, whose body runs after the call, where nothing retries it"
        )


def discard(awaitable: object) -> None:
    """Drop a coroutine without the warning that nobody awaited it."""
    close = getattr(awaitable, "close", None)
    if callable(close):
        close()


def _unwrapped(function: Any) -> Any:
    """The function behind partials and bound methods."""
    while True:
        if isinstance(function, partial):
            function = function.func
        elif hasattr(function, "__func__"):
            function = function.__func__
        else:
            return function


def _flags(function: object) -> int:
    """The flags of the code that a call runs, also of an object with `__call__`."""
    if not hasattr(function, "__code__"):
        function = getattr(type(function), "__call__", None)  # noqa: B004  (its code is wanted)
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
    return flags if isinstance(flags, int) else 0
