"""The delays themselves: each row of the page is what these packages answer here."""

from __future__ import annotations

import inspect
from itertools import islice
from typing import TYPE_CHECKING, Any

from backoff_schedule import create_backoff
from tests.peers.asking import (
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

FAR, BASE, HOUR = 2000, 0.5, 3600.0
INFINITE = float("inf")


def public(value: object) -> set[str]:
    return {name for name in dir(value) if not name.startswith("_")}


def test_attempt_2000_without_a_ceiling(row: dict[str, str]) -> None:
    policy = backoffs.Policy(backoffs.Exponential(BASE), cap=None)
    assert row == {
        "this package": answer(lambda: create_backoff(base=BASE).delay(FAR)),
        "tenacity": answer(lambda: of_tenacity(tenacity.wait_exponential(BASE), FAR)),
        "stamina": answer(lambda: of_stamina(FAR)),
        "backoff": answer(lambda: of_backoff(FAR, factor=BASE)),
        "backoffs": answer(lambda: of_backoffs(FAR, policy)),
        "redress": answer(lambda: of_redress(redress.equal_jitter(BASE, INFINITE), FAR)),
    }


def test_attempt_2000_under_a_ceiling_of_an_hour(row: dict[str, str]) -> None:
    policy = backoffs.Policy(backoffs.Exponential(BASE), cap=HOUR)
    assert row == {
        "this package": answer(lambda: create_backoff(base=BASE, max=HOUR).delay(FAR)),
        "tenacity": answer(lambda: of_tenacity(tenacity.wait_exponential(BASE, HOUR), FAR)),
        "stamina": answer(lambda: of_stamina(FAR, ceiling=HOUR)),
        "backoff": answer(lambda: of_backoff(FAR, factor=BASE, max_value=HOUR)),
        "backoffs": answer(lambda: of_backoffs(FAR, policy)),
        "redress": answer(lambda: of_redress(redress.equal_jitter(BASE, HOUR), FAR)),
    }


# Long past the ceiling, and early enough for all of them to answer.
_PARKED = 100


def drawn(ask: Callable[[], float]) -> list[float]:
    return [ask() for _ in range(1000)]


def parked_draws() -> dict[str, dict[str, list[float]]]:
    """A thousand delays that have reached an hour, by package and kind of jitter."""

    def ours(jitter: Any) -> list[float]:
        schedule = create_backoff(base=BASE, max=HOUR, jitter=jitter)
        return drawn(lambda: schedule.delay(_PARKED))

    def of_policy(jitter: Any) -> list[float]:
        delays = backoffs.Policy(backoffs.Exponential(BASE), jitter, cap=HOUR).delays()
        return list(islice(delays, _PARKED, _PARKED + 1000))

    added = tenacity.wait_exponential_jitter(multiplier=BASE, max=HOUR, jitter=360.0)
    full = tenacity.wait_random_exponential(multiplier=BASE, max=HOUR)
    equal = redress.equal_jitter(BASE, HOUR)
    return {
        "this package": {"0.1": ours(0.1), "pair": ours((0.5, 1.0)), "full": ours("full")},
        "tenacity": {
            "added": drawn(lambda: of_tenacity(added, _PARKED)),
            "full": drawn(lambda: of_tenacity(full, _PARKED)),
        },
        "stamina": {
            "added": drawn(lambda: of_stamina(_PARKED, ceiling=HOUR, jitter=360.0)),
        },
        "backoff": {
            "full": drawn(
                lambda: backoff.full_jitter(of_backoff(_PARKED, factor=BASE, max_value=HOUR))
            ),
        },
        "backoffs": {
            "full": of_policy(backoffs.FullJitter()),
            "proportional": of_policy(backoffs.ProportionalJitter(0.1)),
            "added": of_policy(backoffs.AdditiveJitter(360.0)),
        },
        "redress": {"equal": drawn(lambda: of_redress(equal, _PARKED))},
    }


def test_delays_parked_at_the_ceiling_still_spread(row: dict[str, str]) -> None:
    spread = {
        package: {kind: yes_or_no(len(set(draws)) > 900) for kind, draws in kinds.items()}
        for package, kinds in parked_draws().items()
    }
    assert set(spread["this package"].values()) == {row["this package"]}
    tenacity_says, backoffs_say = spread["tenacity"], spread["backoffs"]
    assert row == {
        "this package": "yes",
        "tenacity": f"`wait_random_exponential` {tenacity_says['full']},"
        f" `wait_exponential_jitter` {tenacity_says['added']}",
        "stamina": spread["stamina"]["added"],
        "backoff": spread["backoff"]["full"],
        "backoffs": f"`FullJitter` and `ProportionalJitter` {backoffs_say['full']},"
        f" `AdditiveJitter` {backoffs_say['added']}",
        "redress": spread["redress"]["equal"],
    }
    assert backoffs_say["full"] == backoffs_say["proportional"]


def test_the_ceiling_is_crossed(row: dict[str, str]) -> None:
    crossed = {
        package: {kind: max(draws) > HOUR for kind, draws in kinds.items()}
        for package, kinds in parked_draws().items()
    }
    assert crossed["this package"] == {"0.1": True, "pair": False, "full": False}
    assert crossed["backoffs"] == {"full": False, "proportional": True, "added": False}
    assert row == {
        "this package": 'by a fraction; not by a pair up to 1 or `"full"`',
        "tenacity": yes_or_no(any(crossed["tenacity"].values())),
        "stamina": yes_or_no(any(crossed["stamina"].values())),
        "backoff": yes_or_no(any(crossed["backoff"].values())),
        "backoffs": "by `ProportionalJitter`; not by the others",
        "redress": yes_or_no(any(crossed["redress"].values())),
    }


def test_the_delay_of_attempt_7_by_itself(row: dict[str, str]) -> None:
    assert create_backoff(base=BASE).delay(7) == 32.0
    assert of_tenacity(tenacity.wait_exponential(BASE), 7) == 32.0
    assert 32.0 <= of_redress(redress.equal_jitter(BASE, HOUR), 7) <= 64.0
    # These answer the next delay only: there is nothing else to ask.
    assert public(stamina.RetryingCaller()) == {"on"}
    assert public(stamina.Attempt) == {"next_wait", "num"}
    assert inspect.isgeneratorfunction(backoff.expo)
    options = {"cap", "jitter", "max_elapsed", "max_retries", "schedule"}
    assert public(backoffs.Policy) == options | {"delays", "google_cloud", "grpc"}
    assert row == {
        "this package": "`schedule.delay(7)`",
        "tenacity": "`wait(state)`, with a `RetryCallState` made by hand",
        "stamina": "no",
        "backoff": "no",
        "backoffs": "no",
        "redress": "`strategy(7, error_class, None)`",
    }


def test_the_range_of_a_delay(row: dict[str, str]) -> None:
    assert create_backoff(base=10, jitter=0.1).bounds(1) == (9.0, 11.0)
    lowest = next(iter(stamina.retry_context(on=KeyError, wait_initial=2.0))).next_wait
    assert lowest == 2.0
    inputs = {"exp_base", "max", "min", "multiplier"}
    assert public(tenacity.wait_exponential()) == inputs
    assert public(tenacity.wait_exponential_jitter()) == inputs | {"jitter"}
    assert public(backoffs.ProportionalJitter()) == {"apply", "fraction", "jitter_first"}
    for function in (backoff.full_jitter, redress.equal_jitter()):
        assert inspect.isfunction(function)
    assert row == {
        "this package": "`schedule.bounds(7)`, and `longest` of all",
        "tenacity": "no",
        "stamina": "the lower end, of the attempt at hand",
        "backoff": "no",
        "backoffs": "no",
        "redress": "no",
    }


def defaults(function: Any) -> dict[str, Any]:
    return {
        name: parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is not parameter.empty
    }


def test_what_you_get_without_saying(row: dict[str, str]) -> None:
    bare = tenacity.Retrying()
    assert of_tenacity(bare.wait, 3) == 0.0
    assert bare.stop is tenacity.stop_never
    said = defaults(stamina.retry)
    assert (said["attempts"], said["timeout"], said["wait_max"]) == (10, 45.0, 5.0)
    assert said["wait_jitter"] == 1.0
    said = defaults(backoff.on_exception)
    assert said["jitter"] is backoff.full_jitter
    assert (said["max_tries"], said["max_time"]) == (None, None)
    policy = backoffs.Policy()
    assert (policy.schedule.base, policy.cap, policy.jitter) == (0.1, 30.0, backoffs.NoJitter())
    assert policy.max_retries is None
    said = defaults(redress.RetryPolicy)
    assert (said["max_attempts"], said["deadline_s"]) == (6, 60.0)
    assert row == {
        "this package": "nothing: `base`, `steps` or `compute` is asked for; no jitter",
        "tenacity": "no wait, no end",
        "stamina": "10 attempts within 45 s, waits up to 5 s, jitter of up to 1 s",
        "backoff": "full jitter, no end",
        "backoffs": "100 ms to 30 s, no jitter, no end",
        "redress": "6 attempts within 60 s",
    }
