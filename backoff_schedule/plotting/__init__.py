"""Pictures of schedules, with matplotlib: the extra `plot`."""

try:
    from matplotlib import __name__ as _  # here first, to say how it is installed
except ModuleNotFoundError as _missing:
    if _missing.name != "matplotlib":
        raise
    raise ModuleNotFoundError(
        'pictures need matplotlib: pip install "backoff-schedule[plot]"', name="matplotlib"
    ) from None

from .files import save_plot
from .picture import plot
from .words import alt_text

__all__ = ["alt_text", "plot", "save_plot"]
