"""Labels that are moved apart."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backoff_schedule.plotting.end_labels import apart


@given(st.lists(st.floats(0, 200), max_size=6))
def test_neighbours_are_apart_in_their_order_and_below_the_top(places: list[float]) -> None:
    moved = apart(places, distance=14.0, highest=200.0)
    ordered = [moved[index] for index in sorted(range(len(places)), key=places.__getitem__)]
    assert all(above - below > 13.999 for below, above in pairwise(ordered))
    assert max(moved, default=0.0) <= 200.0


@pytest.mark.parametrize("places", [[], [5.0], [5.0, 30.0, 100.0], [100.0, 5.0]])
def test_what_is_apart_stays(places: list[float]) -> None:
    assert apart(places, distance=14.0, highest=200.0) == places
