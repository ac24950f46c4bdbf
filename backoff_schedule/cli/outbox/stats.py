"""`backoff-schedule outbox stats`: how each endpoint is doing."""

from __future__ import annotations

from dataclasses import asdict

from ..readable import readable_duration
from .columns import as_json, columns
from .looking import add_json, tell
from .verb import Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from ...delivery import EndpointStats, Outbox
    from ..parser import Parser

_HEADER = (
    *("endpoint", "breaker", "pending", "due", "sending", "lag", "dead", "oldest dead"),
    *("delivered", "retried", "lost", "success", "mean"),
)


def _add(parser: Parser) -> None:
    add_json(parser)


def _stats(outbox: Outbox, options: Namespace) -> int:
    found = outbox.stats()
    if options.json:
        rates = ("success_rate", "mean_seconds")
        print(
            as_json(
                {
                    name: asdict(stats) | {rate: getattr(stats, rate) for rate in rates}
                    for name, stats in found.items()
                }
            )
        )
        return 0
    tell(columns(_HEADER, [_row(name, stats) for name, stats in found.items()]))
    return 0


def _row(name: str, stats: EndpointStats) -> tuple[object, ...]:
    rate, mean = stats.success_rate, stats.mean_seconds
    return (
        *(name, "disabled" if stats.disabled else stats.breaker.replace("_", "-")),
        *(stats.pending, stats.due, stats.sending, _age(stats.lag)),
        *(stats.dead_letters, _age(stats.oldest_dead_age)),
        *(stats.delivered, stats.retried, stats.lost),
        None if rate is None else f"{100 * rate:.1f} %",
        None if mean is None else readable_duration(round(mean, 3)),
    )


def _age(seconds: float) -> str | None:
    return readable_duration(float(round(seconds))) if seconds else None


_DESCRIPTION = """\
How each endpoint is doing: what a claim meets, what waits and for how long it has been due, what
is dead, and in all what was delivered, the share of tries that delivered, and how long a try
took. Answers from counters and small indexes, however many rows are kept.
"""
_EXAMPLES = """\
examples:
  backoff-schedule outbox --db app.db stats
  backoff-schedule outbox --db app.db stats --json
"""

VERBS = {"stats": Verb("[options]", _DESCRIPTION, _EXAMPLES, _add, _stats)}
