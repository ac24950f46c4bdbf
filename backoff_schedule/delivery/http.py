"""Sends deliveries as webhooks: one POST for each claim, over a connection of its own.

| what the receiver does | the answer |
|---|---|
| 2xx, and its body ends or goes on past 64 KiB | `Delivered` |
| 410 | `Permanent`, and the endpoint is disabled |
| 408, 425, 429, 5xx | `Transient`, with the pause that Retry-After asks for |
| any other status, redirects among them | `Permanent` |
| no answer in time, none at all, half of one, no HTTP | `Transient` |
| its name is unknown, its certificate cannot be trusted | `Transient` |

A url that cannot be sent to, an address that is not public, and a secret that cannot sign are
mistakes that no later try mends: `Permanent`, without a status.

Connections are not kept. Two names at one address must not share one, since its certificate was
checked for one of them; and a receiver that closes a kept one at the moment of the next request
makes a failure, or a repetition, that is nobody's fault. A thousand sends on loopback take as long
either way.
"""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from http.cookiejar import CookieJar, DefaultCookiePolicy

try:
    import httpx2
except ModuleNotFoundError as missing:
    if missing.name != "httpx2":
        raise
    message = 'sending over HTTP needs httpx2: pip install "backoff-schedule[http]"'
    raise ModuleNotFoundError(message, name=missing.name) from None

from ..durations import format_duration
from ..refusals import refusal
from .answers import outcome_of, root_of
from .model import Permanent, Transient
from .request_parts import DEFAULT_HEADERS, checked_headers, checked_url, webhook_headers
from .resolving import addresses_of, is_global

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import Any, Self, TypeAlias

    from .model import Claim, Outcome

    Resolve: TypeAlias = Callable[[str], Awaitable[Sequence[str]]]

_SECOND = timedelta(seconds=1)


class HTTPSender:
    """Sends a claim as a webhook, signed as Standard Webhooks says. For a `Worker`.

    - `client`: an `httpx2.AsyncClient` for nothing but these sends, with the certificates that you
      trust or one of your own, and without HTTP/2. Its headers, cookies, auth and timeouts are not
      used, and you close it. None makes one that takes nothing from the environment.
    - `allow_private`: whether an endpoint may be at an address that is not public. Every address
      of a host is checked before anything connects, and the connection goes to one of those.
    - `headers`: more headers, or other values for Content-Type (`application/json`), User-Agent,
      Accept and Accept-Encoding.
    - `resolve`: an async function from a host to its numeric addresses, which raises `OSError` for
      a host that it does not know; the system's if None.

    A send takes at most the claim's timeout, from the look-up of the name to the last byte that is
    read. Redirects are not followed. The body is the payload, byte for byte, and `webhook-id` the
    event's id. `webhook-timestamp` is the database's time. There is one signature for each secret,
    and none without a secret.

    Raises `TypeError` for a client of another kind, and `TypeError` and `ValueError` for headers
    that cannot be sent or that are the sender's own.

    Examples:
        >>> sender = HTTPSender(headers={"X-Source": "orders"})
        >>> sender.allow_private
        False
    """

    def __init__(
        self,
        client: httpx2.AsyncClient | None = None,
        allow_private: bool = False,
        *,
        headers: Mapping[str, str] | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        if client is not None and not isinstance(client, httpx2.AsyncClient):
            rule = "an httpx2.AsyncClient, or None"
            raise TypeError(f"{refusal('client', client, rule)}, not {type(client).__name__}")
        self._headers = DEFAULT_HEADERS | ({} if headers is None else checked_headers(headers))
        self._is_ours = client is None
        self._client = _new_client() if client is None else client
        self._resolve: Resolve = addresses_of if resolve is None else resolve
        self.allow_private = allow_private

    async def __call__(self, claim: Claim) -> Outcome:
        """Send a claim, once, and say what came of it.

        Raises nothing that a receiver can cause. Cancelled, it closes its connection.
        """
        try:
            async with asyncio.timeout(claim.timeout) as limit:
                return await self._exchange(claim, limit)
        except TimeoutError:
            return Transient(f"timed out after {format_duration(claim.timeout)}")

    async def aclose(self) -> None:
        """Close the client, unless it was handed over."""
        if self._is_ours:
            await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _exchange(self, claim: Claim, limit: asyncio.Timeout) -> Outcome:
        began = time.monotonic()
        url = checked_url(claim.url)
        if isinstance(url, Permanent):
            return url
        addresses = await self._addresses(url.raw_host.decode("ascii"))
        if isinstance(addresses, (Transient, Permanent)):
            return addresses
        now = claim.claimed_at + (time.monotonic() - began) * _SECOND
        signed = webhook_headers(claim, now)
        if isinstance(signed, Permanent):
            return signed
        response = await self._response(url, addresses, signed, claim.payload, limit)
        if isinstance(response, (Transient, Permanent)):
            return response
        try:
            now = claim.claimed_at + (time.monotonic() - began) * _SECOND
            return await outcome_of(response, now)
        finally:
            await response.aclose()

    async def _addresses(self, host: str) -> Sequence[str] | Transient | Permanent:
        """Every address of a host, once and checked: who asks again may get another answer."""
        try:
            addresses = await self._resolve(host)
        except OSError as error:
            return Transient(f"{host} cannot be resolved: {error}")
        if not addresses:
            return Transient(f"{host} cannot be resolved: it has no address")
        if not self.allow_private and not all(is_global(address) for address in addresses):
            # Not which one: whoever reads this need not learn what an internal name leads to.
            return Permanent(f"{host} is at an address that is not public")
        return addresses

    async def _response(
        self,
        url: httpx2.URL,
        addresses: Sequence[str],
        signed: Mapping[str, str],
        body: bytes,
        limit: asyncio.Timeout,
    ) -> httpx2.Response | Transient | Permanent:
        host = url.raw_host.decode("ascii")
        own = {"host": url.netloc.decode("ascii"), "connection": "close"}
        unreachable = ""
        for left, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
            opened: list[Any] = []
            try:
                request = httpx2.Request(
                    "POST",
                    url.copy_with(host=address),
                    headers={**own, **self._headers, **signed},
                    content=body,
                    extensions={
                        "timeout": {"connect": _share(limit, left)},
                        "sni_hostname": host.rstrip("."),
                        "trace": _keeping(opened),
                    },
                )
                return await self._client.send(
                    request, stream=True, auth=None, follow_redirects=False
                )
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                # Nothing was sent, so another address may be asked.
                unreachable = root_of(error)
            except (httpx2.LocalProtocolError, httpx2.InvalidURL, ValueError) as error:
                return Permanent(f"cannot be sent to {host}: {root_of(error)}")
            except httpx2.HTTPError as error:
                return Transient(f"no answer from {host}: {root_of(error)}")
            except asyncio.CancelledError:
                # The client forgets a connection that is cancelled while it agrees on TLS.
                for stream in opened:
                    await stream.aclose()
                raise
        return Transient(f"{host} cannot be reached: {unreachable}")


def _keeping(opened: list[Any]) -> Callable[[str, dict[str, Any]], Awaitable[None]]:
    """What the client tells of its progress: keeps each connection that it opens."""

    async def trace(event: str, info: dict[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            opened.append(info["return_value"])

    return trace


def _share(limit: asyncio.Timeout, left: int) -> float | None:
    """The seconds in which one of so many addresses has to answer; the last one has all there is.

    A silent address leaves those behind it their share.
    """
    end = limit.when()
    if end is None or left == 1:
        return None
    return max(0.0, end - asyncio.get_running_loop().time()) / left


def _new_client() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        trust_env=False,
        # How many sends there are at once is the worker's to say.
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
        # A jar that keeps nothing.
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
    )
