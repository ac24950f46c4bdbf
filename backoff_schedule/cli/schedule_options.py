"""A schedule from the options of a command line.

Numbers are read here; what they may be is the core's to say, so its refusals pass through.
"""

from __future__ import annotations

from ..presets import PRESETS
from ..refusals import refusal
from ..schedule import create_backoff
from ..seeded import SeededRandom
from .parser import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from ..backoff import Backoff
    from .parser import Parser

# In the order of the help page; each is an argument of create_backoff.
OPTIONS = ("base", "growth", "factor", "max", "steps", "free", "jitter")


def add_schedule_options(parser: Parser, *, random: bool = True) -> None:
    """Add them; without `random` not those that say where the delays are drawn from."""
    group = parser.add_argument_group(
        "the schedule", "durations are written like 15s, 250ms, 1h30m or '2 days'"
    )
    group.add_argument("--base", metavar="TIME", help="the first delay")
    group.add_argument(
        "--growth", metavar="RULE", help="exponential (the default), linear or constant"
    )
    group.add_argument("--factor", metavar="N", help="of exponential growth, 2 by default")
    group.add_argument("--max", metavar="TIME", help="the ceiling, before jitter")
    group.add_argument(
        "--steps", metavar="TIME,...", help="the delays one by one; the last one repeats"
    )
    group.add_argument(
        "--preset",
        metavar="NAME",
        help=f"a schedule people run, changed by the other options: {', '.join(PRESETS)}",
    )
    group.add_argument("--free", metavar="N", help="so many first failures cost no wait")
    group.add_argument(
        "--jitter",
        metavar="J",
        help="0.2 spreads by 20%% both ways, full from nothing up to the delay, 0.8,1.0 between "
        "these two multiples of it",
    )
    if not random:
        parser.set_defaults(seed=None, key=None)
        return
    group.add_argument("--seed", metavar="TEXT", help="draw the delays from SeededRandom(TEXT)")
    group.add_argument("--key", metavar="TEXT", help="draw the delays that belong to this key")


def schedule_from(options: Namespace, default: Backoff | None = None) -> Backoff:
    """The schedule that the options describe.

    `default` is what they change where none of them makes one.

    Raises `ValueError` or `TypeError` with a sentence that says what would be right.
    """
    if options.seed is not None and options.key is not None:
        raise ValueError("--seed and --key do not go together: both say where the delays come from")
    given: dict[str, Any] = {
        name: _READERS.get(name, str)(getattr(options, name))
        for name in OPTIONS
        if getattr(options, name) is not None
    }
    if options.preset is not None:
        schedule = _preset(options.preset).replace(**given)
    elif "base" in given or "steps" in given:
        schedule = create_backoff(**given)
    elif default is not None:
        schedule = default.replace(**given)
    else:
        raise ValueError("a schedule needs --base, --steps or --preset, such as --base 1m")
    if options.seed is not None:
        return schedule.replace(random=SeededRandom(options.seed))
    return schedule if options.key is None else schedule.keyed(options.key)


def whole_number(text: str, name: str, rule: str) -> int:
    """The int that a text is, or `ValueError` with the rule."""
    try:
        return int(text)
    except ValueError:
        raise ValueError(refusal(name, text, rule)) from None


def _preset(name: str) -> Backoff:
    if name in PRESETS:
        return PRESETS[name]
    hint = nearest(name, PRESETS)
    names = ", ".join(PRESETS)
    raise ValueError(refusal("preset", name, f"one of {names}") + (f"; {hint}" if hint else ""))


def _factor(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(refusal("factor", text, "a finite number, 1 or more")) from None


def _free(text: str) -> int:
    return whole_number(text, "free", "a whole number of attempts, 0 or more")


def _jitter(text: str) -> float | str | list[float]:
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        # `full`, or what the core refuses as it was written.
        return text
    return numbers[0] if len(numbers) == 1 else numbers


def _steps(text: str) -> list[str]:
    return text.split(",")


_READERS = {"factor": _factor, "free": _free, "jitter": _jitter, "steps": _steps}
