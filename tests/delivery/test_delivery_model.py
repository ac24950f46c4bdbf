from __future__ import annotations

import http
import math
import pickle
from dataclasses import FrozenInstanceError, fields
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backoff_schedule import CircuitState
from backoff_schedule.delivery import (
    DEFAULT_POLICY,
    Claim,
    Decision,
    Delivered,
    Delivery,
    Endpoint,
    Outcome,
    Permanent,
    State,
    Ticket,
    Transient,
    Try,
)
from backoff_schedule.delivery.model import as_outcome

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
CLAIM = Claim(
    id=7,
    event_id="evt_1",
    endpoint="acme",
    url="https://acme.example/hook?token=s3cret",
    type="order.created",
    payload=b'{"card": "4111"}',
    attempt=2,
    timeout=30.0,
    created_at=NOON,
    deadline_at=None,
    expires_at=None,
    secrets=("whsec_old", "whsec_new"),
    policy=DEFAULT_POLICY,
    token=3,
    redrives=0,
    endpoint_id=1,
    generation=0,
    probe=False,
    lost=False,
    claimed_at=NOON,
)
DELIVERY = Delivery(
    id=7,
    event_id="evt_1",
    endpoint="acme",
    type=None,
    payload=b'{"card": "4111"}',
    state="dead",
    attempts=5,
    next_attempt_at=None,
    last_status=503,
    last_error="busy",
    redrives=0,
    created_at=NOON,
    finished_at=NOON,
    expires_at=None,
)


# Outcomes.


def test_a_transient_says_how_long_the_server_asked_to_wait_in_seconds() -> None:
    asked = Transient("busy", status=503, retry_after=120)
    assert (asked.reason, asked.status, asked.retry_after) == ("busy", 503, 120.0)
    assert isinstance(asked.retry_after, float)
    assert Transient("no answer") == Transient("no answer", status=None, retry_after=None)


@given(st.one_of(st.integers(min_value=0), st.floats(min_value=0)))
def test_every_wait_that_is_not_negative_may_be_asked_for(seconds: float) -> None:
    asked = Transient("busy", retry_after=seconds).retry_after
    assert asked is not None
    assert asked >= 0.0
    assert asked == math.inf or asked == pytest.approx(seconds)


@pytest.mark.parametrize("seconds", [math.inf, 10**400])
def test_a_wait_without_end_may_be_asked_for(seconds: float) -> None:
    assert Transient("busy", retry_after=seconds).retry_after == math.inf


def test_a_status_may_be_an_enum_that_is_an_int() -> None:
    assert Delivered(status=http.HTTPStatus.OK) == Delivered(status=200)


@pytest.mark.parametrize(
    ("kind", "options", "error", "message"),
    [
        (Delivered, {"status": "200"}, TypeError, "status ('200') needs to be a whole number"),
        (Delivered, {"status": True}, TypeError, "status (True) needs to be a whole number"),
        (Delivered, {"status": 2**31}, ValueError, "status (2147483648) needs to be a whole"),
        (Delivered, {"status": -(2**31) - 1}, ValueError, "status (-2147483649) needs to be"),
        (Transient, {"reason": None}, TypeError, "reason (None) needs to be text, not NoneType"),
        (Transient, {"reason": "", "status": 5.0}, TypeError, "status (5.0) needs to be"),
        (Transient, {"reason": "", "retry_after": -1}, ValueError, "retry_after (-1) needs to be"),
        (Transient, {"reason": "", "retry_after": -0.1}, ValueError, "retry_after (-0.1) needs"),
        (Transient, {"reason": "", "retry_after": math.nan}, ValueError, "retry_after (nan) needs"),
        (Transient, {"reason": "", "retry_after": "5"}, TypeError, "retry_after ('5') needs to be"),
        (Transient, {"reason": "", "retry_after": True}, TypeError, "retry_after (True) needs"),
        (Permanent, {"reason": b"gone"}, TypeError, "reason (b'gone') needs to be text, not bytes"),
        (Permanent, {"reason": "", "status": "410"}, TypeError, "status ('410') needs to be"),
        (
            Permanent,
            {"reason": "", "disable_endpoint": 1},
            TypeError,
            "disable_endpoint (1) needs to be True or False, not int",
        ),
    ],
)
def test_an_outcome_that_says_nothing_is_refused(
    kind: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as refused:
        kind(**options)
    assert str(refused.value).startswith(message)


def test_only_the_reason_is_given_by_place() -> None:
    make: Any
    for make in (Transient, Permanent):
        assert make("why").reason == "why"
        with pytest.raises(TypeError):
            make("why", 503)
    make = Delivered
    with pytest.raises(TypeError):
        make(200)


@pytest.mark.parametrize("outcome", [Delivered(status=200), Transient("busy"), Permanent("no")])
def test_an_outcome_is_an_outcome(outcome: Outcome) -> None:
    assert isinstance(outcome, Outcome)
    assert as_outcome(outcome) is outcome
    assert pickle.loads(pickle.dumps(outcome)) == outcome
    with pytest.raises(FrozenInstanceError):
        outcome.status = 1  # type: ignore[misc]


def test_a_sender_that_answers_no_outcome_is_tried_again_and_told_so() -> None:
    assert as_outcome(None) == Transient("the sender answered None, not an outcome")
    assert as_outcome(200) == Transient("the sender answered 200, not an outcome")
    assert as_outcome(Delivered) == Transient(
        "the sender answered <class 'backoff_schedule.delivery.model.Delivered'>, not an outcome"
    )


def test_an_answer_whose_repr_fails_or_never_ends_is_named_all_the_same() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError

    named = as_outcome(Broken())
    assert named == Transient("the sender answered <Broken>, not an outcome")
    long = as_outcome("x" * 10**6)
    assert isinstance(long, Transient)
    assert len(long.reason) < 200


# What a store hands out.


@pytest.mark.parametrize("secret", ["4111", "whsec", "s3cret"])
def test_the_repr_of_a_claim_and_of_a_delivery_shows_nothing_confidential(secret: str) -> None:
    for shown in (repr(CLAIM), f"{CLAIM}", f"{CLAIM!s}", repr([DELIVERY])):
        assert secret not in shown
        assert "16 bytes" in shown
        assert "evt_1" in shown
        assert "acme" in shown


def test_the_repr_of_a_claim_tells_which_row_and_how_large() -> None:
    assert repr(CLAIM) == (
        "<Claim id=7 event_id='evt_1' endpoint='acme' attempt=2 payload: 16 bytes, secrets: 2>"
    )
    assert repr(DELIVERY) == (
        "<Delivery id=7 event_id='evt_1' endpoint='acme' state='dead' attempts=5 payload: 16 bytes>"
    )


@pytest.mark.parametrize(
    "value",
    [
        CLAIM,
        DELIVERY,
        Decision("pending", NOON),
        Ticket("evt_1", True),
        Try(
            number=1,
            redrive=0,
            started_at=NOON,
            seconds=None,
            status=None,
            error=None,
            outcome="lost",
            event_id="evt_1",
        ),
        Endpoint(
            name="acme",
            url=None,
            policy_options={},
            max_in_flight=8,
            disabled_at=None,
            disabled_reason=None,
            circuit=CircuitState(),
            secrets=2,
        ),
    ],
)
def test_what_a_store_hands_out_is_a_value_without_a_dict(value: Any) -> None:
    assert pickle.loads(pickle.dumps(value)) == value
    assert not hasattr(value, "__dict__")
    with pytest.raises(FrozenInstanceError):
        setattr(value, fields(value)[0].name, None)


def test_a_decision_says_no_more_than_it_has_to() -> None:
    assert Decision("delivered") == Decision("delivered", None, None)


def test_the_reason_of_a_delivery_may_be_left_out() -> None:
    assert DELIVERY.reason is None


def test_the_states_can_be_listed() -> None:
    assert get_args(State) == ("pending", "sending", "delivered", "failed", "dead", "expired")
