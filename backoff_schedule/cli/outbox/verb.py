"""What a verb of `backoff-schedule outbox` is."""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from ...delivery import Outbox
    from ..parser import Parser


class Verb(NamedTuple):
    """One verb: what its help page says, which options it adds, and what it does."""

    usage: str
    description: str
    examples: str
    add: Callable[[Parser], None]
    act: Callable[[Outbox, Namespace], int]
    makes_tables: bool = False
