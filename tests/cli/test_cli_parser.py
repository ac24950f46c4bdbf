"""How a verb reads its options."""

import pytest

from backoff_schedule.cli.parser import Parser, nearest


def parser() -> Parser:
    made = Parser("try", "[options]", "A verb for these tests.", "examples:\n  none")
    made.add_argument("word", nargs="?")
    made.add_argument("--name", metavar="TEXT")
    made.add_argument("--loud", action="store_true")
    return made


@pytest.mark.parametrize(
    ("arguments", "name", "word"),
    [
        (["--name", "a"], "a", None),
        (["--name=a", "b"], "a", "b"),
        (["--name", "-x"], "-x", None),
        (["--name", "--nme"], "--nme", None),
        (["--name", "-1", "-2"], "-1", "-2"),
        (["--name", "a=b"], "a=b", None),
        (["--name="], "", None),
        (["--name", ""], "", None),
        (["--name", "a b", "--", "--loud"], "a b", "--loud"),
        (["--name", "\udce9"], "\udce9", None),
    ],
)
def test_a_value_is_taken_as_it_is_written(
    arguments: list[str], name: str, word: str | None
) -> None:
    options = parser().read(arguments)
    assert (options.name, options.word, options.loud) == (name, word, False)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--name"], "--name needs a value: --name TEXT; see --help"),
        (["--name", "--loud"], "--name needs a value: --name TEXT; see --help"),
        (["--name", "--"], "--name needs a value: --name TEXT; see --help"),
        (["--name=--"], "--name needs a value: --name TEXT; see --help"),
        (["--nam", "a"], "'--nam' is not an option; did you mean --name?"),
        (["--nmae=a"], "'--nmae' is not an option; did you mean --name?"),
        (["--zzz"], "'--zzz' is not an option; see --help"),
        (["a", "b"], "'b' is one argument too many; see --help"),
        (["a", "b", "--zzz"], "'--zzz' is not an option; see --help"),
        (["--\x1b[31m\n"], "'--\\x1b[31m\\n' is not an option; see --help"),
    ],
)
def test_a_bad_option_exits_2_with_one_line(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().read(arguments)
    assert ended.value.code == 2
    written = capsys.readouterr()
    assert (written.out, written.err) == ("", f"backoff-schedule try: {line}\n")


@pytest.mark.parametrize(
    ("arguments", "name", "command"),
    [
        (["--name", "a", "--", "ls", "--loud"], "a", ["ls", "--loud"]),
        (["--name", "a", "ls", "--name", "b"], "a", ["ls", "--name", "b"]),
        (["--name=a", "ls", "--", "-x"], "a", ["ls", "--", "-x"]),
        (["--name", "a", "--", "--", "ls"], "a", ["--", "ls"]),
        (["--name", "a", ""], "a", [""]),
        (["--name", "a", "--"], "a", []),
        (["--name", "a"], "a", []),
    ],
)
def test_a_command_follows_the_options_untouched(
    arguments: list[str], name: str, command: list[str]
) -> None:
    options, words = parser().read_before_command(arguments)
    assert (options.name, options.loud, words) == (name, False, command)


def test_a_very_long_option_is_refused_as_shortly(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().read(["--" + "x" * 1_000_000])
    assert len(capsys.readouterr().err) < 200


def test_the_nearest_word_does_not_count_the_dashes() -> None:
    assert nearest("--version", ["--json", "--csv"]) == ""
    assert nearest("jsn", ["--json", "--csv"]) == "did you mean --json?"
