"""The two charts."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.collections import FillBetweenPolyCollection
from matplotlib.colors import to_hex
from matplotlib.text import Text

from backoff_schedule import Backoff, create_backoff
from backoff_schedule.plotting import plot
from backoff_schedule.plotting.looks import DARK, LIGHT
from backoff_schedule.presets import PRESETS
from backoff_schedule.timetable import rows_of

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

JITTERED = create_backoff(base="1m", max="6h", jitter=0.2)


def drawn_lines(axes: Axes) -> list[list[float]]:
    return [np.asarray(line.get_ydata()).tolist() for line in axes.lines]


def drawn_bands(axes: Axes) -> list[set[tuple[float, float]]]:
    bands = [band for band in axes.collections if isinstance(band, FillBetweenPolyCollection)]
    corners = [np.asarray(band.get_paths()[0].vertices).tolist() for band in bands]
    return [{(x, y) for x, y in each} for each in corners]


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts if text.get_text()]


def corners(lowest: list[float], highest: list[float]) -> set[tuple[float, float]]:
    return {(float(n), wait) for waits in (lowest, highest) for n, wait in enumerate(waits, 1)}


@pytest.mark.parametrize("name", [name for name in PRESETS if name != "quick"])
def test_lines_and_bands_are_the_timetable(name: str) -> None:
    schedule = PRESETS[name]
    rows = list(rows_of(schedule, 12))
    upper, lower = plot(schedule).axes
    assert drawn_lines(upper) == [[row.delay for row in rows]]
    assert drawn_lines(lower) == [[row.middle for row in rows]]
    if schedule.bounds(9)[0] == schedule.bounds(9)[1]:
        assert drawn_bands(upper) == drawn_bands(lower) == []
    else:
        bounds = [schedule.bounds(n) for n in range(1, 13)]
        assert drawn_bands(upper) == [corners([b[0] for b in bounds], [b[1] for b in bounds])]
        assert drawn_bands(lower) == [
            corners([row.earliest for row in rows], [row.latest for row in rows])
        ]


def test_each_schedule_has_a_line_of_its_own_look_and_a_label_at_its_end() -> None:
    schedules = {f"schedule {n}": create_backoff(base=n, max="1m") for n in (1, 2, 3, 4, 5, 6)}
    figure = plot(schedules)
    for axes in figure.axes:
        assert [text for text in texts(axes) if text in schedules] == list(schedules)
        assert len({line.get_color() for line in axes.lines}) == 6
        assert len({line.get_marker() for line in axes.lines}) == 6
        looks = {(line.get_color(), str(line.get_linestyle())) for line in axes.lines}
        assert len(looks) == 6
    assert figure.legends == []


def test_labels_at_the_ends_neither_overlap_nor_leave_the_picture() -> None:
    schedules = {f"schedule {n}": create_backoff(base=n, max="1m") for n in (1, 2, 3, 4, 5, 6)}
    figure = plot(schedules)
    figure.draw_without_rendering()
    for axes in figure.axes:
        labels = [text for text in axes.texts if text.get_text() in schedules]
        # Without the line that leads to it.
        boxes = [Text.get_window_extent(label) for label in labels]
        boxes.sort(key=lambda box: box.y0)
        assert all(below.y1 <= above.y0 for below, above in pairwise(boxes))
        assert all(box.x0 >= axes.bbox.x1 and box.x1 <= figure.bbox.x1 for box in boxes)


@pytest.mark.parametrize(
    "schedules",
    [
        {f"schedule {n}": create_backoff(base=n) for n in range(1, 21)},
        {"a label of more than 24 characters": JITTERED},
        {
            "_hidden": JITTERED,
            "of more than 24 characters, $x$": JITTERED,
            "x" * 300: JITTERED,
        },
    ],
    ids=["many", "long", "odd"],
)
def test_many_labels_and_long_ones_are_a_legend(schedules: dict[str, Backoff]) -> None:
    figure = plot(schedules)
    (legend,) = figure.legends
    shown = [text.get_text() for text in legend.get_texts()]
    assert shown == [label if len(label) <= 60 else f"{label[:59]}…" for label in schedules]
    figure.draw_without_rendering()
    box = legend.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1  # noqa: PT018
    assert box.y0 >= figure.axes[0].bbox.y1


def test_one_schedule_alone_is_told_in_the_heading() -> None:
    assert plot(JITTERED).get_suptitle() == "base 1m, max 6h, jitter 0.2"
    assert plot({"ours": JITTERED}).get_suptitle() == ""
    steps = create_backoff(steps=range(1, 300))
    assert plot(steps).get_suptitle().count("\n") == 1


def test_a_label_is_text_and_no_formula() -> None:
    figure = plot({"$5 for $6": JITTERED, "$x^": JITTERED})
    figure.draw_without_rendering()
    assert "$5 for $6" in texts(figure.axes[0])


@pytest.mark.parametrize(
    ("schedule", "upper", "lower"),
    [
        (
            JITTERED,
            "line: before jitter; band: what jitter makes of it",
            "line: the middle; band: earliest to latest",
        ),
        (create_backoff(base=1), None, "the calls' own time is not counted"),
        (
            create_backoff(base=1, factor=1e200),
            "top edge: for ever",
            "the calls' own time is not counted; top edge: for ever",
        ),
    ],
)
def test_each_chart_says_how_it_is_read(schedule: Backoff, upper: str | None, lower: str) -> None:
    figure = plot(schedule)
    assert texts(figure.axes[0]) == ([] if upper is None else [upper])
    assert texts(figure.axes[1]) == [lower]


def test_an_endless_wait_runs_along_the_top_edge() -> None:
    schedule = create_backoff(base=1, factor=1e200, jitter="full")
    for axes in plot(schedule, attempts=4).axes:
        top = axes.get_ylim()[1]
        assert drawn_lines(axes)[0][2:] == [top, top]
        assert 1e200 < top < float("inf")
        assert {(3.0, 0.0), (3.0, top)} <= drawn_bands(axes)[0]


def test_free_attempts_are_drawn_at_zero_beside_a_logarithmic_scale() -> None:
    axes = plot(PRESETS["sign-in-lockout"]).axes[0]
    assert drawn_lines(axes)[0][:6] == [0.0, 0.0, 0.0, 0.0, 1.0, 2.0]
    assert axes.get_yscale() == "symlog"
    assert axes.get_ylim()[0] < 0.0


def test_one_attempt_has_a_band_that_can_be_seen() -> None:
    for axes in plot(JITTERED, attempts=1).axes:
        assert drawn_lines(axes) == [[60.0]]
        assert drawn_bands(axes) == [{(x, y) for x in (0.9, 1.1) for y in (48.0, 72.0)}]


@pytest.mark.parametrize(
    ("attempts", "ticks"),
    [
        (1, [1]),
        (5, [1, 2, 3, 4, 5]),
        (20, [1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20]),
        (60, [1, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60]),
        (1000, [1, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000]),
    ],
)
def test_failures_are_counted_in_whole_numbers_from_one(attempts: int, ticks: list[int]) -> None:
    for axes in plot(JITTERED, attempts=attempts).axes:
        assert list(axes.get_xticks()) == ticks


@pytest.mark.parametrize(("dark", "theme"), [(False, LIGHT), (True, DARK)])
def test_the_page_is_light_or_dark(dark: bool, theme: Any) -> None:
    figure = plot(JITTERED, dark=dark)
    assert to_hex(figure.get_facecolor()).upper() == theme.page
    assert figure.axes[0].lines[0].get_color() == theme.lines[0]


def test_the_settings_of_matplotlib_neither_change_nor_matter() -> None:
    usual = plot(JITTERED)
    with mpl.rc_context({"font.size": 30.0, "axes.grid": False, "lines.linewidth": 9.0}):
        before = dict(mpl.rcParams)
        figure = plot(JITTERED)
        assert dict(mpl.rcParams) == before
    for ours, theirs in zip(usual.axes, figure.axes, strict=True):
        sizes = [
            [text.get_fontsize() for text in (*axes.get_yticklabels(), axes.title)]
            for axes in (ours, theirs)
        ]
        assert sizes[0] == sizes[1]


def test_no_pyplot_is_loaded(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom backoff_schedule import presets\n"
        "from backoff_schedule.plotting import save_plot\n"
        "save_plot(presets.SVIX, sys.argv[1])\nprint('matplotlib.pyplot' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "picture.png")]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


@settings(max_examples=10)
@given(
    base=st.sampled_from([0, 1e-300, 1e-9, 0.001, 1, 86400, 1e300]),
    factor=st.sampled_from([1, 1.5, 10, 1e100, 1e308]),
    free=st.integers(0, 3),
    attempts=st.integers(1, 8),
    full=st.booleans(),
)
def test_every_schedule_can_be_drawn(
    base: float, factor: float, free: int, attempts: int, full: bool
) -> None:
    jitter: Any = "full" if full and base in (0, 1, 86400) else 0.0
    schedule = create_backoff(base=base, factor=factor, free=free, jitter=jitter)
    figure = plot({"a": schedule, "b": create_backoff(base=1)}, attempts=attempts)
    figure.draw_without_rendering()
    for axes in figure.axes:
        bottom, top = axes.get_ylim()
        assert all(bottom <= wait <= top for line in drawn_lines(axes) for wait in line)
        assert 1 <= len(axes.get_yticks()) <= 9
