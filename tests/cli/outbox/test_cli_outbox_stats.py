from __future__ import annotations

import json
from typing import TYPE_CHECKING

from backoff_schedule.delivery import Delivered
from tests.cli.outbox.conftest import die

if TYPE_CHECKING:
    from collections.abc import Callable

    from backoff_schedule.delivery import Outbox
    from tests.cli.outbox.conftest import Told

    Command = Callable[..., Told]


def test_stats_has_a_line_for_each_endpoint(outbox: Outbox, command: Command) -> None:
    die(outbox, "acme", "down", "down")
    outbox.enqueue("acme", b"x")
    outbox.settle([(claim, Delivered()) for claim in outbox.claim(1)])
    outbox.enqueue("acme", b"x")
    outbox.disable("bob", reason="they asked us to")
    told = command("stats")
    assert told.rows[0][:7] == ["endpoint", "breaker", "pending", "due", "sending", "lag", "dead"]
    acme, bob = told.rows[1:]
    assert acme[:5] == ["acme", "closed", "1", "1", "0"]
    assert acme[6] == "2"
    assert acme[-6:-1] == ["1", "0", "0", "33.3", "%"]
    assert bob == ["bob", "disabled", "0", "0", "0", "-", "0", "-", "0", "0", "0", "-", "-"]


def test_stats_for_programs_has_every_count(outbox: Outbox, command: Command) -> None:
    die(outbox, "acme", "down")
    answer = json.loads(command("stats", "--json").out)
    assert set(answer) == {"acme", "bob"}
    acme = answer["acme"]
    assert (acme["dead_letters"], acme["tries"], acme["success_rate"]) == (1, 1, 0.0)
    assert answer["bob"]["success_rate"] is None
