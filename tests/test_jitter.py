from __future__ import annotations

import hashlib
import math
import os
import pickle
import random
import re
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backoff_schedule import SeededRandom, create_backoff, jitter
from backoff_schedule.jitter import (
    LARGEST_DRAW,
    SYSTEM,
    check_spreadable,
    checked_jitter,
    key_bytes,
    keyed_draw,
    multipliers,
    spread,
)
from backoff_schedule.refusals import refusal

draws = st.floats(0.0, LARGEST_DRAW)


@given(
    milliseconds=st.one_of(st.floats(0.0, 2.0**52), st.integers(0, 2**52).map(float)),
    low=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    width=st.sampled_from([0.0, 0.1, 1.0, 2.0]),
    draw=draws,
)
@example(milliseconds=0.49999999999999994, low=1.0, width=0.0, draw=0.0)
@example(milliseconds=0.5, low=1.0, width=0.0, draw=0.0)
@example(milliseconds=1.5, low=1.0, width=0.0, draw=0.0)
@example(milliseconds=2.5, low=1.0, width=0.0, draw=0.0)
@example(milliseconds=2.0**52 - 0.5, low=1.0, width=0.0, draw=0.0)
@example(milliseconds=2.0**52 + 1.0, low=1.0, width=0.0, draw=0.0)
def test_a_spread_delay_is_rounded_half_up_to_a_whole_millisecond(
    milliseconds: float, low: float, width: float, draw: float
) -> None:
    exact = milliseconds * (low + draw * width)
    whole = math.floor(Fraction(exact) + Fraction(1, 2))
    assert spread(milliseconds, low, width, draw) == whole / 1000


@given(st.floats(2.0**52, allow_infinity=False), draws)
def test_a_delay_too_long_for_halves_is_only_multiplied(milliseconds: float, draw: float) -> None:
    assert spread(milliseconds, 0.5, 0.5, draw) == milliseconds * (0.5 + draw * 0.5) / 1000 or (
        milliseconds * (0.5 + draw * 0.5) < 2.0**52
    )


def test_an_infinite_delay_stays_infinite_but_for_a_multiplier_of_zero() -> None:
    assert spread(math.inf, 0.5, 0.5, 0.0) == math.inf
    assert spread(math.inf, 0.0, 1.0, 0.5) == math.inf
    assert spread(math.inf, 0.0, 1.0, 0.0) == 0.0


@pytest.mark.parametrize(
    ("jitter", "kept", "pair"),
    [
        (0, 0.0, (1.0, 1.0)),
        (-0.0, 0.0, (1.0, 1.0)),
        (0.25, 0.25, (0.75, 1.25)),
        (1, 1.0, (0.0, 2.0)),
        ("full", "full", (0.0, 1.0)),
        ((0.5, 1.0), (0.5, 1.0), (0.5, 1.0)),
        ([1, 3], (1.0, 3.0), (1.0, 3.0)),
        ((0, 0), (0.0, 0.0), (0.0, 0.0)),
        ((-0.0, -0.0), (0.0, 0.0), (0.0, 0.0)),
    ],
)
def test_a_jitter_is_a_pair_of_multipliers(
    jitter: Any, kept: Any, pair: tuple[float, float]
) -> None:
    checked = checked_jitter(jitter)
    # Their text, since -0.0 == 0.0.
    assert repr(checked) == repr(kept)
    assert multipliers(checked) == pair


RULE = "a fraction from 0 to 1, 'full', or a pair (low, high) with 0 <= low <= high"


@pytest.mark.parametrize(
    "jitter",
    [
        *[-0.1, 1.1, 2.0, math.nan, math.inf, 10**400, "half", "", "FULL"],
        *[(0.5,), (0.1, 0.2, 0.3), (), (0.5, 0.4), (-0.1, 1.0), (0.5, math.inf), (math.nan, 1.0)],
        (0.5, 10**400),
    ],
)
def test_a_jitter_outside_its_range_is_refused_by_name(jitter: Any) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(refusal('jitter', jitter, RULE))}$"):
        checked_jitter(jitter)


@pytest.mark.parametrize(
    ("jitter", "kind"),
    [
        *[(None, "NoneType"), (True, "bool"), (b"full", "bytes"), ({0.5}, "set")],
        *[(("a", "b"), "str"), ((True, 1.0), "bool"), ((0.5, None), "NoneType")],
    ],
)
def test_a_jitter_of_another_type_is_refused_by_name(jitter: Any, kind: str) -> None:
    message = f"{refusal('jitter', jitter, RULE)}, not {kind}"
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        checked_jitter(jitter)


@pytest.mark.parametrize(
    ("seconds", "low", "high"),
    [
        (0.0, 0.9, 1.1),
        (0.005, 0.9, 1.1),
        (0.01, 0.9, 1.0),
        (0.05, 0.99, 1.01),
        (0.001, 0.0, 1.0),
        (0.001, 0.0, 1.0 - 1e-9),
        (1e300, 0.9, 1.1),
    ],
)
def test_a_band_of_a_millisecond_is_wide_enough_and_dust_under_it_does_not_count(
    seconds: float, low: float, high: float
) -> None:
    check_spreadable(seconds, low, high, "base")


@pytest.mark.parametrize(
    ("seconds", "low", "high"),
    [
        *[(0.002, 0.9, 1.1), (0.004, 0.9, 1.1), (0.009, 0.9, 1.0), (1.0, 0.5, 0.5)],
        *[(0.001, 0.9, 1.1), (0.001, 0.0, 1.0 - 2e-9)],
    ],
)
def test_a_band_that_rounding_would_close_is_refused(
    seconds: float, low: float, high: float
) -> None:
    with pytest.raises(ValueError, match=r"^base \(.*\) needs to be long enough for its jitter"):
        check_spreadable(seconds, low, high, "base")


@pytest.mark.parametrize("seconds", [0.0005, 1.0001, 0.1 + 0.2])
def test_a_duration_between_milliseconds_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match=r"^max \(.*\) needs to be a whole number of millisec"):
        check_spreadable(seconds, 0.5, 1.5, "max")


def test_a_duration_beyond_a_float_of_milliseconds_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^max \(1e\+306\) needs to be short enough"):
        check_spreadable(1e306, 0.5, 1.5, "max")


# The sources.


def test_the_system_source_draws_53_bits_of_the_unit_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "urandom", lambda size: b"\xff" * size)
    assert SYSTEM.random() == LARGEST_DRAW
    monkeypatch.setattr(os, "urandom", lambda size: b"\x00" * size)
    assert SYSTEM.random() == 0.0


def test_a_key_is_its_bytes_however_it_is_written() -> None:
    assert key_bytes(1) == key_bytes("1") == key_bytes(b"1") == b"1"
    assert key_bytes("caf\u00e9") == b"caf\xc3\xa9"
    assert key_bytes("\udce9") == b"\xed\xb3\xa9"
    assert key_bytes(-(10**5000)) == b"-1" + b"0" * 5000


@pytest.mark.parametrize("key", [None, True, 1.0, bytearray(b"1"), ("a",)])
def test_a_key_of_another_type_is_refused(key: Any) -> None:
    message = f"{refusal('key', key, 'text, bytes or an int')}, not {type(key).__name__}"
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        key_bytes(key)


def test_the_first_keyed_draw_loads_its_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jitter, "_blake2b", None)
    digest = hashlib.blake2b(b"dlv_1\x003", digest_size=8).digest()
    assert keyed_draw(b"dlv_1", 3) == (int.from_bytes(digest, "big") >> 11) / 2**53


@given(st.binary(), st.integers(1, 10**30))
def test_a_keyed_draw_depends_on_the_key_and_the_attempt_alone(key: bytes, attempt: int) -> None:
    drawn = keyed_draw(key, attempt)
    assert 0.0 <= drawn <= LARGEST_DRAW
    assert drawn == keyed_draw(key, attempt) != keyed_draw(key, attempt + 1)
    assert drawn != keyed_draw(key + b"x", attempt)


# The draws over a whole band: a Kolmogorov-Smirnov test against the uniform distribution. The
# limit is the one that uniform draws exceed once in a thousand times; the seeds are fixed.


def distance_from_uniform(delays: list[float], low: float, high: float) -> float:
    places = sorted((delay - low) / (high - low) for delay in delays)
    count = len(places)
    return max(
        max((index + 1) / count - place, place - index / count)
        for index, place in enumerate(places)
    )


@pytest.mark.parametrize("jitter", [0.1, 1.0, "full", (0.5, 1.0), (0.25, 4.0)])
@pytest.mark.parametrize("attempt", [1, 5, 20, 2000])
@pytest.mark.parametrize("source", [random.Random("ks"), SeededRandom("ks")], ids=type)
def test_the_delays_are_spread_evenly_over_their_whole_band(
    jitter: Any, attempt: int, source: Any
) -> None:
    schedule = create_backoff(base="1h", max="1 day", jitter=jitter, random=source)
    low, high = schedule.bounds(attempt)
    delays = [schedule.delay(attempt) for _ in range(2000)]
    assert distance_from_uniform(delays, low, high) < 1.949 / math.sqrt(2000)


@pytest.mark.parametrize("jitter", [0.1, "full"])
def test_the_delays_of_many_keys_are_spread_evenly_over_their_whole_band(jitter: Any) -> None:
    schedule = create_backoff(base="1h", max="1 day", jitter=jitter)
    low, high = schedule.bounds(20)
    delays = [schedule.keyed(f"delivery-{number}").delay(20) for number in range(2000)]
    assert distance_from_uniform(delays, low, high) < 1.949 / math.sqrt(2000)


def test_a_draw_that_is_not_uniform_fails_the_same_test() -> None:
    schedule = create_backoff(base="1h", jitter="full")
    generator = random.Random("ks")
    skewed = [schedule.bounds(1)[1] * generator.random() ** 1.2 for _ in range(2000)]
    assert distance_from_uniform(skewed, *schedule.bounds(1)) > 1.949 / math.sqrt(2000)


def test_the_system_source_pickles_with_its_schedule() -> None:
    schedule = create_backoff(base=1, jitter="full")
    again = pickle.loads(pickle.dumps(schedule))
    assert again == schedule
    assert 0.0 <= again.delay(1) <= 1.0
