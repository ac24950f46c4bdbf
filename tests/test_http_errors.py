"""Against the real clients, whose exceptions come from real connections where they can."""

from __future__ import annotations

import asyncio
import errno
import http.client
import socket
import ssl
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import aiohttp
import httpx
import pytest
import requests
import urllib3

from backoff_schedule import (
    create_backoff,
    http_retry_after,
    retry,
    transient_http,
)
from backoff_schedule.cli.flaky_server import flaky_server
from backoff_schedule.testing import instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# What each client raises for an answer that is an error.


def with_httpx(url: str) -> int:
    with httpx.Client(trust_env=False) as client:
        return client.get(url).raise_for_status().status_code


def with_requests(url: str) -> int:
    with requests.Session() as session:
        session.trust_env = False
        answer = session.get(url, timeout=5)
        answer.raise_for_status()
        return answer.status_code


def with_aiohttp(url: str) -> int:
    async def get() -> int:
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            answer.raise_for_status()
            return answer.status

    return asyncio.run(get())


def with_urllib(url: str) -> int:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=5) as answer:
            status: int = answer.status
            return status
    except urllib.error.HTTPError as failed:
        failed.close()
        raise


CLIENTS = [with_httpx, with_requests, with_aiohttp, with_urllib]
every_client = pytest.mark.parametrize("get", CLIENTS)


def answers(*statuses: tuple[int, str | None]) -> Iterator[tuple[int, str | None]]:
    return iter(statuses)


@every_client
def test_a_server_that_asks_for_a_pause_is_called_again_after_it(
    get: Callable[[str], int],
) -> None:
    policy = retry(
        create_backoff(base=2), attempts=4, on=transient_http, retry_after=http_retry_after
    )
    script = answers((503, "7"), (429, "1"), (500, None), (200, None))
    with flaky_server(script) as url, instant() as waits:
        assert policy.call(get, url) == 200
    assert waits == [7.0, 4.0, 8.0]


@every_client
def test_an_answer_that_is_final_is_not_asked_for_again(get: Callable[[str], int]) -> None:
    policy = retry(create_backoff(base=0), attempts=4, on=transient_http)
    with (
        flaky_server(answers((404, None), (200, None))) as url,
        pytest.raises(Exception, match="404"),
    ):
        policy.call(get, url)


@every_client
def test_a_refused_connection_is_worth_another_try(get: Callable[[str], int]) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    with pytest.raises(Exception) as caught:
        get(f"http://127.0.0.1:{port}/")
    assert transient_http(caught.value)
    assert http_retry_after(caught.value) is None


@every_client
def test_a_malformed_address_is_not_worth_another_try(get: Callable[[str], int]) -> None:
    with pytest.raises(Exception) as caught:
        get("gopher://nowhere")
    assert not transient_http(caught.value)


def test_responses_of_httpx_requests_and_urllib3_are_read_like_exceptions() -> None:
    policy = retry(
        create_backoff(base=0),
        attempts=3,
        on=transient_http,
        on_result=transient_http,
        retry_after=http_retry_after,
    )
    calls: list[Callable[[str], Any]] = [
        lambda url: httpx.get(url, trust_env=False),
        lambda url: requests.get(url, timeout=5, proxies={"http": ""}),
        lambda url: urllib3.PoolManager().request("GET", url, retries=False),
    ]
    for call in calls:
        with flaky_server(answers((503, "3"), (200, None))) as url, instant() as waits:
            answer = policy.call(call, url)
        assert getattr(answer, "status_code", None) or answer.status == 200
        assert waits == [3.0]


def chained(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


REQUEST = httpx.Request("GET", "http://127.0.0.1/")
POOL: Any = None


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (TimeoutError(), True),
        (ConnectionResetError(), True),
        (socket.gaierror(), True),
        (OSError(errno.EHOSTUNREACH, "no route"), True),
        (http.client.IncompleteRead(b""), True),
        (http.client.RemoteDisconnected(""), True),
        (httpx.ReadTimeout("", request=REQUEST), True),
        (httpx.RemoteProtocolError("", request=REQUEST), True),
        (requests.exceptions.ChunkedEncodingError(), True),
        (requests.exceptions.ReadTimeout(), True),
        (urllib3.exceptions.ProtocolError(), True),
        (urllib3.exceptions.MaxRetryError(POOL, "/", urllib3.exceptions.TimeoutError()), True),
        (urllib.error.URLError(TimeoutError()), True),
        (aiohttp.ServerDisconnectedError(), True),
        (aiohttp.ClientPayloadError(), True),
        (FileNotFoundError(errno.ENOENT, "no such file"), False),
        (ValueError(), False),
        (chained(ValueError(), ConnectionResetError()), False),
        (urllib.error.URLError("unknown url type"), False),
        (httpx.UnsupportedProtocol(""), False),
        (httpx.LocalProtocolError(""), False),
        (httpx.TooManyRedirects("", request=REQUEST), False),
        (requests.exceptions.InvalidURL(), False),
        (
            urllib3.exceptions.MaxRetryError(POOL, "/", urllib3.exceptions.LocationParseError("x")),
            False,
        ),
        (ssl.SSLCertVerificationError(), False),
        (chained(httpx.ConnectError("", request=REQUEST), ssl.SSLCertVerificationError()), False),
        (requests.exceptions.SSLError(ssl.SSLCertVerificationError()), False),
        (urllib.error.URLError(ssl.SSLCertVerificationError()), False),
        ("a text", False),
        (None, False),
    ],
    ids=repr,
)
def test_a_failure_without_a_status_is_told_by_its_kind(error: object, transient: bool) -> None:
    assert transient_http(error) is transient
    assert http_retry_after(error) is None


def test_a_circular_chain_ends() -> None:
    first, second = ValueError("one"), ValueError("two")
    first.__cause__, second.__cause__ = second, first
    first.args = (second, first)
    assert not transient_http(first)
    loop = urllib.error.URLError("x")
    loop.reason = loop
    assert not transient_http(loop)


class Answer:
    def __init__(self, status: object, headers: object) -> None:
        self.status_code = status
        self.headers = headers


@pytest.mark.parametrize(
    ("status", "transient"), [(503, True), (200, False), (True, False), ("503", False), (0, False)]
)
def test_only_a_number_that_is_a_status_is_one(status: object, transient: bool) -> None:
    assert transient_http(Answer(status, {})) is transient


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({"Retry-After": "3"}, 3.0), ({"Retry-After": "soon"}, None), (None, None), ("3", None)],
)
def test_headers_that_say_nothing_usable_ask_for_nothing(
    headers: object, seconds: float | None
) -> None:
    assert http_retry_after(Answer(503, headers)) == seconds


def test_an_exception_whose_response_is_not_set_asks_for_nothing() -> None:
    class Unset(Exception):
        @property
        def response(self) -> object:
            raise RuntimeError("no response has been set")

    assert http_retry_after(Unset()) is None
    assert not transient_http(Unset())
