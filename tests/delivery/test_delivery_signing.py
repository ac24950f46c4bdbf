"""Signatures, with the package `standardwebhooks` as the oracle.

It signs text only, so it is given text.
"""

from __future__ import annotations

import hmac
import time
from base64 import b64decode, b64encode
from datetime import UTC, datetime, timedelta
from email.message import Message
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from backoff_schedule.delivery.signing import (
    SignatureRefused,
    Verified,
    sign,
    signature_headers,
    verify,
)

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
AT = 1614265330
BODY = b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
HEADERS = {"webhook-id": ID, "webhook-timestamp": str(AT), "webhook-signature": SIGNATURE}

secrets = st.binary(min_size=1, max_size=64).map(lambda key: f"whsec_{b64encode(key).decode()}")
visible = st.characters(min_codepoint=32, max_codepoint=126, exclude_characters=".")
event_ids = st.text(visible, min_size=1).filter(lambda text: text == text.strip())
seconds = st.integers(0, 253402300799)
bodies = st.text(st.characters(exclude_categories=["Cs"]))


def refused(headers: Any = HEADERS, body: bytes = BODY, now: float = AT, **options: Any) -> str:
    with pytest.raises(SignatureRefused) as caught:
        verify(options.pop("secrets", [SECRET]), headers, body, now=now, **options)
    return str(caught.value)


# Against the oracle and the published example.


def test_the_published_example_is_signed_and_verified() -> None:
    assert sign(SECRET, ID, AT, BODY) == SIGNATURE
    assert signature_headers([SECRET], ID, AT, BODY) == HEADERS
    assert verify([SECRET], HEADERS, BODY, now=AT) == Verified(ID, AT)


@given(secrets, event_ids, seconds, bodies)
def test_the_oracle_signs_the_same(secret: str, event_id: str, at: int, body: str) -> None:
    theirs = Webhook(secret).sign(event_id, datetime.fromtimestamp(at, UTC), body)
    assert sign(secret, event_id, at, body.encode()) == theirs


@given(secrets, event_ids, st.integers(-290, 290), bodies)
def test_the_oracle_verifies_what_we_sign_and_we_what_it_signs(
    secret: str, event_id: str, away: int, body: str
) -> None:
    oracle, at = Webhook(secret), int(time.time()) + away
    oracle.verify(
        body, signature_headers([OTHER, secret], event_id, at, body.encode()), json_parse=False
    )
    headers = {
        "webhook-id": event_id,
        "webhook-timestamp": str(at),
        "webhook-signature": oracle.sign(event_id, datetime.fromtimestamp(at, UTC), body),
    }
    assert verify([OTHER, secret], headers, body.encode()) == Verified(event_id, at)


@given(secrets, event_ids, seconds, st.binary(), st.sampled_from(["id", "timestamp", "body"]))
def test_any_bytes_are_verified_and_any_change_is_refused(
    secret: str, event_id: str, at: int, body: bytes, changed: str
) -> None:
    headers = signature_headers([secret], event_id, at, body)
    assert verify([secret], headers, body, now=at) == Verified(event_id, at)
    if changed == "body":
        body += b" "
    else:
        headers[f"webhook-{changed}"] = {"id": f"{event_id}x", "timestamp": str(at + 1)}[changed]
    assert refused(headers, body, now=at, secrets=[secret]).endswith("that fits this request")


def test_the_oracle_refuses_what_we_refuse_for_another_secret() -> None:
    headers = signature_headers([SECRET], ID, time.time(), BODY)
    with pytest.raises(WebhookVerificationError):
        Webhook(OTHER).verify(BODY, headers)
    with pytest.raises(SignatureRefused):
        verify([OTHER], headers, BODY)


# Rotation: a receiver may switch at any moment of the overlap.


@pytest.mark.parametrize("known", [[SECRET], [OTHER], [OTHER, SECRET]])
def test_while_two_secrets_sign_either_verifies(known: list[str]) -> None:
    headers = signature_headers([SECRET, OTHER], ID, AT, BODY)
    assert headers["webhook-signature"] == f"{SIGNATURE} {sign(OTHER, ID, AT, BODY)}"
    assert verify(known, headers, BODY, now=AT) == Verified(ID, AT)


def test_every_secret_is_compared_with_every_signature_whichever_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[tuple[str, str]] = []
    compare = hmac.compare_digest

    def counting(one: str, other: str) -> bool:
        compared.append((one, other))
        return compare(one, other)

    monkeypatch.setattr(hmac, "compare_digest", counting)
    for known in ([SECRET, OTHER], [OTHER, SECRET]):
        compared.clear()
        verify(known, HEADERS | {"webhook-signature": f"v1,x {SIGNATURE} v1,y"}, BODY, now=AT)
        assert len(compared) == 6


def test_other_versions_and_broken_entries_beside_a_good_one_are_passed_over() -> None:
    for beside in ("v1a,hnO3f9T8", "v2", "v1,", "v1,???", "v1,\xe9", ",", f"v1{SIGNATURE}"):
        field = f"{beside} {SIGNATURE} {beside}"
        headers = HEADERS | {"webhook-signature": field}
        assert verify([SECRET], headers, BODY, now=AT) == Verified(ID, AT)


# Time, in both directions.


@pytest.mark.parametrize("away", [-300, 300, -299.5, 0])
def test_the_limit_of_the_tolerance_still_holds(away: float) -> None:
    assert verify([SECRET], HEADERS, BODY, now=AT + away).timestamp == AT


def test_a_request_too_old_or_too_new_is_refused_and_the_message_says_by_how_much() -> None:
    limit = "at most 5m is allowed"
    assert refused(now=AT + 301) == f"webhook-timestamp is 5m 1s old: {limit}"
    assert refused(now=AT - 3600) == f"webhook-timestamp is 1h ahead: {limit}"
    assert refused(now=AT + 11, tolerance="10s").endswith("at most 10s is allowed")


def test_now_may_be_a_datetime_and_is_the_clock_otherwise() -> None:
    moment = datetime.fromtimestamp(AT, UTC)
    assert sign(SECRET, ID, moment + timedelta(seconds=0.9), BODY) == SIGNATURE
    assert verify([SECRET], HEADERS, BODY, now=moment) == Verified(ID, AT)
    with pytest.raises(SignatureRefused, match="old"):
        verify([SECRET], HEADERS, BODY)


# The headers as frameworks hand them over.


@pytest.mark.parametrize(
    "shape",
    [
        lambda: {name.title(): value for name, value in HEADERS.items()},
        lambda: {name.upper().encode(): value.encode() for name, value in HEADERS.items()},
        lambda: [(name.encode(), value.encode()) for name, value in HEADERS.items()],
        lambda: [("accept", "a"), ("accept", "b"), *HEADERS.items()],
        lambda: iter({name: f" {value}\t" for name, value in HEADERS.items()}.items()),
    ],
)
def test_headers_come_in_any_case_as_text_or_bytes_as_mapping_or_pairs(
    shape: Callable[[], Any],
) -> None:
    assert verify([SECRET], shape(), BODY, now=AT) == Verified(ID, AT)


def test_the_headers_of_the_standard_library_are_read() -> None:
    message = Message()
    for name, value in HEADERS.items():
        message[name.title()] = value
    assert verify([SECRET], message, BODY, now=AT) == Verified(ID, AT)


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("value", [None, "", " ", b"", 7, ["a"]])
def test_a_header_that_is_missing_empty_or_no_text_is_refused(name: str, value: Any) -> None:
    headers: dict[str, Any] = HEADERS | {name: value}
    assert refused(headers) == f"{name}: missing or empty"
    del headers[name]
    assert refused(headers) == f"{name}: missing or empty"


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_is_there_twice_is_refused(name: str) -> None:
    doubled = [*HEADERS.items(), (name.upper(), HEADERS[name])]
    assert refused(doubled) == f"{name} is there more than once"


@pytest.mark.parametrize(
    "text", ["soon", "-1", "+1614265330", "1614265330.0", "1e9", "1_0", "\u0661", "9" * 13, "inf"]
)
def test_a_timestamp_that_is_no_whole_number_is_refused(text: str) -> None:
    assert "is not whole epoch seconds" in refused(HEADERS | {"webhook-timestamp": text})


def test_a_timestamp_is_signed_as_it_is_written() -> None:
    key = b64decode(SECRET.removeprefix("whsec_"))
    mac = hmac.digest(key, b"order-7.0060.{}", "sha256")
    headers = {
        "webhook-id": "order-7",
        "webhook-timestamp": "0060",
        "webhook-signature": f"v1,{b64encode(mac).decode()}",
    }
    assert verify([SECRET], headers, b"{}", now=60) == Verified("order-7", 60)
    assert "that fits" in refused(headers | {"webhook-timestamp": "60"}, b"{}", now=60)


@pytest.mark.parametrize("at", [0, 253402300799])
def test_the_first_and_the_last_second_are_signed_and_verified(at: int) -> None:
    headers = signature_headers([SECRET], ID, at, BODY)
    assert verify([SECRET], headers, BODY, now=at) == Verified(ID, at)


@pytest.mark.parametrize("text", ["v1a,abc", "v2,abc", "g0hM9SsE", "v1", "V1,abc", "\ud800"])
def test_without_a_v1_signature_a_request_is_refused(text: str) -> None:
    assert refused(HEADERS | {"webhook-signature": text}).endswith("has no v1 signature")


def test_signed_bytes_cannot_be_cut_into_another_id_time_and_body() -> None:
    body = b"1800000000.paid"
    headers = signature_headers([SECRET], "order-7", AT, body)
    headers |= {"webhook-id": f"order-7.{AT}", "webhook-timestamp": "1800000000"}
    assert "without a full stop" in refused(headers, b"paid", now=1800000000)


odd = st.one_of(
    st.none(),
    st.integers(),
    st.text(),
    st.binary(),
    st.sampled_from([*HEADERS.values(), f"{SIGNATURE} v1,", "v1, v1,\ud800", "0" * 5000]),
)
names = st.one_of(st.sampled_from([*HEADERS, "Webhook-Id", b"webhook-timestamp"]), odd)


@given(st.one_of(st.dictionaries(names, odd), st.lists(st.tuples(names, odd))), st.binary())
def test_whatever_comes_is_verified_or_refused(headers: Any, body: bytes) -> None:
    try:
        answer = verify([SECRET, OTHER], headers, body, now=AT)
    except SignatureRefused:
        return
    assert answer == Verified(ID, AT)
    assert body == BODY


@given(st.fixed_dictionaries({name: st.one_of(odd, st.just(HEADERS[name])) for name in HEADERS}))
def test_with_one_header_or_more_replaced_by_anything_a_request_is_verified_or_refused(
    headers: Any,
) -> None:
    try:
        assert verify([SECRET], headers, BODY, now=AT) == Verified(ID, AT)
    except SignatureRefused:
        assert headers != HEADERS


# What the caller gets wrong.


@pytest.mark.parametrize("prefix", ["", "whsec_"])
@pytest.mark.parametrize("padding", ["", "=="])
def test_a_secret_may_lack_its_prefix_and_its_padding(prefix: str, padding: str) -> None:
    assert sign(f"{prefix}c2VjcmV0IQ{padding}", ID, AT, BODY) == sign(
        "whsec_c2VjcmV0IQ==", ID, AT, BODY
    )


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "====", "no base64!", "whpk_MfKQ", "_-_-", "MfKQ\n", "gehe\xefm", "A"]
)
def test_a_secret_that_is_none_is_refused_and_never_shown(secret: str) -> None:
    rule = r"\(not shown\) needs to be base64 of one byte or more$"
    with pytest.raises(ValueError, match=rf"^secret {rule}") as caught:
        sign(secret, ID, AT, BODY)
    assert not isinstance(caught.value, SignatureRefused)
    assert caught.value.__cause__ is caught.value.__context__ is None
    for call in (
        lambda: verify([SECRET, secret], HEADERS, BODY),
        lambda: signature_headers([SECRET, secret], ID, AT, BODY),
    ):
        with pytest.raises(ValueError, match=rf"^secrets\[1\] {rule}") as caught:
            call()
        assert not isinstance(caught.value, SignatureRefused)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (SECRET, "secrets needs to be a list of secrets, not str"),
        (None, "secrets needs to be a list of secrets, not NoneType"),
        ([SECRET, SECRET.encode()], r"secrets\[1\] needs to be text, not bytes"),
    ],
)
def test_secrets_of_another_type_are_refused_and_never_shown(wrong: Any, message: str) -> None:
    for call in (
        lambda: verify(wrong, HEADERS, BODY),
        lambda: signature_headers(wrong, ID, AT, BODY),
    ):
        with pytest.raises(TypeError, match=f"^{message}$"):
            call()


def test_no_secret_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="secrets needs to hold one secret or more"):
        verify([], HEADERS, BODY)


@pytest.mark.parametrize("body", ["private", bytearray(b"private"), None, {"private": 1}])
def test_a_body_that_is_not_bytes_is_refused_and_never_shown(body: Any) -> None:
    message = f"^body needs to be bytes, as they go over the wire, not {type(body).__name__}$"
    for call in (
        lambda: sign(SECRET, ID, AT, body),
        lambda: signature_headers([SECRET], ID, AT, body),
        lambda: verify([SECRET], {}, body),
    ):
        with pytest.raises(TypeError, match=message):
            call()


@pytest.mark.parametrize(
    "event_id", ["", " a", "a ", "a.b", "a\r\nhost: b", "a\x00", "a\x7f", "caf\xe9", "\ud800"]
)
def test_an_id_that_a_header_cannot_hold_is_refused_at_both_ends(event_id: str) -> None:
    with pytest.raises(ValueError, match=r"^event_id \(.*\) needs to be printable ASCII without"):
        sign(SECRET, event_id, AT, BODY)
    if event_id == event_id.strip() != "":
        assert "is not printable ASCII" in refused(HEADERS | {"webhook-id": event_id})


@pytest.mark.parametrize("at", [-1, -0.5, 253402300800, float("inf"), datetime(2026, 1, 1)])
def test_a_time_that_cannot_be_written_is_refused(at: Any) -> None:
    with pytest.raises(ValueError, match=r"^timestamp \(.*\) needs to be"):
        sign(SECRET, ID, at, BODY)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: sign(SECRET, b"id", AT, BODY), "event_id"),  # type: ignore[arg-type]
        (lambda: sign(SECRET, ID, "now", BODY), "timestamp"),  # type: ignore[arg-type]
        (lambda: verify([SECRET], HEADERS, BODY, now="now"), "now"),  # type: ignore[arg-type]
        (lambda: verify([SECRET], HEADERS, BODY, tolerance=None), "tolerance"),  # type: ignore[arg-type]
        (lambda: verify([SECRET], None, BODY), "headers"),  # type: ignore[arg-type]
        (lambda: verify([SECRET], [1], BODY), "headers"),  # type: ignore[list-item]
        (lambda: verify([SECRET], [("a", "b", "c")], BODY), "headers"),  # type: ignore[list-item]
    ],
)
def test_an_argument_of_another_type_is_named(call: Callable[[], Any], name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name} .*needs to be"):
        call()
