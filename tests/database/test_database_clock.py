from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backoff_schedule.database.clock import from_microseconds, to_microseconds


def test_an_instant_is_microseconds_since_the_epoch() -> None:
    assert to_microseconds(datetime(1970, 1, 1, tzinfo=UTC)) == 0
    assert to_microseconds(datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)) == -1
    noon_in_tokyo = datetime(2026, 1, 1, 12, 0, 0, 1, timezone(timedelta(hours=9)))
    assert to_microseconds(noon_in_tokyo) == 1_767_236_400_000_001
    assert from_microseconds(1_767_236_400_000_001) == noon_in_tokyo


@given(st.datetimes(timezones=st.timezones() | st.just(UTC)))
def test_every_instant_comes_back_exactly_and_in_utc(moment: datetime) -> None:
    try:
        in_utc = moment.astimezone(UTC)
    except OverflowError:
        return
    back = from_microseconds(to_microseconds(moment))
    assert back == in_utc
    assert back.tzinfo is UTC


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        (datetime(2026, 1, 1), ValueError, "now .* needs to be aware"),
        (1.5, TypeError, "now .* needs to be an aware datetime, not float"),
        (None, TypeError, "now .* needs to be an aware datetime, not NoneType"),
    ],
)
def test_a_naive_time_and_what_is_none_are_refused(
    wrong: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        to_microseconds(wrong)
