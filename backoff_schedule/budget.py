"""A retry budget: retries stop when too many calls fail, so that an outage is not multiplied.

When a server is down, every caller that tries three times sends three times the load. A budget
that callers share lets retries through only while most calls succeed. The rule is gRPC's retry
throttling (gRFC A6, "Throttling Retry Attempts and Hedged RPCs"): a bucket of tokens, of which a
failure takes one and a success gives back a fraction, and retries while more than half are left.
"""

from __future__ import annotations

from _thread import allocate_lock

from .refusals import refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class RetryBudget:
    """Tokens that retries spend and successes earn, shared by policies and threads.

    `max_tokens`, above 0, is how many there are at first and at most. A failure that could be
    retried takes one. A success gives back `token_ratio`, above 0. Retries stop while half of
    `max_tokens` or fewer are left: the call then fails with its own exception at once, reason
    `"budget"`. With the defaults that is after five failures in a row, and ten successes allow
    one retry more.

    A budget is state, and is not shared between processes: pickled, alone or in a policy, it
    arrives full.

    Raises `TypeError` for what is no number and `ValueError` for one outside its range.

    Examples:
        >>> budget = RetryBudget(max_tokens=4)
        >>> [budget.spend() for _ in range(3)]
        [True, False, False]
    """

    __slots__ = ("_lock", "_max_tokens", "_token_ratio", "_tokens")

    def __init__(self, max_tokens: float = 10, token_ratio: float = 0.1) -> None:
        self._max_tokens = _positive(max_tokens, "max_tokens")
        self._token_ratio = _positive(token_ratio, "token_ratio")
        self._tokens = self._max_tokens
        self._lock = allocate_lock()

    @property
    def tokens(self) -> float:
        """How many tokens are left, from 0 to `max_tokens`."""
        return self._tokens

    def spend(self) -> bool:
        """Take a token for a failure. Whether a retry may follow it."""
        with self._lock:
            self._tokens = max(0.0, self._tokens - 1.0)
            return self._tokens > self._max_tokens / 2.0

    def earn(self) -> None:
        """Give back a part of a token for a success."""
        with self._lock:
            self._tokens = min(self._max_tokens, self._tokens + self._token_ratio)

    def __repr__(self) -> str:
        return (
            f"<RetryBudget max_tokens={self._max_tokens} token_ratio={self._token_ratio} "
            f"tokens={self._tokens:.3g}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return RetryBudget, (self._max_tokens, self._token_ratio)


def _positive(number: float, name: str) -> float:
    rule = "a finite number above 0"
    if not isinstance(number, (int, float)) or isinstance(number, bool):
        raise TypeError(f"{refusal(name, number, rule)}, not {type(number).__name__}")
    if not 0 < number < float("inf"):
        raise ValueError(refusal(name, number, rule))
    return float(number)
