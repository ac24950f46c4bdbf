"""The receivers of the demo, each over a connection of the test's own."""

from __future__ import annotations

from contextlib import closing
from http.client import HTTPConnection, HTTPResponse, RemoteDisconnected
from typing import TYPE_CHECKING

import pytest

from backoff_schedule.cli.demo.ledger import Ledger
from backoff_schedule.cli.demo.receiver import Behaviour, Receiver
from backoff_schedule.cli.demo.shop import MORNING, Clock
from backoff_schedule.delivery import signature_headers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = "whsec_b2xk"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger(tmp_path / "receivers.db", Clock())) as ledger:
        yield ledger


@pytest.fixture
def receiver(ledger: Ledger) -> Iterator[Receiver]:
    with closing(Receiver(ledger, SECRET, Clock())) as receiver:
        receiver.start()
        yield receiver


def post(receiver: Receiver, *, secret: str = SECRET) -> HTTPResponse:
    headers = signature_headers([secret], "invoice-1", MORNING, b"{}")
    with closing(HTTPConnection("127.0.0.1", receiver.port, timeout=10)) as connection:
        connection.request("POST", "/hooks", b"{}", headers)
        response = connection.getresponse()
        response.read()
        return response


def test_an_event_that_comes_twice_has_one_effect_and_two_answers(
    receiver: Receiver, ledger: Ledger
) -> None:
    assert post(receiver).status == 204
    assert ledger.deeds(MORNING) == {"invoice-1": "wrote its effect"}
    assert post(receiver).status == 204
    assert ledger.deeds(MORNING) == {"invoice-1": "knew it already"}
    assert (ledger.effects(), ledger.requests()) == ({"invoice-1": 1}, (2, 0))


@pytest.mark.parametrize(
    ("behaviour", "status", "retry_after"),
    [(Behaviour.FAILS, 503, None), (Behaviour.IS_BUSY, 429, "600")],
)
def test_a_receiver_that_puts_off_has_no_effect_and_no_claim(
    receiver: Receiver,
    ledger: Ledger,
    behaviour: Behaviour,
    status: int,
    retry_after: str | None,
) -> None:
    receiver.behaviour = behaviour
    response = post(receiver)
    assert (response.status, response.headers["Retry-After"]) == (status, retry_after)
    assert (ledger.effects(), ledger.requests()) == ({}, (1, 1))
    assert ledger.deeds(MORNING) == {"invoice-1": "did nothing"}
    receiver.behaviour = Behaviour.WORKS
    post(receiver)
    assert ledger.effects() == {"invoice-1": 1}


def test_a_receiver_that_hangs_up_has_committed_before(receiver: Receiver, ledger: Ledger) -> None:
    receiver.behaviour = Behaviour.HANGS_UP
    with pytest.raises(RemoteDisconnected):
        post(receiver)
    assert ledger.effects() == {"invoice-1": 1}


def test_a_request_with_another_signature_is_refused_and_not_noted(
    receiver: Receiver, ledger: Ledger
) -> None:
    assert post(receiver, secret="whsec_bmV3").status == 401
    assert (ledger.effects(), ledger.requests()) == ({}, (0, 0))


def test_a_receiver_that_was_stopped_refuses_and_comes_back_on_its_port(
    receiver: Receiver,
) -> None:
    port = receiver.port
    assert post(receiver).status == 204
    receiver.stop()
    with pytest.raises(ConnectionRefusedError):
        post(receiver)
    assert receiver.port == port
    receiver.start()
    assert post(receiver).status == 204


def test_a_closed_receiver_refuses(receiver: Receiver) -> None:
    receiver.close()
    with (
        closing(HTTPConnection("127.0.0.1", receiver.port, timeout=10)) as connection,
        pytest.raises(ConnectionRefusedError),
    ):
        connection.connect()
