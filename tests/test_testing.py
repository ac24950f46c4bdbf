from __future__ import annotations

import asyncio
import threading
import time

import pytest
import trio

from backoff_schedule import create_backoff, retry
from backoff_schedule.testing import instant

HOURLY = create_backoff(base="1 hour", growth="constant")


@retry(HOURLY, attempts=3, on=OSError)
def fail() -> None:
    raise OSError


@retry(HOURLY, attempts=3, on=OSError)
async def fail_later() -> None:
    raise OSError


def test_waits_are_recorded_in_order_and_not_slept() -> None:
    with instant() as waits, pytest.raises(OSError):
        retry(create_backoff(base="1 hour"), attempts=4, on=OSError).call(_raise)
    assert waits == [3600.0, 7200.0, 14400.0]


def _raise() -> None:
    raise OSError


@pytest.mark.parametrize("run", [asyncio.run, lambda coroutine: trio.run(lambda: coroutine)])
def test_async_waits_are_recorded_under_both_libraries(run: object) -> None:
    assert callable(run)
    with instant() as waits, pytest.raises(OSError):
        run(fail_later())
    assert waits == [3600.0, 3600.0]


def test_recorded_waits_count_as_elapsed_time() -> None:
    endless = retry(HOURLY, attempts=None, on=OSError, max_elapsed="10 hours")
    with instant() as waits, pytest.raises(OSError) as caught:
        endless.call(_raise)
    assert waits == [3600.0] * 9
    assert caught.value.__notes__ == [
        "gave up after 10 attempts in 32400.0 s: max_elapsed, the next wait would be 3600.0 s"
    ]


def test_tasks_started_in_the_block_record_and_other_threads_sleep() -> None:
    slept: list[float] = []
    own_sleep = retry(HOURLY, attempts=2, on=OSError, sleep=slept.append)

    async def main() -> None:
        await asyncio.gather(fail_later(), fail_later(), return_exceptions=True)

    def elsewhere() -> None:
        with pytest.raises(OSError):
            own_sleep.call(_raise)

    with instant() as waits:
        asyncio.run(main())
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert waits == [3600.0] * 4
    assert slept == [3600.0]


def test_blocks_nest_and_the_outer_one_goes_on_afterwards() -> None:
    with instant() as outer:
        with pytest.raises(OSError):
            fail()
        with instant() as inner, pytest.raises(OSError):
            fail()
        with pytest.raises(OSError):
            fail()
    assert (len(outer), len(inner)) == (4, 2)


def test_after_the_block_waits_are_slept_again(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    with instant(), pytest.raises(OSError):
        fail()
    with pytest.raises(OSError):
        fail()
    assert slept == [3600.0, 3600.0]


def test_one_instant_makes_one_block() -> None:
    block = instant()
    with block, pytest.raises(RuntimeError, match="one instant"), block:
        pass
