"""How a verb reads its options: one line for what is wrong, and a whole page for `--help`."""

from __future__ import annotations

import argparse
from difflib import get_close_matches

from ..refusals import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """An argument parser that refuses in one line.

    `verb` is the first word after the command, empty for the command itself; `usage` is what
    follows it. `examples` are printed as they are, below the options.
    """

    def __init__(self, verb: str, usage: str, description: str, examples: str) -> None:
        super().__init__(
            prog=f"backoff-schedule {verb}".rstrip(),
            usage=f"%(prog)s {usage}".rstrip(),
            description=description,
            epilog=examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def read(self, arguments: list[str]) -> argparse.Namespace:
        """The options that the arguments hold. Exits with 2 and one line if they are wrong."""
        options, unknown = self.parse_known_args(self._with_values_attached(arguments))
        if unknown:
            flags = [word for word in unknown if word.startswith("-")]
            self._refuse_unknown((flags or unknown)[0])
        return options

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")

    def _with_values_attached(self, arguments: list[str]) -> list[str]:
        """`--seed -x` as `--seed=-x`: argparse takes a value with a dash for an option."""
        attached: list[str] = []
        for position, word in enumerate(arguments):
            if word == "--":
                return attached + arguments[position:]
            option = self._option_string_actions.get(attached[-1]) if attached else None
            takes_value = option is not None and option.nargs is None
            if takes_value and word.startswith("-") and word not in self._option_string_actions:
                attached[-1] += f"={word}"
            else:
                attached.append(word)
        return attached

    def _refuse_unknown(self, word: str) -> NoReturn:
        if not word.startswith("-"):
            self.error(f"{shown(word)} is one argument too many; see --help")
        name = word.partition("=")[0]
        guess = nearest(name, self._option_string_actions)
        hint = guess or "see --help; a value that starts with a dash goes last, after --"
        self.error(f"{shown(name)} is not an option; {hint}")


def nearest(word: str, known: Iterable[str]) -> str:
    """`did you mean --base?`, or nothing if no known word is near."""
    # A longer word is a paste and no typo, and comparing it would take long.
    matches = get_close_matches(word[:100], list(known), n=1)
    return f"did you mean {matches[0]}?" if matches else ""
