"""Metrics of an outbox for Prometheus, asked of the database at each scrape.

Any number of processes may show them: they are the database's, not those of a process.

| metric | is | `outcome` |
|---|---|---|
| `backoff_up` | 1 if the outbox's database answered, else 0 | |
| `backoff_deliveries_total` | rows that ended | `delivered`, `failed`, `dead`, `expired` |
| `backoff_try_seconds_count`, `_sum` | tries that ended with a result, and how long they took | |
| `backoff_retries_total` | tries after which a row waited for another one | |
| `backoff_lost_tries_total` | tries whose lease ended without a result | |
| `backoff_pending` | rows that wait | |
| `backoff_due` | rows that wait and are due | |
| `backoff_sending` | rows that are claimed | |
| `backoff_lag_seconds` | how long a row has been due, the longest | |
| `backoff_oldest_pending_seconds` | the age of the oldest row that waits | |
| `backoff_dead_letters` | rows that are dead or failed | |
| `backoff_oldest_dead_letter_seconds` | how long ago the first of these ended | |
| `backoff_redrives_total` | rows that were given a new budget | |
| `backoff_redrive_outcomes_total` | what became of those | `delivered`, `died_again` |
| `backoff_repeated_deaths` | dead letters that had been redriven before | |
| `backoff_most_redrives` | the most redrives of one dead letter | |
| `backoff_endpoint_open` | 1 from when the breaker opens until a probe succeeds, else 0 | |
| `backoff_endpoint_disabled` | 1 while the endpoint is disabled, else 0 | |
| `backoff_inbox_up` | 1 if the inbox's database answered, else 0 | |
| `backoff_inbox_received` | events that are kept, by `source` | |
| `backoff_inbox_duplicates` | times that one of these came again, by `source` | |

All but the first and the last three are by `endpoint`. What an inbox counts is what is kept, so a
purge makes it less: these are gauges.
"""

from __future__ import annotations

try:
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        SummaryMetricFamily,
    )
    from prometheus_client.registry import Collector
except ModuleNotFoundError as missing:
    if missing.name != "prometheus_client":
        raise
    message = 'metrics need prometheus-client: pip install "backoff-schedule[prometheus]"'
    raise ModuleNotFoundError(message, name=missing.name) from None

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import TypeVar

    from prometheus_client.core import Metric

    from .counting import EndpointStats
    from .inbox import Inbox, InboxCounts
    from .outbox import Outbox

    Counted = TypeVar("Counted")

# Prometheus gives up after ten seconds, unless told otherwise, and would not hear that it is away.
_PATIENCE = 3.0

_UP = ("backoff_up", "Whether the outbox's database answered.")
_INBOX_UP = ("backoff_inbox_up", "Whether the inbox's database answered.")
_TRY_SECONDS = ("backoff_try_seconds", "Tries that ended with a result, and how long they took.")
_OUTCOMES = (
    (
        "backoff_deliveries",
        "Rows that ended.",
        {
            "delivered": "delivered",
            "failed": "failed",
            "dead": "dead",
            "expired": "expired",
        },
    ),
    (
        "backoff_redrive_outcomes",
        "What became of rows that were given a new budget.",
        {"delivered": "redelivered", "died_again": "died_again"},
    ),
)
_TOTALS = (
    ("backoff_retries", "Tries after which a row waited for another one.", "retried"),
    ("backoff_lost_tries", "Tries whose lease ended without a result.", "lost"),
    ("backoff_redrives", "Rows that were given a new budget.", "redriven"),
)
_GAUGES = (
    ("backoff_pending", "Rows that wait.", "pending"),
    ("backoff_due", "Rows that wait and are due.", "due"),
    ("backoff_sending", "Rows that are claimed.", "sending"),
    ("backoff_lag_seconds", "How long a row has been due, the longest.", "lag"),
    ("backoff_oldest_pending_seconds", "Age of the oldest row that waits.", "oldest_pending_age"),
    ("backoff_dead_letters", "Rows that are dead or failed.", "dead_letters"),
    (
        "backoff_oldest_dead_letter_seconds",
        "How long ago the first of the dead letters ended.",
        "oldest_dead_age",
    ),
    ("backoff_repeated_deaths", "Dead letters that had been redriven before.", "repeated_deaths"),
    ("backoff_most_redrives", "The most redrives of one dead letter.", "most_redrives"),
    ("backoff_endpoint_disabled", "Whether the endpoint is disabled.", "disabled"),
)
# Half-open too: while an endpoint is down, its breaker goes to and fro between the two.
_OPEN = ("backoff_endpoint_open", "Whether the endpoint's breaker is open, or waits for a probe.")
_INBOX_GAUGES = (
    ("backoff_inbox_received", "Events that are kept.", "received"),
    ("backoff_inbox_duplicates", "Times that a kept event came again.", "duplicates"),
)


class OutboxCollector(Collector):
    """Shows an outbox to Prometheus. Needs the extra `prometheus`.

    - `outbox`: what to show, in 22 series for each endpoint.
    - `inbox`: an inbox to show beside it. Counting it takes longer the more of it is kept: scrape
      once a minute then, and not every 15 seconds.

    Registering asks no database. A scrape waits for a database for three seconds, or for five where
    a server does not even refuse; then `backoff_up` (`backoff_inbox_up`) is 0 and what the database
    knows is left out, so that the other metrics of the process are still there. An error that is no
    matter of waiting, such as tables that are missing, fails the scrape.

    Examples:
        >>> import tempfile
        >>> from prometheus_client import CollectorRegistry
        >>> from backoff_schedule.delivery import SQLiteOutbox
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     outbox = SQLiteOutbox(f"{folder}/app.db")
        ...     outbox.migrate()
        ...     outbox.add_endpoint("acme")
        ...     ticket = outbox.enqueue("acme", b"{}")
        ...     registry = CollectorRegistry()
        ...     registry.register(OutboxCollector(outbox))
        ...     pending = registry.get_sample_value("backoff_pending", {"endpoint": "acme"})
        ...     outbox.close()
        >>> pending
        1.0
    """

    def __init__(self, outbox: Outbox, *, inbox: Inbox | None = None) -> None:
        self._outbox = outbox
        self._inbox = inbox

    def describe(self) -> Iterator[Metric]:
        """The metrics without a value; asks no database."""
        yield GaugeMetricFamily(*_UP)
        yield from _of_endpoints({})
        if self._inbox is not None:
            yield GaugeMetricFamily(*_INBOX_UP)
            yield from _of_sources({})

    def collect(self) -> Iterator[Metric]:
        """The metrics as they are now. For the registry, which calls it at each scrape."""
        counted = _asked(self._outbox.stats, self._outbox._is_away)
        yield GaugeMetricFamily(*_UP, value=float(counted is not None))
        if counted is not None:
            yield from _of_endpoints(counted)
        if self._inbox is not None:
            received = _asked(self._inbox.stats, self._inbox._is_away)
            yield GaugeMetricFamily(*_INBOX_UP, value=float(received is not None))
            if received is not None:
                yield from _of_sources(received)


def _asked(
    stats: Callable[..., dict[str, Counted]], is_away: Callable[[Exception], bool]
) -> dict[str, Counted] | None:
    """What a database knows; None if it is away."""
    try:
        return stats(timeout=_PATIENCE)
    except Exception as error:
        if not is_away(error):
            raise
        return None


def _of_endpoints(counted: Mapping[str, EndpointStats]) -> Iterator[Metric]:
    for name, said, outcomes in _OUTCOMES:
        ended = CounterMetricFamily(name, said, labels=["endpoint", "outcome"])
        for endpoint, stats in counted.items():
            for outcome, attribute in outcomes.items():
                ended.add_metric([endpoint, outcome], float(getattr(stats, attribute)))
        yield ended
    tries = SummaryMetricFamily(*_TRY_SECONDS, labels=["endpoint"])
    for endpoint, stats in counted.items():
        tries.add_metric([endpoint], count_value=stats.tries, sum_value=stats.seconds)
    yield tries
    for name, said, attribute in _TOTALS:
        total = CounterMetricFamily(name, said, labels=["endpoint"])
        for endpoint, stats in counted.items():
            total.add_metric([endpoint], float(getattr(stats, attribute)))
        yield total
    for name, said, attribute in _GAUGES:
        gauge = GaugeMetricFamily(name, said, labels=["endpoint"])
        for endpoint, stats in counted.items():
            gauge.add_metric([endpoint], float(getattr(stats, attribute)))
        yield gauge
    is_open = GaugeMetricFamily(*_OPEN, labels=["endpoint"])
    for endpoint, stats in counted.items():
        is_open.add_metric([endpoint], float(stats.breaker != "closed"))
    yield is_open


def _of_sources(received: Mapping[str, InboxCounts]) -> Iterator[Metric]:
    for name, said, attribute in _INBOX_GAUGES:
        gauge = GaugeMetricFamily(name, said, labels=["source"])
        for source, counts in received.items():
            gauge.add_metric([source], float(getattr(counts, attribute)))
        yield gauge
