"""A real HTTP server on this machine that fails as it is told to."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def flaky_server(answers: Iterator[tuple[int, str | None]]) -> Iterator[str]:
    """Serve one answer for each request, a status and a Retry-After, and hand out the URL.

    The server listens on loopback only and is closed with its thread at the end of the block.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, retry_after = next(answers)
            self.send_response(status)
            if retry_after is not None:
                self.send_header("Retry-After", retry_after)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: the one who calls tells the story."""

    # Not HTTPServer, which asks the name service who 127.0.0.1 is and may wait for it.
    with TCPServer(("127.0.0.1", 0), Handler) as server:
        # A daemon, so that a second Ctrl-C, which cuts the closing short, still ends the process.
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()
