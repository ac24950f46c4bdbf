"""The worker: sends what an outbox has for its endpoints."""

from __future__ import annotations

import asyncio
import signal

from ..durations import to_seconds
from ..refusals import refusal
from .outbox import Outbox
from .policy import DEFAULT_POLICY, DeliveryPolicy
from .running import Counts, Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..durations import DurationLike
    from .model import Claim
    from .watching import WorkerEvent


class Worker:
    """Sends what an outbox has for its endpoints.

    - `send`: called with a `Claim`, answers `Delivered`, `Transient` or `Permanent`. An async
      function, or a sync one, which runs in a thread. What it raises is a `Transient`.
    - `policy`: what holds where an endpoint has no option of its own.
    - `concurrency`: how many sends at most are under way at once.
    - `lease`: how long a claim lasts at least; its own timeout and ten seconds if that is longer.
    - `poll`: how long at most it waits before it looks for due rows again.
    - `on_event`: called with a `WorkerEvent` for each thing that this worker does with a row, in
      the thread of its event loop, so it must not wait. What it raises is logged, and ends nothing.

    A send that takes longer than its timeout counts as failed then. An async one is cancelled; a
    sync one cannot be, and its slot stays taken until it ends.

    Any number of workers may run on one outbox, in threads, processes and machines.

    Raises `TypeError` and `ValueError`, naming the argument.

    Examples:
        >>> import asyncio, tempfile
        >>> from backoff_schedule.delivery import Delivered, SQLiteOutbox
        >>> def send(claim):
        ...     print(claim.endpoint, claim.payload)
        ...     return Delivered()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     outbox = SQLiteOutbox(f"{folder}/app.db")
        ...     outbox.migrate()
        ...     outbox.add_endpoint("acme")
        ...     ticket = outbox.enqueue("acme", b"hello")
        ...     counts = asyncio.run(Worker(outbox, send).run_once())
        ...     outbox.close()
        acme b'hello'
        >>> counts.delivered
        1
    """

    def __init__(
        self,
        outbox: Outbox,
        send: Callable[[Claim], Any],
        policy: DeliveryPolicy = DEFAULT_POLICY,
        *,
        concurrency: int = 64,
        lease: DurationLike | None = None,
        poll: DurationLike = "1 second",
        on_event: Callable[[WorkerEvent], object] | None = None,
    ) -> None:
        if not isinstance(outbox, Outbox):
            kind = type(outbox).__name__
            raise TypeError(f"{refusal('outbox', outbox, 'an outbox')}, not {kind}")
        if not callable(send) or isinstance(send, type):
            rule = "a function of a claim"
            raise TypeError(f"{refusal('send', send, rule)}, not {type(send).__name__}")
        if not isinstance(policy, DeliveryPolicy):
            kind = type(policy).__name__
            raise TypeError(f"{refusal('policy', policy, 'a DeliveryPolicy')}, not {kind}")
        rule = "a whole number, 1 or more"
        if not isinstance(concurrency, int) or isinstance(concurrency, bool):
            kind = type(concurrency).__name__
            raise TypeError(f"{refusal('concurrency', concurrency, rule)}, not {kind}")
        if concurrency < 1:
            raise ValueError(refusal("concurrency", concurrency, rule))
        self.outbox = outbox
        self.send = send
        self.policy = policy
        self.concurrency = concurrency
        self.lease = None if lease is None else to_seconds(lease, "lease")
        self.poll = to_seconds(poll, "poll")
        if self.poll == 0.0:
            raise ValueError(refusal("poll", poll, "longer than 0"))
        if on_event is not None and not callable(on_event):
            rule = "a function of an event, or None"
            raise TypeError(f"{refusal('on_event', on_event, rule)}, not {type(on_event).__name__}")
        self.on_event = on_event
        self._run: Run | None = None
        self._stopping = False

    async def run_once(self) -> Counts:
        """Send the rows that are due now, each once, and say what became of them.

        Ends when there are no more, or when caps, breakers and the place for lost rows are used up.

        Raises `RuntimeError` while this worker runs already, and what the database raises.
        """
        return await self._begun(once=True)

    async def run(self) -> None:
        """Send what is due until `stop()`, and then end what is under way.

        Waits out a database that is away. Cancelled, it cancels its async sends, which count as
        failed, and leaves sync ones to their leases.

        Raises `RuntimeError` while this worker runs already, and what the database says of a
        mistake, such as tables that are missing.
        """
        await self._begun(once=False)

    def run_forever(self) -> None:
        """Run in a process of its own, until SIGTERM or SIGINT. Either ends what is under way.

        A send is waited for until its timeout. Call it in the main thread.
        """

        async def main() -> None:
            loop = asyncio.get_running_loop()
            for number in before:
                loop.add_signal_handler(number, self.stop)
            await self.run()

        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            asyncio.run(main())
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def stop(self) -> None:
        """Claim nothing more, end what is under way, and then end. From any thread or handler.

        Before `run`, it makes the next `run` end at once.
        """
        self._stopping = True
        self._tell()

    def wake(self) -> None:
        """Look for due rows now: something was committed in this process. From any thread."""
        if self._run is not None:
            self._run.is_due = True
        self._tell()

    def _tell(self) -> None:
        run = self._run
        if run is not None:
            try:
                run.loop.call_soon_threadsafe(run.news.set)
            except RuntimeError:
                # Its loop has ended in this moment, and so has the run.
                return

    async def _begun(self, *, once: bool) -> Counts:
        if self._run is not None:
            raise RuntimeError("this worker runs already")
        run = self._run = Run(self, once=once)
        try:
            await run.go()
        finally:
            self._run = None
            self._stopping = False
        return run.counts
