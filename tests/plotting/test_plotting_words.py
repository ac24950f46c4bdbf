"""Labels, summaries, text alternatives, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from backoff_schedule import Backoff, create_backoff
from backoff_schedule.plotting import alt_text, plot
from backoff_schedule.plotting.words import printable, summary
from backoff_schedule.presets import SIGN_IN_LOCKOUT, SVIX


@pytest.mark.parametrize(
    ("schedule", "text"),
    [
        (create_backoff(base="90s"), "base 1m 30s"),
        (create_backoff(base=1, growth="linear", max="1h"), "base 1s, linear, max 1h"),
        (create_backoff(base=1, factor=1.6, free=2), "base 1s, factor 1.6, free 2"),
        (create_backoff(base=1, jitter=(0.8, 1)), "base 1s, jitter 0.8 to 1.0"),
        (create_backoff(steps=["250ms", "1d"], jitter="full"), "steps 250ms 1d, jitter full"),
        (create_backoff(compute=lambda n: n), "computed"),
        (create_backoff(base=86.4e12), "base 10⁹d"),
    ],
)
def test_a_summary_is_short(schedule: Backoff, text: str) -> None:
    assert summary(schedule) == text


def test_the_text_alternative_tells_each_schedule_from_start_to_end() -> None:
    schedules = {
        "svix": SVIX,
        "sign-in": SIGN_IN_LOCKOUT,
        "endless": create_backoff(base=1, factor=1e200, jitter="full"),
    }
    assert alt_text(schedules, attempts=5) == (
        "Two charts over 5 failures in a row: the delay after each, and all waits so far. "
        "svix: the delay is 5s after failure 1 and 5h after failure 5; all waits take 7h 35m 5s. "
        "sign-in: the delay is 0s after failure 1 and 1s after failure 5; all waits take 1s. "
        "endless: the delay is 0s to 1s after failure 1 and 0s to for ever after failure 5; "
        "all waits take 0s to for ever."
    )


def test_the_text_alternative_of_one_attempt_is_one_delay() -> None:
    assert alt_text({"svix": SVIX}, attempts=1) == (
        "Two charts over 1 failure: the delay after each, and all waits so far. "
        "svix: the delay is 5s."
    )


def test_a_label_is_printable_and_of_bearable_length() -> None:
    assert printable("Füße") == "Füße"
    assert printable("a\nb\x00\udce9\x1b") == "a�b���"
    assert printable("x" * 61) == "x" * 59 + "…"


@pytest.mark.parametrize("function", [plot, alt_text])
@pytest.mark.parametrize(
    ("schedules", "error", "sentence"),
    [
        (
            [SVIX],
            TypeError,
            "needs to be a schedule, or a mapping of labels to schedules, not list",
        ),
        (
            {},
            ValueError,
            "schedules ({}) needs to be a schedule, or a mapping of labels to schedules,",
        ),
        ({1: SVIX}, TypeError, "label (1) needs to be text, not int"),
        ({"a": 1}, TypeError, "schedules['a'] (1) needs to be a schedule, not int"),
    ],
)
def test_what_is_no_schedule_is_refused(
    function: Any, schedules: Any, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error) as refused:
        function(schedules)
    assert sentence in str(refused.value)


@pytest.mark.parametrize("function", [plot, alt_text])
@pytest.mark.parametrize(
    ("attempts", "error"),
    [(0, ValueError), (1001, ValueError), (-1, ValueError), (True, TypeError), (2.0, TypeError)],
)
def test_attempts_are_a_whole_number_from_1_to_1000(
    function: Any, attempts: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"attempts \(.*\) needs to be a whole number from 1 to 1000"):
        function(SVIX, attempts=attempts)


def test_what_a_computed_schedule_raises_passes_through() -> None:
    with pytest.raises(ZeroDivisionError):
        plot(create_backoff(compute=lambda n: 1 / 0))
