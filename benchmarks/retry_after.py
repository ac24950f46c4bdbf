"""Reading Retry-After: ours against what HTTP clients and retry packages bring along."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING

from backoff_schedule import parse_retry_after

from .contest import NOTE, Contender, rows
from .report import Section

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .measure import Effort

_NOTES = (
    NOTE,
    "is subtracted. Each parser reads its own clock, as it would in use. Where one raises, the",
    "handler is part of its time. redress keeps its parser private; asctime has no zone, of which",
    "httpx-retries writes a warning to the log (silenced here).",
)
_AHEAD = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
FIELDS = {
    "seconds": "120",
    "the preferred date": f"{_AHEAD:%a, %d %b %Y %H:%M:%S} GMT",
    "the RFC 850 date": f"{_AHEAD:%A, %d-%b-%y %H:%M:%S} GMT",
    "the asctime date": f"{_AHEAD:%a %b %e %H:%M:%S %Y}",
    "junk": "try again soon",
}


def parsers() -> dict[str, Callable[[], Callable[[str], float | None]]]:
    """What reads a field's text in each package, to be loaded when it is wanted."""
    return {
        "urllib3": lambda: import_module("urllib3").Retry().parse_retry_after,
        "httpx-retries": lambda: import_module("httpx_retries").Retry().parse_retry_after,
        "backoffs": lambda: import_module("backoffs").parse_retry_after,
        "redress": lambda: import_module("redress.extras")._parse_retry_after,
    }


def sections(effort: Effort) -> list[Section]:
    """A section for each form of the field."""
    logging.getLogger("httpx_retries").setLevel(logging.ERROR)
    ours = _reader("ours", lambda: parse_retry_after)
    others = [_reader(name, loaded) for name, loaded in parsers().items()]
    return [
        Section(
            "retry-after",
            f"reading Retry-After, {form}: {field}",
            rows(ours, others, effort, (field,) * 12),
            _NOTES if form == "seconds" else (),
        )
        for form, field in FIELDS.items()
    ]


def _reader(name: str, loaded: Callable[[], object]) -> Contender:
    def names() -> Mapping[str, object]:
        return {"parse": loaded()}

    # Only urllib3's is no ValueError, and a handler that is not needed costs nothing.
    return Contender(name, "try:\n    parse(n)\nexcept Exception:\n    pass", names)
