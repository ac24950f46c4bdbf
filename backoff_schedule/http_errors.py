"""Which HTTP failures are worth another try, whatever client reports them.

Ready-made answers for a policy's `on` and `retry_after`. They know the exceptions and responses of
httpx, requests, urllib3, aiohttp, `urllib` and `http.client` by what those look like, and import
none of them.
"""

from __future__ import annotations

import errno

from .http_retry import classify_status, retry_after_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# By the client's package and the class's name. A subclass counts as its base does.
_BROKEN = {
    ("httpx", "TransportError"),
    ("httpx2", "TransportError"),
    ("requests", "ConnectionError"),
    ("requests", "Timeout"),
    ("requests", "ChunkedEncodingError"),
    ("urllib3", "TimeoutError"),
    ("urllib3", "ProtocolError"),
    ("urllib3", "ProxyError"),
    ("aiohttp", "ClientConnectionError"),
    ("aiohttp", "ClientPayloadError"),
    ("http", "IncompleteRead"),
    ("http", "BadStatusLine"),
    ("socket", "gaierror"),
    ("builtins", "ConnectionError"),
    ("builtins", "TimeoutError"),
}
# Would fail again in the same way. They come first, since some derive from those above.
_WRONG = {
    ("httpx", "UnsupportedProtocol"),
    ("httpx", "LocalProtocolError"),
    ("httpx2", "UnsupportedProtocol"),
    ("httpx2", "LocalProtocolError"),
    ("requests", "InvalidProxyURL"),
    ("urllib3", "LocationParseError"),
    ("aiohttp", "ClientConnectorCertificateError"),
    ("ssl", "SSLCertVerificationError"),
}
# An OSError that says so by its number.
_UNREACHABLE = {
    errno.ECONNABORTED,
    errno.EHOSTUNREACH,
    errno.ENETDOWN,
    errno.ENETRESET,
    errno.ENETUNREACH,
}
# Chains of exceptions are short, and a circular one has no end.
_DEEPEST = 20


def transient_http(outcome: object) -> bool:
    """Whether an HTTP exception or response is worth another try: for `on` and `on_result`.

    With a status it is `classify_status` that decides: 408, 425, 429 and 5xx. Without, a timeout,
    a broken or refused connection and a name that cannot be resolved are worth another try; a
    certificate that cannot be trusted, a malformed address and anything else are not.

    Examples:
        >>> from backoff_schedule import create_backoff, presets, retry
        >>> policy = retry(
        ...     presets.QUICK, attempts=4, on=transient_http, retry_after=http_retry_after
        ... )
        >>> [transient_http(error) for error in (ConnectionResetError(), ValueError())]
        [True, False]
    """
    status = _status(outcome)
    if status is not None:
        return classify_status(status) == "retry"
    if not isinstance(outcome, BaseException):
        return False
    chain = list(_chain(outcome))
    if any(_is_one_of(_WRONG, link) for link in chain):
        return False
    return any(_is_broken(link) for link in _wrapped(outcome))


def http_retry_after(outcome: object) -> float | None:
    """The seconds that an HTTP exception or response asks to wait, or None: for `retry_after`.

    Reads Retry-After, and `retry-after-ms`, of the response or of the exception's response, as
    `retry_after_from` does. Never raises for what the server sent.

    Examples:
        >>> class Response:
        ...     status_code = 503
        ...     headers = {"Retry-After": "7"}
        >>> http_retry_after(Response())
        7.0
        >>> http_retry_after(ConnectionResetError()) is None
        True
    """
    for holder in (_response(outcome), outcome):
        headers: Any = getattr(holder, "headers", None)
        if callable(getattr(headers, "items", None)):
            return retry_after_from(headers)
    return None


def _status(outcome: object) -> int | None:
    for holder in (_response(outcome), outcome):
        for name in ("status_code", "status", "code"):
            status = getattr(holder, name, None)
            if isinstance(status, int) and not isinstance(status, bool) and 100 <= status <= 599:
                return status
    return None


def _response(outcome: object) -> object:
    try:
        return getattr(outcome, "response", None)
    except RuntimeError:
        # httpx raises this where no response has been set.
        return None


def _is_broken(exception: BaseException) -> bool:
    if _is_one_of(_BROKEN, exception):
        return True
    return isinstance(exception, OSError) and exception.errno in _UNREACHABLE


def _is_one_of(names: set[tuple[str, str]], exception: BaseException) -> bool:
    return any(
        (kind.__module__.partition(".")[0], kind.__name__) in names
        for kind in type(exception).__mro__
    )


def _wrapped(exception: BaseException) -> Iterator[BaseException]:
    """The exception and what it wraps on purpose, as urllib and urllib3 do."""
    link: object = exception
    for _ in range(_DEEPEST):
        if not isinstance(link, BaseException):
            return
        yield link
        link = getattr(link, "reason", None)


def _chain(exception: BaseException) -> Iterator[BaseException]:
    """The exception and all that it wraps, was raised from, or arose from."""
    seen: set[int] = set()
    waiting: list[object] = [exception]
    while waiting and len(seen) < _DEEPEST:
        link = waiting.pop()
        if not isinstance(link, BaseException) or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        waiting += [link.__context__, link.__cause__, getattr(link, "reason", None), *link.args]
