"""A picture as a file, the same bytes each time."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from matplotlib import style

from ..refusals import refusal
from .picture import plot
from .words import alt_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

    from .words import Schedules

_FORMATS = {".svg": "svg", ".png": "png"}
# A picture of 7 inches has 1400 dots to a line: two to each pixel of most pages.
_PNG_DPI = 200
# Text stays text, which a reader can search and a browser draws in any script.
_SETTINGS = {"svg.hashsalt": "backoff-schedule", "svg.fonttype": "none"}


def save_plot(
    schedules: Schedules,
    file: str | PathLike[str],
    *,
    attempts: int = 12,
    dark: bool = False,
) -> None:
    """Write the picture that `plot` makes as SVG or PNG, by the suffix of `file`.

    The file tells its text alternative too, as `alt_text` says it. SVG holds text as text, and
    the bytes are the same each time: no date, no random ids.

    Raises as `plot` does, `ValueError` for another suffix, and `OSError` for a file that cannot
    be written. Nothing is written unless the whole picture could be made.
    """
    kind = checked_format(file)
    figure = plot(schedules, attempts=attempts, dark=dark)
    metadata: dict[str, str | None] = {
        "Title": "Backoff schedules: delays and time in all",
        "Description": alt_text(schedules, attempts=attempts),
    }
    if kind == "svg":
        metadata["Date"] = None
    picture = BytesIO()
    with style.context(["default", _SETTINGS]):
        figure.savefig(picture, format=kind, dpi=_PNG_DPI, metadata=metadata)
    Path(file).write_bytes(picture.getvalue())


def checked_format(file: str | PathLike[str], name: str = "file") -> str:
    """`svg` or `png`, or the refusal of a file that is to be neither."""
    suffix = Path(file).suffix.lower()
    if suffix not in _FORMATS:
        raise ValueError(refusal(name, str(file), "a path that ends in .svg or .png"))
    return _FORMATS[suffix]
