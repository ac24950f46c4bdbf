from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backoff_schedule.delivery.text import checked_name, stored_text


@given(st.text(st.characters(exclude_categories=())))
def test_what_anybody_says_becomes_text_that_both_databases_hold(said: str) -> None:
    stored = stored_text(said)
    assert "\0" not in stored
    stored.encode()
    assert len(stored) == min(len(said), 2048)


def test_what_is_no_text_is_shown_as_such() -> None:
    assert stored_text(KeyError("x")) == "KeyError('x')"


@given(st.text(min_size=1, max_size=300))
def test_a_name_is_refused_exactly_if_it_could_not_be_stored_as_it_is(name: str) -> None:
    if len(name) <= 255 and "\0" not in name:
        assert checked_name(name) == name
    else:
        with pytest.raises(ValueError, match="endpoint"):
            checked_name(name)
