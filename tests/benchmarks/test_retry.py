"""The benchmarks of retries: what they count, and never how fast anything is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from benchmarks import retry_jobs
from benchmarks.decorators import Decorator, decorators, stub
from benchmarks.measure import Spread
from benchmarks.retry import LIMITS, rows
from benchmarks.retry_jobs import ASYNC, FAILURES, KINDS, SUCCESS, garbage

if TYPE_CHECKING:
    from benchmarks.retry_jobs import Times

FOUND, _ABSENT = decorators()


@pytest.fixture
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", stub)
    # It would patch the process of all other tests.
    monkeypatch.setattr(retry_jobs, "patch_sleep", lambda: None)


def a_run(hand: float, ours: float, predicate: float) -> Times:
    """One process in which all jobs took the same seconds."""
    job = {
        "a hand-written loop": (hand, 1.0),
        "ours": (ours, ours / hand),
        "ours, on a predicate": (predicate, predicate / hand),
    }
    names = (SUCCESS, ASYNC, FAILURES)
    kinds = {f"ours, on a predicate, {name}": (predicate, predicate / ours) for name in names}
    return {KINDS: kinds} | {name: dict(job) for name in names}


RUNS = [a_run(1.0, ours, 3.0) for ours in (2.0, 4.0, 3.0, 90.0, 1.0)]


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize("decorator", FOUND, ids=lambda decorator: decorator.name)
def test_every_contender_makes_three_attempts(decorator: Decorator) -> None:
    for failures, calls in ((0, 1), (2, 3), (3, 3)):
        made: list[int] = []

        def fetch(value: str, failures: int = failures, made: list[int] = made) -> str:
            made.append(len(made))
            if len(made) <= failures:
                raise OSError("refused")
            return value

        decorated = decorator.plain(fetch)
        if failures < 3:
            assert decorated("answer") == "answer"
        else:
            with pytest.raises(Exception, match=r"refused|retries"):
                decorated("answer")
        assert len(made) == calls


@pytest.mark.parametrize(
    "decorator", [each for each in FOUND if each.coroutine], ids=lambda decorator: decorator.name
)
def test_every_async_contender_returns_without_an_event_loop(decorator: Decorator) -> None:
    async def fetch(value: str) -> str:
        return value

    assert decorator.coroutine is not None
    with pytest.raises(StopIteration) as ended:
        decorator.coroutine(fetch)("answer").send(None)
    assert ended.value.value == "answer"


@pytest.mark.usefixtures("no_waits")
def test_ours_leaves_nothing_for_the_collector() -> None:
    left = garbage("ours")
    assert len(left) == 4
    assert all(count == 0 for jobs in left.values() for count in jobs.values()), left


def test_one_slow_process_does_not_move_the_median_of_the_processes() -> None:
    hand, ours, _ = rows(SUCCESS, RUNS, {})
    assert (hand.seconds, hand.ratio) == (1.0, None)
    assert (ours.seconds, ours.baseline_seconds) == (3.0, 1.0)
    assert ours.ratio == Spread(3.0, 2.0, 4.0)
    assert ours.limit == LIMITS[SUCCESS, "ours"]


def test_a_kind_of_on_is_set_against_one_type_in_the_same_job() -> None:
    runs = [a_run(1.0, 2.0, 3.0)] * 5
    runs[0][ASYNC]["ours"] = (7.0, 7.0)
    baselines = {row.what: row.baseline_seconds for row in rows(KINDS, runs, {})}
    assert baselines == {
        "ours, on a predicate, success": 2.0,
        "ours, on a predicate, success, async": 7.0,
        "ours, on a predicate, two failures": 2.0,
    }


def test_how_a_wait_is_stubbed_is_said_only_where_something_waits() -> None:
    remarks = {"ours": "sleep="}
    assert [row.remark for row in rows(SUCCESS, RUNS, remarks)] == ["", "", ""]
    assert [row.remark for row in rows(FAILURES, RUNS, remarks)] == ["", "sleep=", ""]
