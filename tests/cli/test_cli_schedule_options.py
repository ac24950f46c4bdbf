"""A schedule from options."""

import pytest

from backoff_schedule import Backoff, SeededRandom, create_backoff
from backoff_schedule.cli.parser import Parser
from backoff_schedule.cli.schedule_options import add_schedule_options, schedule_from
from backoff_schedule.presets import PRESETS


def schedule_of(*arguments: str) -> Backoff:
    parser = Parser("show", "[options]", "", "")
    add_schedule_options(parser)
    return schedule_from(parser.read(list(arguments)))


@pytest.mark.parametrize(
    ("line", "schedule"),
    [
        ("--base 1m", create_backoff(base=60)),
        ("--base 1m --growth linear --max 6h", create_backoff(base=60, growth="linear", max="6h")),
        ("--base 1m --factor 3 --free 2", create_backoff(base=60, factor=3, free=2)),
        ("--base 1m --jitter 0.2", create_backoff(base=60, jitter=0.2)),
        ("--base 1m --jitter full", create_backoff(base=60, jitter="full")),
        ("--base 1m --jitter 0.8,1.0", create_backoff(base=60, jitter=(0.8, 1))),
        ("--steps 15s,1m,5m --free 1", create_backoff(steps=[15, 60, 300], free=1)),
        ("--preset svix", PRESETS["svix"]),
        ("--preset svix --jitter 0.1", PRESETS["svix"].replace(jitter=0.1)),
        ("--preset svix --base 1s", create_backoff(base=1)),
        ("--preset feed-poll --steps 1s", create_backoff(steps=[1], jitter=0.1)),
        ("--base 1m --key feed", create_backoff(base=60).keyed("feed")),
    ],
)
def test_options_make_the_schedule_of_the_same_arguments(line: str, schedule: Backoff) -> None:
    assert schedule_of(*line.split()) == schedule


@pytest.mark.parametrize(
    ("line", "schedule"),
    [
        ("", create_backoff(base=1, max=60)),
        ("--max 10s", create_backoff(base=1, max=10)),
        ("--base 2m", create_backoff(base=120)),
        ("--preset svix", PRESETS["svix"]),
    ],
)
def test_a_default_stands_in_where_the_options_make_no_schedule(
    line: str, schedule: Backoff
) -> None:
    parser = Parser("run", "[options]", "", "")
    add_schedule_options(parser)
    default = create_backoff(base=1, max=60)
    assert schedule_from(parser.read(line.split()), default) == schedule


def test_a_seed_pins_the_delays() -> None:
    seeded = schedule_of("--preset", "feed-poll", "--seed", "feeds")
    stream = PRESETS["feed-poll"].replace(random=SeededRandom("feeds"))
    assert [seeded.delay(n) for n in (1, 2, 3)] == [stream.delay(n) for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "a schedule needs --base, --steps or --preset, such as --base 1m"),
        (["--max", "1m"], "a schedule needs --base, --steps or --preset, such as --base 1m"),
        (["--base", "1m", "--max", "1s"], "max (1s) needs to be at least base (1m)"),
        (["--base", "30"], "base ('30') needs to be a number and a unit, such as '15 minutes'"),
        (["--base", "1s", "--steps", "1s"], "base and steps do not go together"),
        (["--preset", "svix", "--max", "1h"], "max ('1h') does not go with steps"),
        (["--preset", "svx"], "did you mean svix?"),
        (["--preset", "x"], "preset ('x') needs to be one of standard-webhooks, postel"),
        (["--base", "1s", "--factor", "x"], "factor ('x') needs to be a finite number, 1 or more"),
        (["--base", "1s", "--factor", "nan"], "factor (nan) needs to be a finite number"),
        (["--base", "1s", "--free", "x"], "free ('x') needs to be a whole number of attempts"),
        (["--base", "1s", "--free", "-1"], "free (-1) needs to be a whole number of attempts"),
        (["--base", "1s", "--free", "9" * 5000], "needs to be a whole number of attempts"),
        (["--base", "1s", "--jitter", "a"], "jitter ('a') needs to be a fraction from 0 to 1"),
        (["--base", "1s", "--jitter", "1,"], "jitter ('1,') needs to be a fraction from 0 to 1"),
        (["--base", "1s", "--jitter", "1,2,3"], "jitter ([1.0, 2.0, 3.0]) needs to be"),
        (["--steps", "1s,"], "steps[1] ('') needs to be a number and a unit"),
        (["--base", "1s", "--seed", "a", "--key", "b"], "--seed and --key do not go together"),
    ],
)
def test_what_makes_no_schedule_is_refused_with_a_sentence(
    arguments: list[str], sentence: str
) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        schedule_of(*arguments)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
