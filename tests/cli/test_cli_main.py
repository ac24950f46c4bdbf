"""How every run of the command ends."""

import io
import os
import runpy
import sys
from pathlib import Path

import pytest

from backoff_schedule import cli
from backoff_schedule.cli import demo, main


def test_a_run_that_does_what_was_asked_answers_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retry-after", "120", "--now", "0"]) == 0
    assert capsys.readouterr().out.startswith("seconds  120\n")


def test_without_arguments_those_of_the_process_are_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["backoff-schedule", "retry-after", "0"])
    assert main() == 0
    assert capsys.readouterr().out.endswith("now\n")


def test_a_closed_stdout_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["show", "--base", "1s"]) == 0


@pytest.mark.parametrize("arguments", [["show", "--base", "1s"], ["--help"], []])
def test_a_reader_that_went_away_answers_141_and_nothing_else(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", encoding="utf-8") as stream:  # noqa: PTH123  (a descriptor)
        monkeypatch.setattr(sys, "stdout", stream)
        assert main(arguments) == 141
        # What was buffered goes nowhere, so that closing the stream does not fail either.
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_answers_1_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert main(["show", "--base", "1s"]) == 1
    assert capsys.readouterr().err == "backoff-schedule: [Errno 28] No space left on device\n"


def test_an_interrupt_answers_130_and_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "run", interrupted)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert main(["demo"]) == 130
    assert capsys.readouterr().err == ""


def test_every_verb_of_the_overview_runs(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in cli.VERBS:
        assert main([verb, "--help"]) == 0
        assert capsys.readouterr().out.startswith(f"usage: backoff-schedule {verb}")


def test_the_module_exits_with_the_status_of_main(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["backoff-schedule", "shw"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("backoff_schedule", run_name="__main__")
    assert ended.value.code == 2
    assert "did you mean show?" in capsys.readouterr().err


def test_importing_the_main_module_runs_nothing() -> None:
    assert "main" in runpy.run_module("backoff_schedule.__main__")
