"""Signatures of webhooks: what a sender puts into three headers, and what a receiver checks.

This is the symmetric scheme, `v1`, of the Standard Webhooks specification 1.0.0, sections
"Signature scheme", "Webhook headers" and "Verifying signatures":

| header | holds |
|---|---|
| webhook-id | the event's id, the same at every try |
| webhook-timestamp | whole epoch seconds of this try |
| webhook-signature | for each secret `v1,` and the base64 of HMAC-SHA-256, with spaces in between |

What is signed is `id.timestamp.body`, with the secret's bytes as the key. A secret is written in
base64 behind `whsec_`. As the specification advises, an id holds no full stop, here at either
end: with one, the same signed bytes could be cut into another id, time and body.

No error here tells a secret or a body.
"""

from __future__ import annotations

import hmac
import math
import time
from base64 import b64decode, b64encode
from dataclasses import dataclass

from ..durations import format_duration, to_seconds
from ..instants import epoch_seconds
from ..refusals import refusal, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from typing import Any, Protocol, TypeAlias

    from ..durations import DurationLike

    Pairs: TypeAlias = Iterable[tuple[str | bytes, str | bytes]]

    class HasPairs(Protocol):
        def items(self) -> Pairs: ...


_ID, _TIMESTAMP, _SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
_FIELDS = (_ID, _TIMESTAMP, _SIGNATURE)
_LAST_SECOND = 253402300799  # 9999-12-31T23:59:59Z
_ID_RULE = "printable ASCII without a full stop, and without a space at either end"


class SignatureRefused(ValueError):  # noqa: N818  (it is a refusal, not a fault)
    """A request whose signature does not hold. The message says why and tells no secret."""


@dataclass(frozen=True, slots=True)
class Verified:
    """What a signature vouches for, besides the body.

    Attributes:
        event_id: The event's id, the same at every try: what came under it before is a repetition.
        timestamp: When this try was signed, in whole epoch seconds.
    """

    event_id: str
    timestamp: int


def sign(secret: str, event_id: str, timestamp: float | datetime, body: bytes) -> str:
    """One entry of the webhook-signature header, such as `v1,g0hM9SsE...`.

    `secret` is base64, with or without `whsec_` in front; it may lack its padding. The
    specification asks senders for 24 to 64 bytes; any length but none is taken. `event_id` is
    printable ASCII, which is what a header can hold, without a full stop or a space at either end.
    `timestamp` is epoch seconds from 0 to the end of the year 9999, or an aware datetime; a
    fraction of a second is dropped. `body` is signed as it is, byte by byte.

    Raises `ValueError` for values outside these ranges, `TypeError` for another type.

    Examples:
        >>> secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        >>> sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
        'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    key = _key(secret, "secret")
    seconds = _whole_seconds(timestamp)
    return _signature(key, _content(_checked_id(event_id), seconds, _checked_body(body)))


def signature_headers(
    secrets: Iterable[str], event_id: str, timestamp: float | datetime, body: bytes
) -> dict[str, str]:
    """The three headers of a request, with one signature for each of `secrets`, in their order.

    While a secret is exchanged, both the new and the old one sign, so that the receiver may
    switch at any moment of the overlap. The other arguments are those of `sign`.

    Raises as `sign` does, and `ValueError` for no secret at all.

    Examples:
        >>> headers = signature_headers(["bmV3", "b2xk"], "order-7", 1_800_000_000, b"{}")
        >>> headers["webhook-timestamp"], headers["webhook-signature"].count("v1,")
        ('1800000000', 2)
    """
    keys = _keys(secrets)
    seconds = _whole_seconds(timestamp)
    content = _content(_checked_id(event_id), seconds, _checked_body(body))
    return {
        _ID: event_id,
        _TIMESTAMP: str(seconds),
        _SIGNATURE: " ".join(_signature(key, content) for key in keys),
    }


def verify(
    secrets: Iterable[str],
    headers: HasPairs | Pairs,
    body: bytes,
    tolerance: DurationLike = "5 minutes",
    now: float | datetime | None = None,
) -> Verified:
    """The id and the time of a request that somebody with one of `secrets` has signed.

    `secrets` are all that are valid at present, written as `sign` takes them. `headers` is a
    mapping, or pairs of name and value, as str or bytes, the names in any case. `body` is what
    came over the wire: JSON that was read and written again is another text. `tolerance` is how
    far the signed time may lie from `now`, on either side and the limit included. `now` is epoch
    seconds or an aware datetime; the system clock if None.

    One signature that fits one secret is enough. Other versions than `v1` are passed over. The
    time that this takes does not tell which secret or signature fitted.

    A request that was signed can come again within the tolerance: remember each `event_id`, at
    least for as long as the sender may try it.

    Raises `SignatureRefused`, a `ValueError`, for whatever else a request may bring: a header that
    is missing, malformed or there twice, a time too far away, no signature that fits. Raises
    `ValueError` or `TypeError` for what is the caller's own: `secrets`, a `body` that is not bytes,
    `tolerance`, `now`, and `headers` that are neither a mapping nor pairs.

    Examples:
        >>> headers = signature_headers(["b2xk"], "order-7", 1_800_000_000, b"{}")
        >>> verify(["bmV3", "b2xk"], headers, b"{}", now=1_800_000_060)
        Verified(event_id='order-7', timestamp=1800000000)
    """
    keys = _keys(secrets)
    allowed = to_seconds(tolerance, "tolerance")
    moment = time.time() if now is None else epoch_seconds(now)
    _checked_body(body)
    event_id, written, signatures = _fields(headers)
    if not _can_be_sent(event_id):
        raise SignatureRefused(f"{_ID} ({shown(event_id)}) is not {_ID_RULE}")
    timestamp = _read_timestamp(written, moment, allowed)
    given = [each for each in signatures.split() if each.startswith("v1,") and each.isascii()]
    if not given:
        raise SignatureRefused(f"{_SIGNATURE} has no v1 signature")
    content = _content(event_id, written, body)
    expected = [_signature(key, content) for key in keys]
    # Each with each, in constant time: to stop at the first that fits would tell which it was.
    fitting = [hmac.compare_digest(one, other) for one in expected for other in given]
    if not any(fitting):
        raise SignatureRefused(f"{_SIGNATURE} has no signature that fits this request")
    return Verified(event_id, timestamp)


def _signature(key: bytes, content: bytes) -> str:
    return "v1," + b64encode(hmac.digest(key, content, "sha256")).decode()


def _content(event_id: str, timestamp: int | str, body: bytes) -> bytes:
    return f"{event_id}.{timestamp}.".encode() + body


def _checked_body(body: bytes) -> bytes:
    if not isinstance(body, bytes):
        kind = type(body).__name__
        raise TypeError(f"body needs to be bytes, as they go over the wire, not {kind}")
    return body


def _keys(secrets: Iterable[str]) -> list[bytes]:
    if isinstance(secrets, (str, bytes)) or not hasattr(secrets, "__iter__"):
        kind = type(secrets).__name__
        raise TypeError(f"secrets needs to be a list of secrets, not {kind}")
    keys = [_key(secret, f"secrets[{index}]") for index, secret in enumerate(secrets)]
    if not keys:
        raise ValueError("secrets needs to hold one secret or more")
    return keys


def _key(secret: str, name: str) -> bytes:
    if not isinstance(secret, str):
        raise TypeError(f"{name} needs to be text, not {type(secret).__name__}")
    text = secret.removeprefix("whsec_")
    try:
        key = b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        key = b""
    if not key:
        raise ValueError(f"{name} (not shown) needs to be base64 of one byte or more")
    return key


def _checked_id(event_id: str) -> str:
    if not isinstance(event_id, str):
        kind = type(event_id).__name__
        raise TypeError(f"{refusal('event_id', event_id, _ID_RULE)}, not {kind}")
    if not _can_be_sent(event_id):
        raise ValueError(refusal("event_id", event_id, _ID_RULE))
    return event_id


def _can_be_sent(event_id: str) -> bool:
    printable = event_id.isascii() and event_id.isprintable()
    return printable and "." not in event_id and event_id == event_id.strip() != ""


def _whole_seconds(timestamp: float | datetime) -> int:
    seconds = math.floor(epoch_seconds(timestamp, "timestamp"))
    if not 0 <= seconds <= _LAST_SECOND:
        raise ValueError(refusal("timestamp", timestamp, "from 1970 to the end of 9999"))
    return seconds


def _fields(headers: HasPairs | Pairs) -> list[str]:
    """The values of the three headers, in the order of `_FIELDS`."""
    found: dict[str, str] = {}
    for name, value in _pairs(headers):
        field = _text(name).lower()
        if field in found:
            raise SignatureRefused(f"{field} is there more than once")
        if field in _FIELDS:
            found[field] = _text(value).strip(" \t")
    missing = [field for field in _FIELDS if not found.get(field)]
    if missing:
        raise SignatureRefused(f"{' and '.join(missing)}: missing or empty")
    return [found[field] for field in _FIELDS]


def _pairs(headers: Any) -> list[tuple[str | bytes, str | bytes]]:
    # Not only a Mapping has items: the headers of http.server are none, and iterate over names.
    try:
        pairs = headers.items() if hasattr(headers, "items") else headers
        return [(name, value) for name, value in pairs]
    except (TypeError, ValueError):
        rule = "a mapping, or pairs of name and value"
        raise TypeError(f"headers needs to be {rule}, not {type(headers).__name__}") from None


def _text(value: str | bytes) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value if isinstance(value, str) else ""


def _read_timestamp(text: str, now: float, allowed: float) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(_LAST_SECOND))):
        raise SignatureRefused(f"{_TIMESTAMP} ({shown(text)}) is not whole epoch seconds")
    age = now - int(text)
    if abs(age) > allowed:
        words = "old" if age > 0 else "ahead"
        limit = f"at most {format_duration(allowed)} is allowed"
        raise SignatureRefused(f"{_TIMESTAMP} is {format_duration(abs(age))} {words}: {limit}")
    return int(text)
