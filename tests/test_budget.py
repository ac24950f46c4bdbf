from __future__ import annotations

import copy
import math
import pickle
import threading
from typing import Any

import pytest

from backoff_schedule import RetryBudget


def test_retries_are_allowed_while_more_than_half_of_the_tokens_are_left() -> None:
    budget = RetryBudget()
    assert [budget.spend() for _ in range(6)] == [True, True, True, True, False, False]
    assert budget.tokens == 4.0


def test_ten_successes_allow_one_retry_more() -> None:
    budget = RetryBudget()
    for _ in range(5):
        budget.spend()
    for _ in range(9):
        budget.earn()
    assert budget.tokens == pytest.approx(5.9)
    assert copy.copy(budget) is not budget
    budget.earn()
    budget.earn()
    assert budget.spend()


def test_tokens_stay_between_nothing_and_the_most() -> None:
    budget = RetryBudget(max_tokens=2, token_ratio=5)
    for _ in range(5):
        budget.spend()
    assert budget.tokens == 0.0
    budget.earn()
    assert budget.tokens == 2.0


def test_threads_lose_no_token() -> None:
    budget = RetryBudget(max_tokens=100_000)

    def spend() -> None:
        for _ in range(1000):
            budget.spend()

    threads = [threading.Thread(target=spend) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert budget.tokens == 80_000.0


def test_a_pickled_budget_arrives_full() -> None:
    budget = RetryBudget(max_tokens=4, token_ratio=0.5)
    budget.spend()
    arrived = pickle.loads(pickle.dumps(budget))
    assert repr(budget) == "<RetryBudget max_tokens=4.0 token_ratio=0.5 tokens=3>"
    assert repr(arrived) == "<RetryBudget max_tokens=4.0 token_ratio=0.5 tokens=4>"


@pytest.mark.parametrize("name", ["max_tokens", "token_ratio"])
def test_a_number_outside_its_range_is_refused_by_name(name: str) -> None:
    make: Any = RetryBudget
    for number in (0, -1, math.nan, math.inf):
        with pytest.raises(
            ValueError, match=rf"^{name} \(.*\) needs to be a finite number above 0$"
        ):
            make(**{name: number})
    others: list[Any] = [True, "10", None]
    for number in others:
        with pytest.raises(TypeError, match=rf"^{name} \(.*\) needs to be .* not "):
            make(**{name: number})
