"""The receivers of docs/guides/receive-webhooks.md, asked over HTTP as senders and strangers do."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from standardwebhooks import Webhook
from werkzeug.serving import make_server

from backoff_schedule.delivery import InboxCounts, signature_headers
from tests.sign_in_server import client_of, loaded, served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import httpx

GUIDE = Path(__file__).parent.parent.parent / "docs/guides/receive-webhooks.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEW, OLD = "whsec_bmV3IHNlY3JldA==", "whsec_b2xkIHNlY3JldA=="
URL = "/webhooks/acme"
LONGEST_BODY = 256 * 1024
BALANCES = "SELECT account, cents FROM balances ORDER BY account"


class Receiver:
    """A running receiver, and what is in its database."""

    def __init__(self, module: Any, client: httpx.Client, connect: Callable[[], Any]) -> None:
        self.module = module
        self.client = client
        self.connect = connect

    def post(self, body: bytes, headers: Any) -> httpx.Response:
        return self.client.post(URL, content=body, headers=headers)

    def signed(
        self, body: bytes, event_id: str = "e", secrets: Any = (NEW,), at: float | None = None
    ) -> httpx.Response:
        moment = time.time() if at is None else at
        return self.post(body, signature_headers(secrets, event_id, moment, body))

    def balances(self) -> dict[str, int]:
        connection = self.connect()
        try:
            return dict(connection.execute(BALANCES).fetchall())
        finally:
            connection.close()

    def counts(self) -> dict[str, InboxCounts]:
        counts: dict[str, InboxCounts] = self.module.inbox.stats()
        return counts


def payment(account: Any = "ann", cents: Any = 5, type: Any = "payment.received") -> bytes:
    return json.dumps({"type": type, "data": {"account": account, "cents": cents}}).encode()


@contextmanager
def served_by_werkzeug(app: Any) -> Iterator[httpx.Client]:
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with client_of(f"http://127.0.0.1:{server.server_port}") as client:
            yield client
    finally:
        server.shutdown()
        thread.join(60)
        server.server_close()


@pytest.fixture(params=["Starlette", "Flask"])
def receiver(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Receiver]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ACME_SECRETS", f"{NEW} {OLD}")
    [source] = [code for code in BLOCK.findall(GUIDE.read_text()) if f"{request.param}(" in code]
    file = tmp_path / "receiver.py"
    file.write_text(source)
    if request.param == "Starlette":
        conninfo: str = request.getfixturevalue("conninfo")
        monkeypatch.setenv("DATABASE_URL", conninfo)
        serving: Any = served
        connect: Callable[[], Any] = partial(psycopg.connect, conninfo)
    else:
        path = str(tmp_path / "app.db")
        serving = served_by_werkzeug
        connect = partial(sqlite3.connect, path)
    module = loaded(file)
    with serving(module.app) as client:
        yield Receiver(module, client, connect)
    module.inbox.close()


def test_an_event_has_its_effect_and_is_acknowledged(receiver: Receiver) -> None:
    answer = receiver.signed(payment("ann", 2000))
    assert (answer.status_code, answer.content) == (204, b"")
    assert receiver.balances() == {"ann": 2000}
    assert receiver.counts() == {"acme": InboxCounts(received=1, duplicates=0)}


def test_a_duplicate_is_acknowledged_without_a_second_effect(receiver: Receiver) -> None:
    now = time.time()
    answers = [receiver.signed(payment(), "e", at=now - tries).status_code for tries in range(4)]
    assert answers == [204] * 4
    assert receiver.signed(payment(), "f").status_code == 204
    assert receiver.balances() == {"ann": 10}
    assert receiver.counts() == {"acme": InboxCounts(received=2, duplicates=3)}


def test_of_eight_tries_at_the_same_moment_one_has_its_effect(receiver: Receiver) -> None:
    barrier = threading.Barrier(8)

    def one(_: int) -> int:
        barrier.wait(60)
        return receiver.signed(payment()).status_code

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(one, range(8))) == [204] * 8
    assert receiver.balances() == {"ann": 5}
    assert receiver.counts() == {"acme": InboxCounts(received=1, duplicates=7)}


@pytest.mark.parametrize("keeps", [True, False], ids=["commit", "rollback"])
def test_a_try_waits_for_another_that_is_under_way(receiver: Receiver, keeps: bool) -> None:
    under_way = receiver.connect()
    claim = getattr(receiver.module.inbox, "claim")  # noqa: B009  (of either class)
    assert claim(under_way, "acme", "e")
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(receiver.signed, payment())
        time.sleep(0.5)
        assert not waiting.done()
        if keeps:
            under_way.commit()
        else:
            under_way.rollback()
        assert waiting.result().status_code == 204
    under_way.close()
    assert receiver.balances() == ({} if keeps else {"ann": 5})


# What fails leaves nothing.


def failing(receiver: Receiver, monkeypatch: pytest.MonkeyPatch, fails: Callable[..., Any]) -> Any:
    """Lets the effect be written, and then fail."""
    credit = receiver.module.credit
    failing_credit: Any
    if receiver.module.__dict__.get("Starlette"):

        async def credit_and_fail(connection: Any, *values: Any) -> None:
            await credit(connection, *values)
            await fails(connection)

        failing_credit = credit_and_fail
    else:

        def credit_and_fail_sync(connection: Any, *values: Any) -> None:
            credit(connection, *values)
            fails(connection)

        failing_credit = credit_and_fail_sync

    monkeypatch.setattr(receiver.module, "credit", failing_credit)


def raise_something(connection: Any) -> Any:
    raise RuntimeError("the disk burns")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_failure_is_a_500_that_leaves_no_claim_so_that_the_retry_works(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        failing(receiver, patched, raise_something)
        assert receiver.signed(payment()).status_code == 500
    assert receiver.balances() == {}
    assert receiver.counts() == {}
    assert receiver.signed(payment()).status_code == 204
    assert receiver.balances() == {"ann": 5}


@pytest.mark.parametrize("receiver", ["Starlette"], indirect=True)
def test_a_commit_that_fails_is_not_acknowledged(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_open = []

    async def fail_at_the_commit(connection: Any) -> None:
        left_open.append(connection)
        await connection.execute(
            "CREATE TABLE late (id INTEGER UNIQUE DEFERRABLE INITIALLY DEFERRED)"
        )
        await connection.execute("INSERT INTO late VALUES (1), (1)")

    with monkeypatch.context() as patched:
        failing(receiver, patched, fail_at_the_commit)
        assert receiver.signed(payment()).status_code == 500
    assert receiver.counts() == {}
    assert receiver.signed(payment()).status_code == 204
    assert receiver.balances() == {"ann": 5}
    # psycopg does not close a connection whose commit has failed.
    left_open[0].pgconn.finish()


@pytest.mark.parametrize("receiver", ["Flask"], indirect=True)
def test_a_file_that_stays_locked_is_a_500_and_the_retry_works(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda path, timeout=0.1: connect(path, timeout=0.1))
    holder = connect(receiver.module.DATABASE)
    holder.execute("BEGIN IMMEDIATE")
    assert receiver.signed(payment()).status_code == 500
    holder.rollback()
    holder.close()
    assert receiver.signed(payment()).status_code == 204
    assert receiver.balances() == {"ann": 5}


# Who is heard.


@pytest.mark.parametrize("secrets", [[NEW], [OLD], [NEW, OLD], [OLD, "dW5rbm93bg=="]])
def test_one_signature_that_fits_one_secret_is_enough(
    receiver: Receiver, secrets: list[str]
) -> None:
    assert receiver.signed(payment(), secrets=secrets).status_code == 204
    assert receiver.balances() == {"ann": 5}


def test_what_another_library_has_signed_is_heard(receiver: Receiver) -> None:
    body, now = payment(), datetime.now(UTC)
    headers = {
        "Webhook-Id": "msg_1",
        "Webhook-Timestamp": str(int(now.timestamp())),
        "Webhook-Signature": Webhook(OLD).sign("msg_1", now, body.decode()),
    }
    assert receiver.post(body, headers).status_code == 204
    assert receiver.balances() == {"ann": 5}


def test_what_nobody_with_a_secret_has_signed_is_a_401_and_claims_nothing(
    receiver: Receiver,
) -> None:
    body, now = payment(), time.time()
    good = signature_headers([NEW], "e", now, body)
    refused = [
        receiver.signed(body, secrets=["dW5rbm93bg=="]),
        receiver.signed(body, at=now - 3600),
        receiver.signed(body, at=now + 3600),
        receiver.post(payment(cents=6), good),
        receiver.post(b"", good),
        receiver.post(body, {}),
        *(receiver.post(body, {**good, name: ""}) for name in good),
        *(receiver.post(body, {**good, name: b"\xff\xe9\x80"}) for name in good),
        *(receiver.post(body, {**good, name: "9" * 5000}) for name in good),
        *(receiver.post(body, [*good.items(), (name, value)]) for name, value in good.items()),
        receiver.post(body, {**good, "webhook-id": "f"}),
        receiver.post(body, {**good, "webhook-timestamp": str(int(now) + 1)}),
    ]
    assert [answer.status_code for answer in refused] == [401] * len(refused)
    assert {answer.headers["WWW-Authenticate"] for answer in refused} == {"Webhook-Signature"}
    assert {answer.headers["Content-Type"] for answer in refused} == {"text/plain; charset=utf-8"}
    assert receiver.counts() == {}
    assert receiver.balances() == {}
    assert receiver.post(body, good).status_code == 204


# What is heard and makes no sense.


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"\0",
        b"[]",
        b"7",
        b"null",
        b'"payment.received"',
        b"[" * 200_000,
        b'{"type": ' * 20_000,
        b'{"type": "payment.received"}',
        b'{"type": "payment.received", "data": []}',
        b'{"type": "payment.received", "data": {"account": "ann", "cents": %s}}' % (b"9" * 5000),
        b'{"type": "payment.received", "data": {"account": "ann", "cents": NaN}}',
        payment(account=None),
        payment(account=""),
        payment(account="a\0"),
        payment(account="\ud800"),
        payment(account="ann\n"),
        payment(account="a" * 65),
        payment(account=["ann"]),
        payment(cents=0),
        payment(cents=-5),
        payment(cents=1.5),
        payment(cents=True),
        payment(cents="5"),
        payment(cents=10**12),
        payment(cents=10**30),
    ],
    ids=lambda body: repr(body[:60]),
)
def test_a_body_that_cannot_be_read_is_a_400_and_claims_nothing(
    receiver: Receiver, body: bytes
) -> None:
    answer = receiver.signed(body)
    assert (answer.status_code, answer.headers["Content-Type"]) == (
        400,
        "text/plain; charset=utf-8",
    )
    assert receiver.counts() == {}
    assert receiver.balances() == {}
    # The sender may mend it and send it under the same id.
    assert receiver.signed(payment()).status_code == 204


def test_an_event_of_a_type_that_is_not_used_is_acknowledged(receiver: Receiver) -> None:
    unused: list[Any] = ["payment.refunded", None, 7, ["payment.received"], {}]
    for type in unused:
        assert receiver.signed(payment(type=type)).status_code == 204
    assert receiver.counts() == {}
    assert receiver.balances() == {}


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    body=st.one_of(
        st.binary(),
        st.builds(
            lambda value: json.dumps(value).encode(),
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
                lambda inner: (
                    st.lists(inner)
                    | st.dictionaries(st.sampled_from(["type", "data"]) | st.text(), inner)
                ),
            ),
        ),
        st.builds(payment, st.text(st.characters(exclude_categories=())), st.integers()),
    ),
    is_signed=st.booleans(),
)
def test_no_input_is_an_error_of_the_receivers(
    receiver: Receiver, body: bytes, is_signed: bool
) -> None:
    if is_signed:
        assert receiver.signed(body).status_code in (204, 400)
    else:
        assert receiver.post(body, {"webhook-id": "e"}).status_code == 401


def in_pieces(size: int) -> Iterator[bytes]:
    for start in range(0, size, 65_536):
        yield b"x" * min(65_536, size - start)


@pytest.mark.parametrize("chunked", [True, False], ids=["chunked", "with a length"])
def test_a_body_is_read_up_to_its_bound_and_no_further(receiver: Receiver, chunked: bool) -> None:
    def answer(size: int) -> int:
        content: Any = in_pieces(size) if chunked else b"x" * size
        return receiver.client.post(URL, content=content).status_code

    assert [answer(LONGEST_BODY + more) for more in (0, 1, 200_000)] == [401, 413, 413]
    padded = payment()[:-1] + b" " * LONGEST_BODY + b"}"
    assert receiver.signed(padded).status_code == 413
    assert receiver.counts() == {}
    assert receiver.signed(padded[: LONGEST_BODY - 1] + b"}").status_code == 204
    assert receiver.balances() == {"ann": 5}


def test_other_methods_and_places_are_refused(receiver: Receiver) -> None:
    assert receiver.client.get(URL).status_code == 405
    assert receiver.client.put(URL).status_code == 405
    assert receiver.client.post("/webhooks/other").status_code == 404
    assert receiver.client.post("/webhooks/acme%00").status_code == 404
