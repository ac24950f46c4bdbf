"""The picture that `show --plot` writes. Matplotlib is loaded when one is asked for."""

from __future__ import annotations

import logging
import sys
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..plotting.words import Schedules


def check_picture(file: str, attempts: int) -> None:
    """Refuse what makes no picture, before anything is printed.

    Raises `ValueError` with a sentence, and `ModuleNotFoundError` without matplotlib.
    """
    # It speaks of its caches on stderr, where a person reads what went wrong.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from ..plotting.files import checked_format
    from ..plotting.words import checked_attempts

    checked_format(file, "plot")
    checked_attempts(attempts)


def write_picture(file: str, schedules: Schedules, attempts: int, *, dark: bool) -> None:
    """Write the picture, and say so on stderr. Raises `OSError` if it cannot be written."""
    from ..plotting import save_plot

    with warnings.catch_warnings():
        # A letter that its own font does not have; a browser still shows it in an SVG.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        save_plot(schedules, file, attempts=attempts, dark=dark)
    print(f"wrote {file}", file=sys.stderr)
