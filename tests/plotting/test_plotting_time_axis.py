"""Scales and ticks of time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backoff_schedule.plotting.time_axis import tick_label, time_scale

M, H, D = 60.0, 3600.0, 86400.0
INF = float("inf")


@pytest.mark.parametrize(
    ("waits", "kind", "labels"),
    [
        ([1, 2, 4, 8, 16, 32, 60], "log", "1s 2s 5s 10s 30s 1m"),
        ([0, 1, 2, 4, 8, 16, 32, 60], "symlog", "0s 1s 2s 5s 10s 30s 1m"),
        ([1, 10 * D], "log", "1s 10s 1m 10m 1h 6h 1d 10d"),
        ([M, 6 * H], "log", "1m 2m 5m 10m 30m 1h 2h 6h"),
        ([10, 15], "linear", "0s 5s 10s 15s"),
        ([M, 30 * M], "linear", "0s 5m 10m 15m 20m 25m 30m"),
        ([2 * H, 25 * H], "linear", "0s 6h 12h 18h 1d"),
        ([0.05, 0.2], "linear", "0s 50ms 100ms 150ms 200ms"),
        ([0, 1, INF], "linear", "0s 200ms 400ms 600ms 800ms 1s"),
        ([0, 0], "linear", "0s 1s"),
        ([], "linear", "0s 1s"),
        ([INF], "linear", "0s 1s"),
        ([1e-9, 0], "linear", "0s 1s"),
    ],
)
def test_ticks_are_times_that_a_person_counts_in(
    waits: list[float], kind: str, labels: str
) -> None:
    scale = time_scale(waits)
    assert (scale.kind, " ".join(map(tick_label, scale.ticks))) == (kind, labels)


@pytest.mark.parametrize(
    ("seconds", "label"),
    [
        (0.0, "0s"),
        (1e-6, "0.001ms"),
        (90 * M, "1h 30m"),
        (10_000 * D, "10000d"),
        (1e6 * D, "10⁶d"),
        (1.5e12 * D, "1.5×10¹²d"),  # noqa: RUF001
        (1e280, "1.2×10²⁷⁵d"),  # noqa: RUF001
    ],
)
def test_a_tick_is_a_duration_and_very_many_days_a_power_of_ten(seconds: float, label: str) -> None:
    assert tick_label(seconds) == label


@given(st.lists(st.floats(min_value=0.0, allow_nan=False), max_size=8))
def test_every_wait_has_a_place_between_few_ticks(waits: list[float]) -> None:
    scale = time_scale(waits)
    assert scale.bottom < scale.top < INF
    assert all(scale.bottom <= place <= scale.top for place in scale.drawn(waits))
    assert scale.ticks == sorted(set(scale.ticks))
    assert 1 <= len(scale.ticks) <= 9
    assert all(scale.bottom <= tick <= scale.top for tick in scale.ticks)
    assert len({tick_label(tick) for tick in scale.ticks}) == len(scale.ticks)
    if scale.kind == "log":
        assert scale.bottom > 0.0
