from __future__ import annotations

from typing import TYPE_CHECKING

from backoff_schedule.delivery.ring import Ring

if TYPE_CHECKING:
    import pytest

    from backoff_schedule.delivery.outbox import Outbox


class Found:
    """A transaction in which these endpoints have rows."""

    def __init__(self, pending: list[int], lost: list[int]) -> None:
        self._answers = [pending, lost]

    def rows(self, statement: str, values: object = ()) -> list[tuple[int]]:
        return [(number,) for number in self._answers.pop(0)]


def ring_of(pending: list[int], lost: list[int] | None = None) -> Ring:
    ring = Ring()
    ring.look(Found(pending, lost or []))  # type: ignore[arg-type]
    return ring


def test_each_has_its_turn_before_any_has_a_second() -> None:
    ring = ring_of([1, 2, 3, 5, 8])
    assert [ring.turn(2, ()) for _ in range(5)] == [[1, 2], [3, 5], [8, 1], [2, 3], [5, 8]]


def test_none_is_given_twice_in_one_turn_and_none_that_was_asked_already() -> None:
    ring = ring_of([1, 2, 3])
    assert ring.turn(10, ()) == [1, 2, 3]
    assert ring.turn(10, {1, 2}) == [3]
    assert ring.turn(10, {1, 2, 3}) == []


def test_what_is_drained_is_left_out_until_the_next_look() -> None:
    ring = ring_of([1, 2, 3])
    ring.drained({2})
    assert ring.turn(10, ()) == [1, 3]


def test_the_turn_of_a_lost_row_goes_on_only_when_one_is_taken() -> None:
    ring = ring_of([], [4, 5, 6])
    assert ring.lost_turn(1, ()) == ring.lost_turn(1, ()) == [4]
    ring.lost_taken(4)
    assert ring.lost_turn(2, ()) == [5, 6]
    ring.lost_taken(6)
    assert ring.lost_turn(9, ()) == [4, 5, 6]


def test_a_look_lasts_for_a_quarter_of_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    ring = Ring()
    assert ring.is_stale()
    ring.look(Found([], []))  # type: ignore[arg-type]
    now = 1000.25
    assert not ring.is_stale()
    now = 1000.26
    assert ring.is_stale()


def test_nothing_is_answered_only_after_a_fresh_look(outbox: Outbox) -> None:
    for name in ("bob", "cy"):
        outbox.add_endpoint(name)
    outbox.enqueue("acme", b"x")
    assert len(outbox.claim(1)) == 1
    # The look of that claim is still good, and does not know of this row.
    outbox.enqueue("bob", b"x")
    assert len(outbox.claim(1)) == 1
    assert outbox.claim(1) == []
