from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from backoff_schedule import create_backoff
from backoff_schedule.delivery import DeliveryPolicy
from tests.delivery.conftest import STEPS, Clock

if TYPE_CHECKING:
    from backoff_schedule.delivery import Endpoint
    from backoff_schedule.delivery.outbox import Outbox


def only(outbox: Outbox) -> Endpoint:
    (endpoint,) = outbox.endpoints()
    return endpoint


def secrets(outbox: Outbox) -> tuple[str, ...]:
    event_id = outbox.enqueue("acme", b"x").event_id
    (claim,) = outbox.claim(1, STEPS)
    assert claim.event_id == event_id
    return claim.secrets


def test_a_new_endpoint_has_a_cap_of_eight_and_the_workers_policy(outbox: Outbox) -> None:
    outbox.add_endpoint("new")
    (_, new) = outbox.endpoints()
    assert (new.name, new.url, new.max_in_flight, new.policy_options) == ("new", None, 8, {})
    assert (new.disabled_at, new.circuit.phase, new.secrets) == (None, "closed", 0)


def test_a_second_call_changes_what_it_names_and_keeps_the_rest(outbox: Outbox) -> None:
    outbox.add_endpoint(
        "acme", url="https://one", secrets=["a"], policy={"timeout": "5s"}, max_in_flight=3
    )
    outbox.disable("acme", reason="maintenance")
    outbox.add_endpoint("acme", url="https://two")
    found = only(outbox)
    assert (found.url, found.secrets, found.max_in_flight) == ("https://two", 1, 3)
    assert found.policy_options == {"timeout": 5.0}
    assert found.disabled_reason == "maintenance"
    outbox.add_endpoint("acme", max_in_flight=None, policy=None, url=None)
    found = only(outbox)
    assert (found.url, found.max_in_flight, found.policy_options) == (None, None, {})


def test_rotation_signs_with_both_secrets_until_the_overlap_is_over(
    outbox: Outbox, clock: Clock
) -> None:
    outbox.add_endpoint("acme", secrets=["old"])
    outbox.rotate_secret("acme", "new", overlap="1 hour")
    assert secrets(outbox) == ("new", "old")
    clock.forward(1800)
    outbox.rotate_secret("acme", "newest", overlap="1 hour")
    assert secrets(outbox) == ("newest", "new", "old")
    clock.forward(1800)
    assert secrets(outbox) == ("newest", "new")
    assert only(outbox).secrets == 2
    clock.forward(1800)
    assert secrets(outbox) == ("newest",)


def test_rotating_to_the_same_secret_twice_keeps_it_once(outbox: Outbox) -> None:
    outbox.add_endpoint("acme", secrets=["old"])
    for _ in range(2):
        outbox.rotate_secret("acme", "new")
    assert secrets(outbox) == ("new", "old")


def test_nothing_that_is_shown_shows_a_secret(outbox: Outbox) -> None:
    outbox.add_endpoint("acme", secrets=["whsec_hidden"])
    outbox.enqueue("acme", b"x")
    assert "hidden" not in f"{outbox.endpoints()} {outbox.claim(1)}"
    with pytest.raises(TypeError, match="secrets needs to be a list") as refused:
        outbox.add_endpoint("acme", secrets="whsec_hidden")
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"name": ""}, ValueError, "endpoint"),
        ({"name": "a\0b"}, ValueError, "endpoint"),
        ({"max_in_flight": 0}, ValueError, "max_in_flight"),
        ({"max_in_flight": True}, TypeError, "max_in_flight"),
        ({"url": 7}, TypeError, "url"),
        ({"secrets": [7]}, TypeError, "secrets"),
        ({"secrets": [""]}, ValueError, "secret"),
        ({"policy": {"colour": 1}}, TypeError, "colour"),
        ({"policy": {"timeout": -1}}, ValueError, "timeout"),
        ({"policy": 7}, TypeError, "policy"),
        (
            {"policy": DeliveryPolicy(create_backoff(compute=float), max_attempts=2)},
            TypeError,
            "compute",
        ),
    ],
)
def test_what_an_endpoint_cannot_be_is_refused_and_changes_nothing(
    outbox: Outbox, arguments: dict[str, Any], error: type[Exception], said: str
) -> None:
    before = outbox.endpoints()
    call = {"name": "acme", **arguments}
    with pytest.raises(error, match=said):
        outbox.add_endpoint(call.pop("name"), **call)
    assert outbox.endpoints() == before
