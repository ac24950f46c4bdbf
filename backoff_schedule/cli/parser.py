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

    hint = "see --help"
    """What to do about an option that resembles none."""

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
        return self._read(self._with_values_attached(arguments))

    def read_before_command(self, arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
        """The options, and the command that follows them: its words, untouched.

        It starts after `--`, or with the first word that is neither an option nor a value.
        """
        words = self._with_values_attached(arguments, until_word=True)
        start = words.index("--") if "--" in words else len(words)
        return self._read(words[:start]), words[start + 1 :]

    def _read(self, words: list[str]) -> argparse.Namespace:
        options, unknown = self.parse_known_args(words)
        if unknown:
            flags = [word for word in unknown if word.startswith("-")]
            self._refuse_unknown((flags or unknown)[0])
        return options

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")

    def _with_values_attached(self, arguments: list[str], *, until_word: bool = False) -> list[str]:
        """`--seed -x` as `--seed=-x`: argparse takes a value with a dash for an option.

        With `until_word` the first word without a dash gets a `--` before it.
        """
        known = self._option_string_actions
        attached: list[str] = []
        words = iter(arguments)
        for word in words:
            if word == "--":
                return [*attached, word, *words]
            if until_word and not word.startswith("-"):
                return [*attached, "--", word, *words]
            name, separator, value = word.partition("=")
            if name in known and known[name].nargs is None:
                if not separator:
                    value = next(words, "--")
                # argparse makes a list, and no text, of a value that is two dashes.
                if value == "--" or (not separator and value in known):
                    self.error(f"{name} needs a value: {name} {known[name].metavar}; see --help")
                attached.append(f"{name}={value}")
            else:
                attached.append(word)
        return attached

    def _refuse_unknown(self, word: str) -> NoReturn:
        if not word.startswith("-"):
            self.error(f"{shown(word)} is one argument too many; see --help")
        name = word.partition("=")[0]
        hint = nearest(name, self._option_string_actions) or self.hint
        self.error(f"{shown(name)} is not an option; {hint}")


def nearest(word: str, known: Iterable[str]) -> str:
    """`did you mean --base?`, or nothing if no known word is near."""
    # Without the dashes, which are alike in every option.
    by_name = {option.lstrip("-"): option for option in known}
    # A longer word is a paste and no typo, and comparing it would take long.
    matches = get_close_matches(word.lstrip("-")[:100], by_name, n=1)
    return f"did you mean {by_name[matches[0]]}?" if matches else ""
