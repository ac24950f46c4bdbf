"""`backoff-schedule outbox`: which verb runs, and how a run ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backoff_schedule.cli import main, outbox

if TYPE_CHECKING:
    from pathlib import Path


def test_every_verb_has_a_page_that_its_overview_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["outbox", "--help"]) == 0
    overview = capsys.readouterr().out
    for verb in outbox.VERBS:
        assert f"\n  {verb} " in overview
        assert main(["outbox", verb, "--help"]) == 0
        page = capsys.readouterr().out
        assert page.startswith(f"usage: backoff-schedule outbox {verb} ")
        assert "--db URL" in page
        assert "examples:\n  backoff-schedule outbox --db " in page
        assert max(map(len, page.splitlines())) <= 100


def test_a_database_may_be_named_before_and_after_the_verb_and_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "app.db")
    assert main(["outbox", "--db", path, "migrate"]) == 0
    assert main(["outbox", "list", "--db", path]) == 0
    monkeypatch.setenv("BACKOFF_SCHEDULE_DB", path)
    assert main(["outbox", "list"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "a verb is missing, such as list; see --help"),
        (["lsit"], "'lsit' is not a verb; did you mean list?"),
        (["xyzzy"], "'xyzzy' is not a verb; see --help"),
        (["--shcema", "x"], "'--shcema' is not an option; did you mean --schema?"),
        (["list"], "which outbox? Give --db URL or set BACKOFF_SCHEDULE_DB"),
        (
            ["list", "--db", "mysql://u:secret@h/x"],
            "--db ('mysql://...') needs to be a SQLite file",
        ),
        (["list", "--db", "nowhere.db"], "--db ('nowhere.db') needs to be a file that exists"),
        (["migrate", "--db", "a.db", "--schema", "s"], "--schema is for PostgreSQL"),
    ],
)
def test_what_is_wrong_is_one_line(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BACKOFF_SCHEDULE_DB", raising=False)
    assert main(["outbox", *arguments]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert said in told.err
    assert told.err.count("\n") == 1
    assert "secret" not in told.err
    assert list(tmp_path.iterdir()) == []


def test_a_file_without_tables_is_no_error_of_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    assert main(["outbox", "--db", str(path), "list"]) == 1
    assert capsys.readouterr().err == (
        "backoff-schedule outbox list: there are no tables of an outbox: has `migrate` been run?\n"
    )


def test_a_schema_without_tables_is_no_error_of_ours(
    conninfo: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["outbox", "--db", conninfo, "list"]) == 1
    assert "has `migrate` been run?" in capsys.readouterr().err


def test_a_file_that_is_no_database_is_said_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are notes, and no database at all\n" * 100)
    assert main(["outbox", "--db", str(path), "list"]) == 1
    assert capsys.readouterr().err == "backoff-schedule outbox list: file is not a database\n"
