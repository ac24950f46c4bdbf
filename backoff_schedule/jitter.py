"""Jitter: the band around a delay, and the draw that picks a place in it.

A jitter is a pair of multipliers (low, high). One uniform draw u in [0, 1) makes a curve's
`ms` milliseconds into

    ms * (low + u * (high - low)), rounded half up to a whole millisecond

so that a fraction f, the pair (1 - f, 1 + f), spreads on both sides of the curve, and
"full", the pair (0, 1), from nothing up to it. See Marc Brooker, "Exponential Backoff And
Jitter" (AWS Architecture Blog, 2015) for what full and equal jitter, the pair (0.5, 1), do
to a crowd of clients.
"""

from __future__ import annotations

import os
import sys

from .durations import format_duration, to_milliseconds
from .refusals import decimal_digits, refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal, Protocol, TypeAlias

    Jitter: TypeAlias = float | Literal["full"] | tuple[float, float] | list[float]
else:
    Protocol = object

# The largest double below 1, which no draw exceeds.
LARGEST_DRAW = 1.0 - 2.0**-53
_JITTER_RULE = "a fraction from 0 to 1, 'full', or a pair (low, high) with 0 <= low <= high"
# `high - low` of decimal fractions is off by an ulp or two: 1 - 0.9 is below 0.1.
_DUST = 1e-9


class RandomSource(Protocol):
    """Anything that draws: `random.Random`, `SeededRandom`, a NumPy Generator."""

    def random(self) -> float:
        """The next draw, uniform in [0, 1)."""
        ...


class SystemSource:
    """The operating system's generator, 53 bits to a draw.

    It holds no state, so a fork, a snapshot or a seed elsewhere in the program cannot make
    two workers draw the same.
    """

    __slots__ = ()

    def random(self) -> float:
        return (int.from_bytes(os.urandom(7), "big") >> 3) * 2.0**-53


SYSTEM = SystemSource()


def picklable_source(source: RandomSource | None) -> RandomSource | None:
    """The source, or None for `random.SystemRandom`, which cannot be pickled and has no state."""
    random_module = sys.modules.get("random")
    if random_module is not None and isinstance(source, random_module.SystemRandom):
        return None
    return source


def key_bytes(key: str | bytes | int) -> bytes:
    """The bytes that stand for a key: 1, "1" and b"1" are one key."""
    if isinstance(key, bytes):
        return bytes(key)
    if isinstance(key, str):
        return key.encode("utf-8", "surrogatepass")
    if isinstance(key, int) and not isinstance(key, bool):
        return decimal_digits(key).encode()
    raise TypeError(f"{refusal('key', key, 'text, bytes or an int')}, not {type(key).__name__}")


_blake2b: Callable[..., Any] | None = None


def keyed_draw(key: bytes, attempt: int) -> float:
    """The draw that belongs to (key, attempt): the first 53 bits of BLAKE2b-64."""
    global _blake2b  # noqa: PLW0603  (loaded by the first draw; an import at each costs a third)
    if _blake2b is None:
        from hashlib import blake2b

        _blake2b = blake2b
    message = b"%b\0%b" % (key, decimal_digits(attempt).encode())
    digest = _blake2b(message, digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) * 2.0**-53


def spread(milliseconds: float, low: float, width: float, draw: float) -> float:
    """The delay in seconds that a draw makes of a curve's milliseconds.

    From 2**52 on every double is whole. Adding that to a smaller one and taking it away again
    rounds to the nearest integer, a half to the even one, in two exact additions.

    `Backoff.delay` has these lines once more, since a call costs as much as they do.
    """
    milliseconds *= low + draw * width
    if milliseconds < 2.0**52:
        whole = milliseconds + 2.0**52 - 2.0**52
        if milliseconds - whole == 0.5:
            whole += 1.0
        return whole / 1000.0
    # A multiplier of 0 on an infinite curve makes NaN, and means no wait.
    return milliseconds / 1000.0 if milliseconds == milliseconds else 0.0


def checked_jitter(jitter: object) -> float | str | tuple[float, float]:
    """A jitter as the schedule keeps it, or the refusal of one that is none."""
    if isinstance(jitter, str):
        if jitter != "full":
            raise ValueError(refusal("jitter", jitter, _JITTER_RULE))
        return "full"
    if isinstance(jitter, (tuple, list)):
        if len(jitter) != 2:
            raise ValueError(refusal("jitter", jitter, _JITTER_RULE))
        low, high = (_multiplier(entry, jitter) for entry in jitter)
        if not 0.0 <= low <= high < float("inf"):
            raise ValueError(refusal("jitter", jitter, _JITTER_RULE))
        return (low + 0.0, high + 0.0)
    fraction = _multiplier(jitter, jitter)
    if not 0.0 <= fraction <= 1.0:
        raise ValueError(refusal("jitter", jitter, _JITTER_RULE))
    return fraction + 0.0


def multipliers(jitter: float | str | tuple[float, float]) -> tuple[float, float]:
    """The pair (low, high) that a checked jitter stands for."""
    if isinstance(jitter, tuple):
        return jitter
    if isinstance(jitter, str):
        return (0.0, 1.0)
    return (1.0 - jitter, 1.0 + jitter)


def check_spreadable(seconds: float, low: float, high: float, name: str) -> None:
    """Refuse a duration that jitter, being rounded to milliseconds, could not spread."""
    milliseconds = to_milliseconds(seconds)
    if milliseconds == float("inf"):
        raise ValueError(refusal(name, seconds, "short enough for a float of milliseconds"))
    if not milliseconds.is_integer():
        rule = "a whole number of milliseconds, to which jitter rounds"
        raise ValueError(refusal(name, seconds, rule))
    band = milliseconds * (high - low)
    if milliseconds > 0.0 and band < 1.0 - _DUST:
        raise ValueError(
            f"{name} ({format_duration(seconds)}) needs to be long enough for its jitter to "
            f"spread: a band of {band:.3g} ms is gone when rounded to whole milliseconds"
        )


def _multiplier(value: object, jitter: object) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise TypeError(f"{refusal('jitter', jitter, _JITTER_RULE)}, not {type(value).__name__}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(refusal("jitter", jitter, _JITTER_RULE)) from None
