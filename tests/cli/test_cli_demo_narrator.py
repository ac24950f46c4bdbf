"""How the demo lays out what it tells."""

import pytest

from backoff_schedule.cli.demo.narrator import Narrator


def test_chapters_count_and_paragraphs_are_wrapped_at_100_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    narrator = Narrator()
    narrator.chapter("One")
    narrator.say("word " * 30)
    narrator.chapter("Two")
    lines = capsys.readouterr().out.split("\n")
    assert lines == [
        *["1. One", "", f"   {'word ' * 18}word", f"   {'word ' * 10}word", ""],
        *["2. Two", "", ""],
    ]
    assert len(lines[2]) == 97


def test_a_table_has_text_to_the_left_and_numbers_to_the_right(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Narrator().table(("event", "tries"), ("a", 7), ("longer", 12))
    assert capsys.readouterr().out.split("\n") == [
        "   event   tries",
        "   a           7",
        "   longer     12",
        "",
        "",
    ]
