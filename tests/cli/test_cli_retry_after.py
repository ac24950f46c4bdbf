"""`backoff-schedule retry-after`."""

import json
from datetime import UTC, datetime

import pytest

from backoff_schedule.cli import main

DATE = "Sun, 06 Nov 1994 08:49:37 GMT"


@pytest.mark.parametrize(
    ("value", "now", "told"),
    [
        ("120", "2026-01-01T09:00Z", ("120", "2m", "2026-01-01T09:02:00+00:00")),
        ("120", "2026-01-01T09:00+02:00", ("120", "2m", "2026-01-01T07:02:00+00:00")),
        (" 0.5 ", "0", ("0.5", "500ms", "1970-01-01T00:00:00.500+00:00")),
        ("5", "-5", ("5", "5s", "1970-01-01T00:00:00+00:00")),
        (DATE, "784111717", ("60", "1m", "1994-11-06T08:49:37+00:00")),
        (DATE, "2026-01-01T09:00Z", ("0", "0s", "now")),
        ("0", "0", ("0", "0s", "now")),
        ("9" * 300, "0", ("1e+300", "1.16e+295d", "9999-12-31T23:59:59.999+00:00")),
    ],
)
def test_a_usable_value_is_explained(
    value: str, now: str, told: tuple[str, str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["retry-after", value, "--now", now]) == 0
    seconds, duration, until = told
    expected = f"seconds  {seconds}\nduration {duration}\nuntil    {until}\n"
    assert capsys.readouterr().out == expected


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retry-after", "--json", DATE, "--now", "784111717"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "seconds": 60.0,
        "duration": "1m",
        "until": "1994-11-06T08:49:37+00:00",
    }


def test_the_system_clock_is_now_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    before = datetime.now(UTC)
    assert main(["retry-after", "0", "--json"]) == 0
    until = datetime.fromisoformat(json.loads(capsys.readouterr().out)["until"])
    assert before <= until <= datetime.now(UTC)


SHAPE = f"its date is none, or has another shape than {DATE}"
ZONE = f"its date does not end in GMT, as in {DATE}"
NEITHER = f"it is neither seconds, such as 120, nor a date, such as {DATE}"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "it is blank"),
        (" \t", "it is blank"),
        ("\n", "it is blank"),
        ("-1", "it is negative"),
        ("-0", "it is negative"),
        ("-1.5", "it is negative"),
        ("inf", "it is not finite"),
        ("-inf", "it is not finite"),
        ("nan", "it is not finite"),
        ("9" * 400, "it is not finite"),
        ("1e3", "seconds are written in plain digits, such as 120 or 0.5"),
        ("+5", "seconds are written in plain digits, such as 120 or 0.5"),
        ("\N{ARABIC-INDIC DIGIT ONE}", "seconds are written in plain digits, such as 120 or 0.5"),
        ("1, 2", "it holds several values"),
        (f"{DATE}, {DATE}", "it holds several values"),
        ("Sun, 06 Nov 1994 08:49:37 CET", ZONE),
        ("Sun, 06 Nov 1994 08:49:37 +0100", ZONE),
        ("Sun, 31 Feb 1994 08:49:37 GMT", SHAPE),
        ("Sun, 06 Nov 1994 24:00:00 GMT", SHAPE),
        ("Sun Nov 31 08:49:37 1994", SHAPE),
        ("Sun", SHAPE),
        ("2026-01-01T09:00Z", NEITHER),
        ("2m", NEITHER),
        ("\udce9", NEITHER),
        ("soon", NEITHER),
    ],
)
def test_what_is_not_usable_exits_1_with_the_reason(
    value: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # Two dashes say that a value follows; -1 is one without them too.
    assert main(["retry-after", "--json", "--", value]) == 1
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.startswith("backoff-schedule retry-after: '")
    assert written.err.endswith(f" is not usable: {reason}\n")
    assert written.err.count("\n") == 1


@pytest.mark.parametrize("value", ["-1", "-1.5", "-.5", "- 1"])
def test_a_negative_number_is_a_value_and_no_option(
    value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["retry-after", value]) == 1
    assert "is not usable" in capsys.readouterr().err


DASH = "a VALUE that starts with a dash goes last, after --"
YEARS = "an instant of the years 1 to 9999, in UTC"
ISO = "an ISO date and time with a zone, such as 2026-01-01T09:00Z"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "it needs the VALUE of a Retry-After field, such as 120"),
        (["--"], "it needs the VALUE of a Retry-After field, such as 120"),
        (["5", "--now", "inf"], f"now ('inf') needs to be {YEARS}"),
        (["5", "--now", "1e15"], f"now ('1e15') needs to be {YEARS}"),
        (
            ["5", "--now", "0001-01-01T00:00+01:00"],
            f"now ('0001-01-01T00:00+01:00') needs to be {YEARS}",
        ),
        (["5", "--now", "nan"], f"now ('nan') needs to be {ISO}"),
        (["5", "--now", "today"], f"now ('today') needs to be {ISO}"),
        (
            ["5", "--now", "2026-01-01T09:00"],
            "now ('2026-01-01T09:00') needs to be in a time zone, such as 2026-01-01T09:00Z",
        ),
        (
            ["-inf"],
            f"'-inf' is not an option; see --help; {DASH}",
        ),
    ],
)
def test_bad_options_exit_2_with_one_line(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["retry-after", *arguments]) == 2
    written = capsys.readouterr()
    assert (written.out, written.err) == ("", f"backoff-schedule retry-after: {sentence}\n")
