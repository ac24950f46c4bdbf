"""One or more schedules as two charts: the delay after each failure, and all waits so far."""

from __future__ import annotations

from textwrap import wrap
from typing import NamedTuple

from matplotlib import style
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from ..schedule import Backoff
from ..timetable import rows_of
from .end_labels import LONGEST_LABEL, MOST_LABELS, add_end_labels
from .looks import DARK, LIGHT, looks
from .time_axis import time_scale
from .words import checked_attempts, checked_schedules, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from .looks import Look, Theme
    from .words import Schedules

_WIDTH, _HEIGHT = 7.0, 6.2
_LEGEND_ROW = 0.22
_CHARACTERS_WIDE = 80
_MOST_MARKERS = 30


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
    logarithmic where it ranges widely. A wait without end leaves the chart at the top.

    - `schedules`: a schedule, or a mapping of labels to schedules.
    - `attempts`: how many failures, 1 to 1000.
    - `dark`: light lines on a dark page, in place of dark lines on white.

    The figure belongs to no window and to no pyplot, and matplotlib's settings stay as they
    are. `figure.savefig` writes it in any format; `save_plot` writes SVG or PNG with a text
    alternative.

    Raises `TypeError` and `ValueError` for arguments of another type or outside their range.

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
    jittered = any(course.lowest != course.highest for course in delays)
    # Whatever the settings of the process: they can change every length, and the fonts.
    with style.context("default"):
        figure = Figure((_WIDTH, _HEIGHT), facecolor=theme.page, layout="constrained")
        upper, lower = figure.subplots(2, 1)
        _draw(upper, delays, styles, theme)
        _draw(lower, in_all, styles, theme)
        _title(upper, theme, "Delay after each failure", _DELAY_BAND if jittered else "")
        _title(lower, theme, "All waits so far", _TOTAL_BAND if jittered else _TOTAL)
        lower.set_xlabel("failures in a row", color=theme.ink)
        if isinstance(schedules, Backoff):
            _add_heading(figure, labels[0], theme)
        elif len(labels) <= MOST_LABELS and max(map(len, labels)) <= LONGEST_LABEL:
            for axes, courses in ((upper, delays), (lower, in_all)):
                ends = [course.line[-1] for course in courses]
                add_end_labels(axes, ends, labels, styles, theme.ink)
        else:
            _add_legend(figure, labels, styles, theme)
    return figure


_DELAY_BAND = "line: before jitter; band: what jitter makes of it"
_TOTAL_BAND = "line: the middle; band: from the earliest to the latest"
_TOTAL = "the calls' own time is not counted"


def _courses(schedules: list[Backoff], attempts: int) -> tuple[list[Course], list[Course]]:
    delays, in_all = [], []
    for schedule in schedules:
        rows = list(rows_of(schedule, attempts))
        delays.append(Course(*([row[index] for row in rows] for index in (1, 2, 3))))
        in_all.append(Course(*([row[index] for row in rows] for index in (5, 4, 6))))
    return delays, in_all


def _draw(axes: Axes, courses: list[Course], styles: list[Look], theme: Theme) -> None:
    attempts = len(courses[0].line)
    margin = max(0.4, 0.02 * attempts)
    axes.set_xlim(1 - margin, attempts + margin)
    axes.xaxis.set_major_locator(MaxNLocator(15, integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))
    scale = time_scale(wait for course in courses for waits in course for wait in waits)
    scale.apply_to(axes)
    axes.set_facecolor(theme.page)
    axes.grid(color=theme.grid, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["bottom", "left"]].set_color(theme.muted)
    axes.tick_params(color=theme.muted, labelcolor=theme.ink, labelsize=10)
    numbers = [float(attempt) for attempt in range(1, attempts + 1)]
    for course, look in zip(courses, styles, strict=True):
        lowest, highest = scale.drawn(course.lowest), scale.drawn(course.highest)
        if lowest != highest:
            # A band over one attempt alone has no width, unless it is given some.
            wide = numbers if attempts > 1 else [0.9, 1.1]
            repeat = 1 if attempts > 1 else 2
            axes.fill_between(
                wide,
                lowest * repeat,
                highest * repeat,
                facecolor=(look.colour, 0.18),
                # Where bands lie over each other, and in print, their edges are what one sees.
                edgecolor=(look.colour, 0.6),
                linewidth=0.8,
            )
        axes.add_line(_line(numbers, scale.drawn(course.line), look))


def _line(numbers: list[float], values: list[float], look: Look) -> Line2D:
    return Line2D(
        numbers,
        values,
        color=look.colour,
        linestyle=look.dashes,
        linewidth=2.0,
        marker=look.marker,
        markersize=5.0,
        markevery=max(1, len(numbers) // _MOST_MARKERS),
    )


def _title(axes: Axes, theme: Theme, title: str, subtitle: str) -> None:
    axes.set_title(title, loc="left", color=theme.ink, fontsize=12, fontweight="bold", pad=20)
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
    columns = max(1, min(4, _CHARACTERS_WIDE // (max(map(len, labels)) + 8)))
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
