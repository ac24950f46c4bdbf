from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from backoff_schedule.cli.outbox import redriving
from tests.cli.outbox.conftest import die

if TYPE_CHECKING:
    from collections.abc import Callable

    from backoff_schedule.delivery import Outbox
    from tests.cli.outbox.conftest import Told

    Command = Callable[..., Told]


def pending(outbox: Outbox) -> list[int]:
    return [row.id for row in outbox.list(state="pending")]


def test_redrive_moves_one_unless_told_otherwise(outbox: Outbox, command: Command) -> None:
    die(outbox, "acme", *"abcd")
    assert command("redrive").out == "1 row moved\n"
    assert pending(outbox) == [1]
    assert command("redrive", "--limit", "2").out == "2 rows moved\n"
    assert pending(outbox) == [1, 2, 3]
    assert command("redrive", "--all").out == "1 row moved\n"
    assert command("redrive", "--all").out == "0 rows moved\n"


def test_a_dry_run_counts_and_moves_nothing(outbox: Outbox, command: Command) -> None:
    die(outbox, "acme", *"abc")
    told = command("redrive", "--all", "--dry-run")
    assert (told.status, told.out) == (0, "3 rows would be moved\n")
    assert pending(outbox) == []
    answer = json.loads(command("redrive", "--all", "--dry-run", "--error", "b", "--json").out)
    assert answer == {"dry_run": True, "count": 1, "ids": [2]}


def test_redrive_moves_the_rows_that_are_named_and_says_no_if_one_cannot_be(
    outbox: Outbox, command: Command
) -> None:
    die(outbox, "acme", *"abc")
    assert command("redrive", "--id", "1", "--id", "3").status == 0
    assert pending(outbox) == [1, 3]
    told = command("redrive", "--id", "2", "--id", "99")
    assert (told.status, told.out) == (1, "1 row moved\n")


def test_redrive_takes_what_was_chosen_in_the_way_that_was_asked_for(
    outbox: Outbox, command: Command
) -> None:
    die(outbox, "acme", "down", "gone", "down")
    die(outbox, "bob", "down")
    options = (
        "--endpoint",
        "acme",
        "--error",
        "down",
        "--all",
        "--rate",
        "0.1",
        "--fresh-event-id",
    )
    answer = json.loads(command("redrive", *options, "--json").out)
    assert answer == {"dry_run": False, "count": 2, "ids": [1, 3]}
    first, third = outbox.list(state="pending")
    assert first.next_attempt_at is not None
    assert third.next_attempt_at is not None
    assert 9.9 < (third.next_attempt_at - first.next_attempt_at).total_seconds() < 20


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--all", "--limit", "2"), "--all and --limit do not go together"),
        (("--limit", "0"), "limit (0) needs to be a whole number, 1 or more"),
        (("--rate", "fast"), "--rate ('fast') needs to be rows a second, above 0"),
        (("--ttl", "soon"), "--ttl ('soon')"),
        (("--id", "one"), "--id ('one') needs to be the id of a row"),
    ],
)
def test_what_redrive_refuses_moves_nothing(
    outbox: Outbox, command: Command, options: tuple[str, ...], said: str
) -> None:
    die(outbox, "acme", "a")
    told = command("redrive", *options)
    assert told.status == 2
    assert said in told.err
    assert pending(outbox) == []


def test_long_work_says_on_stderr_how_far_it_is(
    outbox: Outbox, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redriving, "_EVERY", 0.0)
    die(outbox, "acme", *"abc")
    told = command("redrive", "--all")
    assert (told.out, told.err) == ("3 rows moved\n", "3 rows moved so far\n")
    die(outbox, "bob", "d")
    told = command("purge", "--older-than", "0s", "--states", "dead", "--json")
    assert json.loads(told.out) == {"count": 1}
    assert told.err == "1 rows dropped so far\n"


def test_purge_drops_what_was_finished_long_ago(outbox: Outbox, command: Command) -> None:
    die(outbox, "acme", *"ab")
    assert command("purge", "--older-than", "0s").out == "0 rows dropped\n"
    assert command("purge", "--older-than", "1h", "--states", "dead,failed").out == (
        "0 rows dropped\n"
    )
    assert command("purge", "--older-than", "0s", "--states", "dead,failed").out == (
        "2 rows dropped\n"
    )
    assert outbox.list() == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "which rows? Give --older-than TIME"),
        (("--older-than", "1d", "--states", "pending"), "states ('pending')"),
    ],
)
def test_purge_never_drops_what_waits(
    outbox: Outbox, command: Command, options: tuple[str, ...], said: str
) -> None:
    outbox.enqueue("acme", b"x")
    told = command("purge", *options)
    assert told.status == 2
    assert said in told.err
    assert len(outbox.list()) == 1
