from __future__ import annotations

import inspect
from typing import Any

import pytest

from backoff_schedule import Backoff, create_backoff


def test_each_shape_makes_a_schedule() -> None:
    assert create_backoff(base="1m", max="1h").delay(3) == 240.0
    assert create_backoff(steps=["1m", "5m"]).delay(2) == 300.0
    made = create_backoff(compute=lambda n: n, max=5, free=1, jitter=0.0)
    assert type(made) is Backoff
    assert made.delay(3) == 2.0


def test_options_are_given_by_name_alone() -> None:
    kinds = {each.kind for each in inspect.signature(create_backoff).parameters.values()}
    assert kinds == {inspect.Parameter.KEYWORD_ONLY}
    make: Any = create_backoff
    with pytest.raises(TypeError, match="takes 0 positional arguments"):
        make(60)


def test_an_unknown_option_is_a_type_error_of_python_itself() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'maximum'"):
        create_backoff(base=1, maximum=5)  # type: ignore[call-overload]
