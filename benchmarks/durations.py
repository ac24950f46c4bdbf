"""Reading a duration: ours against a package that does only that, and a regular expression."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING

from backoff_schedule import parse_duration

from .contest import NOTE, Contender, rows
from .report import Section

if TYPE_CHECKING:
    from .measure import Effort

TEXTS = ("30s", "250ms", "15 minutes", "1h 30m", "1 hour 30 minutes", "1.5 hours")
_NOTES = (
    NOTE,
    "is subtracted. The expression takes one number and one unit and checks nothing else: the",
    "least that a program would write. pytimeparse2 reads months as 30 days and junk as None.",
)
_PART = re.compile(r"([0-9.]+)\s*(ms|[smhdw])")
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_EXPRESSION = "number, unit = part.match(n).groups()\nseconds = float(number) * units[unit]"


def sections(effort: Effort) -> list[Section]:
    """One section of short texts with one unit, one of all kinds."""
    ours = Contender("ours", "parse(n)", lambda: {"parse": parse_duration})
    package = Contender(
        "pytimeparse2", "parse(n)", lambda: {"parse": import_module("pytimeparse2").parse}
    )
    expression = Contender(
        "an expression", _EXPRESSION, lambda: {"part": _PART, "units": _UNITS}, "checks nothing"
    )
    return [
        Section(
            "durations",
            "reading a duration of one unit: " + ", ".join(TEXTS[:3]),
            rows(ours, [package, expression], effort, TEXTS[:3] * 4),
            _NOTES,
        ),
        Section(
            "durations",
            "reading a duration: " + ", ".join(TEXTS),
            rows(ours, [package], effort, TEXTS * 2),
        ),
    ]
