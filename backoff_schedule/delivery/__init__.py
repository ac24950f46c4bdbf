"""Delivery from a database: each event to each endpoint, at least once and never early."""

from .auto_disable import AutoDisable
from .deciding import decide, timetable
from .model import (
    Claim,
    DeadLetter,
    Decision,
    Delivered,
    Delivery,
    Endpoint,
    Outcome,
    Permanent,
    State,
    Ticket,
    Transient,
    Transition,
    Try,
)
from .policy import DEFAULT_POLICY, DeliveryPolicy
from .signing import SignatureRefused, Verified, sign, signature_headers, verify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .counting import EndpointStats
    from .http import HTTPSender
    from .inbox import Inbox, InboxCounts, PostgresInbox, SQLiteInbox
    from .metrics import OutboxCollector
    from .outbox import Outbox
    from .postgres import PostgresOutbox
    from .running import Counts
    from .sqlite import SQLiteOutbox
    from .watching import WorkerEvent
    from .worker import Worker
else:
    # Loaded on first use: who signs or decides needs no database, and SQLite needs no psycopg.
    _LATER = {
        "Counts": "running",
        "EndpointStats": "counting",
        "HTTPSender": "http",
        "Inbox": "inbox",
        "InboxCounts": "inbox",
        "Outbox": "outbox",
        "OutboxCollector": "metrics",
        "PostgresInbox": "inbox",
        "PostgresOutbox": "postgres",
        "SQLiteInbox": "inbox",
        "SQLiteOutbox": "sqlite",
        "Worker": "worker",
        "WorkerEvent": "watching",
    }

    def __getattr__(name):
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f".{_LATER[name]}", __name__), name)
        globals()[name] = value
        return value


__all__ = [
    "DEFAULT_POLICY",
    "AutoDisable",
    "Claim",
    "Counts",
    "DeadLetter",
    "Decision",
    "Delivered",
    "Delivery",
    "DeliveryPolicy",
    "Endpoint",
    "EndpointStats",
    "HTTPSender",
    "Inbox",
    "InboxCounts",
    "Outbox",
    "OutboxCollector",
    "Outcome",
    "Permanent",
    "PostgresInbox",
    "PostgresOutbox",
    "SQLiteInbox",
    "SQLiteOutbox",
    "SignatureRefused",
    "State",
    "Ticket",
    "Transient",
    "Transition",
    "Try",
    "Verified",
    "Worker",
    "WorkerEvent",
    "decide",
    "sign",
    "signature_headers",
    "timetable",
    "verify",
]
