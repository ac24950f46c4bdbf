"""The page of a run: no test here depends on how fast anything is."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks import page as pages
from benchmarks.__main__ import GROUPS
from benchmarks.measure import Spread
from benchmarks.page import page
from benchmarks.report import Row, Section, document, machine


def a_run(*sections: Section) -> dict[str, Any]:
    taken = machine(datetime(2026, 1, 9, tzinfo=UTC)) | {
        "cpu": "AMD EPYC",
        "cpus": 2,
        "python": "CPython 3.11.7",
        "platform": "Linux-6.1-on-some-host",
        "effort": "full",
    }
    written: dict[str, Any] = json.loads(json.dumps(document(taken, sections)))
    return written


def times(what: str, median: float, seconds: float = 1e-6, limit: float | None = None) -> Row:
    return Row(what, seconds, 1e-6, Spread(median, median - 0.01, median + 0.01), limit)


def losses(*sections: Section) -> list[str]:
    listed = page(a_run(*sections)).partition("## What we lose")[2].partition("\n## ")[0]
    return [line for line in listed.splitlines() if line.startswith("- ")]


def test_the_page_names_the_machine_in_general_words_and_the_day() -> None:
    text = page(a_run(Section("delay", "delay(n)", [times("plain", 1.1)])))
    assert "Measured on 9 January 2026: 2 cores of an AMD EPYC, Linux, CPython 3.11.7." in text
    assert "some-host" not in text


def test_a_table_has_only_the_columns_that_are_used() -> None:
    text = page(a_run(Section("memory", "bytes", [Row("ours", remark="9 bytes")])))
    assert "| what | remark |\n| --- | --- |\n| ours | 9 bytes |\n" in text


def test_a_row_is_shown_with_its_ratio_its_quartiles_and_whether_its_limit_is_met() -> None:
    text = page(a_run(Section("delay", "delay(n)", [times("a * b", 1.1, limit=1.2)])))
    assert "| a \\* b | 1 us | 1 us | 1.10x | 1.09 to 1.11 | 1.2x, met |" in text


def test_a_peer_that_takes_less_time_than_ours_is_a_loss_and_a_near_one_a_tie() -> None:
    rows = [times("quick", 0.5), times("near", 1.03), times("slow", 3.0)]
    assert losses(Section("peers", "the delay", rows)) == [
        "- The delay; we lose: quick 0.50x.",
        "- The delay; a tie: near 1.03x.",
    ]


def test_code_written_out_that_takes_less_time_than_ours_is_a_loss() -> None:
    rows = [times("quick", 1.5), times("slow", 0.5)]
    assert losses(Section("delay", "delay(n)", rows)) == ["- delay(n); we lose: quick 1.50x."]


def test_a_peer_that_draws_quicker_than_our_default_source_is_named() -> None:
    rows = [times("ours, default", 4.0, seconds=4e-6), times("peer", 2.0, seconds=2e-6)]
    assert losses(Section("peers", "jitter", rows)) == [
        "- Jitter; quicker than our default source: peer 2 us for our 4 us."
    ]


def test_a_missed_limit_and_a_smaller_peer_are_named() -> None:
    missed = Section("import", "import", [times("ours", 0.6, limit=0.5)])
    memory = Section("memory", "bytes", [Row("ours", facts={"bytes": 9}), Row("x", facts={})])
    smaller = Section(
        "memory", "bytes", [Row("ours", facts={"bytes": 9}), Row("x", facts={"bytes": 8})]
    )
    assert losses(missed, memory, smaller) == [
        "- Import; a limit missed: ours 0.60x instead of 0.5x.",
        "- Bytes; smaller than ours: x 8 for our 9.",
    ]


def test_a_retry_of_ours_is_set_against_the_loop_and_a_peer_against_ours() -> None:
    rows = [
        Row("a hand-written loop", 1e-6, 1e-6),
        times("ours", 1.5),
        times("ours, on a tuple", 1.0),
        times("quick", 1.2),
        times("near", 1.48),
        times("slow", 9.0),
    ]
    assert losses(Section("retry", "two failures", rows)) == [
        "- Two failures; we lose: ours 1.50x; quick 1.20x.",
        "- Two failures; a tie: ours, on a tuple 1.00x; near 1.48x.",
    ]


def test_ratios_to_ours_alone_are_no_loss_but_for_their_limits() -> None:
    kinds = [times("ours, on a tuple, success", 1.1), times("ours, on a predicate", 1.3, limit=1.2)]
    assert losses(Section("retry", "kinds", kinds)) == [
        "- Kinds; a limit missed: ours, on a predicate 1.30x instead of 1.2x."
    ]


def test_garbage_of_ours_is_named_and_a_smaller_decorated_function() -> None:
    littering = [Row("ours", facts={"garbage": 3}), Row("peer", facts={"garbage": 900})]
    held = [Row("a loop", facts={"bytes": 8}), Row("ours", facts={"bytes": 9})]
    assert losses(Section("retry", "garbage", littering), Section("retry", "bytes", held)) == [
        "- Garbage; ours leaves garbage: ours 3.",
        "- Bytes; smaller than ours: a loop 8 for our 9.",
    ]


@pytest.mark.parametrize(
    ("effort", "groups"),
    [("quick", list(GROUPS)), ("full", ["delay"])],
    ids=["quick", "some groups"],
)
def test_a_quick_run_and_one_of_some_groups_are_not_published(
    effort: str, groups: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = a_run(*[Section(group, group, []) for group in groups])
    run["machine"]["effort"] = effort
    written = tmp_path / "bench.json"
    written.write_text(json.dumps(run))
    monkeypatch.setattr(pages, "OUTPUT", written)
    with pytest.raises(SystemExit, match="make bench"):
        pages.main()


def test_a_promise_of_at_least_so_much_is_shown_and_missed_below() -> None:
    rows = [
        Row("a bare SQL loop", 1e-6, 2e-6, Spread(0.4, 0.4, 0.4), least=0.45),
        Row("peer", 1e-5, 2e-6, Spread(5.0, 5.0, 5.0), least=3.0),
    ]
    run = a_run(Section("delivery", "drain", rows))
    assert "| 0.40x | 0.40 to 0.40 | 0.45x or more, missed |" in page(run)
    assert "| 5.00x | 5.00 to 5.00 | 3x or more, met |" in page(run)
    assert losses(Section("delivery", "drain", rows)) == [
        "- Drain; we lose: a bare SQL loop 0.40x.",
        "- Drain; a limit missed: a bare SQL loop 0.40x instead of 0.45x or more.",
    ]
