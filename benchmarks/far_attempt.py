"""What each package answers long after the last doubling that a double holds.

A worker that retries for weeks comes to ask for such attempts. `2.0 ** 1999` overflows, and an
exception there ends the retrying. Under a ceiling the right answer is the ceiling.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from itertools import islice
from typing import Any, Literal

from backoff_schedule import create_backoff

from .report import Row, Section

FAR = 2000
BASE, CAP = 0.5, 3600.0

# Asked with a ceiling, or with None for no ceiling.
Question = Callable[[float | None], float]


def section() -> Section:
    """A small table of values and exceptions, without any timing."""
    rows = []
    for what, question in QUESTIONS.items():
        capped, uncapped = answer(question, CAP), answer(question, None)
        facts = {"attempt": FAR, "capped": capped, "uncapped": uncapped}
        rows.append(Row(what, remark=f"max 1 h: {capped}; no max: {uncapped}", facts=facts))
    return Section("peers", f"the answer at attempt {FAR}, base {BASE} s", rows)


def answer(question: Question, cap: float | None) -> str:
    """The value, shortened, or the exception that came instead."""
    try:
        value = question(cap)
    except ModuleNotFoundError:
        return "not installed"
    except Exception as error:  # noqa: BLE001  (whatever a peer raises is its answer)
        return f"{type(error).__name__}: {error}"
    if isinstance(value, int):
        return f"an int of {value.bit_length()} bits"
    return f"{value:.6g} s"


def _ours(jitter: float | Literal["full"]) -> Question:
    return lambda cap: create_backoff(base=BASE, max=cap, jitter=jitter).delay(FAR)


def _tenacity(name: str) -> Question:
    def ask(cap: float | None) -> Any:
        tenacity = import_module("tenacity")
        state = tenacity.RetryCallState(tenacity.Retrying(), None, (), {})
        state.attempt_number = FAR
        ceiling = {} if cap is None else {"max": cap}
        return getattr(tenacity, name)(multiplier=BASE, **ceiling)(state)

    return ask


def _stamina(jitter: float) -> Question:
    def ask(cap: float | None) -> Any:
        compute = import_module("stamina._core")._compute_backoff
        return compute(FAR, float("inf") if cap is None else cap, BASE, 2, jitter)

    return ask


def _backoff(jittered: bool) -> Question:
    def ask(cap: float | None) -> Any:
        backoff = import_module("backoff")
        # The generator's first value is None, and stands for no attempt.
        waits = backoff.expo(factor=BASE, max_value=cap)
        wait = next(islice(waits, FAR, None))
        return backoff.full_jitter(wait) if jittered else wait

    return ask


def _backoffs(jitter: str) -> Question:
    def ask(cap: float | None) -> Any:
        backoffs = import_module("backoffs")
        policy = backoffs.Policy(backoffs.Exponential(BASE), getattr(backoffs, jitter)(), cap=cap)
        return next(islice(policy.delays(), FAR - 1, None))

    return ask


def _redress(name: str) -> Question:
    def ask(cap: float | None) -> Any:
        redress = import_module("redress")
        strategy = getattr(redress, name)(BASE, float("inf") if cap is None else cap)
        return strategy(FAR, redress.ErrorClass.TRANSIENT, None)

    return ask


QUESTIONS: dict[str, Question] = {
    "ours, no jitter": _ours(0.0),
    "ours, full jitter": _ours("full"),
    "tenacity wait_exponential": _tenacity("wait_exponential"),
    "tenacity wait_random_exponential": _tenacity("wait_random_exponential"),
    "tenacity wait_exponential_jitter": _tenacity("wait_exponential_jitter"),
    "stamina _compute_backoff": _stamina(0.0),
    "stamina _compute_backoff, jitter": _stamina(1.0),
    "backoff expo": _backoff(jittered=False),
    "backoff expo, full_jitter": _backoff(jittered=True),
    "backoffs NoJitter": _backoffs("NoJitter"),
    "backoffs FullJitter": _backoffs("FullJitter"),
    "redress equal_jitter": _redress("equal_jitter"),
    "redress token_backoff": _redress("token_backoff"),
}
