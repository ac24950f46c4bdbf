"""One schedule answers one question: how long after the Nth failure?"""

from .durations import DurationLike, format_duration, parse_duration, to_seconds
from .http_retry import classify_status, parse_retry_after, retry_after_from, wait_after
from .jitter import RandomSource
from .schedule import Backoff, create_backoff
from .seeded import SeededRandom

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import presets
else:

    def __getattr__(name):
        # Loaded on first use: an import that builds no preset is a fifth quicker.
        if name == "presets":
            import backoff_schedule.presets

            return backoff_schedule.presets
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Backoff",
    "DurationLike",
    "RandomSource",
    "SeededRandom",
    "classify_status",
    "create_backoff",
    "format_duration",
    "parse_duration",
    "parse_retry_after",
    "presets",
    "retry_after_from",
    "to_seconds",
    "wait_after",
]
