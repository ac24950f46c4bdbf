from __future__ import annotations

import asyncio
from contextlib import closing
from typing import TYPE_CHECKING

from backoff_schedule.delivery import Counts, Delivered, Transient, Worker
from tests.delivery.conftest import connect
from tests.delivery.stress import POLICY, outbox_at, prepare, stress

if TYPE_CHECKING:
    from pathlib import Path

    from backoff_schedule.delivery import Claim, Outcome


def test_twenty_kills_at_random_points_lose_nothing(place: tuple[str, str], tmp_path: Path) -> None:
    prepare(place)
    became = stress(place, tmp_path, kills=20, events=600)
    assert became["delivered"] + became["failed"] + became["dead"] == 600
    assert became["lost tries"] > 0


def test_eight_processes_on_one_file_lose_nothing_and_nobody_sees_a_locked_database(
    tmp_path: Path,
) -> None:
    place = ("sqlite", str(tmp_path / "app.db"))
    prepare(place)
    became = stress(place, tmp_path, kills=0, events=800, processes=8)
    assert became["delivered"] + became["failed"] + became["dead"] == 800
    assert became["lost tries"] == 0


FILL = """
INSERT INTO backoff_deliveries
    (endpoint_id, event_id, payload, digest, state, created_at, next_attempt_at)
SELECT (SELECT id FROM backoff_endpoints WHERE name = 'down'), 'e' || i, ?, ?, 'pending', 1, 1
FROM NUMBERS
"""
NUMBERS = {
    "postgres": "generate_series(1, 100000) AS n(i)",
    "sqlite": """(
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
        SELECT i FROM n
    )""",
}


def test_a_hundred_thousand_rows_behind_a_dead_endpoint_hold_up_no_other(
    place: tuple[str, str],
) -> None:
    kind = place[0]
    with closing(outbox_at(place)) as outbox:
        outbox.migrate()
        outbox.add_endpoint("down", policy=POLICY)
        healthy = [f"n{number}" for number in range(300)]
        for name in healthy:
            outbox.add_endpoint(name)
            outbox.enqueue(name, b"x", event_id="e")
        statement = FILL.replace("NUMBERS", NUMBERS[kind])
        with closing(connect(place)) as connection:
            marked = statement if kind == "sqlite" else statement.replace("?", "%s")
            connection.execute(marked, (b"x", b"x"))
            connection.commit()
        sent: list[str] = []

        async def send(claim: Claim) -> Outcome:
            sent.append(claim.endpoint)
            return Transient("refused") if claim.endpoint == "down" else Delivered()

        counts = asyncio.run(Worker(outbox, send, POLICY).run_once())
        assert counts == Counts(delivered=300, retried=sent.count("down"))
        # The breaker opened long before, and the rows behind it spent nothing.
        assert 20 <= sent.count("down") < 100
        assert sorted(set(sent)) == sorted(["down", *healthy])
