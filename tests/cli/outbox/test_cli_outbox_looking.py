from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.outbox.conftest import die

if TYPE_CHECKING:
    from collections.abc import Callable

    from backoff_schedule.delivery import Outbox
    from tests.cli.outbox.conftest import Told

    Command = Callable[..., Told]


def test_list_has_a_line_for_each_row_in_the_order_of_its_enqueue(
    outbox: Outbox, command: Command
) -> None:
    for number in range(3):
        outbox.enqueue("acme" if number < 2 else "bob", b"x", event_id=f"order-{number}")
    told = command("list")
    assert told.rows[0][:5] == ["id", "endpoint", "event_id", "state", "attempts"]
    assert [row[:5] for row in told.rows[1:]] == [
        ["1", "acme", "order-0", "pending", "0"],
        ["2", "acme", "order-1", "pending", "0"],
        ["3", "bob", "order-2", "pending", "0"],
    ]


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (("--endpoint", "bob"), [3]),
        (("--limit", "2"), [1, 2]),
        (("--after", "1"), [2, 3]),
        (("--state", "dead"), []),
    ],
)
def test_list_shows_what_was_asked_for(
    outbox: Outbox, command: Command, options: tuple[str, ...], ids: list[int]
) -> None:
    for name in ("acme", "acme", "bob"):
        outbox.enqueue(name, b"x")
    assert [row["id"] for row in json.loads(command("list", "--json", *options).out)] == ids


def test_show_has_the_row_and_every_try(outbox: Outbox, command: Command) -> None:
    die(outbox, "acme", "it is down")
    (row,) = outbox.list()
    told = command("show", row.event_id, "acme")
    assert told.status == 0
    assert ["state", "dead"] in told.rows
    assert ["last_error", "it", "is", "down"] in told.rows
    assert told.rows[-1][:2] == ["0", "1"]
    assert told.rows[-1][-4:] == ["dead", "it", "is", "down"]
    both = json.loads(command("show", row.event_id, "acme", "--json").out)
    assert (both["delivery"]["state"], both["tries"][0]["error"]) == ("dead", "it is down")


def test_show_says_no_for_a_row_that_is_not_there(outbox: Outbox, command: Command) -> None:
    told = command("show", "order-1", "acme")
    assert (told.status, told.out) == (1, "")
    assert told.err == "no event order-1 for the endpoint acme\n"


def test_show_needs_both_names(outbox: Outbox, command: Command) -> None:
    told = command("show", "order-1")
    assert told.status == 2
    assert "Give its EVENT_ID and its ENDPOINT" in told.err


def test_dead_answers_what_an_operator_asks(outbox: Outbox, command: Command) -> None:
    die(outbox, "acme", "it is down", "it is down", "no such order", "it is down")
    die(outbox, "bob", "it is down", status=404)
    told = command("dead")
    assert told.rows[0] == [
        *("id", "endpoint", "event_id", "attempts", "finished_at", "reason", "last", "alike")
    ]
    # The last one first; of acme's, the first that was down has two that died like it since.
    assert [(row[0], row[1], row[3], row[-1]) for row in told.rows[1:]] == [
        ("5", "bob", "1", "1"),
        ("4", "acme", "1", "1"),
        ("3", "acme", "1", "1"),
        ("2", "acme", "1", "2"),
        ("1", "acme", "1", "3"),
    ]
    letters = json.loads(command("dead", "--json", "--limit", "1").out)
    assert letters[0]["delivery"]["last_status"] == 404
    assert letters[0]["alike"] == 1


def test_dead_shows_what_was_asked_for(outbox: Outbox, command: Command) -> None:
    die(outbox, "acme", "it is down", "no such order", "it is down")
    die(outbox, "bob", "it is down")

    def found(*options: str) -> list[tuple[int, int]]:
        letters = json.loads(command("dead", "--json", *options).out)
        return [(each["delivery"]["id"], each["alike"]) for each in letters]

    assert found("--endpoint", "acme") == [(3, 1), (2, 1), (1, 2)]
    assert found("--error", "it is down") == [(4, 1), (3, 1), (1, 2)]
    second = outbox.list(after=1)[0].finished_at
    assert second is not None
    assert found("--endpoint", "acme", "--since", second.isoformat()) == [(3, 1), (2, 1)]
    told = command("dead", "--since", "yesterday")
    assert told.status == 2
    assert "an ISO date and time with a zone" in told.err
