from __future__ import annotations

import asyncio
import socket
import threading
from ipaddress import IPv4Address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backoff_schedule.delivery.resolving import addresses_of, is_global

NOT_GLOBAL = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::8.8.8.8",
    "64:ff9b:1::1",
    "100::1",
    "2001:db8::1",
    "2001::1",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "",
    "2130706433",
    "0177.0.0.1",
    "localhost",
]


@pytest.mark.parametrize("address", NOT_GLOBAL)
def test_what_is_local_reserved_or_no_number_is_not_global(address: str) -> None:
    assert not is_global(address)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "93.184.215.14", "2606:4700:4700::1111", "2a00:1450:4001::5e"]
)
def test_what_a_receiver_on_the_internet_has_is_global(address: str) -> None:
    assert is_global(address)


@given(st.integers(0, 2**32 - 1))
def test_an_ipv4_address_inside_an_ipv6_one_is_as_global_as_it_is_alone(number: int) -> None:
    alone = is_global(str(IPv4Address(number)))
    high, low = number >> 16, number & 0xFFFF
    for clothes in ("::ffff:{:x}:{:x}", "64:ff9b::{:x}:{:x}", "2002:{:x}:{:x}::1"):
        assert is_global(clothes.format(high, low)) is alone


@pytest.mark.parametrize("host", ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.1"])
def test_every_spelling_of_an_address_is_read_by_the_system(host: str) -> None:
    assert asyncio.run(addresses_of(host)) == ["127.0.0.1"]


def test_an_address_is_answered_once() -> None:
    found = asyncio.run(addresses_of("localhost"))
    assert "127.0.0.1" in found
    assert len(found) == len(set(found))


def test_a_host_that_nobody_knows_is_an_os_error() -> None:
    for host in ("x" * 300, "a\0b", ""):
        with pytest.raises(OSError):
            asyncio.run(addresses_of(host))


def test_a_name_server_that_is_silent_does_not_stop_the_loop_or_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, answered = threading.Event(), threading.Event()

    def slow(*_: Any, **__: Any) -> list[Any]:
        asked.set()
        answered.wait(5)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", slow)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await addresses_of("slow.example")
        assert asked.is_set()

    before = set(threading.enumerate())
    asyncio.run(main())
    (thread,) = set(threading.enumerate()) - before
    assert thread.daemon
    # It comes back to a loop that has ended, and says nothing.
    answered.set()
    thread.join(5)
    assert not thread.is_alive()
