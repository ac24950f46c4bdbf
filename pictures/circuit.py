"""`python -m pictures.circuit FOLDER`: the breaker's transition table as a state diagram.

The table stands in the docstring of `backoff_schedule.breaker`. A row whose generation rises is
an arrow, whether it leads to another state or back to its own; the other rows change nothing that
an arrow could show. The drawing has nothing besides, so it cannot say what the table does not.
"""

from __future__ import annotations

import sys
from html import escape
from math import hypot
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from backoff_schedule import breaker
from backoff_schedule.plotting.looks import DARK, LIGHT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backoff_schedule.plotting.looks import Theme


class Transition(NamedTuple):
    """One row of the table."""

    source: str
    event: str
    target: str
    rises: bool
    besides: str


class Place(NamedTuple):
    """Where the box of a state has its centre, and which of the theme's colours it has."""

    x: float
    y: float
    colour: int


PLACES = {
    "closed": Place(80, 56, 2),
    "open": Place(540, 56, 1),
    "half-open": Place(540, 266, 0),
    "vacant": Place(80, 266, 3),
}
WIDTH, HEIGHT = 770, 370
HALF_WIDTH, HALF_HEIGHT = 56, 22
_TEXT = 15
_HEADING = ("from", "event", "to", "generation", "besides")
# Between a line and its label, a line and its opposite, and a box and an arrow's tip.
_LABEL_GAP, _APART, _TIP_GAP = 9, 11, 3
_LOOP_HALF, _LOOP_WIDE, _LOOP_DEEP = 16, 44, 58


def transitions(text: str | None = breaker.__doc__) -> list[Transition]:
    """The rows of the Markdown table in `text`.

    Raises `ValueError` if there is no table with the columns from, event, to, generation, besides.
    """
    lines = [line for line in (text or "").splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    if not rows or tuple(rows[0]) != _HEADING:
        raise ValueError(f"the text needs to have a table with the columns {', '.join(_HEADING)}")
    return [
        Transition(source, event, target, generation == "rises", besides)
        for source, event, target, generation, besides in rows[2:]
    ]


def arrows(rows: Sequence[Transition]) -> list[Transition]:
    """The rows that are drawn."""
    return [row for row in rows if row.rises]


def alt_text(rows: Sequence[Transition]) -> str:
    """What the drawing shows, in words."""
    steps = "; ".join(f"{row.source} to {row.target}: {_words(row)}" for row in arrows(rows))
    return f"The states of a circuit and what leads from one to the next. {steps}."


def drawing(rows: Sequence[Transition], theme: Theme) -> str:
    """The SVG of the state diagram."""
    drawn = arrows(rows)
    pairs = {(row.source, row.target) for row in drawn}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"',
        f'    viewBox="0 0 {WIDTH} {HEIGHT}" role="img"',
        f'    font-family="system-ui, sans-serif" font-size="{_TEXT}">',
        "<title>The states of a circuit</title>",
        f"<desc>{escape(alt_text(rows))}</desc>",
        '<marker id="head" viewBox="0 0 10 10" refX="9" refY="5" orient="auto"',
        '    markerWidth="8" markerHeight="8">',
        f'<path d="M0 0 10 5 0 10z" fill="{theme.muted}"/></marker>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{theme.page}"/>',
    ]
    for row in drawn:
        if row.source == row.target:
            parts.append(_loop(row, theme))
        else:
            parts.append(_line(row, theme, opposed=(row.target, row.source) in pairs))
    names = dict.fromkeys(name for row in drawn for name in (row.source, row.target))
    parts += [_box(name, theme) for name in names]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _box(name: str, theme: Theme) -> str:
    x, y, colour = PLACES[name]
    return (
        f'<g class="state" id="{name}">'
        f'<rect x="{x - HALF_WIDTH}" y="{y - HALF_HEIGHT}" width="{2 * HALF_WIDTH}" '
        f'height="{2 * HALF_HEIGHT}" rx="8" fill="{theme.page}" '
        f'stroke="{theme.lines[colour]}" stroke-width="3"/>'
        f'<text x="{x}" y="{y + 0.35 * _TEXT:g}" text-anchor="middle" font-weight="600" '
        f'fill="{theme.ink}">{escape(name)}</text></g>'
    )


def _line(row: Transition, theme: Theme, *, opposed: bool) -> str:
    """An arrow with its label on its left; of two opposite ones each keeps to its left, too."""
    source, target = PLACES[row.source], PLACES[row.target]
    length = hypot(target.x - source.x, target.y - source.y)
    along = ((target.x - source.x) / length, (target.y - source.y) / length)
    left = (along[1], -along[0])
    aside = _APART if opposed else 0
    shift = (aside * left[0], aside * left[1])
    out_of_source = _reach(shift, along) + _TIP_GAP
    into_target = length - _reach(shift, (-along[0], -along[1])) - _TIP_GAP
    x, y = source.x + shift[0], source.y + shift[1]
    path = (
        f"M{x + out_of_source * along[0]:.1f} {y + out_of_source * along[1]:.1f} "
        f"L{x + into_target * along[0]:.1f} {y + into_target * along[1]:.1f}"
    )
    middle = (out_of_source + into_target) / 2
    label_x = x + middle * along[0] + _LABEL_GAP * left[0]
    label_y = y + middle * along[1] + _LABEL_GAP * left[1] + 0.35 * _TEXT * (1 + left[1])
    anchor = "start" if left[0] > 0.3 else "end" if left[0] < -0.3 else "middle"
    return _arrow(row, theme, path, label_x, label_y, anchor)


def _loop(row: Transition, theme: Theme) -> str:
    x, y, _ = PLACES[row.source]
    edge = y + HALF_HEIGHT + _TIP_GAP
    path = (
        f"M{x + _LOOP_HALF:.1f} {edge:.1f} C{x + _LOOP_WIDE:.1f} {edge + _LOOP_DEEP:.1f} "
        f"{x - _LOOP_WIDE:.1f} {edge + _LOOP_DEEP:.1f} {x - _LOOP_HALF:.1f} {edge:.1f}"
    )
    # A cubic curve goes three quarters of the way to its control points.
    below = edge + 0.75 * _LOOP_DEEP + _LABEL_GAP + 0.7 * _TEXT
    return _arrow(row, theme, path, x, below, "middle")


def _arrow(row: Transition, theme: Theme, path: str, x: float, y: float, anchor: str) -> str:
    return (
        f'<g class="arrow" data-from="{row.source}" data-to="{row.target}">'
        f'<path d="{path}" fill="none" stroke="{theme.muted}" stroke-width="1.6" '
        'marker-end="url(#head)"/>'
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{theme.ink}">'
        f"{escape(_words(row))}</text></g>"
    )


def _words(row: Transition) -> str:
    return row.event.replace("`", "")


def _reach(start: tuple[float, float], direction: tuple[float, float]) -> float:
    """How far it is from `start`, inside a box around 0, to the box's edge."""
    return min(
        (half - (at if step > 0 else -at)) / abs(step)
        for at, step, half in zip(start, direction, (HALF_WIDTH, HALF_HEIGHT), strict=True)
        if step
    )


def main() -> None:
    folder = Path(sys.argv[1])
    for suffix, theme in (("", LIGHT), ("--dark", DARK)):
        file = folder / f"circuit{suffix}.svg"
        file.write_text(drawing(transitions(), theme), encoding="utf-8")


if __name__ == "__main__":
    main()
