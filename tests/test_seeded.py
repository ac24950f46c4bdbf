from __future__ import annotations

import copy
import json
import pickle
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backoff_schedule import SeededRandom
from backoff_schedule.refusals import refusal

if TYPE_CHECKING:
    from collections.abc import Callable


def test_every_seed_answers_the_reference_words_and_draws(
    vectors: Callable[[str], list[dict[str, Any]]],
) -> None:
    streams = vectors("seeded_streams")
    assert len(streams) == 14
    for expected in streams:
        stream = SeededRandom(expected["seed"])
        assert stream.state()["words"] == expected["initial_words"]
        assert [stream.random() for _ in range(8)] == expected["draws"]
        assert stream.state()["words"] == expected["words_after_8"]


def test_every_derived_stream_answers_the_reference_draws_wherever_its_parent_stands(
    vectors: Callable[[str], list[dict[str, Any]]],
) -> None:
    for expected in vectors("seeded_streams"):
        stream = SeededRandom(expected["seed"])
        for derived in expected["derived"]:
            child = stream.derive(derived["label"])
            assert [child.random() for _ in derived["draws"]] == derived["draws"]
            stream.random()


def test_an_int_and_its_text_are_one_stream() -> None:
    assert SeededRandom(42) == SeededRandom("42")
    assert SeededRandom(42).derive(7) == SeededRandom("42 7")
    assert SeededRandom(-(10**5000)).seed == "-1" + "0" * 5000


def test_a_character_outside_the_basic_plane_counts_as_its_two_code_units() -> None:
    assert (
        SeededRandom("\U0001f3b2").state()["words"] == SeededRandom("\ud83c\udfb2").state()["words"]
    )
    assert SeededRandom("\ud83c") != SeededRandom("\udfb2")


@pytest.mark.parametrize("seed", [True, None, 1.0, b"feeds", ["feeds"]])
def test_a_seed_or_label_of_another_type_is_refused(seed: Any) -> None:
    for name, ask in (("seed", SeededRandom), ("label", SeededRandom("feeds").derive)):
        message = f"{refusal(name, seed, 'text or an int')}, not {type(seed).__name__}"
        with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
            ask(seed)


@given(st.one_of(st.integers(), st.text()), st.integers(0, 20))
def test_a_state_through_json_goes_on_at_the_next_draw(seed: int | str, drawn: int) -> None:
    stream = SeededRandom(seed)
    for _ in range(drawn):
        stream.random()
    again = SeededRandom.restore(json.loads(json.dumps(stream.state())))
    assert again == stream
    assert [again.random() for _ in range(5)] == [stream.random() for _ in range(5)]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickled_stream_goes_on_at_the_next_draw(protocol: int) -> None:
    stream = SeededRandom("feeds")
    stream.random()
    again = pickle.loads(pickle.dumps(stream, protocol))
    assert again == stream
    assert again.random() == stream.random()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_draws_the_same_and_leaves_the_original_alone(
    copied: Callable[[SeededRandom], SeededRandom],
) -> None:
    stream = SeededRandom("feeds")
    twin = copied(stream)
    assert twin.random() == 0.786344971973449
    assert stream.random() == 0.786344971973449


@pytest.mark.parametrize(
    "state",
    [
        *[None, {}, {"seed": "a"}, {"words": [1, 2, 3, 4]}, {"seed": 1, "words": [1, 2, 3, 4]}],
        *[{"seed": "a", "words": words} for words in (None, [], [1, 2, 3], [1, 2, 3, 4, 5])],
        *[{"seed": "a", "words": [1, 2, 3, word]} for word in (-1, 2**32, 1.0, True, "4")],
    ],
)
def test_a_state_that_is_none_is_refused(state: Any) -> None:
    message = refusal("state", state, "what state() answers")
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        SeededRandom.restore(state)


def test_the_largest_word_is_a_legal_one() -> None:
    words = [0, 0, 0, 2**32 - 1]
    assert SeededRandom.restore({"seed": "a", "words": words}).state()["words"] == words


def test_streams_differ_by_seed_and_by_place_and_equal_nothing_else() -> None:
    stream, twin = SeededRandom("feeds"), SeededRandom("feeds")
    assert stream == twin
    stream.random()
    assert stream != twin
    assert SeededRandom("feeds") != SeededRandom("feeds ")
    assert SeededRandom("feeds") != "feeds"


def test_a_stream_that_changes_has_no_hash() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(SeededRandom("feeds"))


def test_the_repr_tells_the_seed_and_the_words_and_stays_short() -> None:
    assert repr(SeededRandom("feeds")) == (
        "<SeededRandom seed='feeds' words=(4021011870, 2098524226, 3459384398, 1552757138)>"
    )
    assert len(repr(SeededRandom("x" * 10_000))) < 200


@given(st.text())
def test_every_draw_is_a_multiple_of_2_to_the_minus_32_in_the_unit_interval(seed: str) -> None:
    stream = SeededRandom(seed)
    for _ in range(20):
        drawn = stream.random()
        assert 0.0 <= drawn < 1.0
        assert (drawn * 2.0**32).is_integer()
