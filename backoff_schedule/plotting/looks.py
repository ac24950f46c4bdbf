"""How a picture looks: on light and on dark pages, in print, and to colour-blind readers.

The colours are those of Okabe and Ito, "Color Universal Design" (2008), in an order that puts
the ones with the most contrast to the page first. Dashes and markers differ too, since print
may have no colour at all.
"""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from matplotlib.typing import LineStyleType

_BLUE, _VERMILION, _GREEN, _PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
_ORANGE, _SKY, _YELLOW = "#E69F00", "#56B4E9", "#F0E442"
_DASHES: tuple[LineStyleType, ...] = (
    "-",
    (0, (5, 2)),
    (0, (1, 1.5)),
    (0, (6, 2, 1, 2)),
    (0, (9, 2)),
)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")


class Theme(NamedTuple):
    """The colours of what is not a schedule, and those of the schedules."""

    page: str
    ink: str
    muted: str
    grid: str
    lines: tuple[str, ...]


class Look(NamedTuple):
    """How the line of one schedule is told from the others."""

    colour: str
    dashes: LineStyleType
    marker: str


LIGHT = Theme(
    page="#FFFFFF",
    ink="#1A1A1A",
    muted="#595959",
    grid="#DDDDDD",
    lines=(_BLUE, _VERMILION, _GREEN, _PURPLE, "#000000", _ORANGE, _SKY),
)
DARK = Theme(
    page="#15181D",
    ink="#EDEDED",
    muted="#B4B8BF",
    grid="#363B43",
    lines=(_SKY, _ORANGE, _GREEN, _YELLOW, _PURPLE, _VERMILION, "#FFFFFF"),
)


def looks(theme: Theme, count: int) -> list[Look]:
    """A look for each of so many schedules; the first 35 differ in colour or dashes."""
    return [
        Look(
            theme.lines[index % len(theme.lines)],
            _DASHES[index % len(_DASHES)],
            _MARKERS[index % len(_MARKERS)],
        )
        for index in range(count)
    ]
