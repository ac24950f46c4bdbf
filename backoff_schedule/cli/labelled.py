"""A schedule in one word of a command line: `base=1s,max=1m,jitter=full,label=quick`.

Commas part the pairs, so `/` parts the values within one: `steps=15s/1m/5m`, `jitter=0.8/1.0`.
"""

from __future__ import annotations

from argparse import Namespace

from ..refusals import refusal, shown
from .parser import nearest
from .schedule_options import OPTIONS, schedule_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..backoff import Backoff

_NAMES = (*OPTIONS, "preset", "label")
_RULE = "NAME=VALUE pairs with commas between them, such as base=1s,max=1m"


def labelled_schedules(texts: list[str]) -> dict[str, Backoff]:
    """The schedules by label; one that names none has its text for one.

    Raises `ValueError` or `TypeError` with a sentence that says which text is wrong, and how.
    """
    schedules: dict[str, Backoff] = {}
    for text in texts:
        pairs = _pairs(text)
        label = pairs.pop("label", text.removeprefix("preset="))
        if label in schedules:
            raise ValueError(refusal("label", label, "another one for each --schedule"))
        try:
            schedules[label] = _schedule(pairs)
        except (TypeError, ValueError) as refused:
            raise ValueError(f"--schedule {shown(text)}: {refused}") from None
    return schedules


def _pairs(text: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for part in text.split(","):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if not name or not value:
            raise ValueError(refusal("--schedule", text, _RULE))
        if name not in _NAMES:
            hint = nearest(name, _NAMES) or f"the names are {', '.join(_NAMES)}"
            raise ValueError(f"--schedule {shown(text)}: {shown(name)} is not a name; {hint}")
        if name in pairs:
            raise ValueError(f"--schedule {shown(text)}: {name} is there twice")
        pairs[name] = value
    return pairs


def _schedule(pairs: dict[str, str]) -> Backoff:
    if not pairs.keys() & {"base", "steps", "preset"}:
        raise ValueError("a schedule needs base, steps or preset, such as base=1m")
    options = dict.fromkeys((*OPTIONS, "preset", "seed", "key")) | pairs
    for name in ("steps", "jitter"):
        if name in pairs:
            options[name] = pairs[name].replace("/", ",")
    return schedule_from(Namespace(**options))
