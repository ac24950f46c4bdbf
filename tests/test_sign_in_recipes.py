"""The recipes of docs/guides/lock-out-guessers.md, in real FastAPI and real Django over HTTP."""

from __future__ import annotations

import sqlite3
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from backoff_schedule import Lockout, LockoutState, SQLiteLockouts, create_backoff
from tests.sign_in_server import DJANGO, FASTAPI, loaded, served, served_by_a_process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx

# Half a surrogate pair, which UTF-8 has no bytes for and UTF-7 has.
SURROGATE = b'Content-Disposition: form-data; name="%s"\r\n\r\n+2AA-\r\n'
# What the test adds to the project of the guide.
DJANGO_SERVER = """
import uvicorn
from django.contrib.auth import aauthenticate, authenticate
from django.contrib.auth.models import User
from django.core.asgi import get_asgi_application
from django.core.management import call_command
from django.db.transaction import non_atomic_requests


def fails_afterwards(request):
    authenticate(request, username="ann", password="guess")
    User.objects.create_user("rolled back")
    raise ValueError


@non_atomic_requests
async def awaits(request):
    user = await aauthenticate(request, username="ann", password="guess")
    return HttpResponse(status=200 if user else 401)


def without_a_request(request):
    user = authenticate(username="ann", password="guess")
    return HttpResponse(status=200 if user else 401)


def users(request):
    return HttpResponse(" ".join(User.objects.values_list("username", flat=True)))


if __name__ == "__main__":
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # quick
    accounts._database._patience = addresses._database._patience = 3.0
    call_command("migrate", verbosity=0)
    User.objects.create_user("ann", password="right")
    User.objects.create_user("gone", password="right", is_active=False)
    urlpatterns += [
        path("fails", fails_afterwards),
        path("awaits", awaits),
        path("without", without_a_request),
        path("users", users),
    ]
    uvicorn.run(get_asgi_application(), port=0, lifespan="off", access_log=False)
"""


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, httpx.Client]]:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "sign_in_api.py"
    file.write_text(FASTAPI)
    module = loaded(file)
    module.add_user("ann", "right")
    with served(module.api) as client:
        yield module, client
    module.accounts.close()
    module.addresses.close()


def token(client: httpx.Client, name: str, password: str) -> httpx.Response:
    return client.post("/token", data={"username": name, "password": password})


def test_fastapi_checks_five_passwords_of_a_hundred_and_then_not_the_right_one(
    api: tuple[Any, httpx.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    module, client = api
    checked = []
    really = module.is_right

    def noted(name: str, password: str) -> bool:
        checked.append(password)
        return bool(really(name, password))

    monkeypatch.setattr(module, "is_right", noted)
    # Each from an address of its own.
    hosts = [f"198.51.100.{number}" for number in range(100)]

    def guess(host: str) -> int:
        fields = {"username": "ann", "password": "guess"}
        return client.post("/token", data=fields, headers={"X-Forwarded-For": host}).status_code

    with ThreadPoolExecutor(100) as threads:
        assert Counter(threads.map(guess, hosts)) == {401: 5, 429: 95}
    refused = token(client, "ANN", "right")
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert checked == ["guess"] * 5


def test_fastapi_clears_the_account_by_a_success(api: tuple[Any, httpx.Client]) -> None:
    module, client = api
    assert token(client, "ann", "guess").status_code == 401
    assert module.accounts.peek(module.account_key("ann")).failures == 1
    answer = token(client, "Ann", "right")
    assert answer.status_code == 200
    assert answer.json()["token_type"] == "bearer"
    assert module.accounts.peek(module.account_key("ann")) == LockoutState()
    assert module.addresses.peek(module.address_key("127.0.0.1")).failures == 2


def test_fastapi_answers_503_when_it_cannot_count(
    api: tuple[Any, httpx.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    module, client = api
    monkeypatch.setattr(module.addresses._database, "_patience", 0.2)
    holder = sqlite3.connect(module.DATABASE, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    assert token(client, "ann", "right").status_code == 503
    holder.execute("ROLLBACK")
    holder.close()
    assert token(client, "ann", "right").status_code == 200


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/x-www-form-urlencoded", b""),
        ("application/x-www-form-urlencoded", b"username=a%00b&password=%FF"),
        ("application/x-www-form-urlencoded", b"username=\xff&password=\xff"),
        ("application/json", b"{}"),
        (
            "multipart/form-data; boundary=x; charset=utf-7",
            b"--x\r\n".join([b"", SURROGATE % b"username", SURROGATE % b"password"]) + b"--x--",
        ),
    ],
    ids=["nothing", "NUL", "no UTF-8", "JSON", "surrogate"],
)
def test_fastapi_has_no_error_for_odd_input(
    api: tuple[Any, httpx.Client], content_type: str, body: bytes
) -> None:
    _, client = api
    answer = client.post("/token", content=body, headers={"Content-Type": content_type})
    assert answer.status_code in {401, 422}


class Django:
    def __init__(self, client: httpx.Client, file: Path) -> None:
        self.client = client
        self.file = file
        self.accounts = SQLiteLockouts(file, Lockout(create_backoff(base=1)))

    def post(self, name: str, password: str) -> httpx.Response:
        secret = self.client.cookies["csrftoken"]
        fields = {"username": name, "password": password, "csrfmiddlewaretoken": secret}
        return self.client.post("/", data=fields)

    def failures(self, name: str) -> int:
        return self.accounts.peek(f"account {name}").failures


@pytest.fixture(scope="module")
def running_django(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Django]:
    folder = tmp_path_factory.mktemp("django")
    (folder / "project.py").write_text(DJANGO + DJANGO_SERVER)
    with served_by_a_process(folder, "project.py") as client:
        django = Django(client, folder / "app.db")
        yield django
        django.accounts.close()


@pytest.fixture
def django(running_django: Django) -> Django:
    running_django.client.cookies.delete("sessionid")
    for name in ("ann", "nobody", "gone"):
        running_django.accounts.unlock(f"account {name}")
    running_django.accounts.unlock("address 127.0.0.1")
    return running_django


def test_django_signs_in_and_clears_the_account(django: Django) -> None:
    assert django.post("ann", "guess").status_code == 200  # the form again
    assert django.failures("ann") == 1
    welcome = django.post("ann", "right")
    assert welcome.status_code == 302
    assert welcome.headers["Location"] == "/welcome"
    assert django.failures("ann") == 0


@pytest.mark.parametrize("name", ["ann", "nobody", "gone"])
def test_django_checks_five_passwords_of_any_account_and_then_none(
    django: Django, name: str
) -> None:
    assert [django.post(name, "guess").status_code for _ in range(6)] == [200] * 5 + [429]
    refused = django.post(name.upper(), "right")
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["Retry-After"]) <= 60


def test_django_checks_five_passwords_of_forty_at_once(django: Django) -> None:
    with ThreadPoolExecutor(20) as threads:
        answers = list(threads.map(lambda _: django.post("ann", "guess"), range(40)))
    assert Counter(answer.status_code for answer in answers) == {200: 5, 429: 35}
    assert django.failures("ann") == 5


def test_django_keeps_the_count_when_a_request_is_rolled_back(django: Django) -> None:
    assert django.client.get("/fails").status_code == 500
    assert django.failures("ann") == 1
    assert "rolled back" not in django.client.get("/users").text


def test_django_answers_503_when_it_cannot_count(django: Django) -> None:
    holder = sqlite3.connect(django.file, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    assert django.post("ann", "right").status_code == 503
    holder.execute("ROLLBACK")
    holder.close()
    assert django.post("ann", "right").status_code == 302


@pytest.mark.parametrize("path", ["/awaits", "/without"])
def test_django_counts_whoever_calls_authenticate(django: Django, path: str) -> None:
    statuses = [django.client.get(path).status_code for _ in range(6)]
    assert statuses == [401] * 5 + [429]
