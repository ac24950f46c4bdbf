"""Sends in flight: one claim each, in a task or a thread, until it ends."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from threading import Thread

from ..callables import is_async, is_awaitable
from ..durations import format_duration
from ..refusals import shown
from .model import Transient, as_outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from typing import Any

    from .model import Claim, Outcome


@dataclass(slots=True, eq=False)
class Flight:
    """One send. Its slot is taken until it has ended, which can be after it was settled.

    `settled` says that its result is known: it answered, or its timeout was over.
    """

    claim: Claim
    together: _Together
    task: asyncio.Task[None] | None = None
    settled: bool = False
    ended: bool = False


class _Together:
    """Sends that began together and have the same timeout, and so one timer.

    Only those without a result are kept: the timer would keep the claims of thirty seconds, all of
    which the garbage collector would look at again and again.
    """

    def __init__(self) -> None:
        self.waiting: set[Flight] = set()
        self.timer: asyncio.TimerHandle | None = None

    def leave(self, flight: Flight) -> None:
        self.waiting.discard(flight)
        if not self.waiting and self.timer is not None:
            self.timer.cancel()


class Sender:
    """Begins sends and tells what became of them, all in the loop's own thread.

    - `send`: the user's: sync, for a thread of its own, or async.
    - `on_result`: told once for each send: its flight and what it answered.
    - `on_end`: told once for each send, when its slot is free.
    - `on_crash`: told when a send raises what is no Exception.
    """

    def __init__(
        self,
        send: Callable[[Claim], Any],
        on_result: Callable[[Flight, Outcome], None],
        on_end: Callable[[Flight], None],
        on_crash: Callable[[BaseException], None],
    ) -> None:
        self._send = send
        self._is_async = is_async(send)
        self._on_result = on_result
        self._on_end = on_end
        self._on_crash = on_crash
        self._loop = asyncio.get_running_loop()

    def begin(self, claims: Iterable[Claim]) -> list[Flight]:
        """Begin to send these, with one timer for all that have the same timeout."""
        flights = []
        by_timeout: defaultdict[float, _Together] = defaultdict(_Together)
        for claim in claims:
            together = by_timeout[claim.timeout]
            flight = Flight(claim, together)
            together.waiting.add(flight)
            if self._is_async:
                flight.task = self._loop.create_task(self._run_async(flight, None))
            else:
                # A daemon: one that hangs for ever does not keep the process from its end.
                Thread(target=self._run_sync, args=(flight,), daemon=True).start()
            flights.append(flight)
        for timeout, together in by_timeout.items():
            together.timer = self._loop.call_later(timeout, self._time_out, together, timeout)
        return flights

    def cancel(self, flights: Iterable[Flight]) -> None:
        """Cancel the async sends among these. A thread cannot be."""
        for flight in flights:
            if flight.task is not None:
                flight.task.cancel()

    def _time_out(self, together: _Together, timeout: float) -> None:
        for flight in tuple(together.waiting):
            self._result(flight, Transient(f"timed out after {format_duration(timeout)}"))
            if flight.task is not None:
                flight.task.cancel()

    def _result(self, flight: Flight, answer: Outcome) -> None:
        if not flight.settled:
            flight.settled = True
            flight.together.leave(flight)
            self._on_result(flight, answer)

    def _end(self, flight: Flight) -> None:
        if not flight.ended:
            flight.ended = True
            self._on_end(flight)

    async def _run_async(self, flight: Flight, pending: Awaitable[Any] | None) -> None:
        try:
            awaited = self._send(flight.claim) if pending is None else pending
            self._result(flight, as_outcome(await awaited))
        except asyncio.CancelledError:
            # Ours, after the timeout or at the end of the worker; or the sender's own doing.
            self._result(flight, Transient("the send was cancelled"))
        except Exception as error:  # noqa: BLE001  (whatever a sender raises)
            self._result(flight, Transient(shown(error)))
        except BaseException as error:  # noqa: BLE001  (the worker ends with it)
            self._on_crash(error)
        finally:
            self._end(flight)

    def _run_sync(self, flight: Flight) -> None:
        crash: BaseException | None = None
        answer: object = None
        try:
            answer = self._send(flight.claim)
        except Exception as error:  # noqa: BLE001  (whatever a sender raises)
            answer = Transient(shown(error))
        except BaseException as error:  # noqa: BLE001  (the worker ends with it)
            crash = error
        try:
            self._loop.call_soon_threadsafe(self._came_back, flight, answer, crash)
        except RuntimeError:
            # The loop has ended: so has the worker, and the row is due again with its lease.
            return

    def _came_back(self, flight: Flight, answer: object, crash: BaseException | None) -> None:
        if crash is not None:
            self._on_crash(crash)
        elif is_awaitable(answer):
            pending: Any = answer
            flight.task = self._loop.create_task(self._run_async(flight, pending))
            return
        else:
            self._result(flight, as_outcome(answer))
        self._end(flight)
