"""How the demo speaks: numbered chapters, paragraphs and columns, at most 100 characters wide."""

from __future__ import annotations

from textwrap import wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_WIDTH = 100
_INDENT = "   "
_GAP = "  "


class Narrator:
    """Prints as it goes: a reader at the other end of a pipe watches too."""

    def __init__(self) -> None:
        self._chapters = 0

    def chapter(self, title: str) -> None:
        self._chapters += 1
        print(f"{self._chapters}. {title}\n", flush=True)

    def say(self, words: str) -> None:
        """A paragraph, and an empty line behind it."""
        for line in wrap(words, _WIDTH - len(_INDENT)):
            self.line(line)
        self.line()

    def line(self, text: str = "") -> None:
        print(f"{_INDENT}{text}".rstrip(), flush=True)

    def table(self, *rows: Sequence[object]) -> None:
        """Columns as wide as they need to be, numbers to the right, and an empty line behind."""
        cells = [[str(cell) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for row, texts in zip(rows, cells, strict=True):
            self.line(_GAP.join(_aligned(row, texts, widths)))
        self.line()


def _aligned(row: Sequence[object], texts: Iterable[str], widths: Iterable[int]) -> Iterable[str]:
    for cell, text, width in zip(row, texts, widths, strict=True):
        yield text.rjust(width) if isinstance(cell, int) else text.ljust(width)
