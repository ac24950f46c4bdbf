"""Where a host is, and whether everybody may know: what a sender asks before it connects.

An endpoint's url is often somebody else's text. A host that is, or that a name server calls,
`127.0.0.1` or `169.254.169.254` would let it reach what only this machine can.
"""

from __future__ import annotations

import asyncio
import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from threading import Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Set apart for protocols, but for a few addresses that no receiver of webhooks has.
_NOT_GLOBAL_4 = (IPv4Network("192.0.0.0/24"), IPv4Network("192.88.99.0/24"))
_NOT_GLOBAL_6 = IPv6Network("3fff::/20")
# All that has been given out. What lies outside is local, a translation or nobody's.
_GIVEN_OUT = IPv6Network("2000::/3")
# An IPv4 address in other clothes (IPv4-mapped, NAT64, 6to4), and how far from the end it stands.
_EMBEDDING = (
    (IPv6Network("::ffff:0:0/96"), 0),
    (IPv6Network("64:ff9b::/96"), 0),
    (IPv6Network("2002::/16"), 80),
)


def is_global(address: str) -> bool:
    """Whether a numeric address is one of a single machine on the open internet.

    False for loopback, private, link-local, shared, multicast and reserved addresses, for an IPv4
    address of these inside an IPv6 one, and for what is no address.

    Examples:
        >>> [is_global(each) for each in ("93.184.215.14", "10.0.0.1", "::ffff:10.0.0.1")]
        [True, False, False]
    """
    try:
        number = ip_address(address)
    except ValueError:
        return False
    if isinstance(number, IPv4Address):
        return _is_global_4(number)
    for network, shift in _EMBEDDING:
        if number in network:
            return _is_global_4(IPv4Address(int(number) >> shift & 0xFFFFFFFF))
    return _is_global_6(number)


async def addresses_of(host: str) -> list[str]:
    """Every numeric address that the system knows for a host, in its order of preference.

    Raises `OSError` for a host that it does not know.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str]] = loop.create_future()

    def tell(found: list[str] | None, error: OSError | None) -> None:
        # Whoever asked may have gone.
        if not answer.done():
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(found or [])

    def ask() -> None:
        found, failure = None, None
        try:
            found = _asked(host)
        except OSError as error:
            failure = error
        try:
            loop.call_soon_threadsafe(tell, found, failure)
        except RuntimeError:
            # The loop has ended in the meantime.
            return

    # A thread of its own: names whose servers are silent would fill a pool that all share, and a
    # daemon does not keep the process from its end.
    Thread(target=ask, daemon=True).start()
    return await answer


def _asked(host: str) -> list[str]:
    try:
        # As bytes, since Python has rules of its own for a host that is text.
        known: Sequence[tuple[object, ...]] = socket.getaddrinfo(
            host.encode("ascii"), None, type=socket.SOCK_STREAM
        )
    except ValueError as error:
        raise OSError(str(error)) from None
    families = (socket.AF_INET, socket.AF_INET6)
    found = [entry[4] for entry in known if entry[0] in families]
    return list(dict.fromkeys(str(place[0]) for place in found if isinstance(place, tuple)))


def _is_global_4(number: IPv4Address) -> bool:
    if number.is_multicast or any(number in network for network in _NOT_GLOBAL_4):
        return False
    return number.is_global


def _is_global_6(number: IPv6Address) -> bool:
    return number in _GIVEN_OUT and number not in _NOT_GLOBAL_6 and number.is_global
