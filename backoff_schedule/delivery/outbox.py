"""The outbox: what both stores do, one method for each thing that is done to it."""

from __future__ import annotations

from functools import partial

from ..database.migrations import script
from ..durations import to_seconds
from ..refusals import refusal
from . import counting, endpoints, reading, redriving, settling
from .claiming import Claiming, PolicyCache
from .endpoints import KEEP
from .enqueueing import FIND, RETURNING, checked_event
from .model import Ticket
from .policy import DEFAULT_POLICY
from .ring import Ring
from .schema import COMPONENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime
    from typing import Any, TypeAlias

    from ..database.transaction import Database, Transaction
    from ..durations import DurationLike
    from .counting import EndpointStats
    from .enqueueing import Event, Style
    from .model import Claim, DeadLetter, Decision, Delivery, Endpoint, Transition, Try
    from .policy import DeliveryPolicy
    from .statements import Statements

    # Inside the class, `list` is a method.
    Deliveries: TypeAlias = list[Delivery]
    DeadLetters: TypeAlias = list[DeadLetter]
    Tries: TypeAlias = list[Try]
    Ids: TypeAlias = list[int]
    Claims: TypeAlias = list[Claim]
    Decisions: TypeAlias = list[Decision | None]


class Outbox:
    """Events on their way to endpoints, in a database. Made as `SQLiteOutbox` or `PostgresOutbox`.

    One row for each event and endpoint. A row's due time is its lease while it is sent, its attempt
    counts when it is claimed, and a result is taken only from the claim that is current. Every
    instant in the answers is an aware datetime in UTC.
    """

    def __init__(
        self,
        database: Database,
        statements: Statements,
        steps: Sequence[Sequence[str]],
        plain: Callable[[str], str],
    ) -> None:
        self._database = database
        self._statements = statements
        self._steps = steps
        self._plain = plain
        self._ring = Ring()
        self._policies = PolicyCache(DEFAULT_POLICY)

    def migrate(self) -> None:
        """Make the tables, or bring them to the newest version. Does nothing where that is done.

        A SQLite file is switched to WAL. Raises `RuntimeError` for tables that a newer release has
        made.
        """
        self._database.migrate(COMPONENT, self._steps)

    def schema_sql(self) -> str:
        """What `migrate` does in an empty database, as statements for another migration tool."""
        statements = script(COMPONENT, self._steps)
        return "".join(f"{self._plain(statement).strip()};\n\n" for statement in statements)

    def close(self) -> None:
        """Close our own connections; a pool of the application's stays open."""
        self._database.close()

    # Endpoints

    def add_endpoint(
        self,
        name: str,
        *,
        url: str | None = KEEP,
        secrets: Sequence[str] = KEEP,
        policy: DeliveryPolicy | Mapping[str, Any] | None = KEEP,
        max_in_flight: int | None = KEEP,
    ) -> None:
        """Make an endpoint, or change what is named of one and keep the rest.

        - `name`: text of 1 to 255 characters.
        - `url`: where it is; None if only the sender knows.
        - `secrets`: what a sender signs with, the newest first. They replace those before.
        - `policy`: a `DeliveryPolicy` replaces the worker's whole, a mapping the options that it
          names; None goes back to the worker's.
        - `max_in_flight`: how many sends to it may be under way at once, over all workers, 8 at
          first; None for no cap.

        Raises `TypeError` and `ValueError`, naming the argument.
        """
        self._database.write(
            lambda transaction: endpoints.add_endpoint(
                transaction, name, url, secrets, policy, max_in_flight
            )
        )
        self._ring.forget()

    def rotate_secret(self, name: str, new: str, *, overlap: DurationLike = "24 hours") -> None:
        """Sign with `new` from now on, and for `overlap` with the secrets before it too.

        Raises `LookupError` for an endpoint that does not exist.
        """
        self._database.write(
            lambda transaction: endpoints.rotate_secret(transaction, name, new, overlap)
        )

    def disable(self, name: str, *, reason: str, actor: str = "operator") -> None:
        """Send nothing to an endpoint until somebody enables it. Its rows wait.

        Raises `LookupError` for an endpoint that does not exist.
        """
        self._database.write(
            lambda transaction: endpoints.disable(transaction, name, actor, reason)
        )

    def enable(self, name: str, *, reason: str | None = None, actor: str = "operator") -> None:
        """Go on with an endpoint that was disabled. Deadlines of its rows count from now.

        Raises `LookupError` for an endpoint that does not exist.
        """
        self._database.write(lambda transaction: endpoints.enable(transaction, name, actor, reason))
        self._ring.forget()

    def endpoints(self) -> list[Endpoint]:
        """Every endpoint, by name. How many secrets it has, and never what they are."""
        return self._database.read(endpoints.endpoints)

    def transitions(self, name: str, *, limit: int = 100) -> list[Transition]:
        """What became of an endpoint and its breaker, the newest first."""
        return self._database.read(
            lambda transaction: endpoints.transitions(transaction, name, _count(limit))
        )

    # Enqueue

    def enqueue(
        self,
        endpoint: str,
        payload: bytes,
        *,
        type: str | None = None,
        event_id: str | None = None,
        ttl: DurationLike | None = None,
        at: datetime | None = None,
        connection: Any = None,
    ) -> Ticket:
        """Hand over an event for an endpoint.

        - `payload`: the body, at most 256 KiB.
        - `type`: what kind of event it is, for the sender.
        - `event_id`: what the receiver knows it by, at every try: printable ASCII without a full
          stop. The same id for the same endpoint is the same event: it is enqueued once. None makes
          a new one.
        - `ttl`: how long after it is due it is worth sending.
        - `at`: when it is due, aware; at once if not given.
        - `connection`: the driver's connection with the transaction that the event belongs to. It
          inserts, and never commits. None makes a transaction of its own.

        Enqueue several events in the order of their ids: two transactions that enqueue the same two
        in opposite order wait for each other.

        Raises `LookupError` for an endpoint that does not exist, which leaves the transaction
        usable; `ValueError` for another body under an id that is used, and for a connection in
        autocommit without a transaction; `TypeError` and `ValueError` for other arguments.
        """
        event = checked_event(endpoint, payload, type, event_id, ttl, at)
        if connection is not None:
            return self._enqueue_on(connection, event)

        def work(transaction: Transaction) -> Ticket:
            while True:
                if transaction.rows(RETURNING, event.values):
                    return Ticket(event.event_id, created=True)
                found = transaction.rows(FIND, (event.event_id, event.endpoint))
                ticket = event.ticket_of(found)
                if ticket is not None:
                    return ticket

        return self._database.write(work)

    def insert_statement(
        self,
        endpoint: str,
        payload: bytes,
        *,
        paramstyle: Style,
        type: str | None = None,
        event_id: str | None = None,
        ttl: DurationLike | None = None,
        at: datetime | None = None,
    ) -> tuple[str, Any]:
        """The statement that enqueues, and its values, for a driver that we do not know.

        `paramstyle` is `"qmark"` (`?`), `"format"` (`%s`), `"numeric"` (`$1`, as asyncpg has it) or
        `"named"` (`:p1`, with a dict). An event that is there already is ignored, also one with
        another body, and so is an endpoint that does not exist: look at the number of rows.

        Raises as `enqueue` does for its arguments.
        """
        event = checked_event(endpoint, payload, type, event_id, ttl, at)
        return self._insert_statement(event, paramstyle)

    # Deliver

    def claim(
        self,
        limit: int,
        policy: DeliveryPolicy | None = None,
        lease: DurationLike | None = None,
        *,
        lost: bool = True,
    ) -> list[Claim]:
        """Take at most `limit` rows that are due, to send them now.

        In turn over the endpoints, one row for each before a second for any. Each is counted as a
        try, and is due again when its lease ends: after its timeout and 10 seconds, or after
        `lease` if that is longer. Rows whose ttl or deadline is over end here, unsent.

        - `policy`: the worker's own, over which an endpoint's options are merged.
        - `lost`: whether one row may be among them whose last try ended with its lease.
        """
        claims, _ = self._claimed(limit, policy, lease, lost=lost)
        return claims

    def settle(self, results: Iterable[tuple[Claim, object]]) -> list[Decision | None]:
        """Write down what became of sends, in one transaction.

        A result is a claim and what its sender answered. Answers the decision for each; None where
        the row was no longer this claim's, since its lease had ended: nothing is written then.
        """
        known = list(results)
        if not known:
            return []
        return self._database.write(
            lambda transaction: settling.settle(transaction, self._statements, known)
        )

    def release(self, claims: Iterable[Claim]) -> None:
        """Give back claimed rows that were not sent. They are due now, and no try is counted."""
        known = list(claims)
        if known:
            self._database.write(
                lambda transaction: settling.release(transaction, self._statements, known)
            )

    def end_unsent(self, ended: Iterable[tuple[Claim, Decision]]) -> None:
        """End claimed rows whose ttl or deadline was over before they were sent."""
        known = list(ended)
        if known:
            self._database.write(
                lambda transaction: settling.end_unsent(transaction, self._statements, known)
            )

    # Look

    def get(self, event_id: str, endpoint: str) -> Delivery | None:
        """The row of an event and an endpoint; None if there is none."""
        return self._database.read(lambda transaction: reading.get(transaction, event_id, endpoint))

    def list(
        self,
        *,
        state: str | None = None,
        endpoint: str | None = None,
        limit: int = 100,
        after: int = 0,
    ) -> Deliveries:
        """Rows in the order in which they were enqueued; `after` is the last id of the page before.

        Raises `ValueError` for a state that is none.
        """
        return self._database.read(
            lambda transaction: reading.listed(transaction, state, endpoint, _count(limit), after)
        )

    def history(self, event_id: str, endpoint: str) -> Tries:
        """Every try of a row, the first one first."""
        return self._database.read(
            lambda transaction: reading.history(transaction, event_id, endpoint)
        )

    def dead_letters(
        self,
        *,
        endpoint: str | None = None,
        since: datetime | None = None,
        error: str | None = None,
        limit: int = 100,
    ) -> DeadLetters:
        """Dead and failed rows, the last to finish first, each with how many died like it since.

        - `endpoint`, `since`, `error`: only those of an endpoint, finished at or after an instant,
          with this last error.

        Reads every dead and failed row, and no other.

        Raises `TypeError` and `ValueError`, naming the argument.
        """
        return self._database.read(
            lambda transaction: reading.dead_letters(
                transaction, endpoint, since, error, _count(limit)
            )
        )

    def stats(self, *, timeout: DurationLike = "10 seconds") -> dict[str, EndpointStats]:
        """What became of each endpoint's deliveries and what waits, by name, at one moment.

        Delivered rows are not looked at, however many are kept. What waits or is dead is counted in
        an index: some 50 ms for 100,000 rows.

        Raises `TimeoutError` for a database that stays busy or away for `timeout`.
        """
        return self._database.read(counting.stats, patience=to_seconds(timeout, "timeout"))

    # Redrive and purge

    def redrive(
        self,
        ids: Sequence[int] | None = None,
        *,
        endpoint: str | None = None,
        since: datetime | None = None,
        error: str | None = None,
        limit: int | None = 1,
        rate: float | None = None,
        ttl: DurationLike | None = None,
        fresh_event_id: bool = False,
        dry_run: bool = False,
        progress: Callable[[int], object] | None = None,
    ) -> Ids:
        """Give dead and failed rows a new budget, and answer the ids of those that were moved.

        Their history and their event id stay. Only rows that were finished when it began are moved,
        each once, in the order in which they finished, a thousand in a transaction.

        - `ids`: these rows, all of them. Else: of `endpoint`, finished at or after `since`, whose
          last error is `error`; those of the three that are given.
        - `limit`: how many at most, 1 unless told otherwise; None for all.
        - `rate`: how many a second of one endpoint become due; at once if not given.
        - `ttl`: a new one, from now on. With it, expired rows are moved too.
        - `fresh_event_id`: send them under new ids, so that a receiver that has seen the old ones
          takes them for new. The old ids stay in the history.
        - `dry_run`: move nothing, and answer the ids that would be moved.
        - `progress`: called after each transaction with how many were moved so far.

        Raises `TypeError` and `ValueError`, naming the argument.
        """
        started = self._database.read(lambda transaction: transaction.now())
        wanted = redriving.checked_wanted(
            ids, endpoint, since, error, rate, ttl, fresh_event_id, dry_run, started
        )
        left = None if limit is None or ids is not None else _count(limit)
        moved = redriving.beginning(wanted)
        answer: Ids = []
        while not moved.is_last and left != 0:
            count = redriving.BATCH if left is None else min(redriving.BATCH, left)
            moved = self._database.write(
                partial(redriving.redrive, wanted=wanted, before=moved, count=count)
            )
            answer += moved.ids
            if progress is not None:
                progress(len(answer))
            if left is not None:
                left -= len(moved.ids)
        self._ring.forget()
        return answer

    def purge(
        self,
        older_than: DurationLike,
        states: Sequence[str] = ("delivered", "expired"),
        *,
        progress: Callable[[int], object] | None = None,
    ) -> int:
        """Drop rows that were finished for `older_than`, with their history; say how many.

        An event is recognised as enqueued before for as long as its row is kept. A thousand rows
        are dropped in a transaction, and after each `progress` is called with how many so far.

        Raises `ValueError` for a state in which rows still wait.
        """
        seconds = to_seconds(older_than, "older_than")
        checked = redriving.checked_states(states)
        now = self._database.read(lambda transaction: transaction.now())
        before = now - round(min(seconds, 1e11) * 1_000_000)
        dropped, last = 0, 0
        while True:
            count, found = self._database.write(
                partial(
                    redriving.purge,
                    states=checked,
                    before=before,
                    after=last,
                    count=redriving.BATCH,
                )
            )
            dropped += count
            if found is None:
                return dropped
            last = found
            if progress is not None:
                progress(dropped)

    # What a worker asks for

    overlaps = False
    """Whether it pays to settle and to claim at the same time, on two connections."""

    def _claimed(
        self,
        limit: int,
        policy: DeliveryPolicy | None,
        lease: DurationLike | None,
        *,
        lost: bool,
    ) -> tuple[Claims, Claiming]:
        claiming = self._claiming(limit, policy, lease, lost=lost)
        while True:
            claims = self._claim(claiming)
            claiming.written()
            if claims or claiming.is_over:
                return claims, claiming

    def _settled_and_claimed(
        self,
        results: Sequence[tuple[Claim, object]],
        limit: int,
        policy: DeliveryPolicy,
        lease: float | None,
        *,
        lost: bool,
    ) -> tuple[Decisions, Claims, Claiming]:
        """Both in one transaction, which costs one commit in place of two."""
        claiming = self._claiming(limit, policy, lease, lost=lost)

        def work(transaction: Transaction) -> tuple[Decisions, Claims, Claiming]:
            answers = settling.settle(transaction, self._statements, results)
            while True:
                claims = claiming(transaction)
                claiming.written()
                if claims or claiming.is_over:
                    return answers, claims, claiming

        return self._database.write(work)

    def _claiming(
        self,
        limit: int,
        policy: DeliveryPolicy | None,
        lease: DurationLike | None,
        *,
        lost: bool,
    ) -> Claiming:
        wanted = _count(limit)
        least = 0.0 if lease is None else to_seconds(lease, "lease")
        policies = self._policies
        if policy is not None and policy is not policies.default:
            self._policies = policies = PolicyCache(policy)
        return Claiming(
            self._statements, self._ring, policies, limit=wanted, lease=least, lost=lost
        )

    def _is_away(self, error: Exception) -> bool:
        return isinstance(error, TimeoutError) or self._database.is_away(error)

    # What each store does in its own way

    def _claim(self, claiming: Claiming) -> Claims:
        return self._database.write(claiming)

    def _enqueue_on(self, connection: Any, event: Event) -> Ticket:
        raise NotImplementedError

    def _insert_statement(self, event: Event, style: Style) -> tuple[str, Any]:
        raise NotImplementedError


def _count(limit: int) -> int:
    rule = "a whole number, 1 or more"
    if not isinstance(limit, int) or isinstance(limit, bool):
        raise TypeError(f"{refusal('limit', limit, rule)}, not {type(limit).__name__}")
    if limit < 1:
        raise ValueError(refusal("limit", limit, rule))
    return limit
