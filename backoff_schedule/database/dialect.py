"""How one statement is said to each database."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Dialect:
    """Turns a statement that is written for both databases into one of them.

    `words` are what stands in braces. With `moving` words, whose meaning changes from statement to
    statement, nothing is kept.
    """

    def __init__(self, words: Mapping[str, str], mark: str) -> None:
        self._words = dict(words)
        self._mark = mark
        self._said: dict[str, str] = {}

    def said(self, statement: str, **moving: str) -> str:
        """The statement in this dialect."""
        if moving:
            return self._translated(statement, moving)
        said = self._said.get(statement)
        if said is None:
            said = self._said[statement] = self._translated(statement, {})
        return said

    def _translated(self, statement: str, moving: Mapping[str, str]) -> str:
        return statement.format_map({**self._words, **moving}).replace("?", self._mark)
