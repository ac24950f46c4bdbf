"""The pure parts of the benchmarks: no test here depends on how fast anything is."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count

import pytest

from benchmarks.far_attempt import answer
from benchmarks.measure import Effort, Spread, interleaved, loop, ratio, time_of
from benchmarks.report import Row, Section, document, duration, machine, table

SAMPLES = {
    "empty": [1.0, 1.0, 5.0],
    "bare": [3.0, 5.0, 7.0],
    "ours": [4.0, 9.0, 7.0],
}
SECTIONS = [
    Section(
        "delay",
        "delay(n)",
        [
            Row("plain", 55e-9, 50e-9, Spread(1.1, 1.05, 1.25), 1.2, "own 1.80x"),
            Row("jittered", 1.5e-6, 1e-6, Spread(1.5, 1.4, 1.6), 1.4, facts={"own": "base * n"}),
        ],
        ["an empty loop is subtracted"],
    ),
    Section("peers", "the delay of attempt n", [Row("tenacity", remark="not measured")]),
]


def ticking(seconds: float) -> Callable[[], float]:
    """A clock that moves on by so much with every look at it."""
    looks: Iterator[int] = count()
    return lambda: next(looks) * seconds


def test_a_ratio_is_taken_within_each_round_before_the_median() -> None:
    assert ratio(SAMPLES, "ours", "bare").median == 4.0 / 3.0


def test_the_overhead_of_the_same_round_is_subtracted_from_both_sides() -> None:
    assert ratio(SAMPLES, "ours", "bare", "empty") == Spread(1.5, 1.25, 1.75)
    assert time_of(SAMPLES, "ours", "empty") == 3.0


def test_a_time_without_overhead_is_the_plain_median() -> None:
    assert time_of(SAMPLES, "ours") == 7.0


def test_one_slow_round_does_not_move_the_median() -> None:
    disturbed = {"bare": [1.0, 1.0, 1.0, 1.0, 1.0], "ours": [2.0, 2.0, 900.0, 2.0, 2.0]}
    assert ratio(disturbed, "ours", "bare") == Spread(2.0, 2.0, 2.0)


def test_a_round_whose_overhead_exceeds_the_baseline_is_left_out() -> None:
    samples = {"empty": [9.0, 1.0], "bare": [3.0, 3.0], "ours": [4.0, 7.0]}
    assert ratio(samples, "ours", "bare", "empty") == Spread(3.0, 3.0, 3.0)


def test_contenders_take_turns_and_the_first_round_does_not_count() -> None:
    order: list[str] = []

    def sampler(name: str) -> Callable[[], float]:
        def sample() -> float:
            order.append(name)
            return float(len(order))

        return sample

    samples = interleaved({"a": sampler("a"), "b": sampler("b")}, rounds=2)
    assert order == ["a", "b", "a", "b", "a", "b"]
    assert samples == {"a": [3.0, 5.0], "b": [4.0, 6.0]}


def test_a_loop_answers_the_seconds_of_one_attempt() -> None:
    # A pass takes 6 s / 20 by this clock, so a sample of 0.6 s is two passes of three attempts.
    effort = Effort(rounds=1, sample_seconds=0.6, processes=1)
    sample = loop("seen.append(n)", {"seen": []}, (1, 2, 3), effort, clock=ticking(6.0))
    assert sample() == 6.0 / 2 / 3


def test_a_loop_runs_its_statement_for_each_attempt_and_before_once_for_each_pass() -> None:
    seen: list[int] = []
    effort = Effort(rounds=1, sample_seconds=1e-9, processes=1)
    sample = loop(
        "seen.append(n)",
        {"seen": seen},
        (4, 5),
        effort,
        before="seen.append(0)",
        clock=ticking(1.0),
    )
    seen.clear()
    sample()
    assert seen == [0, 4, 5]


def test_the_table_aligns_all_sections_and_judges_only_what_has_a_limit() -> None:
    assert table(SECTIONS).splitlines() == [
        "what        time  baseline  ratio  quartiles  limit        remark",
        "-" * 71,
        "",
        "delay: delay(n)",
        "  an empty loop is subtracted",
        "plain      55 ns     50 ns  1.10x  1.05-1.25  1.2x met     own 1.80x",
        "jittered  1.5 us      1 us  1.50x  1.40-1.60  1.4x MISSED",
        "",
        "peers: the delay of attempt n",
        "tenacity                                                   not measured",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2.0, "2 s"), (0.0289, "28.9 ms"), (1.5e-6, "1.5 us"), (5.55e-8, "55.5 ns"), (0.0, "0 ns")],
)
def test_a_duration_is_shown_in_the_unit_that_suits_it(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_the_json_document_holds_the_machine_and_every_row() -> None:
    taken = machine(datetime(2026, 1, 1, tzinfo=UTC))
    written = json.loads(json.dumps(document(taken, SECTIONS), allow_nan=False))
    assert written["machine"]["date"] == "2026-01-01T00:00:00+00:00"
    assert set(written["machine"]) == {
        "date",
        "platform",
        "python",
        "cpus",
        "cpu",
        "packages",
    }
    assert [section["name"] for section in written["sections"]] == ["delay", "peers"]
    plain, jittered = written["sections"][0]["rows"]
    assert plain["ratio"] == {"median": 1.1, "low": 1.05, "high": 1.25}
    assert (plain["within"], jittered["within"]) == (True, False)
    assert jittered["facts"] == {"own": "base * n"}
    assert written["sections"][1]["rows"][0]["within"] is None


def test_the_answer_of_a_far_attempt_is_a_value_or_the_exception_that_came() -> None:
    def overflow(_: float | None) -> float:
        raise OverflowError("too large")

    def absent(_: float | None) -> float:
        raise ModuleNotFoundError("No module named 'peer'")

    assert answer(lambda cap: cap or 0.0, 3600.0) == "3600 s"
    assert answer(lambda _: 2**1998, None) == "an int of 1999 bits"
    assert answer(overflow, None) == "OverflowError: too large"
    assert answer(absent, None) == "not installed"
