"""Open connections: each serves one thread at a time, and one process ever."""

from __future__ import annotations

import os
from contextlib import contextmanager
from threading import Lock
from typing import Generic, Protocol, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class _Closable(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=_Closable)

# What a child finds open after a fork is its parent's. Closing it, which the garbage collector
# would do too, would cut the parent's session or drop its locks.
_INHERITED: list[object] = []


class Connections(Generic[C]):
    """A stack of idle connections, opened as they are needed.

    - `open_one`: opens a connection.
    - `is_sound`: whether a connection may serve again; others are closed.
    """

    def __init__(self, open_one: Callable[[], C], is_sound: Callable[[C], bool]) -> None:
        self._open_one = open_one
        self._is_sound = is_sound
        self._idle: list[C] = []
        self._lock = Lock()
        self._process = os.getpid()
        self._closed = False

    @contextmanager
    def borrowed(self) -> Iterator[C]:
        """A connection that nobody else uses meanwhile."""
        connection = self._taken()
        process = os.getpid()
        try:
            yield connection
        finally:
            if os.getpid() == process:
                self._give_back(connection)
            else:
                _INHERITED.append(connection)

    def close(self) -> None:
        """Close what is idle now, and the others when they come back."""
        self._leave_what_a_fork_brought()
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _taken(self) -> C:
        self._leave_what_a_fork_brought()
        with self._lock:
            if self._closed:
                raise RuntimeError("this database was closed")
            if self._idle:
                return self._idle.pop()
        return self._open_one()

    def _give_back(self, connection: C) -> None:
        if self._is_sound(connection):
            with self._lock:
                if not self._closed:
                    self._idle.append(connection)
                    return
        connection.close()

    def _leave_what_a_fork_brought(self) -> None:
        if self._process == os.getpid():
            return
        # The parent's thread that held the lock at the fork does not exist here.
        self._lock = Lock()
        _INHERITED.extend(self._idle)
        self._idle = []
        self._process = os.getpid()
