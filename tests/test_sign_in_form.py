"""The form of docs/guides/lock-out-guessers.md, asked over HTTP as browsers and guessers ask it."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from backoff_schedule import Lockout, LockoutState, PostgresLockouts, SQLiteLockouts, create_backoff
from tests.sign_in_server import FORM, loaded, served, served_by_a_process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx

HERE = "203.0.113.7"
FORM_TYPE = {"Content-Type": "application/x-www-form-urlencoded"}
SPELLINGS = [
    "ann@example.com",
    "ANN@Example.com",
    "\N{FULLWIDTH LATIN SMALL LETTER A}nn@example.com",
    "  ann@example.com\t",
]


class Form:
    """The running form, with a clock that stands still and a note of every password it checks."""

    def __init__(self, module: Any, client: httpx.Client) -> None:
        self.module = module
        self.client = client
        self.now = 1_800_000_000.0
        self.checked: list[bytes] = []
        self.costs: set[tuple[int, int, int]] = set()

    def post(self, name: str, password: str, host: str = HERE) -> httpx.Response:
        headers = {"X-Forwarded-For": host}
        fields = {"name": name, "password": password}
        return self.client.post("/", data=fields, headers=headers)

    def statuses(self, name: str, times: int, password: str = "guess") -> list[int]:
        return [self.post(name, password).status_code for _ in range(times)]

    def scrypt(self, password: bytes, *, salt: bytes, n: int, r: int, p: int) -> bytes:
        self.checked.append(password)
        self.costs.add((n, r, p))
        return hashlib.scrypt(password, salt=salt, n=2, r=1, p=1)

    def state_of(self, name: str) -> LockoutState:
        state: LockoutState = self.module.accounts.peek(self.module.account_key(name))
        return state


def write_form(folder: Path, source: str = FORM) -> Path:
    file = folder / "sign_in.py"
    file.write_text(source)
    return file


@pytest.fixture
def form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Form]:
    monkeypatch.chdir(tmp_path)
    module = loaded(write_form(tmp_path))
    # A test may put another one in their place.
    stores = (module.accounts, module.addresses)
    with served(module.app) as client:
        form = Form(module, client)
        clock = SimpleNamespace(
            time_ns=lambda: round(form.now * 1e9), monotonic=time.monotonic, sleep=time.sleep
        )
        monkeypatch.setattr("backoff_schedule.database.sqlite.time", clock)
        monkeypatch.setattr(module, "scrypt", form.scrypt)
        module.add_user("Ann@example.com", "right")
        form.checked.clear()
        yield form
    for store in stores:
        store.close()


def test_the_page_shows_the_form(form: Form) -> None:
    page = form.client.get("/")
    assert page.status_code == 200
    assert '<input name="password" type="password"' in page.text


def test_the_right_password_signs_in(form: Form) -> None:
    answer = form.post("ann@example.com", "right")
    assert answer.status_code == 200
    assert "Welcome." in answer.text
    assert form.checked == [b"right"]
    assert form.costs == {(2**14, 8, 5)}


def test_five_wrong_passwords_and_then_the_right_one_is_refused_unchecked(form: Form) -> None:
    assert form.statuses("ann@example.com", 5) == [401] * 5
    form.now += 0.5
    refused = form.post("ann@example.com", "right")
    assert refused.status_code == 429
    assert refused.headers["Retry-After"] == "60"
    assert form.checked == [b"guess"] * 5
    form.now += 59.0
    assert form.post("ann@example.com", "right").headers["Retry-After"] == "1"
    form.now += 0.5
    assert form.post("ann@example.com", "right").status_code == 200


def test_knocking_does_not_prolong_the_lock(form: Form) -> None:
    form.statuses("ann@example.com", 5)
    before = form.state_of("ann@example.com")
    for _ in range(5):
        form.now += 10.0
        assert form.post("ann@example.com", "guess").status_code == 429
    assert form.state_of("ann@example.com") == before


def test_a_success_clears_the_account_and_leaves_the_address(form: Form) -> None:
    assert form.statuses("ann@example.com", 4) == [401] * 4
    assert form.post("ann@example.com", "right").status_code == 200
    assert form.state_of("ann@example.com") == LockoutState()
    assert form.module.addresses.peek(form.module.address_key(HERE)).failures == 5
    assert form.statuses("ann@example.com", 5) == [401] * 5


def test_an_unknown_account_is_answered_and_locked_like_a_known_one(form: Form) -> None:
    def answers(name: str) -> list[tuple[int, bytes, dict[str, str]]]:
        given = [form.post(name, "guess") for _ in range(6)]
        headers = [{**answer.headers, "date": ""} for answer in given]
        return [
            (answer.status_code, answer.content, fields)
            for answer, fields in zip(given, headers, strict=True)
        ]

    known = answers("ann@example.com")
    assert len(form.checked) == 5
    assert answers("nobody@example.com") == known
    assert len(form.checked) == 10
    assert [status for status, _, _ in known] == [401] * 5 + [429]


def test_spellings_of_one_account_share_one_count(form: Form) -> None:
    tries = [form.post(SPELLINGS[n % 4], "guess").status_code for n in range(6)]
    assert tries == [401] * 5 + [429]
    form.now += 60.0
    for name in SPELLINGS:
        assert form.post(name, "right").status_code == 200


def test_an_address_that_is_locked_is_refused_everywhere_and_counts_no_account(form: Form) -> None:
    tries = [form.post(f"user{n}", "guess").status_code for n in range(52)]
    assert tries == [401] * 51 + [429]
    refused = form.post("ann@example.com", "right")
    assert refused.status_code == 429
    assert refused.headers["Retry-After"] == "1"
    assert form.state_of("ann@example.com") == LockoutState()
    assert len(form.checked) == 51
    assert form.post("ann@example.com", "right", host="198.51.100.1").status_code == 200


def test_a_right_password_in_between_does_not_clear_the_address(form: Form) -> None:
    tries = [form.post(f"user{n}", "guess").status_code for n in range(49)]
    assert form.post("ann@example.com", "right").status_code == 200
    tries += [form.post(f"user{n}", "guess").status_code for n in range(49, 51)]
    assert tries == [401] * 50 + [429]


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:203.0.113.7", "203.0.113.7", True),
        ("203.0.113.7", "203.0.113.8", False),
        ("unknown", "unknown", True),
    ],
)
def test_whoever_has_one_address_of_a_64_has_them_all(
    form: Form, one: str, other: str, shared: bool
) -> None:
    assert form.post("ann@example.com", "right", host=one).status_code == 200
    expected = 1 if shared else 0
    assert form.module.addresses.peek(form.module.address_key(other)).failures == expected


def test_a_lock_without_end_has_no_retry_after(form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    for_ever = Lockout(create_backoff(steps=[1e300]))
    store = SQLiteLockouts(form.module.DATABASE, for_ever)
    monkeypatch.setattr(form.module, "accounts", store)
    assert form.statuses("ann@example.com", 1) == [401]
    refused = form.post("ann@example.com", "right")
    assert refused.status_code == 429
    assert "Retry-After" not in refused.headers
    store.close()


def test_what_cannot_be_counted_is_not_checked(form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form.module.addresses._database, "_patience", 0.2)
    holder = sqlite3.connect(form.module.DATABASE, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    assert form.post("ann@example.com", "right").status_code == 503
    holder.execute("ROLLBACK")
    holder.close()
    assert form.checked == []
    assert form.post("ann@example.com", "right").status_code == 200


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"name=ann", 400),
        (b"password=right", 400),
        (b"name=ann&name=bob&password=right", 400),
        (b"name=a&password=b&" + b"x=1&" * 9, 400),
        (b"name=\xff\xfe&password=right", 400),
        (b"name=%FF%FE&password=right", 400),
        (b"name=%ED%A0%80&password=right", 400),
        (b"name=" + b"a" * 1_000_000 + b"&password=right", 400),
        (b'{"name": "ann", "password": "right"}', 400),
        (b'--x\r\nContent-Disposition: form-data; name="name"\r\n\r\nann\r\n--x--\r\n', 400),
        (b"name=&password=", 401),
        (b"name=ann%00%40example.com&password=right", 401),
        (b"name=ann%40example.com&password=%00right", 401),
        (b"name=" + "ﷺ".encode() * 1000 + b"&password=right", 401),
        (b"name=%F0%9F%94%91&password=%F0%9F%94%91", 401),
        (b"name=' OR 1=1 --&password=right", 401),
    ],
    ids=range(17),
)
def test_odd_input_is_refused_and_never_an_error(form: Form, body: bytes, status: int) -> None:
    assert form.client.post("/", content=body, headers=FORM_TYPE).status_code == status
    assert form.post("ann@example.com", "right").status_code == 200


def hundred_at_once(client: httpx.Client) -> Counter[int]:
    """Statuses of 100 guesses at one account, each from an address of its own."""

    def guess(number: int) -> int:
        headers = {**FORM_TYPE, "X-Forwarded-For": f"198.51.100.{number}"}
        body = urlencode({"name": "ann@example.com", "password": f"guess {number}"})
        return client.post("/", content=body, headers=headers).status_code

    with ThreadPoolExecutor(100) as threads:
        return Counter(threads.map(guess, range(100)))


def test_of_a_hundred_guesses_at_once_five_are_checked(form: Form) -> None:
    assert hundred_at_once(form.client) == {401: 5, 429: 95}
    assert len(form.checked) == 5
    assert form.state_of("ann@example.com").failures == 5


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_two_processes_share_the_counts(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    source = FORM
    if database == "postgres":
        where = request.getfixturevalue("conninfo")
        source = source.replace("SQLiteLockouts(DATABASE,", f"PostgresLockouts({where!r},")
        source = source.replace("SQLiteLockouts", "PostgresLockouts")
        assert source.count(PostgresLockouts.__name__) == 3
    write_form(tmp_path, source)
    command = ["-m", "uvicorn", "sign_in:app", "--port", "0", "--workers", "2"]
    with served_by_a_process(tmp_path, *command, "--no-access-log") as client:
        assert hundred_at_once(client) == {401: 5, 429: 95}


def test_a_guesser_has_about_a_hundred_passwords_a_day(form: Form) -> None:
    lockout, state, now, tries = form.module.by_account, LockoutState(), 0.0, []
    while now < 86_400.0:
        state = lockout.after_failure(state, now)
        tries.append(now)
        now += lockout.locked_for(state, now)
    assert len(tries) == 103
    assert len([moment for moment in tries if moment <= 900.0]) == 9
