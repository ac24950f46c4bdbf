"""`backoff-schedule demo`: the story of some deliveries, from a schedule to the last count.

What it prints of them is read from its databases; nothing is told beforehand.
"""

from __future__ import annotations

import sys
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from ..parser import Parser
from . import opening, ordering
from .narrator import Narrator
from .shop import Clock, Shop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_DESCRIPTION = """\
Watch the package do its job: a schedule, a call that asks it, and then the story of a shop's
events. Their receiver fails, asks for a pause, drops the connection after its commit and stays
down; a breaker opens, dead letters are redriven, and at the end each event had one effect.

Real HTTP on this machine, real SQLite files in a temporary folder, and a clock that is
fast-forwarded: it takes a few seconds and nothing from the network. Without the extra `http`
it stops where the sending begins, and ends with 0. It ends with 1 if the effects, counted at
the end, are not one for each event.
"""


def run(arguments: list[str], sleep: Callable[[float], object] = time.sleep) -> int:
    Parser("demo", "", _DESCRIPTION, "").read(arguments)
    narrator = Narrator()
    opening.tell(narrator, sleep)
    with (
        TemporaryDirectory(prefix="backoff-schedule-demo-") as folder,
        closing(Shop(Path(folder, "shop.db"), Clock())) as shop,
    ):
        ordering.tell(narrator, shop)
        try:
            from . import story
        except ModuleNotFoundError as missing:
            if missing.name != "httpx2":
                raise
            narrator.say(f"Here it stops, because {missing}")
            return 0
        faults = story.tell(narrator, shop, Path(folder, "receivers.db"))
    if faults:
        print(f"backoff-schedule demo: {'; '.join(faults)}", file=sys.stderr)
    return 1 if faults else 0
