"""Rows for people: in columns, with what is too long cut, and nothing that moves the cursor."""

from __future__ import annotations

import json
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime, timedelta

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

_GAP = "  "
_WIDEST = 48
_NOTHING = "-"


def columns(header: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """The lines of a table; numbers stand on the right, all else on the left."""
    cells = [list(header), *([cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    right = [
        bool(rows) and all(isinstance(row[place], int | float) for row in rows)
        for place in range(len(header))
    ]
    for line in cells:
        aligned = (
            text.rjust(width) if is_number else text.ljust(width)
            for text, width, is_number in zip(line, widths, right, strict=True)
        )
        yield _GAP.join(aligned).rstrip()


def cell(value: object, widest: int = _WIDEST) -> str:
    """A value in one line. An instant is in UTC and in whole seconds."""
    if value is None:
        return _NOTHING
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    if isinstance(value, float):
        return f"{value:.3f}"
    text = "".join(each if each.isprintable() else "?" for each in str(value))
    return text if len(text) <= widest else text[: widest - 3] + "..."


def as_json(value: object) -> str:
    """One JSON document: instants as ISO text in UTC, a body as text or else in hex."""
    return json.dumps(value, default=_plain, ensure_ascii=False, indent=2)


def _plain(value: object) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.hex()
    raise TypeError(f"{type(value).__name__} has no form in JSON")
