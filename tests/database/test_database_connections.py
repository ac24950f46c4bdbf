from __future__ import annotations

import os
import threading

import pytest

from backoff_schedule.database.connections import _INHERITED, Connections


class Pretended:
    """A connection that says what became of it."""

    def __init__(self) -> None:
        self.closed = False
        self.sound = True

    def close(self) -> None:
        self.closed = True


def pretended() -> Connections[Pretended]:
    return Connections(Pretended, lambda connection: connection.sound)


def test_a_connection_is_used_again_and_by_one_borrower_at_a_time() -> None:
    connections = pretended()
    with connections.borrowed() as first, connections.borrowed() as second:
        assert first is not second
    with connections.borrowed() as again:
        assert again in (first, second)


def test_as_many_are_opened_as_threads_work_at_once() -> None:
    connections, barrier, seen = pretended(), threading.Barrier(5), []

    def work() -> None:
        with connections.borrowed() as connection:
            barrier.wait(10)
            seen.append(connection)

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(connection) for connection in seen}) == 5


def test_what_is_not_sound_is_closed_and_not_lent_again() -> None:
    connections = pretended()
    with pytest.raises(ZeroDivisionError), connections.borrowed() as broken:
        broken.sound = False
        raise ZeroDivisionError
    assert broken.closed
    with connections.borrowed() as fresh:
        assert fresh is not broken


def test_close_closes_the_idle_and_those_that_come_back() -> None:
    connections = pretended()
    with connections.borrowed() as out:
        with connections.borrowed() as idle:
            pass
        connections.close()
        assert idle.closed
        assert not out.closed
    assert out.closed
    with pytest.raises(RuntimeError, match="was closed"), connections.borrowed():
        pass


def test_a_connection_never_crosses_a_fork_and_the_childs_end_leaves_it_open() -> None:
    connections = pretended()
    with connections.borrowed() as parents:
        pass
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with connections.borrowed() as own:
            kept = own is not parents and [parents] == _INHERITED and not parents.closed
        os.write(writing, b"kept" if kept else b"lent")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 4) == b"kept"
    os.close(reading)
    os.close(writing)
    with connections.borrowed() as again:
        assert again is parents
