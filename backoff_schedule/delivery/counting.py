"""What became of an endpoint's deliveries, and what waits, counted without a look at each row.

Totals are kept in the gates, where every settle adds to them. What stands in a state now is counted
in the partial index of that state, so that delivered rows, which are most of them, cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..database.transaction import Transaction

# One statement, and so one moment: between two of them, rows would move.
_COUNT = """
WITH clock AS MATERIALIZED (
    SELECT {as_of} AS at
), waiting AS (
    SELECT d.endpoint_id, count(*) AS pending, min(d.next_attempt_at) AS due_at, min(d.id) AS first,
        count(CASE WHEN d.next_attempt_at <= clock.at THEN 1 END) AS due
    FROM {prefix}deliveries AS d CROSS JOIN clock
    WHERE d.state = 'pending' GROUP BY d.endpoint_id
), claimed AS (
    SELECT endpoint_id, count(*) AS sending, min(next_attempt_at) AS due_at
    FROM {prefix}deliveries WHERE state = 'sending' GROUP BY endpoint_id
), ended AS (
    SELECT endpoint_id, count(*) AS letters, min(finished_at) AS since,
        count(CASE WHEN redrives > 0 THEN 1 END) AS repeated, max(redrives) AS redrives
    FROM {prefix}deliveries WHERE state IN ('dead', 'failed') GROUP BY endpoint_id
)
SELECT clock.at, e.name, g.delivered, g.retried, g.failed, g.dead, g.expired, g.lost, g.tries,
    g.seconds, g.redriven, g.redelivered, g.died_again, g.status, g.until, g.disabled_at,
    waiting.pending, waiting.due, waiting.due_at,
    (SELECT created_at FROM {prefix}deliveries WHERE id = waiting.first),
    claimed.sending, claimed.due_at, ended.letters, ended.since, ended.repeated, ended.redrives
FROM clock CROSS JOIN {prefix}endpoints AS e
JOIN {prefix}gates AS g ON g.endpoint_id = e.id
LEFT JOIN waiting ON waiting.endpoint_id = e.id
LEFT JOIN claimed ON claimed.endpoint_id = e.id
LEFT JOIN ended ON ended.endpoint_id = e.id
ORDER BY e.name
"""
# PostgreSQL reads the whole table where it believes that many rows wait, and its belief may be old.
_PREFER_INDEXES = "SELECT {prefer_indexes}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointStats:
    """What became of an endpoint's deliveries, and what waits. Times are in seconds.

    What rows became, tries and redrives are totals since the endpoint was made, which a purge takes
    nothing off. The rest is as it is now.

    Attributes:
        delivered: Rows that the receiver has.
        failed: Rows that it will never take.
        dead: Rows whose tries or time were used up.
        expired: Rows that were not sent while it was worth it.
        tries: Tries that ended with a result.
        seconds: How long those took, together.
        retried: Those of them after which the row waited for another one.
        lost: Tries whose lease ended without a result. They are not among `tries`.
        redriven: Rows that a redrive moved, each time that it did.
        redelivered: Those of them that were delivered then.
        died_again: Those that ended otherwise: failed, dead or expired. The rest is on its way.
        pending: Rows that wait now.
        due: Those of them that are due.
        sending: Rows that are claimed now, also where the lease has ended.
        oldest_pending_age: How long ago the first of the waiting rows was enqueued; 0.0 if none
            waits. So it is for rows that were redriven, and for those that are to be sent later.
        lag: How long a row has been due that nobody has claimed, the longest; 0.0 if none is. A
            claimed row is due again when its lease ends. Behind a breaker, a cap or a disabled
            endpoint the lag grows too.
        dead_letters: Rows that are dead or failed now.
        oldest_dead_age: How long ago the first of these ended; 0.0 if there is none.
        repeated_deaths: How many of these had been redriven before.
        most_redrives: How often the one of these was redriven that was redriven most.
        breaker: What a claim meets: `"half_open"` also where the cool-down is over and no row has
            become the probe yet.
        disabled: Whether it is disabled.
    """

    delivered: int
    failed: int
    dead: int
    expired: int
    tries: int
    seconds: float
    retried: int
    lost: int
    redriven: int
    redelivered: int
    died_again: int
    pending: int
    due: int
    sending: int
    oldest_pending_age: float
    lag: float
    dead_letters: int
    oldest_dead_age: float
    repeated_deaths: int
    most_redrives: int
    breaker: Literal["closed", "open", "half_open"]
    disabled: bool

    @property
    def success_rate(self) -> float | None:
        """The share of tries that delivered, from 0.0 to 1.0; None if none has ended."""
        return self.delivered / self.tries if self.tries else None

    @property
    def mean_seconds(self) -> float | None:
        """How long a try took on average; None if none has ended."""
        return self.seconds / self.tries if self.tries else None


def stats(transaction: Transaction) -> dict[str, EndpointStats]:
    """The counts of every endpoint, by name, all of one moment of the database's clock."""
    transaction.rows(_PREFER_INDEXES)
    answer = {}
    for now, name, *row in transaction.rows(_COUNT):
        delivered, retried, failed, dead, expired, lost, tries, seconds = row[:8]
        redriven, redelivered, died_again, status, until, disabled_at = row[8:14]
        pending, due, due_at, enqueued_at, sending, lease_ends_at = row[14:20]
        letters, ended_at, repeated, redrives = row[20:]
        answer[name] = EndpointStats(
            delivered=delivered,
            failed=failed,
            dead=dead,
            expired=expired,
            tries=tries,
            seconds=seconds,
            retried=retried,
            lost=lost,
            redriven=redriven,
            redelivered=redelivered,
            died_again=died_again,
            pending=pending or 0,
            due=due or 0,
            sending=sending or 0,
            oldest_pending_age=_age(now, enqueued_at),
            lag=max(_age(now, due_at), _age(now, lease_ends_at)),
            dead_letters=letters or 0,
            oldest_dead_age=_age(now, ended_at),
            repeated_deaths=repeated or 0,
            most_redrives=redrives or 0,
            breaker=_breaker(status, until, now),
            disabled=disabled_at is not None,
        )
    return answer


def _age(now: int, since: int | None) -> float:
    return 0.0 if since is None else max(0, now - since) / 1_000_000


def _breaker(status: str, until: int | None, now: int) -> Literal["closed", "open", "half_open"]:
    if status == "closed":
        return "closed"
    return "open" if status == "open" and until is not None and now < until else "half_open"
