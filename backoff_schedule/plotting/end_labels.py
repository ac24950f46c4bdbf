"""Labels at the ends of the lines, moved apart where they would overlap."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

    from .looks import Look

MOST_LABELS = 6
"""More than these are a legend: beside a chart they would be a list without lines."""
LONGEST_LABEL = 24
"""A longer label would leave the chart too little of the width."""

# In points, 1/72 of an inch.
_DISTANCE = 14.0
_GAP = 20.0


def add_end_labels(
    axes: Axes, ends: Sequence[float], labels: Sequence[str], looks: Sequence[Look], ink: str
) -> None:
    """A label to the right of the axes for each line, whose last value is in `ends`."""
    bottom, top = axes.get_ylim()
    right = axes.get_xlim()[1]
    anchors = [min(max(end, bottom), top) for end in ends]
    notes = [
        axes.annotate(
            label,
            (right, anchor),
            (_GAP, 0.0),
            textcoords="offset points",
            va="center",
            color=ink,
            parse_math=False,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": look.colour,
                "linestyle": look.dashes,
                "linewidth": 1.5,
                "relpos": (0.0, 0.5),
                "shrinkA": 2.0,
                "shrinkB": 0.0,
            },
        )
        for label, anchor, look in zip(labels, anchors, looks, strict=True)
    ]
    _move_apart(axes, notes, anchors)


def apart(places: Sequence[float], distance: float, highest: float) -> list[float]:
    """The places moved so that neighbours are at least `distance` apart, none above `highest`.

    >>> apart([50.0, 49.0, 10.0], distance=14.0, highest=55.0)
    [55.0, 41.0, 10.0]
    """
    order = sorted(range(len(places)), key=places.__getitem__)
    moved = list(places)
    free = float("-inf")
    for index in order:
        moved[index] = max(places[index], free)
        free = moved[index] + distance
    free = highest
    for index in reversed(order):
        moved[index] = min(moved[index], free)
        free = moved[index] - distance
    return moved


def _move_apart(axes: Axes, notes: Sequence[Annotation], anchors: Sequence[float]) -> None:
    figure = axes.figure
    # Only the layout knows how high the axes are.
    figure.draw_without_rendering()
    points = 72.0 / figure.dpi
    right = axes.get_xlim()[1]
    places = [axes.transData.transform((right, anchor))[1] * points for anchor in anchors]
    highest = axes.bbox.y1 * points
    for note, place, moved in zip(notes, places, apart(places, _DISTANCE, highest), strict=True):
        note.xyann = (_GAP, moved - place)
