from __future__ import annotations

import asyncio
import concurrent.futures
import pickle
import threading
from typing import Any

import pytest

from backoff_schedule import Circuit, CircuitBreaker, CircuitOpen, create_backoff, retry
from backoff_schedule.testing import instant


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def status(circuit: Circuit) -> str:
    return circuit.status


def opened(clock: Clock, **options: Any) -> Circuit:
    circuit = Circuit(
        CircuitBreaker(min_attempts=3, threshold=1.0, cooldown="5s", **options), clock
    )
    for _ in range(3):
        with pytest.raises(OSError), circuit:
            raise OSError
    return circuit


def test_failures_open_it_and_a_call_is_refused_with_what_is_left_of_the_cool_down() -> None:
    clock = Clock()
    circuit = opened(clock)
    assert status(circuit) == "open"
    clock.now = 2.0
    assert circuit.remaining == 3.0
    with pytest.raises(CircuitOpen) as caught, circuit:
        raise AssertionError
    assert caught.value.remaining == 3.0
    assert str(caught.value) == "the circuit is open for another 3 s"
    assert pickle.loads(pickle.dumps(caught.value)).remaining == 3.0


def test_successes_keep_it_closed_and_the_probe_closes_it() -> None:
    clock = Clock()
    circuit = Circuit(CircuitBreaker(min_attempts=3), clock)
    for _ in range(9):
        with circuit as entered:
            assert entered is circuit
    assert status(circuit) == "closed"
    circuit = opened(clock)
    clock.now = 5.0
    assert status(circuit) == "half_open"
    with circuit:
        pass
    assert status(circuit) == "closed"
    assert circuit.state.closed_at == 5.0


# D-06: the half-open breaker waits for an answer that never comes.


@pytest.mark.parametrize("kind", [KeyboardInterrupt, concurrent.futures.CancelledError])
def test_a_probe_that_is_cancelled_frees_its_place_at_once(kind: type[BaseException]) -> None:
    clock = Clock()
    circuit = opened(clock)
    clock.now = 6.0
    with pytest.raises(kind), circuit:
        raise kind
    with circuit:
        pass
    assert status(circuit) == "closed"


def test_a_probe_that_is_cancelled_as_a_task_frees_its_place_at_once() -> None:
    clock = Clock()
    circuit = opened(clock)
    clock.now = 6.0

    async def call() -> None:
        async with circuit:
            await asyncio.sleep(30)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await call()
        async with circuit:
            pass

    asyncio.run(main())
    assert status(circuit) == "closed"


def test_a_probe_that_never_returns_frees_its_place_after_probe_timeout() -> None:
    clock = Clock()
    circuit = opened(clock, probe_timeout="10s")
    clock.now = 6.0
    circuit.__enter__()
    clock.now = 15.9
    with pytest.raises(CircuitOpen) as caught, circuit:
        raise AssertionError
    assert caught.value.remaining == 0.0
    assert "one call is on its way" in str(caught.value)
    clock.now = 16.0
    with circuit:
        pass
    assert status(circuit) == "closed"


def test_of_ten_threads_that_ask_at_once_exactly_one_is_the_probe() -> None:
    clock = Clock()
    circuit = opened(clock)
    clock.now = 5.0
    barrier, done = threading.Barrier(10), threading.Event()
    let_through: list[bool] = []

    def call() -> None:
        barrier.wait()
        try:
            with circuit:
                let_through.append(True)
                done.wait(30)
        except CircuitOpen:
            let_through.append(False)
            if len(let_through) == 10:
                done.set()

    threads = [threading.Thread(target=call) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(let_through) == [False] * 9 + [True]
    assert status(circuit) == "closed"


def test_of_ten_tasks_that_ask_at_once_exactly_one_is_the_probe() -> None:
    clock = Clock()
    circuit = opened(clock)
    clock.now = 5.0

    async def call() -> bool:
        try:
            async with circuit:
                await asyncio.sleep(0.01)
        except CircuitOpen:
            return False
        return True

    async def main() -> list[bool]:
        return await asyncio.gather(*(call() for _ in range(10)))

    assert sorted(asyncio.run(main())) == [False] * 9 + [True]
    assert status(circuit) == "closed"


def test_blocks_of_one_circuit_nest() -> None:
    circuit = Circuit(CircuitBreaker(min_attempts=2, threshold=0.5), Clock())
    with circuit, pytest.raises(OSError), circuit:
        raise OSError
    assert circuit.state.window == ((0, 2, 1),)


def test_a_retry_policy_waits_for_the_circuit_to_let_it_through() -> None:
    clock = Clock()
    circuit = opened(clock)

    def sleep(seconds: float) -> None:
        clock.now += seconds

    policy = retry(
        create_backoff(base=1),
        attempts=3,
        on=CircuitOpen,
        retry_after=lambda error: getattr(error, "remaining", None),
        sleep=sleep,
    )

    @policy
    def call() -> str:
        with circuit:
            return "fine"

    assert call() == "fine"
    assert clock.now == 5.0
    with instant() as waits, pytest.raises(OSError):
        retry(create_backoff(base=1), attempts=3, on=CircuitOpen).call(_fail)
    assert waits == []


def _fail() -> None:
    raise OSError


def test_a_circuit_needs_a_breaker() -> None:
    make: Any = Circuit
    with pytest.raises(TypeError, match=r"^breaker \(5\) needs to be a CircuitBreaker, not int$"):
        make(5)
