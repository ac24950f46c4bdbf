from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

import pytest
from prometheus_client import CollectorRegistry, Gauge, generate_latest, start_http_server
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from backoff_schedule import CircuitBreaker, create_backoff
from backoff_schedule.delivery import (
    Delivered,
    DeliveryPolicy,
    InboxCounts,
    OutboxCollector,
    Permanent,
    PostgresInbox,
    PostgresOutbox,
    SQLiteInbox,
    SQLiteOutbox,
    Transient,
    metrics,
)
from tests.delivery.conftest import STEPS, Clock
from tests.delivery.inbox_processes import begun, inbox_at
from tests.postgres_server import PostgresServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from backoff_schedule.delivery import Inbox, Outbox

ONCE = DeliveryPolicy(create_backoff(steps=[10]), max_attempts=1, breaker=None)
DOWN = Transient("down")
ROOT = Path(__file__).parent.parent.parent


def registered(outbox: Outbox, inbox: Inbox | None = None) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(OutboxCollector(outbox, inbox=inbox))
    return registry


def values(families: Iterable[Any]) -> dict[str, float]:
    """What was scraped, as `name{label="value"}` without the escapes."""
    scraped: dict[str, float] = {}
    for family in families:
        for sample in family.samples:
            labels = ",".join(f"{key}={value}" for key, value in sorted(sample.labels.items()))
            scraped[f"{sample.name}{{{labels}}}"] = sample.value
    return scraped


def scrape(registry: CollectorRegistry) -> dict[str, float]:
    text = generate_latest(registry).decode()
    return values(text_string_to_metric_families(text))


@pytest.fixture
def inbox(place: tuple[str, str], clock: Clock) -> Iterator[Inbox]:
    inbox = inbox_at(place, clock=clock)
    inbox.migrate()
    yield inbox
    inbox.close()


def receive(place: tuple[str, str], inbox: Inbox, source: str, *event_ids: str) -> None:
    for event_id in event_ids:
        connection = begun(place)
        inbox.claim(connection, source, event_id)
        connection.commit()
        connection.close()


def history_of(outbox: Outbox, clock: Clock) -> None:
    """Seven rows, to which all has happened that can."""
    for event_id in ("well", "ill", "gone", "again", "lost"):
        outbox.enqueue("acme", b"x", event_id=event_id)
    well, ill, gone, again, _ = outbox.claim(5, ONCE, lease="1 hour")
    clock.forward(0.5)
    outbox.settle(
        [(well, Delivered()), (ill, DOWN), (gone, Permanent("no", status=400)), (again, DOWN)]
    )
    outbox.redrive([ill.id, again.id])
    ill, again = outbox.claim(2, ONCE)
    clock.forward(1)
    outbox.settle([(ill, DOWN), (again, Delivered())])
    outbox.enqueue("acme", b"x", event_id="expires", ttl=1)
    clock.forward(2)
    outbox.claim(1, ONCE)
    clock.forward(3600)
    outbox.claim(1, STEPS)
    outbox.enqueue("acme", b"x", event_id="retries")
    outbox.settle([(claim, DOWN) for claim in outbox.claim(1, STEPS)])
    clock.forward(20)


def test_every_count_is_shown_as_it_is(outbox: Outbox, clock: Clock) -> None:
    history_of(outbox, clock)
    outbox.enqueue("acme", b"x", event_id="waits", at=clock.after(-30))
    clock.forward(2.5)
    assert scrape(registered(outbox)) == {
        "backoff_up{}": 1,
        "backoff_deliveries_total{endpoint=acme,outcome=delivered}": 2,
        "backoff_deliveries_total{endpoint=acme,outcome=failed}": 1,
        "backoff_deliveries_total{endpoint=acme,outcome=dead}": 3,
        "backoff_deliveries_total{endpoint=acme,outcome=expired}": 1,
        "backoff_try_seconds_count{endpoint=acme}": 7,
        "backoff_try_seconds_sum{endpoint=acme}": 4.0,
        "backoff_retries_total{endpoint=acme}": 1,
        "backoff_lost_tries_total{endpoint=acme}": 1,
        "backoff_redrives_total{endpoint=acme}": 2,
        "backoff_redrive_outcomes_total{endpoint=acme,outcome=delivered}": 1,
        "backoff_redrive_outcomes_total{endpoint=acme,outcome=died_again}": 1,
        "backoff_pending{endpoint=acme}": 2,
        "backoff_due{endpoint=acme}": 2,
        "backoff_sending{endpoint=acme}": 1,
        "backoff_lag_seconds{endpoint=acme}": 32.5,
        "backoff_oldest_pending_seconds{endpoint=acme}": 22.5,
        "backoff_dead_letters{endpoint=acme}": 2,
        "backoff_oldest_dead_letter_seconds{endpoint=acme}": 3625.5,
        "backoff_repeated_deaths{endpoint=acme}": 1,
        "backoff_most_redrives{endpoint=acme}": 1,
        "backoff_endpoint_open{endpoint=acme}": 0,
        "backoff_endpoint_disabled{endpoint=acme}": 0,
    }


def test_open_and_disabled_endpoints_are_shown(outbox: Outbox, clock: Clock) -> None:
    breaker = CircuitBreaker(threshold=1.0, min_attempts=1, cooldown=60)
    outbox.enqueue("acme", b"x")
    policy = DeliveryPolicy(STEPS.schedule, breaker=breaker)
    outbox.settle([(claim, DOWN) for claim in outbox.claim(1, policy)])
    outbox.add_endpoint("bob")
    outbox.disable("bob", reason="gone")
    registry = registered(outbox)

    def shown() -> list[float | None]:
        return [
            registry.get_sample_value(f"backoff_endpoint_{name}", {"endpoint": endpoint})
            for endpoint in ("acme", "bob")
            for name in ("open", "disabled")
        ]

    assert shown() == [1, 0, 0, 1]
    clock.forward(60)
    outbox.enable("bob")
    assert outbox.stats()["acme"].breaker == "half_open"
    assert shown() == [1, 0, 0, 0]
    outbox.settle([(claim, Delivered()) for claim in outbox.claim(1, policy)])
    assert shown() == [0, 0, 0, 0]


def test_each_scrape_shows_what_is_then_and_totals_never_fall(outbox: Outbox, clock: Clock) -> None:
    registry = registered(outbox)
    delivered = "backoff_deliveries_total{endpoint=acme,outcome=delivered}"
    for count in (1, 2):
        outbox.enqueue("acme", b"x")
        outbox.settle([(claim, Delivered()) for claim in outbox.claim(1)])
        assert scrape(registry)[delivered] == count
    clock.forward(1)
    assert outbox.purge(0) == 2
    assert scrape(registry)[delivered] == 2


def test_an_inbox_is_shown_by_source(
    outbox: Outbox, inbox: Inbox, place: tuple[str, str], clock: Clock
) -> None:
    receive(place, inbox, "shop", "a", "a", "a", "b")
    receive(place, inbox, "bank", "a")
    registry = registered(outbox, inbox)

    def shown() -> dict[str, float]:
        return {key: value for key, value in scrape(registry).items() if "inbox" in key}

    assert shown() == {
        "backoff_inbox_up{}": 1,
        "backoff_inbox_received{source=shop}": 2,
        "backoff_inbox_received{source=bank}": 1,
        "backoff_inbox_duplicates{source=shop}": 2,
        "backoff_inbox_duplicates{source=bank}": 0,
    }
    clock.forward(1)
    inbox.purge(0)
    assert shown() == {"backoff_inbox_up{}": 1}


def test_what_is_described_is_what_is_collected_and_what_the_module_lists(
    outbox: Outbox, inbox: Inbox, place: tuple[str, str]
) -> None:
    receive(place, inbox, "shop", "a")
    collector = OutboxCollector(outbox, inbox=inbox)
    described = [(family.name, family.type) for family in collector.describe()]
    assert described == [(family.name, family.type) for family in collector.collect()]
    assert {sample for family in collector.describe() for sample in family.samples} == set()
    listed = re.findall(r"^\| `(backoff_\w+)`", metrics.__doc__ or "", re.MULTILINE)
    collected = [s.name for family in collector.collect() for s in family.samples]
    assert {name.replace("_sum", "_count") for name in collected} == set(listed)
    without = [family.name for family in OutboxCollector(outbox).describe()]
    assert without == [name for name, _ in described if "inbox" not in name]


@pytest.mark.parametrize(
    "name",
    ['say "hi"', "two\nlines", "back\\slash", "\\n", "a,b=c}d", "\r\t ", "ünï ☃", "é" * 255],
    ids=ascii,
)
def test_any_name_of_an_endpoint_or_a_source_comes_through(
    outbox: Outbox, inbox: Inbox, place: tuple[str, str], name: str
) -> None:
    outbox.add_endpoint(name)
    outbox.enqueue(name, b"x")
    receive(place, inbox, name, "a")
    scraped = scrape(registered(outbox, inbox))
    assert scraped[f"backoff_pending{{endpoint={name}}}"] == 1
    assert scraped[f"backoff_inbox_received{{source={name}}}"] == 1


def test_half_a_surrogate_pair_does_not_break_a_scrape(
    outbox: Outbox, inbox: Inbox, place: tuple[str, str]
) -> None:
    with pytest.raises(ValueError, match="lone surrogates"):
        outbox.add_endpoint("\ud800")
    receive(place, inbox, "\ud800", "a")
    receive(place, inbox, "\ud801", "a")
    assert scrape(registered(outbox, inbox))["backoff_inbox_received{source=?}"] == 2


@pytest.mark.parametrize("accept", ["text/plain", "application/openmetrics-text; version=1.0.0"])
def test_a_scrape_over_http_finds_the_outbox_beside_the_metrics_of_the_process(
    outbox: Outbox, clock: Clock, accept: str
) -> None:
    history_of(outbox, clock)
    registry = registered(outbox)
    Gauge("app_orders", "Of the application's own.", registry=registry).set(3)
    server, thread = start_http_server(0, addr="127.0.0.1", registry=registry)
    try:
        url = f"http://127.0.0.1:{server.server_port}/metrics"
        with urlopen(Request(url, headers={"Accept": accept}), timeout=30) as answer:
            assert answer.headers["Content-Type"].startswith(accept.split(";")[0])
            text = answer.read().decode()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    parse: Any = text_string_to_metric_families
    if accept != "text/plain":
        parse = openmetrics.text_string_to_metric_families
    scraped = values(parse(text))
    assert scraped["app_orders{}"] == 3
    assert scraped["backoff_up{}"] == 1
    assert scraped["backoff_deliveries_total{endpoint=acme,outcome=dead}"] == 3
    assert scraped["backoff_try_seconds_sum{endpoint=acme}"] == 4.0


# A database that is away.


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture(params=["sqlite", "postgres"])
def away(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Outbox, Inbox]]:
    """An outbox and an inbox whose database cannot be reached."""
    opened: tuple[Outbox, Inbox]
    if request.param == "sqlite":
        path = tmp_path / "not mounted" / "app.db"
        opened = SQLiteOutbox(path), SQLiteInbox(path)
    else:
        conninfo = f"host=127.0.0.1 port={unused_port()} dbname=none user=nobody"
        opened = PostgresOutbox(conninfo), PostgresInbox(conninfo)
    yield opened
    for one in opened:
        one.close()


def test_registering_asks_no_database_and_a_scrape_says_that_it_is_away(
    away: tuple[Outbox, Inbox], monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = CollectorRegistry()
    Gauge("app_orders", "Of the application's own.", registry=registry).set(3)
    registry.register(OutboxCollector(away[0], inbox=away[1]))
    # Asked at the registration, it would have waited.
    monkeypatch.setattr(metrics, "_PATIENCE", 0.2)
    assert scrape(registry) == {"app_orders{}": 3, "backoff_up{}": 0, "backoff_inbox_up{}": 0}


def test_a_scrape_of_a_database_that_is_away_ends_before_prometheus_gives_up(
    away: tuple[Outbox, Inbox],
) -> None:
    registry = registered(*away)
    began = time.monotonic()
    assert scrape(registry) == {"backoff_up{}": 0, "backoff_inbox_up{}": 0}
    assert time.monotonic() - began < 9


def test_of_two_databases_one_may_be_away(
    away: tuple[Outbox, Inbox],
    outbox: Outbox,
    inbox: Inbox,
    place: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrics, "_PATIENCE", 0.2)
    receive(place, inbox, "shop", "a")
    there = scrape(registered(outbox, away[1]))
    assert (there["backoff_up{}"], there["backoff_inbox_up{}"]) == (1, 0)
    assert there["backoff_pending{endpoint=acme}"] == 0
    assert scrape(registered(away[0], inbox)) == {
        "backoff_up{}": 0,
        "backoff_inbox_up{}": 1,
        "backoff_inbox_received{source=shop}": 1,
        "backoff_inbox_duplicates{source=shop}": 0,
    }
    assert inbox.stats() == {"shop": InboxCounts(received=1, duplicates=0)}


def test_a_server_that_was_away_is_shown_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_PATIENCE", 0.3)
    with PostgresServer() as server, closing(PostgresOutbox(server.conninfo)) as outbox:
        outbox.migrate()
        outbox.add_endpoint("acme")
        outbox.enqueue("acme", b"x")
        registry = registered(outbox)
        assert scrape(registry)["backoff_pending{endpoint=acme}"] == 1
        server.kill()
        assert scrape(registry) == {"backoff_up{}": 0}
        server.start()
        assert scrape(registry)["backoff_pending{endpoint=acme}"] == 1


def test_tables_that_are_missing_are_no_database_that_is_away(
    open_outbox: Callable[..., Outbox],
) -> None:
    registry = registered(open_outbox())
    with pytest.raises(Exception, match=r"backoff_\w+"):
        scrape(registry)


def test_without_prometheus_client_the_collector_says_which_extra_to_install() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from backoff_schedule.delivery import SQLiteOutbox, OutboxCollector\n"
    )
    # Without site-packages.
    command = [sys.executable, "-I", "-S", "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: metrics need prometheus-client: "
        'pip install "backoff-schedule[prometheus]"'
    )


def test_a_package_that_prometheus_client_lacks_is_named_as_it_is() -> None:
    code = "import sys; sys.modules['wsgiref'] = None; import backoff_schedule.delivery.metrics"
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "wsgiref" in run.stderr.splitlines()[-1]


def test_the_guide_names_every_metric_and_no_other(outbox: Outbox, inbox: Inbox) -> None:
    guide = (ROOT / "docs" / "guides" / "watch-deliveries.md").read_text()
    collector = OutboxCollector(outbox, inbox=inbox)
    names: set[str] = set()
    for family in collector.describe():
        endings = {"counter": ["_total"], "summary": ["_count", "_sum"]}.get(family.type, [""])
        names |= {family.name + ending for ending in endings}
    assert set(re.findall(r"\bbackoff_\w+", guide)) - {"backoff_schedule"} == names
