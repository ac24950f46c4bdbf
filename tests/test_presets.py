from __future__ import annotations

import itertools
from typing import Any

import pytest

import backoff_schedule
from backoff_schedule import Backoff, format_duration, presets

TIMETABLES = {
    "standard-webhooks": ["5s", "5m", "30m", "2h", "5h", "10h", "14h", "20h", "1d", "1d"],
    "postel": ["5s", "5m", "30m", "2h", "5h", "10h", "1d", "2d", "3d", "3d"],
    "postfleet": ["1m", "5m", "30m", "2h", "12h", "12h"],
    "svix": ["5s", "5m", "30m", "2h", "5h", "10h", "10h", "10h"],
    "feed-poll": ["15m", "30m", "1h", "2h", "4h", "8h", "16h", "1d", "1d"],
    "quick": ["200ms", "400ms", "800ms", "1.6s", "2s", "2s"],
    "sign-in-lockout": [
        *["0s", "0s", "0s", "0s", "1s", "2s", "4s", "8s", "16s", "32s", "1m 4s"],
        *["2m 8s", "4m 16s", "8m 32s", "15m", "15m"],
    ],
    "grpc-connect": ["1s", "1.6s", "2.56s", "4.096s", "6.5536s", "10.48576s"],
}
JITTER: dict[str, Any] = {
    "postel": 0.2,
    "postfleet": 0.2,
    "feed-poll": 0.1,
    "quick": "full",
    "grpc-connect": 0.2,
}


@pytest.mark.parametrize("name", TIMETABLES)
def test_a_preset_keeps_its_timetable(name: str) -> None:
    preset = presets.PRESETS[name]
    curve = preset.replace(jitter=0.0).delays()
    timetable = TIMETABLES[name]
    assert [format_duration(next(curve)) for _ in timetable] == timetable
    assert preset.options["jitter"] == JITTER.get(name, 0.0)


def test_every_preset_has_its_timetable_here_and_a_name_of_its_own() -> None:
    assert presets.PRESETS.keys() == TIMETABLES.keys()
    for name, preset in presets.PRESETS.items():
        assert getattr(presets, name.upper().replace("-", "_")) is preset


def test_the_names_cannot_be_given_to_other_schedules() -> None:
    names: Any = presets.PRESETS
    with pytest.raises(TypeError):
        names["quick"] = presets.SVIX


@pytest.mark.parametrize(
    ("preset", "tries", "total"),
    [
        (presets.STANDARD_WEBHOOKS, 10, "3d 3h 35m 5s"),
        (presets.POSTFLEET, 6, "14h 36m"),
        (presets.SVIX, 8, "1d 3h 35m 5s"),
        (presets.QUICK, 4, "1.4s"),
    ],
)
def test_the_tries_of_a_preset_take_as_long_as_its_docstring_says(
    preset: Backoff, tries: int, total: str
) -> None:
    curve = preset.replace(jitter=(1, 1)).delays()
    assert format_duration(sum(itertools.islice(curve, tries - 1))) == total


def test_grpc_reaches_its_ceiling_at_the_twelfth_failure() -> None:
    curve = presets.GRPC_CONNECT.replace(jitter=0)
    assert curve.delay(11) == pytest.approx(109.95, abs=0.01)
    assert curve.delay(12) == 120.0
    assert presets.GRPC_CONNECT.longest == 144.0


def test_the_presets_are_reached_as_an_attribute_of_the_package() -> None:
    assert backoff_schedule.presets is presets
    lazily = vars(backoff_schedule)["__getattr__"]
    assert lazily("presets") is presets
