"""The command without a verb."""

from importlib import metadata

import pytest

from backoff_schedule.cli import VERBS, main


def test_no_arguments_print_the_help_and_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    written = capsys.readouterr()
    assert written.err == ""
    assert written.out.startswith("usage: backoff-schedule VERB [options]\n")


def test_help_names_every_verb_and_exits_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"\n  {verb} " in out for verb in VERBS)
    assert "examples:\n" in out


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"backoff-schedule {metadata.version('backoff-schedule')}\n"


def test_a_source_tree_says_that_it_has_no_version(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == "backoff-schedule (a source tree that is not installed)\n"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["shw"], "'shw' is not a verb; did you mean show?"),
        (
            ["frobnicate"],
            "'frobnicate' is not a verb; the verbs are show, retry-after, run, outbox, demo",
        ),
        (["--", "show"], "the verb goes first: backoff-schedule show ..."),
        (["--versoin"], "'--versoin' is not an option; did you mean --version?"),
        (["-v"], "'-v' is not an option; see --help"),
        (
            ["\udce9\n"],
            "'\\udce9\\n' is not a verb; the verbs are show, retry-after, run, outbox, demo",
        ),
    ],
)
def test_what_is_no_verb_exits_2_with_one_line(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    written = capsys.readouterr()
    assert (written.out, written.err) == ("", f"backoff-schedule: {line}\n")
