"""Colours that can be read."""

from itertools import combinations

import pytest
from matplotlib.colors import to_rgb

from backoff_schedule.plotting.looks import DARK, LIGHT, Theme, looks


def luminance(colour: str) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_has_the_contrast_that_wcag_asks_for(theme: Theme) -> None:
    assert contrast(theme.ink, theme.page) > 7.0
    assert contrast(theme.muted, theme.page) > 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_the_first_three_lines_have_the_contrast_that_wcag_asks_of_graphics(theme: Theme) -> None:
    assert all(contrast(colour, theme.page) > 3.0 for colour in theme.lines[:3])


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_any_two_of_35_lines_differ_in_colour_or_dashes(theme: Theme) -> None:
    for one, other in combinations(looks(theme, 35), 2):
        assert one[:2] != other[:2]
