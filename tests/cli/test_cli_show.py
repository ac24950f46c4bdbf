"""`backoff-schedule show`."""

import json

import pytest

from backoff_schedule import create_backoff
from backoff_schedule.cli import main
from backoff_schedule.presets import PRESETS


def shown(capsys: pytest.CaptureFixture[str], line: str) -> str:
    assert main(["show", *line.split()]) == 0
    written = capsys.readouterr()
    assert written.err == ""
    return written.out


JITTERED = """\
create_backoff(base=60.0, max=21600.0, jitter=0.2)

                                 --- elapsed in total ---
attempt  delay  lowest  highest  earliest  middle  latest
      1     1m     48s   1m 12s       48s      1m  1m 12s
      2     2m  1m 36s   2m 24s    2m 24s      3m  3m 36s
      3     4m  3m 12s   4m 48s    5m 36s      7m  8m 24s
      4     8m  6m 24s   9m 36s       12m     15m     18m

1d holds 10 retries (11 calls in all) at the latest, 11 (12) in the middle and 12 (13) at the \
earliest.
"""
SEEDED = """\
create_backoff(base=900.0, max=86400.0, jitter=0.1, random=SeededRandom('feeds'))

                                         ------ elapsed in total ------
attempt         delay   lowest  highest    earliest  middle      latest
      1   15m 51.542s  13m 30s  16m 30s     13m 30s     15m     16m 30s
      2   27m 35.825s      27m      33m     40m 30s     45m     49m 30s
      3    1h 24.786s      54m    1h 6m  1h 34m 30s  1h 45m  1h 55m 30s
      4  2h 2m 6.701s   1h 48m   2h 12m  3h 22m 30s  3h 45m   4h 7m 30s
"""
STARTED = """\
create_backoff(steps=[15.0, 60.0], free=1)

                                 ------------------ next call at, UTC-05:00 ------------------
attempt  delay  lowest  highest             earliest               middle               latest
      1     0s      0s       0s  2026-01-01 09:00:00  2026-01-01 09:00:00  2026-01-01 09:00:00
      2    15s     15s      15s  2026-01-01 09:00:15  2026-01-01 09:00:15  2026-01-01 09:00:15
"""
CSV = """\
attempt,delay,lowest,highest,earliest,middle,latest
1,1.5,0.0,1.5,0.0,0.75,1.5
2,3.0,0.0,3.0,0.0,2.25,4.5
"""


@pytest.mark.parametrize(
    ("line", "table"),
    [
        ("--base 1m --max 6h --jitter 0.2 --attempts 4 --fits 24h", JITTERED),
        ("--preset feed-poll --seed feeds --attempts 4", SEEDED),
        ("--steps 15s,1m --free 1 --attempts 2 --start 2026-01-01T09:00-05:00", STARTED),
        ("--base 1.5s --jitter full --attempts 2 --csv", CSV),
    ],
)
def test_the_output_is_exactly_this(
    line: str, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(capsys, line) == table


def test_ten_rows_are_shown_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(shown(capsys, "--base 1s --csv").splitlines()) == 11


def test_a_key_answers_the_delay_that_belongs_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(shown(capsys, "--preset feed-poll --key feed-42 --attempts 2 --json"))
    keyed = PRESETS["feed-poll"].keyed("feed-42")
    assert document["key"] == "feed-42"
    assert [row["delay"] for row in document["rows"]] == [keyed.delay(1), keyed.delay(2)]
    assert shown(capsys, "--base 1s --key k").startswith("create_backoff(base=1.0).keyed(b'k')\n")


def test_json_makes_the_schedule_again(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(shown(capsys, "--preset postel --free 1 --json --seed s"))
    assert create_backoff(**document["schedule"]) == PRESETS["postel"].replace(free=1)
    assert document["seed"] == "s"
    assert document.keys() == {"schedule", "seed", "rows"}


def test_json_holds_the_whole_answer(capsys: pytest.CaptureFixture[str]) -> None:
    line = "--base 2s --attempts 1 --start 2026-01-01T09:00+02:00 --fits 6s --json"
    assert json.loads(shown(capsys, line)) == {
        "schedule": {
            "base": 2.0,
            "growth": "exponential",
            "factor": 2.0,
            "max": None,
            "free": 0,
            "jitter": 0.0,
        },
        "rows": [
            {
                "attempt": 1,
                "delay": 2.0,
                "lowest": 2.0,
                "highest": 2.0,
                "earliest": 2.0,
                "middle": 2.0,
                "latest": 2.0,
                "earliest_at": "2026-01-01T09:00:02+02:00",
                "middle_at": "2026-01-01T09:00:02+02:00",
                "latest_at": "2026-01-01T09:00:02+02:00",
            }
        ],
        "fits": {"within": 6.0, "retries": {"latest": 2, "middle": 2, "earliest": 2}},
    }


def test_an_infinite_wait_is_for_ever_null_and_inf(capsys: pytest.CaptureFixture[str]) -> None:
    endless = "--base 1s --factor 1e300 --attempts 3 --start 2026-01-01T09:00Z"
    last = shown(capsys, endless).splitlines()[-1]
    assert last.split() == ["3", *["for", "ever"] * 3, *["never"] * 3]
    row = json.loads(shown(capsys, f"{endless} --json"))["rows"][-1]
    assert {name for name, value in row.items() if value is not None} == {"attempt"}
    last = shown(capsys, f"{endless} --csv").splitlines()[-1]
    assert last == "3,inf,inf,inf,inf,inf,inf,never,never,never"


def test_instants_past_the_last_one_saturate(capsys: pytest.CaptureFixture[str]) -> None:
    last = shown(capsys, "--base 1s --csv --attempts 3 --start 9999-12-31T23:59:58Z").splitlines()
    assert last[1].endswith(",9999-12-31T23:59:59+00:00")
    assert last[3].endswith(",9999-12-31T23:59:59.999999+00:00")


def test_what_fits_without_end_is_null_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(shown(capsys, "--base 1s --jitter full --fits 3s --json"))
    assert document["fits"]["retries"] == {"latest": 2, "middle": 2, "earliest": None}


@pytest.mark.parametrize("seed", ["Füße", "\udce9", "a\nb", ""])
def test_any_seed_is_shown_in_ascii_on_one_line(
    seed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", "--base", "1s", f"--seed={seed}"]) == 0
    out = capsys.readouterr().out
    assert out.isascii()
    assert out.splitlines()[0] == f"create_backoff(base=1.0, random=SeededRandom({seed!a}))"
    assert main(["show", "--base", "1s", "--json", f"--seed={seed}"]) == 0
    assert json.loads(capsys.readouterr().out)["seed"] == seed


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("--base 1m --max 1s", "max (1s) needs to be at least base (1m)"),
        ("--base 1s --attempts 0", "attempts (0) needs to be a whole number from 1 to 100000"),
        ("--base 1s --attempts -3", "attempts (-3) needs to be a whole number from 1 to 100000"),
        ("--base 1s --attempts x", "attempts ('x') needs to be a whole number from 1 to 100000"),
        (
            "--base 1s --attempts 100001",
            "attempts (100001) needs to be a whole number from 1 to 100000",
        ),
        ("--base 1s --json --csv", "--json and --csv do not go together: choose one form"),
        (
            "--base 1s --csv --fits 1s",
            "--fits does not go with --csv, which holds rows only; --json takes both",
        ),
        (
            "--base 1s --start 2026-01-01",
            "start ('2026-01-01') needs to be in a time zone, such as 2026-01-01T00:00Z",
        ),
        (
            "--base 1s --fits x",
            "fits ('x') needs to be a number and a unit, such as '15 minutes', '30s' or '1h 30m'",
        ),
        ("--base 1s --attemps 3", "'--attemps' is not an option; did you mean --attempts?"),
        ("--base", "--base needs a value: --base TIME; see --help"),
    ],
)
def test_bad_options_exit_2_with_one_line(
    line: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", *line.split()]) == 2
    written = capsys.readouterr()
    assert (written.out, written.err) == ("", f"backoff-schedule show: {sentence}\n")
