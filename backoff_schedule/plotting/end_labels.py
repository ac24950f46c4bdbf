"""Labels at the ends of the lines, moved apart where they would overlap."""

from __future__ import annotations

from matplotlib.transforms import offset_copy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .looks import Look

MOST_LABELS = 6
"""More than these are a legend: beside a chart they would be a list without lines."""
LONGEST_LABEL = 24
"""A longer label would leave the chart too little of the width."""

# In points, 1/72 of an inch.
_DISTANCE = 14.0
_GAP = 12.0


def add_end_labels(
    figure: Figure,
    axes: Axes,
    ends: Sequence[float],
    labels: Sequence[str],
    looks: Sequence[Look],
    ink: str,
) -> None:
    """A label to the right of the axes for each line, whose last value is in `ends`."""
    last = axes.dataLim.x1
    beside_the_axes = offset_copy(axes.get_yaxis_transform(), figure, x=_GAP, units="points")
    notes = [
        axes.annotate(
            label,
            (last, end),
            (1.0, end),
            textcoords=beside_the_axes,
            va="center",
            color=ink,
            parse_math=False,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": look.colour,
                "linestyle": look.dashes,
                "linewidth": 1.0,
                "relpos": (0.0, 0.5),
                "shrinkA": 2.0,
                "shrinkB": 0.0,
            },
        )
        for label, end, look in zip(labels, ends, looks, strict=True)
    ]
    # Only the layout knows how high the axes are.
    figure.draw_without_rendering()
    heights = [axes.transData.transform(note.xy)[1] for note in notes]
    distance = _DISTANCE * figure.dpi / 72.0
    for note, height in zip(notes, apart(heights, distance, axes.bbox.y1), strict=True):
        note.xyann = (1.0, axes.transData.inverted().transform((0.0, height))[1])


def apart(places: Sequence[float], distance: float, highest: float) -> list[float]:
    """The places moved so that neighbours are at least `distance` apart, none above `highest`.

    Examples:
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
