"""A schedule in one word."""

from __future__ import annotations

import pytest

from backoff_schedule import Backoff, create_backoff
from backoff_schedule.cli.labelled import labelled_schedules
from backoff_schedule.presets import PRESETS


@pytest.mark.parametrize(
    ("text", "label", "schedule"),
    [
        ("base=1s", "base=1s", create_backoff(base=1)),
        (
            "base=1s,max=1m,jitter=full,label=quick",
            "quick",
            create_backoff(base=1, max=60, jitter="full"),
        ),
        ("steps=15s/1m/5m,label=a", "a", create_backoff(steps=[15, 60, 300])),
        ("base=1s,jitter=0.8/1.0,label=a", "a", create_backoff(base=1, jitter=(0.8, 1))),
        ("base=1s,factor=3,free=2,label=a", "a", create_backoff(base=1, factor=3, free=2)),
        ("base=1s,growth=linear,label=a=b", "a=b", create_backoff(base=1, growth="linear")),
        (" base = 1 hour , label = my own ", "my own", create_backoff(base=3600)),
        ("preset=svix", "svix", PRESETS["svix"]),
        ("preset=svix,jitter=0.1", "svix,jitter=0.1", PRESETS["svix"].replace(jitter=0.1)),
    ],
)
def test_pairs_make_a_schedule_and_its_label(text: str, label: str, schedule: Backoff) -> None:
    assert labelled_schedules([text]) == {label: schedule}


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (["x"], "--schedule ('x') needs to be NAME=VALUE pairs with commas between them"),
        ([""], "--schedule ('') needs to be NAME=VALUE pairs"),
        (["base=1s,"], "--schedule ('base=1s,') needs to be NAME=VALUE pairs"),
        (["base="], "--schedule ('base=') needs to be NAME=VALUE pairs"),
        (["=1s"], "--schedule ('=1s') needs to be NAME=VALUE pairs"),
        (["bse=1s"], "--schedule 'bse=1s': 'bse' is not a name; did you mean base?"),
        (["q=1s"], "--schedule 'q=1s': 'q' is not a name; the names are base, growth, factor,"),
        (["base=1s,base=2s"], "--schedule 'base=1s,base=2s': base is there twice"),
        (["label=a"], "--schedule 'label=a': a schedule needs base, steps or preset, such as"),
        (
            ["base=1m,max=1s"],
            "--schedule 'base=1m,max=1s': max (1s) needs to be at least base",
        ),
        (
            ["base=1s,jitter=a"],
            "--schedule 'base=1s,jitter=a': jitter ('a') needs to be",
        ),
        (["preset=svx"], "did you mean svix?"),
        (
            ["base=1s,label=a", "base=2s,label=a"],
            "label ('a') needs to be another one for each --schedule",
        ),
        (["seed=a,base=1s"], "'seed' is not a name"),
    ],
)
def test_what_makes_no_schedule_is_refused_with_a_sentence(texts: list[str], sentence: str) -> None:
    with pytest.raises(ValueError, match="schedule") as refused:
        labelled_schedules(texts)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
