"""How each peer is asked for a delay, in the terms of its own API."""

from __future__ import annotations

import math
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any

backoff: Any = import_module("backoff")
backoffs: Any = import_module("backoffs")
httpx: Any = import_module("httpx")
httpx_retries: Any = import_module("httpx_retries")
redress: Any = import_module("redress")
stamina: Any = import_module("stamina")
stamina_core: Any = import_module("stamina._core")
tenacity: Any = import_module("tenacity")
urllib3: Any = import_module("urllib3")

if TYPE_CHECKING:
    from collections.abc import Callable

TRANSIENT = redress.ErrorClass.TRANSIENT


def of_tenacity(strategy: Any, attempt: int) -> float:
    state = tenacity.RetryCallState(tenacity.Retrying(), None, (), {})
    state.attempt_number = attempt
    wait: float = strategy(state)
    return wait


def of_stamina(
    attempt: int, *, initial: float = 0.5, ceiling: float = math.inf, jitter: float = 0.0
) -> float:
    """What its loop waits; nothing public answers it with jitter."""
    wait: float = stamina_core._compute_backoff(attempt, ceiling, initial, 2, jitter)
    return wait


def of_backoff(attempt: int, **options: Any) -> float:
    # The first value of its generators is None: its own loop sends it away.
    wait: float = next(islice(backoff.expo(**options), attempt, None))
    return wait


def of_backoffs(attempt: int, policy: Any) -> float:
    wait: float = next(islice(policy.delays(), attempt - 1, None))
    return wait


def of_redress(strategy: Any, attempt: int) -> float:
    wait: float = strategy(attempt, TRANSIENT, None)
    return wait


def answer(ask: Callable[[], float | None]) -> str:
    """A delay in words, or the name of the exception that came instead."""
    try:
        seconds = ask()
    except Exception as error:  # noqa: BLE001  (whatever a peer raises is its answer)
        return f"`{type(error).__name__}`"
    if seconds is None or seconds == math.inf:
        return f"`{seconds}`"
    return f"{seconds:.2g} s" if seconds >= 1e9 else f"{round(seconds, 3):.10g} s"


def yes_or_no(truth: bool) -> str:
    return "yes" if truth else "no"
