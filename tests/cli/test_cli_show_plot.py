"""`backoff-schedule show` with `--plot` and `--schedule`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from backoff_schedule import create_backoff
from backoff_schedule.cli import main
from backoff_schedule.plotting import save_plot
from backoff_schedule.presets import SVIX

if TYPE_CHECKING:
    from pathlib import Path

TWO = ["--schedule", "preset=svix", "--schedule", "base=1s,label=our own"]
TABLES = """\
'svix': create_backoff(steps=[5.0, 300.0, 1800.0, 7200.0, 18000.0, 36000.0, 36000.0])

                                 --- elapsed in total ---
attempt  delay  lowest  highest  earliest  middle  latest
      1     5s      5s       5s        5s      5s      5s

1m holds 1 retry (2 calls in all).

'our own': create_backoff(base=1.0)

                                 --- elapsed in total ---
attempt  delay  lowest  highest  earliest  middle  latest
      1     1s      1s       1s        1s      1s      1s

1m holds 5 retries (6 calls in all).
"""


@pytest.mark.parametrize("suffix", ["svg", "png"])
@pytest.mark.parametrize("dark", [[], ["--dark"]])
def test_the_picture_is_that_of_python_and_the_table_stays(
    suffix: str, dark: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", "--preset", "svix"]) == 0
    table = capsys.readouterr().out
    file = tmp_path / f"picture.{suffix}"
    assert main(["show", "--preset", "svix", "--plot", str(file), *dark]) == 0
    assert capsys.readouterr() == (table, f"wrote {file}\n")
    save_plot(SVIX, tmp_path / f"same.{suffix}", attempts=10, dark=bool(dark))
    assert file.read_bytes() == (tmp_path / f"same.{suffix}").read_bytes()


def test_several_schedules_have_a_table_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", *TWO, "--attempts", "1", "--fits", "1m"]) == 0
    assert capsys.readouterr() == (TABLES, "")


def test_several_schedules_are_in_one_picture(tmp_path: Path) -> None:
    assert main(["show", *TWO, "--attempts=4", f"--plot={tmp_path / 'picture.svg'}"]) == 0
    schedules = {"svix": SVIX, "our own": create_backoff(base=1)}
    save_plot(schedules, tmp_path / "same.svg", attempts=4)
    assert (tmp_path / "picture.svg").read_bytes() == (tmp_path / "same.svg").read_bytes()


def test_json_stays_a_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "picture.svg"
    assert main(["show", "--base", "1s", "--json", "--plot", str(file)]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 10
    assert file.exists()


def test_a_label_in_any_script_makes_a_quiet_valid_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "picture.svg"
    labels = ["再試行", "\N{PILE OF POO}", "\udce9", "a\x1bb"]
    words = [f"--schedule=base={n}s,label={label}" for n, label in enumerate(labels, 1)]
    assert main(["show", *words, "--plot", str(file)]) == 0
    written = capsys.readouterr()
    assert written.err == f"wrote {file}\n"
    assert written.out.isascii()
    texts = {"".join(text.itertext()) for text in ET.fromstring(file.read_bytes()).iter()}
    assert {"再試行", "\N{PILE OF POO}", "\N{REPLACEMENT CHARACTER}"} <= texts


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("--base 1s --dark", "--dark goes with --plot: it says how the picture looks"),
        (
            "--base 1s --plot x.gif",
            "plot ('x.gif') needs to be a path that ends in .svg or .png",
        ),
        (
            "--base 1s --plot x.svg --attempts 1001",
            "attempts (1001) needs to be a whole number from 1 to 1000 for a picture",
        ),
        (
            "--schedule base=1s --base 2s",
            "--base does not go with --schedule, which says all of its schedule itself",
        ),
        (
            "--schedule base=1s --key a",
            "--key does not go with --schedule, which says all of its schedule itself",
        ),
        (
            "--schedule base=1s --json",
            "--json and --csv show one schedule; they do not go with --schedule",
        ),
        (
            "--schedule base=1m,max=1s",
            "--schedule 'base=1m,max=1s': max (1s) needs to be at least base (1m)",
        ),
        ("--plot", "--plot needs a value: --plot FILE; see --help"),
    ],
)
def test_bad_options_exit_2_with_one_line(
    line: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", *line.split()]) == 2
    assert capsys.readouterr() == ("", f"backoff-schedule show: {sentence}\n")


def test_a_path_that_cannot_be_written_exits_1_with_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", "--base", "1s", "--plot", str(tmp_path / "no" / "x.svg")]) == 1
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.startswith("backoff-schedule: [Errno 2] No such file or directory: ")
    assert written.err.count("\n") == 1


def test_without_matplotlib_it_exits_1_and_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith("backoff_schedule.plotting")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["show", "--base", "1s", "--plot", "x.svg"]) == 1
    assert capsys.readouterr() == (
        "",
        'backoff-schedule show: pictures need matplotlib: pip install "backoff-schedule[plot]"\n',
    )
