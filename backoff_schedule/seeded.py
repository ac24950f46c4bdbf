"""`SeededRandom`: a stream of uniform draws that a seed fixes on every machine.

The generator is sfc32 (Chris Doty-Humphrey's Small Fast Counter, PractRand) on four
32-bit words, hashed from the UTF-16 code units of the seed's text with the mixing of cyrb128.
Only 32-bit integer arithmetic and one exact division are used, so a seed answers the same
draws under every Python version and platform.
"""

from __future__ import annotations

from .refusals import decimal_digits, refusal, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Self

_MASK = 0xFFFFFFFF
_START = (1779033703, 3144134277, 1013904242, 2773480762)
_MIX_A, _MIX_B, _MIX_C, _MIX_D = 597399067, 2869860233, 951274213, 2716044179

_Words = tuple[int, int, int, int]


class SeededRandom:  # noqa: PLW1641  (unhashable: it changes as it is drawn from)
    """Uniform draws in [0, 1), the same for a seed on every machine.

    `seed` is any text or int; an int stands for its decimal text, so 42 and "42" are one
    stream. Give an instance to a schedule as `random=` to fix its delays.

    A stream is not locked: one that several threads draw from loses its order. Share a
    `keyed` schedule between threads instead, or derive a stream for each.

    It is not a source of secrets.

    Raises `TypeError` for a seed that is neither text nor int.

    Examples:
        >>> SeededRandom("feeds").random()
        0.786344971973449
    """

    __slots__ = ("_seed", "_words")

    def __init__(self, seed: int | str) -> None:
        self._seed = _seed_text(seed, "seed")
        self._words = _words_from(self._seed)

    @property
    def seed(self) -> str:
        """The text of the seed."""
        return self._seed

    def random(self) -> float:
        """The next draw: a multiple of 2**-32, 0.0 or more and below 1.0."""
        a, b, c, d = self._words
        drawn = (a + b + d) & _MASK
        rotated = (c << 21 | c >> 11) & _MASK
        self._words = (
            b ^ b >> 9,
            (c + (c << 3)) & _MASK,
            (rotated + drawn) & _MASK,
            (d + 1) & _MASK,
        )
        return drawn / 4294967296.0

    def derive(self, label: int | str) -> SeededRandom:
        """An independent stream named by `label`, wherever this one stands.

        It is the stream of the text `"{seed} {label}"`: one for each worker, test or
        purpose, all fixed by one seed.

        Examples:
            >>> SeededRandom("feeds").derive("people") == SeededRandom("feeds people")
            True
        """
        return SeededRandom(f"{self._seed} {_seed_text(label, 'label')}")

    def state(self) -> dict[str, Any]:
        """Where the stream stands, ready for JSON: `{"seed": str, "words": [4 ints]}`."""
        return {"seed": self._seed, "words": list(self._words)}

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Self:
        """The stream that `state()` described, which goes on at the next draw.

        Raises `ValueError` for a mapping that `state()` does not answer.

        Examples:
            >>> stream = SeededRandom("feeds")
            >>> drawn = [stream.random() for _ in range(10)]
            >>> SeededRandom.restore(stream.state()).random() == stream.random()
            True
        """
        try:
            seed, words = state["seed"], tuple(state["words"])
        except (KeyError, TypeError):
            raise ValueError(refusal("state", state, "what state() answers")) from None
        if not isinstance(seed, str):
            raise ValueError(f"{refusal('state', state, 'what state() answers')}: seed is text")
        if len(words) != 4 or not all(type(word) is int and 0 <= word <= _MASK for word in words):
            rule = "what state() answers: words are four ints from 0 to 2**32 - 1"
            raise ValueError(refusal("state", state, rule))
        stream = cls(seed)
        stream._words = words
        return stream

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SeededRandom):
            return NotImplemented
        return self._seed == other._seed and self._words == other._words

    def __repr__(self) -> str:
        return f"<SeededRandom seed={shown(self._seed)} words={self._words}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self).restore, (self.state(),))


def _seed_text(value: int | str, name: str) -> str:
    if isinstance(value, str):
        # The characters alone; str() of an enum that is a str may be its name.
        return str.__str__(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return decimal_digits(value)
    raise TypeError(f"{refusal(name, value, 'text or an int')}, not {type(value).__name__}")


def _words_from(text: str) -> _Words:
    a, b, c, d = _START
    encoded = text.encode("utf-16-le", "surrogatepass")
    for low, high in zip(encoded[::2], encoded[1::2], strict=True):
        unit = high << 8 | low
        a = b ^ (a ^ unit) * _MIX_A & _MASK
        b = c ^ (b ^ unit) * _MIX_B & _MASK
        c = d ^ (c ^ unit) * _MIX_C & _MASK
        d = a ^ (d ^ unit) * _MIX_D & _MASK
    a = (c ^ a >> 18) * _MIX_A & _MASK
    b = (d ^ b >> 22) * _MIX_B & _MASK
    c = (a ^ c >> 17) * _MIX_C & _MASK
    d = (b ^ d >> 19) * _MIX_D & _MASK
    return (a ^ b ^ c ^ d, b ^ a, c ^ a, d ^ a)
