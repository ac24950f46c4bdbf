from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from backoff_schedule import create_backoff
from backoff_schedule.database.patience import patiently
from backoff_schedule.testing import instant

if TYPE_CHECKING:
    from collections.abc import Callable

PAUSES = create_backoff(base="10ms", growth="constant")


def failing(times: int, error: Exception) -> tuple[list[float], Callable[[], str]]:
    asked: list[float] = []

    def work() -> str:
        asked.append(time.monotonic())
        if len(asked) <= times:
            raise error
        return "done"

    return asked, work


def busy(error: Exception) -> bool:
    return isinstance(error, ConnectionError)


def test_what_passes_is_tried_again_until_it_has_passed() -> None:
    asked, work = failing(3, ConnectionError("busy"))
    deadline = time.monotonic() + 10
    answer = patiently(work, pauses=PAUSES, passes=busy, deadline=deadline)
    assert answer == "done"
    assert len(asked) == 4
    assert asked[-1] - asked[0] >= 0.03


def test_what_does_not_pass_is_raised_at_once() -> None:
    asked, work = failing(3, KeyError("no"))
    with pytest.raises(KeyError, match="no"):
        patiently(work, pauses=PAUSES, passes=busy, deadline=time.monotonic() + 10)
    assert len(asked) == 1


def test_past_the_deadline_the_last_error_is_the_cause_of_a_timeout() -> None:
    error = ConnectionError("busy")
    _, work = failing(10**9, error)
    started = time.monotonic()
    with pytest.raises(TimeoutError, match="busy or away for too long: busy") as raised:
        patiently(work, pauses=PAUSES, passes=busy, deadline=started + 0.1)
    assert raised.value.__cause__ is error
    assert time.monotonic() - started >= 0.08


def test_waits_for_a_database_are_real_where_a_retry_is_instant() -> None:
    asked, work = failing(2, ConnectionError("busy"))
    with instant() as waits:
        patiently(work, pauses=PAUSES, passes=busy, deadline=time.monotonic() + 10)
    assert waits == []
    assert asked[-1] - asked[0] >= 0.02
