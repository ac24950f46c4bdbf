"""One or more schedules as two charts: the delay after each failure, and all waits so far."""

from __future__ import annotations

from textwrap import wrap
from typing import NamedTuple

from matplotlib import style
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D

from ..backoff import Backoff
from ..timetable import Row, rows_of
from .end_labels import LONGEST_LABEL, MOST_LABELS, add_end_labels
from .looks import DARK, LIGHT, looks
from .time_axis import ENDLESS, time_scale
from .words import checked_attempts, checked_schedules, printable, summary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from .looks import Look, Theme
    from .words import Schedules

_WIDTH, _HEIGHT = 7.0, 6.2
_MARGIN = 0.08
_LEGEND_ROW = 0.22
_CHARACTERS_WIDE = 80
_LEGEND_LINE = 11
_MOST_MARKERS = 30
_DELAY = "line: before jitter; band: what jitter makes of it"
_IN_ALL = "line: the middle; band: earliest to latest"
_WAITS_ALONE = "the calls' own time is not counted"


class Course(NamedTuple):
    """What one schedule draws in one chart: a value for each attempt, in seconds."""

    line: list[float]
    lowest: list[float]
    highest: list[float]


def plot(schedules: Schedules, *, attempts: int = 12, dark: bool = False) -> Figure:
    """A picture of a schedule, or of several by label, as a matplotlib figure.

    The upper chart shows the delay after each of so many failures in a row: the line is the
    delay before jitter, the band around it what jitter makes of it. The lower chart adds the
    waits up: the line is the middle, the band goes from the earliest to the latest. Time is
    logarithmic where it ranges widely. A wait without end runs along the top edge.

    - `schedules`: a schedule, or a mapping of labels to schedules.
    - `attempts`: how many failures, 1 to 1000.
    - `dark`: light lines on a dark page, in place of dark lines on white.

    The figure belongs to no window and to no pyplot, and matplotlib's settings stay as they
    are. `figure.savefig` writes it in any format; `save_plot` writes SVG or PNG with a text
    alternative.

    Raises `TypeError` and `ValueError` for arguments of another type or outside their range.

    Examples:
        >>> from backoff_schedule import create_backoff
        >>> figure = plot(create_backoff(base="1m", max="6h", jitter=0.2))
        >>> [axes.get_title(loc="left") for axes in figure.axes]
        ['Delay after each failure', 'All waits so far']
    """
    named = checked_schedules(schedules)
    attempts = checked_attempts(attempts)
    theme = DARK if dark else LIGHT
    labels = [printable(label) for label in named]
    styles = looks(theme, len(labels))
    delays, in_all = _courses(list(named.values()), attempts)
    # Whatever the settings of the process: they can change every length, and the fonts.
    with style.context("default"):
        layout = ConstrainedLayoutEngine(w_pad=_MARGIN, h_pad=_MARGIN)
        figure = Figure((_WIDTH, _HEIGHT), facecolor=theme.page, layout=layout)
        upper, lower = figure.subplots(2, 1)
        ends = [_draw(upper, delays, styles, theme), _draw(lower, in_all, styles, theme)]
        _title(upper, theme, "Delay after each failure", _reading(delays, _DELAY, ""))
        _title(lower, theme, "All waits so far", _reading(in_all, _IN_ALL, _WAITS_ALONE))
        lower.set_xlabel("failures in a row", color=theme.ink)
        if isinstance(schedules, Backoff):
            _add_heading(figure, summary(schedules), theme)
        elif len(labels) <= MOST_LABELS and max(map(len, labels)) <= LONGEST_LABEL:
            add_end_labels(figure, upper, ends[0], labels, styles, theme.ink)
            add_end_labels(figure, lower, ends[1], labels, styles, theme.ink)
        else:
            _add_legend(figure, labels, styles, theme)
    return figure


def _courses(schedules: list[Backoff], attempts: int) -> tuple[list[Course], list[Course]]:
    delays, in_all = [], []
    for schedule in schedules:
        rows = rows_of(schedule, attempts)
        columns = dict(zip(Row._fields, map(list, zip(*rows, strict=True)), strict=True))
        delays.append(Course(columns["delay"], columns["lowest"], columns["highest"]))
        in_all.append(Course(columns["middle"], columns["earliest"], columns["latest"]))
    return delays, in_all


def _draw(axes: Axes, courses: list[Course], styles: list[Look], theme: Theme) -> list[float]:
    """Draw the lines and bands, and answer where each line ends."""
    attempts = len(courses[0].line)
    scale = time_scale(wait for course in courses for waits in course for wait in waits)
    scale.apply_to(axes)
    _number_the_failures(axes, attempts)
    axes.set_facecolor(theme.page)
    axes.grid(color=theme.grid, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["bottom", "left"]].set_color(theme.muted)
    axes.tick_params(color=theme.muted, labelcolor=theme.ink, labelsize=10)
    numbers = [float(attempt) for attempt in range(1, attempts + 1)]
    # A band over one attempt alone has no width, unless it is given some.
    wide, repeated = (numbers, 1) if attempts > 1 else ([0.9, 1.1], 2)
    ends = []
    for course, look in zip(courses, styles, strict=True):
        line, lowest, highest = map(scale.drawn, course)
        if lowest != highest:
            axes.fill_between(
                wide,
                lowest * repeated,
                highest * repeated,
                facecolor=(look.colour, 0.18),
                # Where bands lie over each other, and in print, their edges are what one sees.
                edgecolor=(look.colour, 0.6),
                linewidth=0.8,
            )
        axes.add_line(_line(numbers, line, look))
        ends.append(line[-1])
    return ends


def _number_the_failures(axes: Axes, attempts: int) -> None:
    margin = max(0.4, 0.02 * attempts)
    axes.set_xlim(1 - margin, attempts + margin)
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100) if attempts <= 15 * step)
    axes.set_xticks(sorted({1, *range(step, attempts + 1, step)}))


def _line(numbers: list[float], values: list[float], look: Look) -> Line2D:
    return Line2D(
        numbers,
        values,
        color=look.colour,
        linestyle=look.dashes,
        linewidth=2.0,
        marker=look.marker,
        markersize=5.0,
        # At an edge of the axes, half of the line would be cut off.
        clip_on=False,
        markevery=max(1, len(numbers) // _MOST_MARKERS),
    )


def _reading(courses: list[Course], with_band: str, without: str) -> str:
    """How to read a chart."""
    parts = [with_band if any(course.lowest != course.highest for course in courses) else without]
    if any(wait >= ENDLESS for course in courses for wait in course.highest):
        parts.append("top edge: for ever")
    return "; ".join(filter(None, parts))


def _title(axes: Axes, theme: Theme, title: str, subtitle: str) -> None:
    pad = 20 if subtitle else 6
    axes.set_title(title, loc="left", color=theme.ink, fontsize=12, fontweight="bold", pad=pad)
    axes.annotate(
        subtitle, (0, 1), (0, 6), "axes fraction", "offset points", color=theme.muted, fontsize=10
    )


def _add_heading(figure: Figure, text: str, theme: Theme) -> None:
    heading = "\n".join(wrap(text, _CHARACTERS_WIDE, max_lines=2, placeholder=" …"))
    figure.suptitle(
        heading, x=0.01, ha="left", color=theme.ink, fontsize=11, parse_math=False, linespacing=1.3
    )


def _add_legend(
    figure: Figure, labels: Sequence[str], styles: Sequence[Look], theme: Theme
) -> None:
    columns = max(1, min(4, _CHARACTERS_WIDE // (max(map(len, labels)) + _LEGEND_LINE)))
    figure.set_figheight(_HEIGHT + _LEGEND_ROW * -(-len(labels) // columns))
    legend = figure.legend(
        [_line([], [], look) for look in styles],
        # A label that starts with an underscore would be left out.
        ["label"] * len(labels),
        loc="outside upper left",
        ncols=columns,
        frameon=False,
        labelcolor=theme.ink,
        handlelength=4.0,
    )
    for text, label in zip(legend.get_texts(), labels, strict=True):
        text.set_parse_math(False)
        text.set_text(label)
