"""Pictures of schedules, with matplotlib: the extra `plot`."""

try:
    from .files import save_plot
    from .picture import plot
except ModuleNotFoundError as missing:
    if missing.name != "matplotlib":
        raise
    message = 'pictures need matplotlib: pip install "backoff-schedule[plot]"'
    raise ModuleNotFoundError(message, name=missing.name) from None
from .words import alt_text

__all__ = ["alt_text", "plot", "save_plot"]
