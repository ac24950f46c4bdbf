"""Job queues, each with the settings that its documentation or its code shows to be its best.

All are durable: PostgreSQL flushes as it does by default, SQLite with synchronous=FULL. Each
imports its package where it runs, so that one that is missing is only a row.
"""

from __future__ import annotations

import asyncio
import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from psycopg.conninfo import conninfo_to_dict

from .contest import Queue
from .ours import BATCH

if TYPE_CHECKING:
    from collections.abc import Callable


class Procrastinate(Queue):
    """An async worker with a hundred jobs at once.

    Jobs stay in the table, as do our rows; `delete_jobs="always"` was no quicker. No LISTEN, since
    the rows are there already. It has no batches: each job is fetched and finished alone.
    """

    name = "procrastinate"
    remark = "concurrency 100"

    def make(self) -> None:
        with self._app().open() as app:
            app.schema_manager.apply_schema()

    def fill(self, first: int, rows: int) -> None:
        del first
        with self._app().open() as app:
            app.tasks["send"].batch_defer(*[{"id": 1} for _ in range(rows)])
        self.place.run("ANALYZE")

    def drain(self, sent: Callable[[], None]) -> None:
        procrastinate = import_module("procrastinate")

        connector = procrastinate.PsycopgConnector(
            conninfo=self.place.where, min_size=4, max_size=20
        )
        app = procrastinate.App(connector=connector)
        logging.getLogger("procrastinate").setLevel(logging.CRITICAL)

        async def send(id: int) -> None:  # noqa: ARG001  (what a job has)
            sent()

        app.task(name="send")(send)

        async def main() -> None:
            async with app.open_async():
                await app.run_worker_async(
                    wait=False,
                    concurrency=BATCH,
                    listen_notify=False,
                    install_signal_handlers=False,
                )

        asyncio.run(main())

    def enqueue(self, rows: int, begun: Callable[[], None]) -> None:
        with self._app().open() as app:
            task = app.tasks["send"]
            task.defer(id=1)
            begun()
            for _ in range(rows):
                task.defer(id=1)

    def _app(self) -> Any:
        procrastinate = import_module("procrastinate")

        connector = procrastinate.SyncPsycopgConnector(conninfo=self.place.where)
        app = procrastinate.App(connector=connector)

        def send(id: int) -> None: ...

        app.task(name="send")(send)
        return app


class PgQueuer(Queue):
    """asyncpg on one connection, batches of a hundred, `pgq autovac`, and uvloop as in `pgq run`.

    Its guide names these; asyncpg takes half the time of psycopg in its benchmarks. Tables are
    `durable`, its default. Its statistics are not folded meanwhile.
    """

    name = "pgqueuer"
    remark = "asyncpg, batches of 100, uvloop"

    def make(self) -> None:
        async def main() -> None:
            queries = await self._queries()
            await queries.install()
            await queries.optimize_autovacuum()

        asyncio.run(main())

    def fill(self, first: int, rows: int) -> None:
        del first

        async def main() -> None:
            queries = await self._queries()
            for begun in range(0, rows, 1000):
                count = min(1000, rows - begun)
                await queries.enqueue(["send"] * count, [b'{"id": 1}'] * count, [0] * count)

        asyncio.run(main())
        self.place.run("ANALYZE")

    def drain(self, sent: Callable[[], None]) -> None:
        pgqueuer, types = import_module("pgqueuer"), import_module("pgqueuer.types")

        async def main() -> None:
            manager = pgqueuer.PgQueuer((await self._queries()).driver)

            async def send(job: object) -> None:  # noqa: ARG001
                sent()

            manager.entrypoint("send")(send)

            await manager.qm.run(batch_size=BATCH, mode=types.QueueExecutionMode.drain)

        import_module("uvloop").run(main())

    def enqueue(self, rows: int, begun: Callable[[], None]) -> None:

        async def main() -> None:
            queries = await self._queries()
            begun()
            for _ in range(rows):
                await queries.enqueue("send", b'{"id": 1}')

        import_module("uvloop").run(main())

    async def _queries(self) -> Any:
        asyncpg, drivers = import_module("asyncpg"), import_module("pgqueuer.db")
        words = conninfo_to_dict(self.place.where)
        connection = await asyncpg.connect(
            host=words["host"], port=words["port"], user=words["user"], database=words["dbname"]
        )
        return import_module("pgqueuer.queries").Queries(drivers.AsyncpgDriver(connection))


class Huey(Queue):
    """Its consumer's own two calls, dequeue and execute, without the consumer's threads.

    `fsync=True` is synchronous=FULL. A task answers nothing, so no result is stored. It deletes a
    task before it runs it: at most once, and one transaction less than the others.
    """

    name = "huey"
    remark = "deletes before it runs"

    def make(self) -> None:
        self._huey(None)

    def fill(self, first: int, rows: int) -> None:
        del first
        # Not timed, so nothing needs to be flushed.
        _, send = self._huey(None, fsync=False)
        for _ in range(rows):
            send(1)

    def drain(self, sent: Callable[[], None]) -> None:
        huey, _ = self._huey(sent)
        while (task := huey.dequeue()) is not None:
            huey.execute(task)

    def enqueue(self, rows: int, begun: Callable[[], None]) -> None:
        _, send = self._huey(None)
        begun()
        for _ in range(rows):
            send(1)

    def _huey(self, sent: Callable[[], None] | None, *, fsync: bool = True) -> tuple[Any, Any]:
        logging.getLogger("huey").setLevel(logging.CRITICAL)
        made = import_module("huey").SqliteHuey(
            "bench", filename=self.place.where, fsync=fsync, journal_mode="wal", timeout=60
        )

        def send(id: int) -> None:  # noqa: ARG001
            if sent is not None:
                sent()

        return made, made.task(name="send")(send)


class LiteQueue(Queue):
    """pop and done, as its README has it. It sets synchronous=NORMAL, which is put to FULL."""

    name = "litequeue"

    def make(self) -> None:
        self._queue()

    def fill(self, first: int, rows: int) -> None:
        del first
        queue = self._queue()
        with queue.transaction():
            for _ in range(rows):
                queue.put('{"id": 1}')

    def drain(self, sent: Callable[[], None]) -> None:
        queue = self._queue()
        while (message := queue.pop()) is not None:
            sent()
            queue.done(message.message_id)

    def enqueue(self, rows: int, begun: Callable[[], None]) -> None:
        queue = self._queue()
        begun()
        for _ in range(rows):
            queue.put('{"id": 1}')

    def _queue(self) -> Any:
        queue = import_module("litequeue").LiteQueue(self.place.where, timeout=60)
        queue.conn.execute("PRAGMA synchronous = FULL")
        return queue
