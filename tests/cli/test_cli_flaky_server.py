"""The server that fails as it is told to."""

from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from backoff_schedule.cli.flaky_server import flaky_server


def asked(url: str) -> tuple[int, str | None]:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.headers["Retry-After"]
    finally:
        connection.close()


def test_it_answers_what_it_was_given_in_order() -> None:
    answers: list[tuple[int, str | None]] = [(503, "7"), (429, None), (200, None)]
    with flaky_server(iter(answers)) as url:
        assert [asked(url) for _ in answers] == answers


def test_it_is_closed_after_the_block_even_if_that_fails() -> None:
    with pytest.raises(KeyError), flaky_server(iter(())) as url:
        raise KeyError
    with pytest.raises(ConnectionRefusedError):
        asked(url)
