"""What kind of value a policy is, where its randomness comes from, and what it refuses."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import pickle
import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from backoff_schedule import SeededRandom, create_backoff
from tests.peers.asking import (
    TRANSIENT,
    answer,
    backoff,
    backoffs,
    of_backoff,
    of_backoffs,
    of_redress,
    of_stamina,
    of_tenacity,
    redress,
    stamina,
    tenacity,
    yes_or_no,
)

if TYPE_CHECKING:
    from collections.abc import Callable

MADE: dict[str, Callable[[], object]] = {
    "this package": lambda: create_backoff(base=1.0, max=60.0, jitter=0.1),
    "tenacity": lambda: tenacity.wait_exponential(max=60.0),
    "stamina": lambda: stamina.RetryingCaller(wait_max=60.0),
    "backoff": lambda: backoff.expo(max_value=60.0),
    "backoffs": lambda: backoffs.Policy(backoffs.Exponential(1.0), cap=60.0),
    "redress": lambda: redress.equal_jitter(1.0, 60.0),
}


def test_two_made_alike_are_equal(row: dict[str, str]) -> None:
    assert row == {package: yes_or_no(make() == make()) for package, make in MADE.items()}


def test_it_can_be_pickled(row: dict[str, str]) -> None:
    def pickled(value: object) -> bool:
        try:
            return type(pickle.loads(pickle.dumps(value))) is type(value)
        except (AttributeError, TypeError, pickle.PicklingError):
            return False

    assert row == {package: yes_or_no(pickled(make())) for package, make in MADE.items()}


def test_it_goes_through_json(row: dict[str, str]) -> None:
    schedule = create_backoff(base="1 minute", max="1 hour", jitter=0.1)
    assert create_backoff(**json.loads(json.dumps(schedule.options))) == schedule
    policy = backoffs.Policy()
    written = json.loads(json.dumps(dataclasses.asdict(policy)))
    with pytest.raises(backoffs.InvalidPolicyError):
        backoffs.Policy(**written)
    wait = tenacity.wait_exponential(max=60.0)
    again = tenacity.wait_exponential(**json.loads(json.dumps(vars(wait))))
    assert vars(again) == vars(wait)
    assert row == {
        "this package": "`options`, and back",
        "tenacity": "`vars(wait)`, and back",
        "stamina": no_dict(MADE["stamina"]()),
        "backoff": no_dict(MADE["backoff"]()),
        "backoffs": "out, not back",
        "redress": no_dict(MADE["redress"]()),
    }


def no_dict(value: object) -> str:
    """A closure's or a generator's options are in no dict; nor are those behind slots."""
    return yes_or_no(bool(getattr(value, "__dict__", None)))


def test_the_policy_can_be_changed_after_it_is_made(row: dict[str, str]) -> None:
    def changed(value: Any, name: str) -> str:
        try:
            setattr(value, name, 1.0)
        except AttributeError:
            return "no"
        return yes_or_no(getattr(value, name) == 1.0)

    policy = redress.RetryPolicy(
        classifier=redress.default_classifier, strategy=redress.equal_jitter()
    )
    caller = stamina.RetryingCaller(wait_max=60.0)
    assert {name for name in dir(caller) if not name.startswith("_")} == {"on"}
    assert row == {
        "this package": changed(MADE["this package"](), "longest"),
        "tenacity": changed(MADE["tenacity"](), "max"),
        "stamina": "no",
        "backoff": "no",
        "backoffs": changed(MADE["backoffs"](), "cap"),
        "redress": changed(policy, "max_attempts"),
    }


def test_a_negative_base(row: dict[str, str]) -> None:
    def boom() -> None:
        raise KeyError("boom")

    decorate = backoff.on_exception(backoff.expo, KeyError, factor=-1, jitter=None, max_tries=2)
    with pytest.raises(ValueError, match="base"):
        create_backoff(base=-1.0)
    with pytest.raises(backoffs.InvalidPolicyError):
        backoffs.Exponential(-1.0)
    # The error of the sleep takes the place of the one that was to be retried.
    with pytest.raises(ValueError, match="non-negative"):
        decorate(boom)()
    caller = stamina.RetryingCaller(attempts=2, wait_initial=-1.0, wait_jitter=0.0)
    with pytest.raises(ValueError, match="non-negative"):
        caller(KeyError, boom)
    waits: list[float] = []
    policy = redress.RetryPolicy(
        classifier=lambda _: TRANSIENT,
        strategy=redress.equal_jitter(-1.0, 5.0),
        max_attempts=2,
        before_sleep=lambda _, seconds: waits.append(seconds),
    )
    with pytest.raises(KeyError):
        policy.call(boom)
    assert row == {
        "this package": "refused when made",
        "tenacity": f"waits {answer(lambda: of_tenacity(tenacity.wait_exponential(-1.0), 3))}",
        "stamina": "`ValueError` instead of the first retry",
        "backoff": "`ValueError` instead of the first retry",
        "backoffs": "refused when made",
        "redress": f"waits {answer(lambda: waits[0])}",
    }


def test_how_a_duration_is_written(row: dict[str, str]) -> None:
    minute = timedelta(minutes=1)
    for value in (60, minute, "1 minute"):
        assert create_backoff(base=value).delay(1) == 60.0
    assert of_tenacity(tenacity.wait_exponential(max=minute), 100) == 60.0
    with pytest.raises(ValueError, match="could not convert"):
        tenacity.wait_exponential(max="1 minute")
    attempts = stamina.retry_context(on=KeyError, wait_initial=minute, wait_max=2 * minute)
    assert next(iter(attempts)).next_wait == 60.0
    with pytest.raises(TypeError):
        of_stamina(1, initial="1 minute")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        backoff.full_jitter(of_backoff(1, factor=minute))
    with pytest.raises(backoffs.InvalidPolicyError):
        backoffs.Exponential(minute)
    with pytest.raises(TypeError):
        of_redress(redress.equal_jitter(minute, 60.0), 1)
    assert row == {
        "this package": "number, `timedelta`, text",
        "tenacity": "number, `timedelta`",
        "stamina": "number, `timedelta`",
        "backoff": "number",
        "backoffs": "number",
        "redress": "number",
    }


def test_a_random_source_of_your_own(row: dict[str, str]) -> None:
    seeded = create_backoff(base="15 minutes", jitter=0.1, random=SeededRandom("feeds"))
    assert seeded.delay(1) == 951.542
    policy = backoffs.Policy(backoffs.Exponential(1.0), backoffs.FullJitter())
    assert of_same_seed(policy) == of_same_seed(policy)
    with pytest.raises(backoffs.InvalidPolicyError):
        policy.delays(rng=SeededRandom("feeds"))
    for strategy in (tenacity.wait_random_exponential, tenacity.wait_exponential_jitter):
        assert not any("r" in name and "rand" in name for name in vars(strategy()))
    own = random.Random(1)
    assert (
        of_tenacity(tenacity.wait_combine(lambda _: own.random()), 1) == random.Random(1).random()
    )
    assert row == {
        "this package": "anything with `random()`",
        "tenacity": "in a wait function of your own",
        "stamina": "no",
        "backoff": "in a jitter function of your own",
        "backoffs": "a `random.Random` for each sequence",
        "redress": "in a strategy function of your own",
    }


def of_same_seed(policy: Any) -> float:
    delay: float = next(policy.delays(rng=random.Random(7)))
    return delay


def test_it_draws_from_the_module_wide_random(row: dict[str, str]) -> None:
    def consumed(ask: Callable[[], float]) -> str:
        before = random.getstate()
        ask()
        return yes_or_no(random.getstate() != before)

    policy = backoffs.Policy(jitter=backoffs.FullJitter())
    wait = tenacity.wait_random_exponential()
    assert row == {
        "this package": consumed(lambda: create_backoff(base=1, jitter="full").delay(1)),
        "tenacity": consumed(lambda: of_tenacity(wait, 1)),
        "stamina": consumed(lambda: of_stamina(1, jitter=1.0)),
        "backoff": consumed(lambda: backoff.full_jitter(1.0)),
        "backoffs": consumed(lambda: of_backoffs(1, policy)),
        "redress": consumed(lambda: of_redress(redress.equal_jitter(), 1)),
    }


def test_tenacity_shares_statistics_between_tasks() -> None:
    policy = tenacity.AsyncRetrying(stop=tenacity.stop_after_attempt(3), sleep=asyncio.sleep)
    calls = {"fails": 0, "works": 0}

    async def call(name: str) -> str:
        calls[name] += 1
        await asyncio.sleep(0)
        if name == "fails" or calls[name] < 2:
            raise KeyError(name)
        return name

    async def both() -> list[Any]:
        tasks = (policy(call, name) for name in calls)
        return await asyncio.gather(*tasks, return_exceptions=True)

    failed, worked = asyncio.run(both())
    # Each call keeps its own count, so nothing is tried too often; the statistics add up both.
    assert isinstance(failed, tenacity.RetryError)
    assert worked == "works"
    assert calls == {"fails": 3, "works": 2}
    assert policy.statistics["attempt_number"] == 4
