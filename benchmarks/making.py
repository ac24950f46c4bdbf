"""Making a schedule, and what the peers make in its place.

A program makes a schedule once and asks it for ever. Ours does its work here: it reads and checks
every option and tabulates the curve, so that `delay` can be a look-up.
"""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING

from backoff_schedule import create_backoff

from .contest import NOTE, Contender, rows
from .report import Section

if TYPE_CHECKING:
    from .measure import Effort

_MINUTES_15, _DAY = timedelta(minutes=15), timedelta(days=1)
_STEPS = (15.0, 60.0, 300.0, 900.0, 3600.0, 7200.0)
_NOTES = (
    NOTE,
    "is subtracted. stamina's is a RetryingCaller, which makes its own retrying at each call;",
    "backoff's a generator, asked for its first value, as its retry loop does for each call.",
)


def sections(effort: Effort) -> list[Section]:
    """A section for each kind of schedule that more than one package makes."""
    return [
        Section("making", f"making a schedule, {job}", rows(ours, others, effort), notes)
        for job, ours, others, notes in (
            ("no jitter", _ours("base=1.0, max=3600.0"), _plain(), _NOTES),
            ("jittered", _ours("base=1.0, max=3600.0, jitter=0.1"), _jittered(), ()),
            ("steps", _ours("steps=steps"), _steps(), ()),
            ("durations as text", _ours('base="15 minutes", max="1 day"'), _durations(), ()),
        )
    ]


def _ours(options: str) -> Contender:
    names = {"create_backoff": create_backoff, "steps": _STEPS}
    return Contender("ours", f"create_backoff({options})", lambda: names)


def _made(package: str, expression: str, name: str = "", remark: str = "") -> Contender:
    def names() -> dict[str, object]:
        return {
            package: import_module(package),
            "steps": _STEPS,
            "minutes_15": _MINUTES_15,
            "day": _DAY,
        }

    return Contender(name or package, expression, names, remark)


_STAMINA = "stamina.RetryingCaller(wait_initial={}, wait_max={}, wait_jitter={})"


def _plain() -> list[Contender]:
    return [
        _made("tenacity", "tenacity.wait_exponential(multiplier=1.0, max=3600.0)"),
        _made("stamina", _STAMINA.format(1.0, 3600.0, 0.0)),
        _made("backoff", "waits = backoff.expo(factor=1.0, max_value=3600.0)\nnext(waits)"),
        _made("backoffs", "backoffs.Policy(backoffs.Exponential(1.0), cap=3600.0)"),
    ]


def _jittered() -> list[Contender]:
    proportional = "backoffs.ProportionalJitter(0.1)"
    return [
        _made("tenacity", "tenacity.wait_exponential_jitter(max=3600.0, jitter=0.1)"),
        _made("stamina", _STAMINA.format(1.0, 3600.0, 0.1)),
        _made(
            "backoffs", f"backoffs.Policy(backoffs.Exponential(1.0), {proportional}, cap=3600.0)"
        ),
        _made("redress", "redress.equal_jitter(1.0, 3600.0)", remark="a function"),
        _made(
            "redress",
            "redress.RetryPolicy(classifier=redress.default_classifier,"
            " strategy=redress.equal_jitter(1.0, 3600.0))",
            "redress RetryPolicy",
        ),
    ]


def _steps() -> list[Contender]:
    chain = "tenacity.wait_chain(*map(tenacity.wait_fixed, steps))"
    return [
        _made("tenacity", chain),
        _made("backoff", "waits = backoff.constant(steps)\nnext(waits)"),
    ]


def _durations() -> list[Contender]:
    wait = "tenacity.wait_exponential(multiplier=900.0, max=day)"
    return [
        Contender(
            "ours, timedelta",
            "create_backoff(base=minutes_15, max=day)",
            lambda: {"create_backoff": create_backoff, "minutes_15": _MINUTES_15, "day": _DAY},
        ),
        _made("tenacity", wait, remark="timedelta; no text"),
        _made("stamina", _STAMINA.format("minutes_15", "day", 0.0), remark="timedelta; no text"),
    ]
