"""A receiver on loopback whose every byte a test decides."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable
    from typing import Self

    Answer: TypeAlias = (
        bytes | Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
    )


@dataclass(frozen=True)
class Request:
    """What came, and when by the monotonic clock."""

    line: str
    headers: dict[str, str]
    body: bytes
    at: float


def answer(status: str, *headers: str, body: bytes = b"") -> bytes:
    """A whole answer, such as `answer("204 No Content")`."""
    length = f"Content-Length: {len(body)}"
    lines = [f"HTTP/1.1 {status}", *headers, length, "", ""]
    return "\r\n".join(lines).encode() + body


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say nothing until the other side hangs up."""
    await reader.read()


class Receiver:
    """Gives the first answer to the first request, and the last one to all that are left.

    With `at_once` it answers when somebody connects, and reads no request.
    """

    def __init__(
        self,
        *answers: Answer,
        tls: ssl.SSLContext | None = None,
        at_once: bool = False,
        port: int = 0,
    ) -> None:
        self._answers = answers or (answer("204 No Content"),)
        self._tls = tls
        self._at_once = at_once
        self._tasks: set[asyncio.Task[None]] = set()
        self.requests: list[Request] = []
        self.accepted = 0
        self.port = port

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, ssl=self._tls
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    async def until_all_hung_up(self) -> None:
        """Until each connection that it accepted is closed by the other side, or was ended."""
        async with asyncio.timeout(5):
            while self._tasks:
                await asyncio.sleep(0.005)

    async def until_asked(self, times: int, timeout: float = 10.0) -> None:
        """Until so many requests have come."""
        async with asyncio.timeout(timeout):
            while len(self.requests) < times:
                await asyncio.sleep(0.005)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        turn = self.accepted
        self.accepted += 1
        # Whatever the other side does is for its test to say.
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            if not self._at_once:
                self.requests.append(await _read(reader))
                turn = len(self.requests) - 1
            chosen = self._answers[min(turn, len(self._answers) - 1)]
            if isinstance(chosen, bytes):
                writer.write(chosen)
                await writer.drain()
            else:
                await chosen(reader, writer)
        writer.close()
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await writer.wait_closed()


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *fields = head.rstrip("\r\n").split("\r\n")
    headers = {
        name.lower(): value for name, _, value in (field.partition(": ") for field in fields)
    }
    assert len(headers) == len(fields), "a header came twice"
    body = await reader.readexactly(int(headers["content-length"]))
    return Request(line, headers, body, time.monotonic())
