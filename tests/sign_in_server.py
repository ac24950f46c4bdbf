"""Runs the code of docs/guides/lock-out-guessers.md on the loopback, for the tests that try it."""

from __future__ import annotations

import importlib.util
import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import uvicorn

if TYPE_CHECKING:
    from collections.abc import Iterator

GUIDE = Path(__file__).parent.parent / "docs/guides/lock-out-guessers.md"
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_RUNNING = re.compile(r"running on (http://127\.0\.0\.1:\d+)")


def block_with(words: str) -> str:
    """The only block of the guide that has these words in it."""
    [block] = [block for block in _BLOCK.findall(GUIDE.read_text()) if words in block]
    return str(block)


FORM = block_with("app = Starlette(")
FASTAPI = FORM + block_with("api = FastAPI(")
DJANGO = FORM + block_with("settings.configure(") + block_with("class CountedBackend(")


def loaded(file: Path) -> Any:
    """The file as a module that nothing else imports."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def client_of(url: str) -> httpx.Client:
    """Any number of threads may use it at once.

    Each request has a connection of its own: a server closes one after an error, and a client that
    sends its next request in that moment sees a reset.
    """
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    return httpx.Client(base_url=url, timeout=120, limits=limits, trust_env=False)


@contextmanager
def served(app: Any) -> Iterator[httpx.Client]:
    """A client of the application, which runs in a thread of this process.

    The server takes X-Forwarded-For from 127.0.0.1, which is where the client is.
    """
    config = uvicorn.Config(app, log_config=None, lifespan="off", ws="none")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            with client_of(f"http://127.0.0.1:{listening.getsockname()[1]}") as client:
                yield client
        finally:
            server.should_exit = True
            thread.join(60)


@contextmanager
def served_by_a_process(folder: Path, *command: str) -> Iterator[httpx.Client]:
    """A client of the server that `python *command` starts in the folder."""
    with subprocess.Popen(
        [sys.executable, *command], cwd=folder, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            with client_of(_announced(process)) as client:
                _wait_for_an_answer(client)
                yield client
        finally:
            process.terminate()
            process.communicate(timeout=60)


def _announced(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if found := _RUNNING.search(line):
            return found[1]
    raise AssertionError(said)


def _wait_for_an_answer(client: httpx.Client) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            assert client.get("/").status_code == 200
        except httpx.ConnectError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return
