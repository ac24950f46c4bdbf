"""What a webhook's request is made of, checked: its url, its headers, its signature."""

from __future__ import annotations

import math
from importlib.metadata import version

import httpx2

from ..refusals import refusal, shown
from .model import Permanent
from .signing import signature_headers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from .model import Claim

_LAST_PORT = 65535

DEFAULT_HEADERS = {
    "content-type": "application/json",
    "user-agent": f"backoff-schedule/{version('backoff-schedule')}",
    "accept": "*/*",
    # What is kept of an answer is read by people.
    "accept-encoding": "identity",
}
# What the exchange itself says.
_OWN_HEADERS = {
    "connection",
    "content-length",
    "expect",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
}
_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers that can be sent, their names in lower case. No message shows a value.

    Raises `TypeError` for what is no mapping of text to text; `ValueError` for what a header cannot
    hold, for a name that is there twice, and for one that the sender itself gives.
    """
    if not callable(getattr(headers, "items", None)):
        kind = type(headers).__name__
        raise TypeError(f"headers needs to be a mapping of names to text, not {kind}")
    checked: dict[str, str] = {}
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError("headers needs to be a mapping of names to text")
        field = name.lower()
        if not field or not _TOKEN.issuperset(field):
            raise ValueError(refusal("headers", name, "named by letters, digits and dashes"))
        if field in _OWN_HEADERS:
            raise ValueError(f"headers has {field}, which the sender itself gives")
        if field in checked:
            raise ValueError(f"headers has {field} twice")
        if not (value.isascii() and value.isprintable() and value == value.strip()):
            rule = "printable ASCII without a space at either end"
            raise ValueError(f"headers[{field!r}] (not shown) needs to be {rule}")
        checked[field] = value
    return checked


def checked_url(text: str | None) -> httpx2.URL | Permanent:
    """Where to send to, or why nothing can be sent there."""
    if text is None:
        return Permanent("the endpoint has no url")
    try:
        url = httpx2.URL(text)
    except httpx2.InvalidURL as error:
        return Permanent(f"the url cannot be read: {error}")
    if url.userinfo:
        # Not shown: it may be a password.
        return Permanent("the url has a user or a password, which a url is no place for")
    if url.scheme not in ("http", "https") or not url.host:
        return Permanent(f"the url ({shown(text)}) needs to be http:// or https:// and a host")
    if url.port is not None and not 1 <= url.port <= _LAST_PORT:
        return Permanent(f"the url has the port {url.port}, and there is none after {_LAST_PORT}")
    return url


def webhook_headers(claim: Claim, now: datetime) -> dict[str, str] | Permanent:
    """The headers of Standard Webhooks, signed with each secret there is, or why they cannot be."""
    if not claim.secrets:
        seconds = math.floor(now.timestamp())
        return {"webhook-id": claim.event_id, "webhook-timestamp": str(seconds)}
    try:
        return signature_headers(claim.secrets, claim.event_id, now, claim.payload)
    except ValueError as error:
        return Permanent(f"cannot be signed: {error}")
