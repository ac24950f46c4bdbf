"""Delivery from a database: each event to each endpoint, at least once and never early."""

from .auto_disable import AutoDisable
from .deciding import before_send, decide, timetable
from .model import (
    Claim,
    Decision,
    Delivered,
    Delivery,
    Endpoint,
    Outcome,
    Permanent,
    State,
    Ticket,
    Transient,
    Try,
    as_outcome,
)
from .policy import DEFAULT_POLICY, DeliveryPolicy, merged, options_for_storage

__all__ = [
    "DEFAULT_POLICY",
    "AutoDisable",
    "Claim",
    "Decision",
    "Delivered",
    "Delivery",
    "DeliveryPolicy",
    "Endpoint",
    "Outcome",
    "Permanent",
    "State",
    "Ticket",
    "Transient",
    "Try",
    "as_outcome",
    "before_send",
    "decide",
    "merged",
    "options_for_storage",
    "timetable",
]
