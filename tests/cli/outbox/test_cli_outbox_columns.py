from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from backoff_schedule.cli.outbox.columns import as_json, cell, columns
from backoff_schedule.delivery import Ticket


def test_numbers_stand_on_the_right_and_words_on_the_left() -> None:
    assert list(columns(("id", "name"), [(1, "a"), (200, "longer")])) == [
        " id  name",
        "  1  a",
        "200  longer",
    ]


def test_without_rows_the_header_is_left() -> None:
    assert list(columns(("id", "name"), [])) == ["id  name"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (datetime(2026, 1, 1, 9, 30, tzinfo=UTC), "2026-01-01 09:30:00Z"),
        (
            datetime(2026, 1, 1, 9, 30, tzinfo=timezone(timedelta(hours=2))),
            "2026-01-01 07:30:00Z",
        ),
        (0.0456, "0.046"),
        ("a\x1b[31m\nb\u202e", "a?[31m?b?"),
        ("x" * 48, "x" * 48),
        ("x" * 49, "x" * 45 + "..."),
    ],
)
def test_a_cell_is_one_line_that_moves_no_cursor(value: object, shown: str) -> None:
    assert cell(value) == shown


def test_json_has_instants_in_utc_and_bodies_as_text_or_hex() -> None:
    east = datetime(2026, 1, 1, 9, tzinfo=timezone(timedelta(hours=2)))
    values = {"ticket": Ticket("e", created=True), "at": east, "body": b"{}", "raw": b"\xff"}
    assert json.loads(as_json(values)) == {
        "ticket": {"event_id": "e", "created": True},
        "at": "2026-01-01T07:00:00+00:00",
        "body": "{}",
        "raw": "ff",
    }
