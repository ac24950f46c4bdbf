from __future__ import annotations

import math
import re
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backoff_schedule import format_duration, parse_duration, to_seconds
from backoff_schedule.durations import to_milliseconds
from backoff_schedule.refusals import refusal

UNITS = {
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
    "w": Fraction(604800),
}
LONG = {
    "millisecond": "ms",
    "second": "s",
    "minute": "m",
    "hour": "h",
    "day": "d",
    "week": "w",
}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15 minutes", 900.0),
        ("1 hour", 3600.0),
        ("30s", 30.0),
        ("250ms", 0.25),
        ("2d", 172800.0),
        ("1w", 604800.0),
        ("1.5 hours", 5400.0),
        ("1h30m", 5400.0),
        ("1h 30m", 5400.0),
        ("1 hour 30 minutes", 5400.0),
        ("  1 \t hour\n30 minutes ", 5400.0),
        ("15 Minutes", 900.0),
        ("1 WEEK 1 Day", 691200.0),
        ("1 millisecond", 0.001),
        ("0s", 0.0),
        ("007s", 7.0),
        ("1.001s", 1.001),
        ("1w 1d 1h 1m 1s 1ms", 694861.001),
        ("0.0000004s", 0.0),
        ("0.0000005s", 0.000001),
        ("0.0015ms", 0.000002),
    ],
)
def test_a_text_stands_for_its_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds
    assert to_seconds(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        *["", "   ", "s", "minutes", "5", "1.5", "1h 30", "5 5s", "-5s", "+5s", "5s -1ms"],
        *[".5s", "5.s", "1..5s", "1.5.5s", "1,5s", "1e3s", "0x10s", "1_000s", "5 s s", "5s!"],
        *["\u0665s", "5\u00b5s", "\u00b2s", "5\u00a0\u00a0"],
        *["30S", "5M", "5H", "5D", "5MS", "5Ms", "5sec", "5 mins", "5 hrs", "5us", "5ss", "5mss"],
        *["1m 1h", "1s 1m", "1m 1m", "1 minute 1m", "1ms 1s"],
        *["3 months", "1 month", "1mo", "1 year", "2 Years", "1y"],
        *["inf", "nan", "inf s", "9" * 400 + "s", "9" * 2000 + "s", "1s\x00"],
    ],
)
def test_a_text_that_is_no_duration_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match=r"^pause \(.*\) needs to be "):
        to_seconds(text, "pause")
    with pytest.raises(ValueError, match=r"^duration \(.*\) needs to be "):
        parse_duration(text)


TEXT_RULE = "a number and a unit, such as '15 minutes', '30s' or '1h 30m'"
UNIT_RULE = "in the units ms, s, m, h, d, w (lower case) or millisecond to week, singular or plural"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", TEXT_RULE),
        ("5.s", TEXT_RULE),
        ("5 % s", TEXT_RULE),
        ("90", f"{TEXT_RULE}: a number needs its unit"),
        *[
            (f"1 {word}", f"{UNIT_RULE}: '{word}' has no fixed length")
            for word in ("mo", "month", "months", "y", "yr", "Year", "years")
        ],
        ("5M", f"{UNIT_RULE}, not 'M'"),
        ("5X", f"{UNIT_RULE}, not 'X'"),
        ("1m 1h", "in descending units, each at most once"),
        ("1m 1m", "in descending units, each at most once"),
        ("9" * 400 + "s", "short enough for a float of seconds"),
        ("9" * 1001, "at most 1000 characters long"),
    ],
)
def test_a_refused_text_says_what_is_wrong_with_it(text: str, rule: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(refusal('duration', text, rule))}$"):
        parse_duration(text)


def test_a_text_of_1000_characters_is_the_longest_that_is_read() -> None:
    assert parse_duration("1s" + " " * 998) == 1.0


@pytest.mark.parametrize("value", [None, 5, 5.0, b"5s", ["5s"]])
def test_parse_duration_takes_text_alone(value: Any) -> None:
    message = f"{refusal('duration', value, 'text')}, not {type(value).__name__}"
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        parse_duration(value)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (0, 0.0),
        (7, 7.0),
        (0.1, 0.1),
        (1e-9, 1e-9),
        (1e308, 1e308),
        (timedelta(0), 0.0),
        (timedelta(days=1, microseconds=1), 86400.000001),
        (timedelta.max, timedelta.max.total_seconds()),
    ],
)
def test_numbers_and_timedeltas_are_taken_as_they_are(
    value: float | timedelta, seconds: float
) -> None:
    assert to_seconds(value) == seconds
    assert type(to_seconds(value)) is float


def test_minus_zero_is_zero() -> None:
    assert math.copysign(1.0, to_seconds(-0.0)) == 1.0


@pytest.mark.parametrize(
    "value",
    [
        *[-1, -0.001, -(10**400), 10**400, math.inf, -math.inf, math.nan],
        *[timedelta(microseconds=-1), timedelta.min],
    ],
)
def test_a_negative_nan_or_infinite_duration_is_refused_by_name(value: float) -> None:
    rule = "0 or more and finite"
    with pytest.raises(ValueError, match=f"^{re.escape(refusal('pause', value, rule))}$"):
        to_seconds(value, "pause")
    with pytest.raises(ValueError, match=r"^duration \("):
        to_seconds(value)


@pytest.mark.parametrize("value", [True, False, None, b"5s", 1j, [5], object()])
def test_another_type_is_refused_by_name(value: Any) -> None:
    with pytest.raises(TypeError, match=r"^pause \(.*\) needs to be a number of seconds.* not "):
        to_seconds(value, "pause")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.25, "250ms"),
        (0.00025, "0.25ms"),
        (0.0000004, "0s"),
        (1, "1s"),
        (1.5, "1.5s"),
        (59.9999999, "1m"),
        (90, "1m 30s"),
        (951.542, "15m 51.542s"),
        (5400, "1h 30m"),
        (86400, "1d"),
        (604800, "7d"),
        (788645.25, "9d 3h 4m 5.25s"),
        ("90 minutes", "1h 30m"),
        (timedelta(hours=25), "1d 1h"),
    ],
)
def test_a_duration_is_shown_in_its_units(seconds: float | str | timedelta, text: str) -> None:
    assert format_duration(seconds) == text


def test_an_infinite_duration_has_no_text() -> None:
    with pytest.raises(ValueError, match=r"^seconds \(inf\) needs to be 0 or more and finite$"):
        format_duration(math.inf)


@given(st.integers(0, 2**53).map(lambda microseconds: microseconds / 1e6))
@example(0.000001)
@example(59.999999)
def test_a_duration_of_whole_microseconds_reads_back_equal(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@given(st.floats(2.0**33, allow_infinity=False))
@example(1.7976931348623157e308)
def test_a_duration_too_long_for_a_float_to_hold_microseconds_reads_back_equal(
    seconds: float,
) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@given(st.floats(0, allow_infinity=False, allow_nan=False))
def test_any_duration_reads_back_within_half_a_microsecond(seconds: float) -> None:
    assert abs(Fraction(parse_duration(format_duration(seconds))) - Fraction(seconds)) <= Fraction(
        1, 1_900_000
    )


numbers = st.one_of(
    st.integers(0, 10**12).map(str),
    st.tuples(st.integers(0, 10**6), st.text("0123456789", min_size=1, max_size=12)).map(
        lambda parts: f"{parts[0]}.{parts[1]}"
    ),
)
spaces = st.text(" \t\n", max_size=2)


@st.composite
def duration_texts(draw: st.DrawFn) -> tuple[str, Fraction]:
    """A legal text, and the microseconds it stands for, each part rounded half up."""
    chosen = sorted(draw(st.sets(st.sampled_from(list(UNITS)), min_size=1)), key=UNITS.__getitem__)
    text, microseconds = draw(spaces), Fraction(0)
    for unit in reversed(chosen):
        number = draw(numbers)
        long = next(word for word, short in LONG.items() if short == unit)
        spelling = draw(st.sampled_from([unit, long, f"{long}s", long.upper(), f"{long}S"]))
        text += number + draw(spaces) + spelling + draw(spaces)
        microseconds += math.floor(Fraction(number) * UNITS[unit] * 10**6 + Fraction(1, 2))
    return text, microseconds


@given(duration_texts())
def test_every_legal_text_stands_for_the_sum_of_its_parts(case: tuple[str, Fraction]) -> None:
    text, microseconds = case
    assert parse_duration(text) == float(microseconds / 10**6)


GRAMMAR = re.compile(
    r"\s*(?:[0-9]+(?:\.[0-9]+)?\s*"
    r"(?:ms|s|m|h|d|w|(?i:milliseconds?|seconds?|minutes?|hours?|days?|weeks?))\s*)+"
)


@given(st.text("0123456789.msdhwinute -+e", max_size=12))
def test_no_text_outside_the_grammar_is_read(text: str) -> None:
    try:
        seconds = parse_duration(text)
    except ValueError:
        return
    assert GRAMMAR.fullmatch(text)
    assert 0.0 <= seconds < math.inf


@given(st.text())
def test_any_text_is_read_or_refused_with_a_value_error(text: str) -> None:
    try:
        assert parse_duration(text) >= 0.0
    except ValueError as error:
        assert str(error).startswith("duration (")


@pytest.mark.parametrize(
    ("seconds", "milliseconds"),
    [(0.0, 0.0), (1.001, 1001.0), (0.1, 100.0), (0.000001, 0.001), (2.675, 2675.0), (1e300, 1e303)],
)
def test_whole_microseconds_become_milliseconds_without_dust(
    seconds: float, milliseconds: float
) -> None:
    assert to_milliseconds(seconds) == milliseconds


@given(st.integers(0, 2**33 * 10**6 - 1))
@example(9007199254740985 // 2)
def test_milliseconds_are_the_nearest_double_to_whole_microseconds(microseconds: int) -> None:
    assert to_milliseconds(microseconds / 10**6) == microseconds / 10**3


def test_a_duration_between_microseconds_is_only_multiplied() -> None:
    assert to_milliseconds(1e-9) == 1e-9 * 1000
    assert to_milliseconds(1.0000000001) == 1.0000000001 * 1000
    # Past 2**33 every duration is one.
    assert to_milliseconds(9425719330.447556) == 9425719330.447556 * 1000 != 9425719330447.557


def test_milliseconds_past_the_range_of_a_float_are_infinite() -> None:
    assert to_milliseconds(1e306) == math.inf
