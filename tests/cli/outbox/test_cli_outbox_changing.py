from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from backoff_schedule.delivery import Outbox
    from tests.cli.outbox.conftest import Told

    Command = Callable[..., Told]


def test_migrate_makes_the_tables_and_may_be_run_again(command: Command) -> None:
    for _ in range(2):
        assert command("migrate").out == "the tables are of the newest version\n"
    assert command("list").status == 0


def test_migrate_prints_its_statements_and_runs_none(command: Command) -> None:
    told = command("migrate", "--sql")
    assert "CREATE TABLE backoff_deliveries (" in told.out
    assert command("migrate").status == 0


def test_add_endpoint_makes_one_and_keeps_what_is_not_named(
    outbox: Outbox, command: Command, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
    policy = '{"timeout": "5 seconds"}'
    told = command(
        *("add-endpoint", "new", "--url", "https://new.example/hooks", "--policy", policy),
        *("--secret", str(secret), "--max-in-flight", "3"),
    )
    assert (told.status, told.out) == (0, "the endpoint new is there\n")
    assert command("add-endpoint", "new", "--max-in-flight", "none").status == 0
    (made,) = [each for each in outbox.endpoints() if each.name == "new"]
    assert made.url == "https://new.example/hooks"
    assert made.policy_options == {"timeout": 5.0}
    assert made.max_in_flight is None
    outbox.enqueue("new", b"x")
    assert outbox.claim(1)[0].secrets == ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "which endpoint? Give its NAME"),
        (("a", "--policy", "{"), "--policy ('{') needs to be a JSON object, or null"),
        (("a", "--policy", "[1]"), "--policy ('[1]') needs to be a JSON object, or null"),
        (("a", "--max-in-flight", "many"), "--max-in-flight ('many') needs to be a whole number"),
    ],
)
def test_what_add_endpoint_refuses_makes_none(
    outbox: Outbox, command: Command, arguments: tuple[str, ...], said: str
) -> None:
    told = command("add-endpoint", *arguments)
    assert told.status == 2
    assert said in told.err
    assert [each.name for each in outbox.endpoints()] == ["acme", "bob"]


def test_disable_says_why_and_enable_goes_on(outbox: Outbox, command: Command) -> None:
    outbox.enqueue("acme", b"x")
    assert command("disable", "acme").status == 2
    assert command("disable", "acme", "--reason", "they asked us to").status == 0
    assert outbox.claim(1) == []
    assert command("enable", "acme", "--reason", "they are back").status == 0
    assert [claim.endpoint for claim in outbox.claim(1)] == ["acme"]
    assert [
        (entry.event, entry.actor, entry.reason) for entry in reversed(outbox.transitions("acme"))
    ] == [
        ("disabled", "command line", "they asked us to"),
        ("enabled", "command line", "they are back"),
    ]


@pytest.mark.parametrize("verb", [("enable",), ("disable", "--reason", "x")])
def test_an_endpoint_that_does_not_exist_is_an_answer_of_no(
    outbox: Outbox, command: Command, verb: tuple[str, ...]
) -> None:
    told = command(*verb, "nobody")
    assert told.status == 1
    assert "there is no endpoint 'nobody'" in told.err
