from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import trustme

from backoff_schedule.delivery import (
    DEFAULT_POLICY,
    Claim,
    Delivered,
    HTTPSender,
    Outcome,
    Permanent,
    Transient,
    verify,
)
from tests.delivery.receiver import Receiver, Request, answer, silent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OLD_SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"


def claim_to(url: str | None, **changes: Any) -> Claim:
    fields: dict[str, Any] = {
        "id": 1,
        "event_id": "evt_1",
        "endpoint": "acme",
        "url": url,
        "type": "order.created",
        "payload": b'{"order": 7}',
        "attempt": 1,
        "timeout": 5.0,
        "created_at": NOW,
        "deadline_at": None,
        "expires_at": None,
        "secrets": (),
        "policy": DEFAULT_POLICY,
        "token": 1,
        "redrives": 0,
        "endpoint_id": 1,
        "generation": 0,
        "probe": False,
        "lost": False,
        "claimed_at": NOW,
    }
    return Claim(**{**fields, **changes})


def knows(*addresses: str) -> Callable[[str], Awaitable[Sequence[str]]]:
    """A resolver that answers this for every host."""

    async def resolve(host: str) -> Sequence[str]:
        return addresses

    return resolve


def sent(*answers: Any, at_once: bool = False, **changes: Any) -> tuple[Outcome, list[Request]]:
    """What one send to such a receiver answers, and what the receiver got."""

    async def main() -> tuple[Outcome, list[Request]]:
        async with (
            Receiver(*answers, at_once=at_once) as there,
            HTTPSender(allow_private=True) as sender,
        ):
            outcome = await sender(claim_to(there.url, **changes))
            await there.until_all_hung_up()
            return outcome, there.requests

    return asyncio.run(main())


def refused(url: str, **options: Any) -> Outcome:
    """What a send to `url` answers, where `{port}` is a listener that nobody may connect to."""

    async def main() -> Outcome:
        async with Receiver() as private, HTTPSender(**options) as sender:
            outcome = await sender(claim_to(url.format(port=private.port)))
            assert private.accepted == 0
            return outcome

    return asyncio.run(main())


# The request


def test_the_body_is_the_payload_byte_for_byte_and_the_path_that_of_the_url() -> None:
    payload = bytes(range(256)) * 4

    async def main() -> Request:
        async with Receiver() as there, HTTPSender(allow_private=True) as sender:
            url = there.url + "/a%2Fb?x=%20&y=a+b#fragment"
            assert await sender(claim_to(url, payload=payload)) == Delivered(status=204)
            return there.requests[0]

    request = asyncio.run(main())
    assert request.line == "POST /hook/a%2Fb?x=%20&y=a+b HTTP/1.1"
    assert request.body == payload


def test_an_empty_payload_is_a_body_of_no_bytes() -> None:
    _, (request,) = sent(payload=b"")
    assert (request.headers["content-length"], request.body) == ("0", b"")


def test_without_a_secret_there_are_an_id_and_a_time_and_no_signature() -> None:
    _, (request,) = sent()
    assert {name: value for name, value in request.headers.items() if name != "host"} == {
        "accept": "*/*",
        "accept-encoding": "identity",
        "connection": "close",
        "content-length": "12",
        "content-type": "application/json",
        "user-agent": "backoff-schedule/0.1.0",
        "webhook-id": "evt_1",
        "webhook-timestamp": str(int(NOW.timestamp())),
    }


def test_each_secret_signs_and_none_is_shown() -> None:
    _, (request,) = sent(secrets=(SECRET, OLD_SECRET))
    assert request.headers["webhook-signature"].count("v1,") == 2
    for secret in (SECRET, OLD_SECRET):
        verified = verify([secret], request.headers, request.body, now=NOW)
        assert verified.event_id == "evt_1"
        assert secret.removeprefix("whsec_") not in str(request)


def test_the_signed_time_is_the_database_s_and_goes_on_while_the_name_is_looked_up() -> None:
    async def slowly(host: str) -> Sequence[str]:
        await asyncio.sleep(1.1)
        return ["127.0.0.1"]

    async def main() -> Request:
        async with Receiver() as there, HTTPSender(None, True, resolve=slowly) as sender:
            await sender(claim_to(f"http://hooks.example:{there.port}/"))
            return there.requests[0]

    ahead = int(asyncio.run(main()).headers["webhook-timestamp"]) - NOW.timestamp()
    assert 1 <= ahead <= 3


@pytest.mark.parametrize("secret", ["whsec_not base64!", "whsec_", "\N{SNOWMAN}"])
def test_a_secret_that_cannot_sign_is_permanent_and_is_not_shown(secret: str) -> None:
    outcome, requests = sent(secrets=(SECRET, secret))
    assert outcome == Permanent(
        "cannot be signed: secrets[1] (not shown) needs to be base64 of one byte or more"
    )
    assert requests == []


def test_headers_of_one_s_own_go_along_and_replace_the_defaults() -> None:
    async def main() -> Request:
        own = {"Content-Type": "application/cloudevents+json", "X-Source": "orders"}
        async with Receiver() as there, HTTPSender(None, True, headers=own) as sender:
            await sender(claim_to(there.url))
            return there.requests[0]

    headers = asyncio.run(main()).headers
    assert headers["content-type"] == "application/cloudevents+json"
    assert headers["x-source"] == "orders"


@pytest.mark.parametrize(
    ("headers", "kind", "words"),
    [
        ("X: y", TypeError, "headers needs to be a mapping of names to text, not str"),
        ({"X": 1}, TypeError, "headers needs to be a mapping of names to text"),
        ({b"X": "y"}, TypeError, "headers needs to be a mapping of names to text"),
        ({"X Y": "z"}, ValueError, "headers ('X Y') needs to be named by letters, digits and dash"),
        ({"": "z"}, ValueError, "headers ('') needs to be named"),
        ({"Webhook-ID": "z"}, ValueError, "headers has webhook-id, which the sender itself gives"),
        ({"X": "1", "x": "2"}, ValueError, "headers has x twice"),
        ({"X": "a\r\nB: c"}, ValueError, "headers['x'] (not shown) needs to be printable ASCII"),
        ({"X": " a"}, ValueError, "headers['x'] (not shown) needs to be printable ASCII"),
    ],
)
def test_headers_that_cannot_be_sent_are_refused_at_once(
    headers: Any, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind) as caught:
        HTTPSender(headers=headers)
    assert str(caught.value).startswith(words)


def test_a_client_of_another_kind_is_refused() -> None:
    client: Any = "httpx2"
    with pytest.raises(TypeError, match=r"client \('httpx2'\) needs to be an httpx2.AsyncClient"):
        HTTPSender(client)


# The answer


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_2xx_is_delivered(status: int) -> None:
    outcome, _ = sent(answer(f"{status} Fine"))
    assert outcome == Delivered(status=status)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 599])
def test_what_may_pass_is_transient_with_the_pause_that_is_asked_for(status: int) -> None:
    asked, _ = sent(answer(f"{status} Later", "Retry-After: 120", body=b"queue full"))
    assert asked == Transient(f"{status} Later: queue full", status=status, retry_after=120)
    unasked, _ = sent(answer(f"{status} Later"))
    assert unasked == Transient(f"{status} Later", status=status)


@pytest.mark.parametrize("status", [300, 301, 302, 304, 307, 400, 401, 404, 409, 422, 451, 999])
def test_any_other_status_is_permanent(status: int) -> None:
    outcome, _ = sent(answer(f"{status} No", "Retry-After: 5"))
    assert outcome == Permanent(f"{status} No", status=status)


def test_a_switch_to_another_protocol_that_nobody_asked_for_is_no_answer() -> None:
    outcome, _ = sent(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
    assert isinstance(outcome, Transient)
    assert outcome.reason.startswith("no answer from 127.0.0.1: ")


def test_an_interim_answer_is_not_the_answer() -> None:
    outcome, _ = sent(b"HTTP/1.1 100 Continue\r\n\r\n" + answer("200 OK"))
    assert outcome == Delivered(status=200)


def test_gone_disables_the_endpoint() -> None:
    outcome, _ = sent(answer("410 Gone"))
    assert outcome == Permanent("410 Gone", status=410, disable_endpoint=True)


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        # Against the answer's own clock, whatever ours says.
        (
            ["Date: Thu, 01 Jan 2026 00:00:00 GMT", "Retry-After: Thu, 01 Jan 2026 00:01:30 GMT"],
            90.0,
        ),
        (["Date: Thu Jan  1 00:00:00 2026", "Retry-After: Thu, 01 Jan 2026 00:00:30 GMT"], 30.0),
        (["Date: Thu, 01 Jan 2026 01:00:00 +0100", "Retry-After: Thu Jan  1 00:00:30 2026"], 30.0),
        (["Retry-After: 31536000"], 31536000.0),
        (["Retry-After: soon"], None),
        (["Retry-After: -5"], None),
        (["Retry-After: 1", "Retry-After: 2"], None),
    ],
)
def test_a_pause_is_read_against_the_date_of_the_answer(
    fields: list[str], seconds: float | None
) -> None:
    outcome, _ = sent(answer("503 Busy", *fields))
    assert outcome == Transient("503 Busy", status=503, retry_after=seconds)


@pytest.mark.parametrize("date", [[], ["Date: yesterday"], ["Date: 7"], ["Date: Mon, 99 Xyz"]])
def test_without_a_date_a_pause_is_read_against_the_database_s_time(date: list[str]) -> None:
    outcome, _ = sent(answer("503 Busy", *date, "Retry-After: Tue, 01 Jan 2030 12:02:00 GMT"))
    assert isinstance(outcome, Transient)
    assert outcome.retry_after is not None
    assert 115 < outcome.retry_after < 120


def test_two_kib_of_an_answer_are_kept_and_what_is_no_text_is_replaced() -> None:
    outcome, _ = sent(answer("400 Bad", body=b"\xff\xfe" + b"x" * 5000))
    assert isinstance(outcome, Permanent)
    assert outcome.reason == "400 Bad: \N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}" + (
        "x" * 2046
    )


def test_a_long_phrase_is_cut() -> None:
    outcome, _ = sent(answer("400 " + "y" * 5000))
    assert outcome == Permanent("400 " + "y" * 80, status=400)


def test_a_compressed_answer_is_not_unpacked() -> None:
    outcome, _ = sent(answer("400 Bad", "Content-Encoding: gzip", body=b"no gzip at all"))
    assert outcome == Permanent("400 Bad: no gzip at all", status=400)


@pytest.mark.parametrize("status", ["200 OK", "500 Oh"])
def test_an_answer_without_end_costs_neither_memory_nor_time(status: str) -> None:
    written = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {10 * 2**30}\r\n\r\n".encode())
        while True:
            writer.write(b"z" * 65536)
            await writer.drain()
            written += 65536

    began = time.monotonic()
    outcome, _ = sent(endless)
    assert time.monotonic() - began < 3
    # What the kernel holds, and not more.
    assert written < 64 * 2**20
    if status == "200 OK":
        assert outcome == Delivered(status=200)
    else:
        assert outcome == Transient("500 Oh: " + "z" * 2048, status=500)


def test_an_answer_of_http_1_0_ends_with_its_connection() -> None:
    outcome, _ = sent(b"HTTP/1.0 200 OK\r\n\r\nfine")
    assert outcome == Delivered(status=200)


# What is no answer


async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.get_extra_info("socket").setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0"
    )
    writer.transport.abort()


async def half_then_reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    await writer.drain()
    await asyncio.sleep(0.05)
    await reset(reader, writer)


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (b"", "no answer from 127.0.0.1: Server disconnected without sending a response."),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "no answer from 127.0.0.1: illegal status line"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200_000, "no answer from 127.0.0.1: Receive buffer"),
        (b"HTTP/1.1 2", "no answer from 127.0.0.1: "),
        (b"HTTP/1.1 200 OK\r\nContent-Length: no\r\n\r\n", "no answer from 127.0.0.1: bad Content"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "200, but the answer broke off: "),
        (reset, "no answer from 127.0.0.1: [Errno"),
        (half_then_reset, "200, but the answer broke off: "),
    ],
)
def test_what_is_no_whole_answer_is_transient_in_words(behaviour: Any, words: str) -> None:
    outcome, _ = sent(behaviour)
    assert isinstance(outcome, Transient)
    assert outcome.reason.startswith(words)
    assert len(outcome.reason) > len(words) or words.endswith(".")


def test_a_status_counts_though_its_body_breaks_off() -> None:
    gone, _ = sent(b"HTTP/1.1 410 Gone\r\nContent-Length: 99\r\n\r\nhalf")
    assert gone == Permanent("410 Gone: half", status=410, disable_endpoint=True)
    busy, _ = sent(b"HTTP/1.1 503 Busy\r\nRetry-After: 9\r\nContent-Length: 99\r\n\r\n")
    assert busy == Transient("503 Busy", status=503, retry_after=9)


def test_an_answer_that_comes_before_the_body_is_read_counts() -> None:
    async def early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer("413 Too Large"))
        await writer.drain()
        await asyncio.sleep(0.2)

    outcome, _ = sent(early, at_once=True, payload=b"x" * 2**20)
    assert outcome == Permanent("413 Too Large", status=413)


def test_nobody_at_the_port_is_transient() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]

        async def main() -> Outcome:
            async with HTTPSender(allow_private=True) as sender:
                return await sender(claim_to(f"http://127.0.0.1:{port}/"))

        outcome = asyncio.run(main())
    assert isinstance(outcome, Transient)
    assert outcome.reason.startswith("127.0.0.1 cannot be reached: [Errno")


# The deadline


async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    for byte in answer("200 OK", body=b"a" * 1000):
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.1)


async def drip_the_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while True:
        writer.write(b"a")
        await writer.drain()
        await asyncio.sleep(0.1)


async def continue_for_ever(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.05)


async def read_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(1)


@pytest.mark.parametrize(
    ("behaviour", "at_once"),
    [
        (silent, False),
        (drip, False),
        (drip_the_body, False),
        (continue_for_ever, False),
        (read_nothing, True),
    ],
)
def test_the_whole_exchange_ends_at_the_deadline(behaviour: Any, at_once: bool) -> None:
    began = time.monotonic()
    payload = b"x" * 2**25 if at_once else b"{}"
    outcome, _ = sent(behaviour, at_once=at_once, timeout=0.5, payload=payload)
    assert outcome == Transient("timed out after 500ms")
    assert 0.5 <= time.monotonic() - began < 2.5


def test_looking_up_a_name_counts() -> None:
    async def slowly(host: str) -> Sequence[str]:
        await asyncio.sleep(30)
        raise AssertionError

    async def main() -> Outcome:
        async with HTTPSender(resolve=slowly) as sender:
            return await sender(claim_to("http://hooks.example/", timeout=0.1))

    began = time.monotonic()
    assert asyncio.run(main()) == Transient("timed out after 100ms")
    assert time.monotonic() - began < 2


def test_tls_that_is_never_agreed_on_counts_and_leaves_no_socket_open() -> None:
    async def main() -> Outcome:
        async with Receiver(silent, at_once=True) as there, HTTPSender(None, True) as sender:
            url = there.url.replace("http:", "https:")
            outcome = await sender(claim_to(url, timeout=0.3))
            await there.until_all_hung_up()
            return outcome

    assert asyncio.run(main()) == Transient("timed out after 300ms")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all of 127.0.0.0/8")
def test_an_address_that_does_not_answer_leaves_time_for_the_next() -> None:
    async def main() -> Outcome:
        async with Receiver() as there:
            with socket.socket() as full, contextlib.ExitStack() as waiting:
                full.bind(("127.0.0.2", there.port))
                full.listen(0)
                # Nobody accepts these, so that the next one gets no answer at all.
                for _ in range(2):
                    filler = waiting.enter_context(socket.socket())
                    filler.setblocking(False)
                    filler.connect_ex(("127.0.0.2", there.port))
                await asyncio.sleep(0.05)
                resolve = knows("127.0.0.2", "127.0.0.1")
                async with HTTPSender(None, True, resolve=resolve) as sender:
                    return await sender(
                        claim_to(f"http://hooks.example:{there.port}/", timeout=1.0)
                    )

    assert asyncio.run(main()) == Delivered(status=204)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all of 127.0.0.0/8")
def test_an_address_that_refuses_is_followed_by_the_next() -> None:
    async def main() -> Outcome:
        async with Receiver() as there:
            resolve = knows("127.0.0.3", "127.0.0.1")
            async with HTTPSender(None, True, resolve=resolve) as sender:
                return await sender(claim_to(f"http://hooks.example:{there.port}/"))

    assert asyncio.run(main()) == Delivered(status=204)


# Where it connects


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::1]",
        "0.0.0.0",
        "localhost",
        "LOCALHOST",
    ],
)
def test_a_private_address_is_refused_in_every_spelling_and_nothing_connects(host: str) -> None:
    outcome = refused(f"http://{host}:{{port}}/")
    name = host.lower().strip("[]")
    assert outcome == Permanent(f"{name} is at an address that is not public")


def test_an_octal_address_is_refused() -> None:
    outcome = refused("http://0177.0.0.1:{port}/")
    assert outcome == Permanent("the url cannot be read: Invalid IPv4 address: '0177.0.0.1'")


@pytest.mark.parametrize("addresses", [["10.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["not a number"]])
def test_a_name_is_refused_if_one_of_its_addresses_is_private(addresses: list[str]) -> None:
    outcome = refused("http://hooks.example:{port}/", resolve=knows(*addresses))
    assert outcome == Permanent("hooks.example is at an address that is not public")


class Recorded(httpx2.AsyncBaseTransport):
    """Keeps requests in place of sending them."""

    def __init__(self) -> None:
        self.requests: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        return httpx2.Response(200, stream=httpx2.ByteStream(b""))


def test_a_name_that_is_public_and_then_private_is_asked_once_for_each_send() -> None:
    answers = [["93.184.215.14"], ["127.0.0.1"], ["127.0.0.1"]]

    async def rebinding(host: str) -> Sequence[str]:
        assert host == "hooks.example"
        return answers.pop(0)

    async def main() -> tuple[Outcome, Outcome, list[httpx2.Request]]:
        transport = Recorded()
        async with Receiver() as private, httpx2.AsyncClient(transport=transport) as client:
            sender = HTTPSender(client, resolve=rebinding)
            url = f"https://hooks.example:{private.port}/in"
            first, second = await sender(claim_to(url)), await sender(claim_to(url))
            assert private.accepted == 0
            return first, second, transport.requests

    first, second, (request,) = asyncio.run(main())
    assert first == Delivered(status=200)
    assert second == Permanent("hooks.example is at an address that is not public")
    assert len(answers) == 1
    # By number, and still in the name of the url.
    assert request.url.host == "93.184.215.14"
    assert request.headers["host"].startswith("hooks.example:")
    assert request.extensions["sni_hostname"] == "hooks.example"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("target", ["http://127.0.0.1:{port}/", "http://[x", "ftp://h/", "//h:x/"])
def test_a_redirect_is_not_followed(status: int, target: str) -> None:
    async def main() -> Outcome:
        async with Receiver() as private, HTTPSender(None, True) as sender:
            location = f"Location: {target.format(port=private.port)}"
            async with Receiver(answer(f"{status} Over There", location)) as there:
                outcome = await sender(claim_to(there.url))
            assert private.accepted == 0
            return outcome

    assert asyncio.run(main()) == Permanent(f"{status} Over There", status=status)


def test_nothing_is_taken_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password hunter2\n")
    netrc.chmod(0o600)

    async def main() -> Request:
        async with Receiver(answer("502 Proxy")) as proxy, Receiver() as there:
            for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
                monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
            for name in ("NO_PROXY", "no_proxy"):
                monkeypatch.delenv(name, raising=False)
            monkeypatch.setenv("NETRC", str(netrc))
            async with HTTPSender(allow_private=True) as sender:
                assert await sender(claim_to(there.url)) == Delivered(status=204)
            assert proxy.accepted == 0
            return there.requests[0]

    assert "authorization" not in asyncio.run(main()).headers


def test_no_cookie_is_kept() -> None:
    async def main() -> list[Request]:
        cookie = answer("200 OK", "Set-Cookie: session=1; Path=/")
        async with Receiver(cookie) as there, HTTPSender(None, True) as sender:
            for _ in range(2):
                await sender(claim_to(there.url))
            return there.requests

    assert all("cookie" not in request.headers for request in asyncio.run(main()))


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        (None, "the endpoint has no url"),
        ("", "the url ('') needs to be http:// or https:// and a host"),
        ("ftp://h/", "the url ('ftp://h/') needs to be http:// or https:// and a host"),
        ("file:///etc/passwd", "the url ('file:///etc/passwd') needs to be http:// or https://"),
        ("//h/", "the url ('//h/') needs to be http:// or https:// and a host"),
        ("http:///hook", "the url ('http:///hook') needs to be http:// or https:// and a host"),
        ("https://me:hunter2@h/", "the url has a user or a password, which a url is no place for"),
        ("https://me@h/", "the url has a user or a password, which a url is no place for"),
        ("http://h:99999/", "the url has the port 99999, and there is none after 65535"),
        ("http://h:0/", "the url has the port 0, and there is none after 65535"),
        ("http://h\r\nX: y/", "the url cannot be read: "),
        ("http://[::1/", "the url cannot be read: "),
    ],
)
def test_a_url_that_cannot_be_sent_to_is_permanent(url: str | None, reason: str) -> None:
    async def main() -> Outcome:
        async with HTTPSender(allow_private=True) as sender:
            return await sender(claim_to(url))

    outcome = asyncio.run(main())
    assert isinstance(outcome, Permanent)
    assert outcome.status is None
    assert outcome.reason.startswith(reason)
    assert "hunter2" not in outcome.reason


@pytest.mark.parametrize("answered", [OSError("no such name"), []])
def test_a_name_that_is_not_known_is_transient(answered: Any) -> None:
    async def resolve(host: str) -> Sequence[str]:
        if isinstance(answered, OSError):
            raise answered
        return list(answered)

    outcome = refused("http://hooks.example:{port}/", resolve=resolve)
    assert isinstance(outcome, Transient)
    assert outcome.reason.startswith("hooks.example cannot be resolved: ")


def test_a_name_that_no_system_knows_is_transient() -> None:
    outcome = refused("http://" + "x" * 70 + ".invalid:{port}/")
    assert isinstance(outcome, Transient)
    assert "cannot be resolved" in outcome.reason


# TLS


def serving(authority: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(name).configure_cert(context)
    return context


def trusting(authority: trustme.CA) -> httpx2.AsyncClient:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return httpx2.AsyncClient(verify=context, trust_env=False)


def test_a_certificate_is_that_of_the_url_s_host_though_the_connection_is_by_number() -> None:
    authority = trustme.CA()

    async def main() -> tuple[list[Outcome], list[Request]]:
        tls = serving(authority, "hooks.example")
        async with Receiver(tls=tls) as there, trusting(authority) as client:
            sender = HTTPSender(client, True, resolve=knows("127.0.0.1"))
            # Another name at the address of the first, after a connection that was good.
            hosts = ["hooks.example", "hooks.example.", "other.example"]
            urls = [f"https://{host}:{there.port}/" for host in hosts]
            return [await sender(claim_to(url)) for url in urls], there.requests

    (right, dotted, wrong), requests = asyncio.run(main())
    assert right == dotted == Delivered(status=204)
    assert isinstance(wrong, Transient)
    assert wrong.reason.startswith("other.example cannot be reached: [SSL: CERTIFICATE_VERIFY")
    assert "other.example" in wrong.reason.partition("verify failed")[2]
    assert [request.headers["host"].partition(":")[0] for request in requests] == [
        "hooks.example",
        "hooks.example.",
    ]


def test_a_certificate_that_signed_itself_is_transient_in_words(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "own.pem")
    authority.private_key_pem.write_to_path(tmp_path / "own.pem", append=True)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "own.pem")

    async def main() -> Outcome:
        async with Receiver(tls=tls) as there, HTTPSender(None, True) as sender:
            outcome = await sender(claim_to(there.url.replace("http:", "https:")))
            assert there.requests == []
            return outcome

    outcome = asyncio.run(main())
    assert isinstance(outcome, Transient)
    assert "certificate verify failed: self" in outcome.reason


def test_plain_http_where_tls_is_spoken_is_transient_in_words() -> None:
    outcome = sent(b"plain text, no TLS", at_once=True)[0]
    assert isinstance(outcome, Transient)

    async def main() -> Outcome:
        plain = Receiver(b"HTTP/1.1 400 Bad\r\n\r\n", at_once=True)
        async with plain as there, HTTPSender(None, True) as sender:
            return await sender(claim_to(there.url.replace("http:", "https:")))

    outcome = asyncio.run(main())
    assert isinstance(outcome, Transient)
    assert outcome.reason.startswith("127.0.0.1 cannot be reached: [SSL")


# Connections


def test_a_client_that_was_handed_over_stays_open_and_ours_is_closed() -> None:
    async def main() -> None:
        async with httpx2.AsyncClient() as client:
            async with HTTPSender(client):
                pass
            assert not client.is_closed
        sender = HTTPSender(allow_private=True)
        await sender.aclose()
        with pytest.raises(RuntimeError, match="closed"):
            await sender(claim_to("http://127.0.0.1:1/"))

    asyncio.run(main())


def test_what_a_client_of_one_s_own_sends_by_itself_is_not_sent() -> None:
    async def main() -> Request:
        async with (
            Receiver() as there,
            httpx2.AsyncClient(
                headers={"X-Own": "1"},
                cookies={"session": "1"},
                auth=("me", "hunter2"),
                params={"q": "1"},
                follow_redirects=True,
                trust_env=False,
            ) as client,
        ):
            await HTTPSender(client, True)(claim_to(there.url))
            return there.requests[0]

    request = asyncio.run(main())
    assert request.line == "POST /hook HTTP/1.1"
    assert not {"x-own", "cookie", "authorization"} & request.headers.keys()


def test_each_send_has_a_connection_of_its_own() -> None:
    async def main() -> int:
        async with Receiver() as there, HTTPSender(None, True) as sender:
            for _ in range(3):
                await sender(claim_to(there.url))
            await there.until_all_hung_up()
            return there.accepted

    assert asyncio.run(main()) == 3


def test_more_sends_than_a_pool_has_room_for_go_out_at_once() -> None:
    async def main() -> list[Outcome]:
        everybody = asyncio.Event()

        async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if len(there.requests) == 150:
                everybody.set()
            await everybody.wait()
            writer.write(answer("200 OK"))

        async with Receiver(wait) as there, HTTPSender(None, True) as sender:
            claim = claim_to(there.url, timeout=30.0)
            return await asyncio.gather(*(sender(claim) for _ in range(150)))

    assert asyncio.run(main()) == [Delivered(status=200)] * 150


@pytest.mark.parametrize("stage", ["tls", "answer", "body"])
def test_a_cancelled_send_closes_its_connection_and_says_so(stage: str) -> None:
    behaviour: Any = drip_the_body if stage == "body" else silent

    async def main() -> None:
        async with (
            Receiver(behaviour, at_once=stage == "tls") as there,
            HTTPSender(None, True) as sender,
        ):
            url = there.url.replace("http:", "https:") if stage == "tls" else there.url
            send = asyncio.create_task(sender(claim_to(url)))
            while there.accepted == 0:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
            send.cancel()
            with pytest.raises(asyncio.CancelledError):
                await send
            await there.until_all_hung_up()

    asyncio.run(main())


def test_200_sends_of_every_kind_leave_no_file_open() -> None:
    def open_files() -> int:
        return len(list(Path("/dev/fd").iterdir()))

    async def main() -> tuple[int, int]:
        behaviours: list[Any] = [
            answer("200 OK"),
            b"",
            b"garbage\r\n\r\n",
            reset,
            half_then_reset,
            silent,
        ]
        async with HTTPSender(None, True) as sender, contextlib.AsyncExitStack() as stack:
            receivers = [await stack.enter_async_context(Receiver(each)) for each in behaviours]
            urls = [there.url for there in receivers]
            urls += [urls[0].replace("http:", "https:"), "http://127.0.0.1:1/"]

            async def rounds(count: int) -> None:
                claims = [claim_to(url, timeout=0.2) for url in urls]
                for _ in range(count):
                    await asyncio.gather(*(sender(claim) for claim in claims))
                for there in receivers:
                    await there.until_all_hung_up()

            await rounds(1)
            before = open_files()
            await rounds(25)
            return before, open_files()

    before, after = asyncio.run(main())
    assert after == before


def test_nothing_that_is_logged_tells_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        sent(secrets=(SECRET,))
    assert SECRET.removeprefix("whsec_") not in caplog.text


def test_a_sender_may_be_used_in_one_loop_after_another() -> None:
    sender = HTTPSender(allow_private=True)

    async def main() -> Outcome:
        async with Receiver() as there:
            return await sender(claim_to(there.url))

    assert [asyncio.run(main()) for _ in range(2)] == [Delivered(status=204)] * 2
    asyncio.run(sender.aclose())
