from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from backoff_schedule.delivery import DEFAULT_POLICY, AutoDisable

if TYPE_CHECKING:
    from backoff_schedule.delivery.values import Value

VALUES: list[Value] = [AutoDisable(0.5, "10m", 5), DEFAULT_POLICY]


@pytest.mark.parametrize("value", VALUES)
def test_a_value_is_copied_and_pickled_to_an_equal_one(value: Value) -> None:
    for other in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)):
        assert other == value
        assert hash(other) == hash(value)
        assert repr(other) == repr(value)


@pytest.mark.parametrize("value", VALUES)
def test_a_value_cannot_be_changed(value: Any) -> None:
    before = repr(value)
    for name in ("min_attempts", "timeout", "new"):
        with pytest.raises(AttributeError, match=f"immutable value: {name} cannot be set"):
            setattr(value, name, 1)
        with pytest.raises(AttributeError, match=f"immutable value: {name} cannot be deleted"):
            delattr(value, name)
    assert repr(value) == before


def test_values_of_two_kinds_are_never_equal() -> None:
    assert VALUES[0] != VALUES[1]
    assert VALUES[0] != "value"
