"""What a user's strict type checker must accept, and what it must reject.

mypy and pyright read this file; nothing runs it. A line that must be rejected carries an
ignore comment for each checker, and both report one that is not needed.
"""

# mypy: disallow-any-decorated

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, assert_type

from matplotlib.figure import Figure

from backoff_schedule import (
    Backoff,
    DurationLike,
    RandomSource,
    SeededRandom,
    classify_status,
    create_backoff,
    format_duration,
    parse_duration,
    parse_retry_after,
    presets,
    retry_after_from,
    to_seconds,
    wait_after,
)
from backoff_schedule.plotting import alt_text, plot, save_plot

# The three shapes.
assert_type(create_backoff(base=1), Backoff)
create_backoff(base=timedelta(minutes=1), growth="linear", max="1 hour", free=2, jitter="full")
create_backoff(base="1m", factor=3, max=None, jitter=(0.5, 1.0), random=random.Random(1))
create_backoff(steps=["15s", 60, timedelta(minutes=5)], jitter=[0.8, 1.0], random=SeededRandom(7))
create_backoff(steps=(float(n) for n in range(1, 5)))
create_backoff(compute=lambda n: f"{n * n}s", max="1 hour", jitter=0.1)


def cubed(n: int) -> float:
    return float(n**3)


schedule = create_backoff(compute=cubed)

create_backoff()  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
create_backoff(base=1, steps=[1])  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
create_backoff(steps=[1], max=5)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
create_backoff(compute=cubed, factor=2.0)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
create_backoff(base=None)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
create_backoff(base=1, growth="cubic")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
create_backoff(base=1, random=5)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
create_backoff(base=1, jitter="half")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
create_backoff(1)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]

# What a schedule answers.
assert_type(schedule.delay(1), float)
assert_type(schedule.at(1, 0.0), float)
assert_type(schedule.at(1, 0), float)
assert_type(schedule.at(1, datetime(2026, 1, 1)), datetime)
assert_type(schedule.delays(), Iterator[float])
assert_type(schedule.bounds(1), tuple[float, float])
assert_type(schedule.longest, float)
assert_type(schedule.options, dict[str, Any])
assert_type(schedule.replace(jitter=0.2), Backoff)
assert_type(schedule.keyed(b"key").keyed("key").keyed(7), Backoff)

schedule.delay("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
schedule.delay(1.5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
schedule.at(1, "now")  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]
schedule.keyed(1.5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
schedule.longest = 5.0  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


# Names for a user's own annotations.
def feed_schedule(poll: DurationLike, source: RandomSource | None = None) -> Backoff:
    return create_backoff(base=poll, max="1 day", jitter=0.1, random=source)


feed_schedule("15 minutes", SeededRandom("feeds"))
feed_schedule(900, random.SystemRandom())
feed_schedule(b"15 minutes")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# Durations, seeds, headers, statuses, presets.
assert_type(to_seconds("1m"), float)
assert_type(parse_duration("1m"), float)
assert_type(format_duration(60), str)
assert_type(SeededRandom("feeds").derive(1).random(), float)
assert_type(SeededRandom.restore(SeededRandom(1).state()), SeededRandom)
assert_type(parse_retry_after(None), float | None)
assert_type(parse_retry_after("7", now=datetime(2026, 1, 1)), float | None)
assert_type(retry_after_from({"Retry-After": "7"}), float | None)
assert_type(wait_after(schedule, 1, None, limit="12h"), float)
assert_type(classify_status(503), Literal["success", "retry", "reject"])
assert_type(presets.SVIX, Backoff)
assert_type(plot(schedule, attempts=3, dark=True), Figure)
assert_type(plot({"ours": schedule}), Figure)
assert_type(alt_text(presets.PRESETS, attempts=3), str)
save_plot(schedule, Path("picture.svg"), dark=True)

parse_duration(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
SeededRandom(1.5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
retry_after_from("7")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
plot([schedule])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
presets.PRESETS["mine"] = schedule  # type: ignore[index]  # pyright: ignore[reportIndexIssue]


class Doubling:
    def delay(self, attempt: int) -> float:
        return 2.0**attempt


assert_type(wait_after(Doubling(), 1, 5), float)
wait_after(object(), 1, 5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
