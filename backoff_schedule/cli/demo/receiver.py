"""The receivers of the story: HTTP servers on this machine that fail as they are told to."""

from __future__ import annotations

from enum import Enum
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from threading import Thread

from ...delivery.signing import SignatureRefused, verify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .ledger import Ledger
    from .shop import Clock

PAUSE = 600
"""The seconds that a busy receiver asks for."""


class Behaviour(Enum):
    """What a receiver does with a request; each value is the status of its answer."""

    WORKS = 204
    FAILS = 503
    IS_BUSY = 429
    HANGS_UP = None


class Receiver:
    """A server that listens from `start` to `stop`, on the same port every time.

    - `secret`: what its requests are signed with.
    - `behaviour`: what it does at present.
    """

    def __init__(self, ledger: Ledger, secret: str, clock: Clock) -> None:
        self._ledger = ledger
        self._secret = secret
        self._clock = clock
        self.behaviour = Behaviour.WORKS
        self._server = self._bound(port=0)
        self._thread: Thread | None = None

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def start(self) -> None:
        self._server.server_activate()
        # A daemon, so that a second Ctrl-C, which cuts the closing short, still ends the process.
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Refuse every connection."""
        port = self.port
        self.close()
        # Bound and not listened at, the port is nobody else's meanwhile.
        self._server = self._bound(port)

    def close(self) -> None:
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._thread = None
        self._server.server_close()

    def answer_to(self, headers: Mapping[str, str], body: bytes) -> int | None:
        """Do what a request asks for, and say with which status; None for no answer at all."""
        try:
            event_id = verify([self._secret], headers, body, now=self._clock()).event_id
        except SignatureRefused:
            return 401
        if self.behaviour in (Behaviour.FAILS, Behaviour.IS_BUSY):
            self._ledger.pass_over(event_id)
        else:
            self._ledger.take(event_id, body)
        status: int | None = self.behaviour.value
        return status

    def _bound(self, port: int) -> _Server:
        server = _Server(("127.0.0.1", port), _handler_for(self), bind_and_activate=False)
        try:
            server.server_bind()
        except OSError:
            server.server_close()
            raise
        return server


class _Server(ThreadingTCPServer):
    # Not HTTPServer, which asks the name service who 127.0.0.1 is and may wait for it.
    allow_reuse_address = True


def _handler_for(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        # Nobody who connects and says nothing keeps the server from closing.
        timeout = 10.0

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = receiver.answer_to(dict(self.headers.items()), body)
            if status is None:
                self.close_connection = True
                return
            self.send_response(status)
            if status == Behaviour.IS_BUSY.value:
                self.send_header("Retry-After", str(PAUSE))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: the narrator tells the story."""

    return Handler
