"""The whole demo, with real servers and files and without the waiting."""

from __future__ import annotations

import builtins
import io
import sys
import tempfile
import threading
import time
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any

import pytest

from backoff_schedule.cli import demo
from backoff_schedule.delivery import SQLiteInbox

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# One thing after the other, each a line or the beginning of one.
IN_THIS_ORDER = [
    "3. Orders, and the events that tell of them",
    "order 1      yes            invoice-1 pending, parcel-1 pending",
    "order 2      yes            invoice-2 pending, parcel-2 pending",
    "order 3      no             nothing",
    "4. A receiver that fails, and one that works",
    "09:00:00",
    "invoice-1  1 of 4  did nothing       503 Service Unavailable         due 09:01:00",
    "parcel-1   1 of 4  wrote its effect  204                             delivered",
    "invoice-2  1 of 4  did nothing       503 Service Unavailable         due 09:01:00",
    "parcel-2   1 of 4  wrote its effect  204                             delivered",
    "5. A receiver that asks for a pause",
    "09:01:00, 1m later",
    "invoice-1  2 of 4  did nothing       429 Too Many Requests           due 09:11:00",
    "invoice-2  2 of 4  did nothing       429 Too Many Requests           due 09:11:00",
    "The schedule says 5m after a second failure, and the answer said Retry-After: 600,",
    "6. A receiver that drops the connection after its commit",
    "09:11:00, 10m later",
    "invoice-1  3 of 4  wrote its effect  no answer from billing.test     due 09:36:00",
    "invoice-2  3 of 4  wrote its effect  no answer from billing.test     due 09:36:00",
    "So invoice-1 and invoice-2 had their effects, but the shop cannot know that.",
    "7. A receiver that stays down, and its breaker",
    "09:12:00, 1m later",
    "invoice-4  1 of 4  heard nothing     billing.test cannot be reached  due 09:13:00",
    "parcel-4   1 of 4  wrote its effect  204                             delivered",
    "billing's breaker: opened until 09:22:00",
    "09:22:00, 10m later",
    "invoice-4  2 of 4  heard nothing     billing.test cannot be reached  due 09:27:00",
    "billing's breaker: half-open, then opened until 09:42:00",
    "09:42:00, 20m later",
    "invoice-4  3 of 4  heard nothing     billing.test cannot be reached  due 10:07:00",
    "billing's breaker: half-open, then opened until 10:22:00",
    "10:22:00, 40m later",
    "invoice-1  4 of 4  heard nothing     billing.test cannot be reached  dead: attempts",
    "billing's breaker: half-open, then opened until 11:02:00",
    "11:02:00, 40m later",
    "invoice-2  4 of 4  heard nothing     billing.test cannot be reached  dead: attempts",
    "billing's breaker: half-open, then opened until 11:42:00",
    "11:42:00, 40m later",
    "invoice-4  4 of 4  heard nothing     billing.test cannot be reached  dead: attempts",
    "billing's breaker: half-open, then opened until 12:22:00",
    "8. Dead letters",
    "invoice-1      4  10:22:00  attempts  billing.test cannot be reached",
    "invoice-2      4  11:02:00  attempts  billing.test cannot be reached",
    "invoice-4      4  11:42:00  attempts  billing.test cannot be reached",
    "9. Repair, and a redrive of one",
    "outbox.redrive(limit=1) moved invoice-1",
    "13:00:00, 1h 18m later",
    "invoice-1  1 of 4  knew it already   204                             delivered",
    "billing's breaker: half-open, then closed",
    "outbox.history('invoice-1', 'billing')",
    "0    1  09:00:00  retry      503 Service Unavailable",
    "0    2  09:01:00  retry      429 Too Many Requests",
    "0    3  09:11:00  retry      no answer from billing.test",
    "0    4  10:22:00  dead       billing.test cannot be reached",
    "1    1  13:00:00  delivered  204",
    "10. A redrive of the rest",
    "outbox.redrive(limit=None) moved invoice-2 and invoice-4",
    "13:05:00, 5m later",
    "invoice-2  1 of 4  knew it already   204                             delivered",
    "invoice-4  1 of 4  wrote its effect  204                             delivered",
    "11. The count",
    "orders                             3",
    "events enqueued                    6",
    "events delivered                   6",
    "tries                             18",
    "tries that reached nobody          6",
    "requests received                 12",
    "requests put off with 503 or 429   4",
    "duplicates refused by the inbox    2",
    "effects                            6",
    "Exactly one effect per event: each of the 6 has one, and nothing else has any.",
]


def told(sleep: Callable[[float], object] = lambda _: None) -> tuple[int, list[str], str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = demo.run([], sleep=sleep)
    return status, out.getvalue().splitlines(), err.getvalue()


@pytest.fixture(scope="module")
def lines() -> list[str]:
    status, lines, err = told()
    assert (status, err) == (0, "")
    return lines


def test_the_story_has_everything_in_its_order(lines: list[str]) -> None:
    # Not one try or transition more than these, and the count of tries adds up.
    told_of = [line.strip() for line in lines]
    start = told_of.index(IN_THIS_ORDER[0])
    rest = iter(told_of[start:])
    for wanted in IN_THIS_ORDER:
        assert any(line.startswith(wanted) for line in rest), wanted
    assert sum(" of 4  " in line for line in lines) == 18
    assert sum("breaker: " in line for line in lines) == 7


def test_no_line_is_longer_than_100_characters(lines: list[str]) -> None:
    assert max(map(len, lines)) <= 100
    assert all(line.isascii() and line == line.rstrip() for line in lines)


def test_the_chapters_are_numbered(lines: list[str]) -> None:
    numbers = [line.partition(". ")[0] for line in lines if line[:1].strip()]
    assert numbers == [str(number) for number in range(1, 12)]


def test_it_is_the_same_story_every_time(lines: list[str]) -> None:
    assert told()[1] == lines


def test_the_call_waits_as_the_server_and_the_schedule_ask() -> None:
    waits: list[float] = []
    _, lines, _ = told(waits.append)
    start = lines.index("   call 1: HTTP Error 503: Service Unavailable")
    assert lines[start : start + 5] == [
        "   call 1: HTTP Error 503: Service Unavailable",
        "           the schedule says 200ms, the server 1s, so wait 1s",
        "   call 2: HTTP Error 429: Too Many Requests",
        "           the schedule says 400ms, the server nothing, so wait 400ms",
        "   call 3: 200",
    ]
    # Nothing of the story is waited for.
    assert waits == [1.0, 0.4]


def test_it_passes_by_the_proxies_of_the_environment(
    lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    assert told() == (0, lines, "")


def test_it_leaves_neither_a_file_nor_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = set(threading.enumerate())
    assert told()[0] == 0
    assert list(tmp_path.iterdir()) == []
    deadline = time.monotonic() + 5
    while (left := set(threading.enumerate()) - before) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert left == set()


def test_receivers_without_an_inbox_make_it_end_with_1_and_say_which_events(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SQLiteInbox, "claim", lambda *_: True)
    status, lines, err = told()
    assert status == 1
    assert err == (
        "backoff-schedule demo: invoice-1 has had 2 effects; invoice-2 has had 2 effects\n"
    )
    assert "     effects                            8" in lines
    assert not any("Exactly one effect" in line for line in lines)


def test_receivers_whose_effects_are_lost_make_it_end_with_1(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The inbox refuses what it has never had.
    monkeypatch.setattr(SQLiteInbox, "claim", lambda *_: False)
    status, _, err = told()
    assert (status, err.count("has had 0 effects")) == (1, 6)


def make_missing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a module be missing for what the story is made of, loaded afresh."""
    for module in ("story", "rounds"):
        monkeypatch.delattr(demo, module, raising=False)
        monkeypatch.delitem(sys.modules, f"{demo.__name__}.{module}", raising=False)
    monkeypatch.delitem(sys.modules, "backoff_schedule.delivery.http", raising=False)
    genuine = builtins.__import__

    def importing(wanted: str, *args: Any, **kwargs: Any) -> Any:
        if wanted == name:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return genuine(wanted, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", importing)


def test_without_the_extra_it_stops_where_the_sending_begins_and_says_what_to_install(
    lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_missing("httpx2", monkeypatch)
    chapter = lines.index("4. A receiver that fails, and one that works")
    sentence = 'sending over HTTP needs httpx2: pip install "backoff-schedule[http]"'
    assert told() == (0, [*lines[:chapter], f"   Here it stops, because {sentence}", ""], "")


def test_another_module_that_is_missing_is_not_taken_for_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_missing("asyncio", monkeypatch)
    with pytest.raises(ModuleNotFoundError, match="asyncio"):
        told()
