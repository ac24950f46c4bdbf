"""What the parsers answer to fields that servers send, and what a loop makes of the answer."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from backoff_schedule import create_backoff, parse_retry_after, wait_after
from tests.peers.asking import (
    answer,
    backoff,
    backoffs,
    httpx,
    httpx_retries,
    redress,
    stamina,
    tenacity,
    urllib3,
)

if TYPE_CHECKING:
    import pytest


class RefusedError(Exception):
    """What a client raises for 429, as redress expects it."""

    status = 429

    def __init__(self, field: str) -> None:
        self.headers = {"Retry-After": field}


def of_redress(field: str) -> float | None:
    found = redress.http_retry_after_classifier(RefusedError(field))
    seconds: float | None = getattr(found, "retry_after_s", None)
    return seconds


def answers(field: str, tolerance: float = 0.0) -> dict[str, str]:
    """What each answers; a number within the tolerance of a whole minute is that minute."""

    def rounded(seconds: float | None) -> float | None:
        whole = seconds is not None and tolerance and abs(seconds - 60.0) <= tolerance
        return 60.0 if whole else seconds

    return {
        "this package": answer(lambda: rounded(parse_retry_after(field))),
        "backoffs": answer(lambda: rounded(backoffs.parse_retry_after(field))),
        "redress": answer(lambda: rounded(of_redress(field))),
        "urllib3": answer(lambda: rounded(urllib3.Retry().parse_retry_after(field))),
        "httpx-retries": answer(lambda: rounded(httpx_retries.Retry().parse_retry_after(field))),
    }


def in_a_minute(form: str) -> str:
    return f"{datetime.now(UTC) + timedelta(minutes=1):{form}}"


def test_seconds(row: dict[str, str]) -> None:
    assert row == answers("120")


def test_a_date_in_any_of_the_three_forms(row: dict[str, str]) -> None:
    logging.getLogger("httpx_retries").setLevel(logging.ERROR)
    for form in ("%a, %d %b %Y %X GMT", "%A, %d-%b-%y %X GMT", "%a %b %e %X %Y"):
        assert row == answers(in_a_minute(form), tolerance=2.0)


def test_a_date_in_zone_0000(row: dict[str, str]) -> None:
    assert row == answers(in_a_minute("%a, %d %b %Y %X +0000"), tolerance=2.0)


def test_a_fraction_of_seconds(row: dict[str, str]) -> None:
    assert row == answers("0.503")


def test_a_negative_number(row: dict[str, str]) -> None:
    assert row == answers("-1")


def test_an_arabic_digit(row: dict[str, str]) -> None:
    assert row == answers("\N{ARABIC-INDIC DIGIT FIVE}")


def test_no_number_and_no_date(row: dict[str, str]) -> None:
    assert answers("inf") == answers("soon") == row


def test_four_hundred_digits(row: dict[str, str]) -> None:
    assert row == answers("9" * 400)


def test_a_year(row: dict[str, str]) -> None:
    assert row == answers("31536000")


def test_the_wait_when_the_field_says_1_s_and_the_schedule_8(
    row: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    delays = backoffs.Policy(backoffs.Constant(8.0)).delays()
    delays.floor_next(1.0)
    strategy = redress.retry_after_or(lambda _: 8.0, jitter_s=0.0)
    urllib3.Retry(backoff_factor=4.0).sleep(
        urllib3.HTTPResponse(status=503, headers={"Retry-After": "1"})
    )
    httpx_retries.Retry(backoff_factor=4.0, attempts_made=1, backoff_jitter=0.0).sleep(
        httpx.Response(503, headers={"Retry-After": "1"})
    )
    assert row == {
        "this package": answer(lambda: wait_after(create_backoff(base=8), 1, 1.0)),
        "backoffs": answer(lambda: next(delays)),
        "redress": answer(lambda: strategy(_context(1.0))),
        "urllib3": answer(lambda: slept[0]),
        "httpx-retries": answer(lambda: slept[1]),
    }


def test_tenacity_stamina_and_backoff_leave_the_field_to_a_function() -> None:
    def seconds(error: BaseException) -> float:
        assert isinstance(error, RefusedError)
        return float(error.headers["Retry-After"])

    def waits(retry: Any) -> list[float]:
        answers = [RefusedError("0.001"), RefusedError("0.002")]

        def call() -> None:
            if answers:
                raise answers.pop(0)

        retry(call)()
        return slept

    slept: list[float] = []
    waits(tenacity.retry(wait=tenacity.wait_exception(seconds), sleep=slept.append))
    assert slept == [0.001, 0.002]

    slept = []
    try:
        hook = lambda details: slept.append(details.wait_for)  # noqa: E731
        stamina.instrumentation.set_on_retry_hooks([hook])
        waits(stamina.retry(on=seconds))
    finally:
        stamina.instrumentation.set_on_retry_hooks(None)
    assert slept == [0.001, 0.002]

    slept = []
    waits(
        backoff.on_exception(
            backoff.runtime,
            RefusedError,
            value=seconds,
            jitter=None,
            on_backoff=lambda details: slept.append(details["wait"]),
        )
    )
    assert slept == [0.001, 0.002]


def _context(retry_after: float) -> Any:
    return redress.BackoffContext(
        attempt=1,
        classification=redress.Classification(redress.ErrorClass.RATE_LIMIT, retry_after),
        prev_sleep_s=None,
        remaining_s=None,
        cause="exception",
    )
