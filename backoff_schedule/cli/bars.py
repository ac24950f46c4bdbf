"""A bar beside each row of a table, where a terminal shows it.

Solid up to the lowest wait, a light shade from there to the highest; the scale is linear.
"""

from __future__ import annotations

import shutil
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..timetable import Row

SOLID, SHADE = "\N{FULL BLOCK}", "\N{LIGHT SHADE}"
_NARROWEST = 10
_INFINITE = float("inf")


def width_beside(table_width: int) -> int:
    """How many characters a bar beside the table may take: 0 where none is to be drawn."""
    if sys.stdout is None or not sys.stdout.isatty():
        return 0
    try:
        f"{SOLID}{SHADE}".encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return 0
    # The last column stays free: some terminals break the line when it is filled.
    width = shutil.get_terminal_size().columns - table_width - 1
    return width if width >= _NARROWEST else 0


def bars(rows: list[Row], width: int) -> list[str]:
    """A bar for each row, as wide as `width` for the largest finite wait, and for ever."""
    finite = [wait for row in rows for wait in (row.lowest, row.highest) if wait < _INFINITE]
    largest = max(finite, default=0.0)

    def cells(wait: float) -> int:
        if wait == _INFINITE:
            return width
        return round(wait / largest * width) if largest else 0

    return [
        SOLID * cells(row.lowest) + SHADE * (cells(row.highest) - cells(row.lowest)) for row in rows
    ]
