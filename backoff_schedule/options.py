"""What a schedule may be made of: the options, their ranges, and every refusal."""

from __future__ import annotations

from .durations import format_duration, to_seconds
from .jitter import check_spreadable, checked_jitter, multipliers
from .refusals import refusal, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .durations import DurationLike
    from .jitter import RandomSource

    Options = dict[str, Any]

GROWTHS = ("exponential", "linear", "constant")
DEFAULTS = {"growth": "exponential", "factor": 2.0, "max": None, "free": 0, "jitter": 0.0}
_DEFAULTED = {"free": 0, "jitter": 0.0}
# What each shape of schedule takes besides free and jitter.
_SHAPES = {
    "base": ("base", "growth", "factor", "max"),
    "steps": ("steps",),
    "compute": ("compute", "max"),
}
_NAMES = ("base", "growth", "factor", "max", "steps", "compute")


def checked_options(given: Options) -> Options:
    """The options of one shape, each checked and in the form that a schedule keeps.

    `given` holds options by name, None for one that was not given.
    """
    given = dict.fromkeys(_NAMES) | _DEFAULTED | given
    shape = _shape_of(given)
    read = {"base": _growth_options, "steps": _step_options, "compute": _compute_options}
    options = read[shape](given)
    options["free"] = _checked_free(given["free"])
    options["jitter"] = checked_jitter(given["jitter"])
    low, high = multipliers(options["jitter"])
    if (low, high) != (1.0, 1.0):
        for name, seconds in _durations_of(options):
            check_spreadable(seconds, low, high, name)
    return options


def replaced_options(options: Options, changes: Options) -> Options:
    """`options` with `changes`; a key of another shape or growth drops the old one's keys."""
    for name in changes:
        if name not in _NAMES and name not in _DEFAULTED:
            raise TypeError(f"a schedule has no option {shown(name)}")
    own = wanted = next(shape for shape in _SHAPES if shape in options)
    for shape in _SHAPES:
        if shape != own and changes.get(shape) is not None:
            wanted = shape
    kept = dict(options)
    if wanted != own:
        for name in set(_SHAPES[own]) - set(_SHAPES[wanted]):
            kept.pop(name, None)
    elif changes.get("growth") not in (None, options.get("growth")):
        kept.pop("factor", None)
    elif changes.get("factor") is not None:
        kept.pop("growth", None)
    return kept | changes


def checked_source(random: RandomSource | None) -> RandomSource | None:
    if random is None:
        return None
    if isinstance(random, type) or not callable(getattr(random, "random", None)):
        rule = "an object whose random() draws from [0, 1), such as random.Random()"
        raise TypeError(refusal("random", random, rule))
    return random


def checked_attempt(attempt: object) -> int:
    if isinstance(attempt, int) and not isinstance(attempt, bool):
        return int(attempt)
    raise TypeError(f"{refusal('attempt', attempt, 'an int')}, not {type(attempt).__name__}")


def _shape_of(given: Options) -> str:
    shapes = [shape for shape in _SHAPES if given[shape] is not None]
    if not shapes:
        raise TypeError("a schedule needs one of base, steps and compute")
    if len(shapes) > 1:
        names = " and ".join(shapes)
        raise TypeError(
            f"{names} do not go together: a schedule needs one of base, steps and compute"
        )
    shape = shapes[0]
    for name in ("growth", "factor", "max"):
        if given[name] is not None and name not in _SHAPES[shape]:
            raise TypeError(f"{name} ({shown(given[name])}) does not go with {shape}")
    return shape


def _growth_options(given: Options) -> Options:
    growth, factor = given["growth"], given["factor"]
    if growth is None:
        growth = "exponential"
    if not isinstance(growth, str):
        raise TypeError(f"{refusal('growth', growth, 'text')}, not {type(growth).__name__}")
    if growth not in GROWTHS:
        raise ValueError(refusal("growth", growth, "'exponential', 'linear' or 'constant'"))
    growth = str.__str__(growth)
    options: Options = {"base": to_seconds(given["base"], "base"), "growth": growth}
    if growth == "exponential":
        options["factor"] = 2.0 if factor is None else _checked_factor(factor)
    elif factor is not None:
        raise TypeError(f"factor ({shown(factor)}) goes with exponential growth only, not {growth}")
    options["max"] = _checked_max(given["max"])
    if options["max"] is not None and options["max"] < options["base"]:
        raise ValueError(
            f"max ({format_duration(options['max'])}) needs to be at least "
            f"base ({format_duration(options['base'])})"
        )
    return options


def _step_options(given: Options) -> Options:
    steps = given["steps"]
    rule = "a list of durations, one for each failure"
    if isinstance(steps, (str, bytes)):
        raise TypeError(f"{refusal('steps', steps, rule)}, not {type(steps).__name__}")
    try:
        listed = list(steps)
    except TypeError:
        message = f"{refusal('steps', steps, rule)}, not {type(steps).__name__}"
        raise TypeError(message) from None
    if not listed:
        raise ValueError(refusal("steps", steps, f"{rule}, at least one"))
    seconds = tuple(to_seconds(step, f"steps[{index}]") for index, step in enumerate(listed))
    return {"steps": seconds}


def _compute_options(given: Options) -> Options:
    compute: Callable[[int], DurationLike] = given["compute"]
    if not callable(compute):
        raise TypeError(refusal("compute", compute, "a function of the nth counted failure"))
    return {"compute": compute, "max": _checked_max(given["max"])}


def _durations_of(options: Options) -> list[tuple[str, float]]:
    """The durations that the caller wrote, by the names that an error calls them."""
    if "steps" in options:
        return [(f"steps[{index}]", step) for index, step in enumerate(options["steps"])]
    return [(name, options[name]) for name in ("base", "max") if options.get(name) is not None]


def _checked_max(ceiling: DurationLike | None) -> float | None:
    return None if ceiling is None else to_seconds(ceiling, "max")


def _checked_factor(factor: object) -> float:
    rule = "a finite number, 1 or more"
    if not isinstance(factor, (int, float)) or isinstance(factor, bool):
        raise TypeError(f"{refusal('factor', factor, rule)}, not {type(factor).__name__}")
    try:
        number = float(factor)
    except OverflowError:
        raise ValueError(refusal("factor", factor, rule)) from None
    if not 1.0 <= number < float("inf"):
        raise ValueError(refusal("factor", factor, rule))
    return number


def _checked_free(free: object) -> int:
    rule = "a whole number of attempts, 0 or more"
    if not isinstance(free, int) or isinstance(free, bool):
        raise TypeError(f"{refusal('free', free, rule)}, not {type(free).__name__}")
    if free < 0:
        raise ValueError(refusal("free", free, rule))
    return int(free)
