from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any

import pytest

from backoff_schedule.callables import (
    discard,
    is_async,
    is_awaitable,
    name_of,
    refuse_deferred,
)

if TYPE_CHECKING:
    from collections.abc import Generator


def plain() -> None:
    return


async def coroutine_function() -> None:
    return


@types.coroutine
def iterable_coroutine() -> Generator[None, None, None]:
    yield


class Called:
    def __call__(self) -> None:
        return


class AsyncCallable:
    async def __call__(self) -> None:
        return


class Marked:
    _is_coroutine = object()

    def __init__(self) -> None:
        self._is_coroutine_marker = True

    def __call__(self) -> None:
        return


@pytest.mark.parametrize(
    ("function", "answer"),
    [
        (plain, False),
        (coroutine_function, True),
        (iterable_coroutine, True),
        (functools.partial(coroutine_function), True),
        (Called(), False),
        (AsyncCallable(), True),
        (AsyncCallable().__call__, True),
        (Marked(), True),
        (len, False),
        (print, False),
        (5, False),
    ],
)
def test_what_is_known_to_make_an_awaitable(function: object, answer: bool) -> None:
    assert is_async(function) is answer


def test_awaitables_of_every_kind_are_told() -> None:
    made: list[Any] = [coroutine_function(), iterable_coroutine()]
    assert [is_awaitable(each) for each in made] == [True, True]
    assert not is_awaitable(number for number in range(1))
    assert not is_awaitable(None)
    for each in made:
        discard(each)
    discard(object())


def test_a_result_is_refused_if_its_work_is_still_to_come() -> None:
    for plain_result in (None, 5, "text", object(), iter([1]), map(str, [1])):
        refuse_deferred(plain_result, "fetch")
    with pytest.raises(TypeError, match=r"^fetch returned an awaitable"):
        refuse_deferred(coroutine_function(), "fetch")
    with pytest.raises(TypeError, match=r"^fetch returned a generator"):
        refuse_deferred((number for number in range(1)), "fetch")


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (plain, "plain"),
        (functools.partial(plain), "plain"),
        (functools.partial(Called()), "Called"),
        (Called(), "Called"),
        (Called().__call__, "Called.__call__"),
        (len, "len"),
    ],
)
def test_a_callable_has_the_name_that_its_author_gave_it(function: object, name: str) -> None:
    assert name_of(function) == name
