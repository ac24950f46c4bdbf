"""A bar beside each row, where a terminal shows it."""

import io
import math
import sys

import pytest

from backoff_schedule import create_backoff
from backoff_schedule.cli.bars import bars, width_beside
from backoff_schedule.timetable import Row, rows_of


class Terminal(io.TextIOWrapper):
    def __init__(self, encoding: str) -> None:
        super().__init__(io.BytesIO(), encoding=encoding)

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("encoding", "columns", "width"),
    [
        ("utf-8", 100, 39),
        ("cp437", 100, 39),
        ("ascii", 100, 0),
        ("latin-1", 100, 0),
        ("utf-8", 71, 10),
        ("utf-8", 70, 0),
        ("utf-8", 20, 0),
    ],
)
def test_a_bar_takes_what_the_terminal_has_left(
    encoding: str, columns: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    with Terminal(encoding) as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        assert width_beside(60) == width


def test_no_bar_is_drawn_into_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert width_beside(0) == 0
    monkeypatch.setattr(sys, "stdout", None)
    assert width_beside(0) == 0


def test_a_bar_is_solid_to_the_lowest_and_shaded_to_the_highest() -> None:
    schedule = create_backoff(base=1, max=4, jitter=(0.5, 1.0))
    assert bars(list(rows_of(schedule, 3)), 16) == ["██░░", "████░░░░", "████████░░░░░░░░"]


def test_a_bar_of_an_infinite_wait_is_as_wide_as_there_is_room() -> None:
    edges = [(2.0, 4.0), (0.0, math.inf), (math.inf, math.inf)]
    rows = [Row(1, 0.0, lowest, highest, 0.0, 0.0, 0.0) for lowest, highest in edges]
    assert bars(rows, 8) == ["████░░░░", "░░░░░░░░", "████████"]


def test_no_wait_at_all_has_no_bar() -> None:
    assert bars(list(rows_of(create_backoff(base=0), 2)), 10) == ["", ""]
