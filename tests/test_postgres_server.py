from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests import postgres_server
from tests.postgres_server import (
    GivenServer,
    NoPostgresBinariesError,
    PostgresServer,
    as_url,
    find_binaries,
    fresh_schema,
    shared_server,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as started:
        yield started


def names_of_tables(conninfo: str) -> list[str]:
    query = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
    with psycopg.connect(conninfo) as session:
        return [name for (name,) in session.execute(query)]


def soon(true: Callable[[], bool]) -> bool:
    patient_until = time.monotonic() + 30
    while not true():
        if time.monotonic() > patient_until:
            return False
        time.sleep(0.02)
    return True


def test_a_started_server_answers_by_its_conninfo_and_by_its_url(server: PostgresServer) -> None:
    for address in (server.conninfo, server.url):
        with psycopg.connect(address) as session:
            row = session.execute("SELECT current_setting('fsync'), version()").fetchone()
            assert row is not None
            assert row[0] == "on"
            assert row[1].startswith("PostgreSQL ")


def test_what_was_committed_outlives_a_kill_and_what_was_not_does_not(
    server: PostgresServer,
) -> None:
    with psycopg.connect(server.conninfo) as session:
        session.execute("CREATE TABLE kept (n int)")
        session.execute("INSERT INTO kept VALUES (1)")
    with psycopg.connect(server.conninfo) as open_session:
        open_session.execute("INSERT INTO kept VALUES (2)")
        server.kill()
        assert not server.is_running
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(server.conninfo)
        server.restart()
        with psycopg.connect(server.conninfo) as session:
            assert session.execute("SELECT n FROM kept").fetchall() == [(1,)]
        with pytest.raises(psycopg.OperationalError):
            open_session.execute("SELECT 1")


def test_a_stopped_server_starts_again_with_its_data(server: PostgresServer) -> None:
    with psycopg.connect(server.conninfo) as session:
        session.execute("CREATE TABLE kept_too (n int)")
    server.stop()
    assert not server.is_running
    server.start()
    assert "kept_too" in names_of_tables(server.conninfo)


def test_settings_reach_the_server_and_variables_of_libpq_in_the_shell_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {"PGDATA": "/nowhere", "PGPORT": "1", "PGHOST": "nowhere"}.items():
        monkeypatch.setenv(name, value)
    with PostgresServer({"fsync": "off", "max_connections": "17"}) as server:
        with psycopg.connect(server.conninfo) as session:
            query = "SELECT current_setting('fsync'), current_setting('max_connections')"
            assert session.execute(query).fetchone() == ("off", "17")
        assert server.folder.exists()
    assert not server.folder.exists()


def test_a_server_that_cannot_start_says_what_its_log_says() -> None:
    server = PostgresServer({"no_such_setting": "1"})
    with pytest.raises(RuntimeError, match=r"did not start:\n(.*\n)*.*no_such_setting"):
        server.__enter__()
    assert not server.folder.exists()


def test_the_server_is_gone_when_the_process_that_started_it_is_killed() -> None:
    program = (
        "import time; from tests.postgres_server import PostgresServer\n"
        "with PostgresServer() as server: print(server.conninfo, flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        address = parent.stdout.readline().strip()
        session = psycopg.connect(address, autocommit=True)
        session.execute("SELECT 1")
        parent.kill()
    assert parent.returncode == -signal.SIGKILL
    with pytest.raises(psycopg.OperationalError):
        # The server ends this session, or there is none any more to ask.
        session.execute("SELECT pg_sleep(60)")
    session.close()
    folder = Path(str(conninfo_to_dict(address)["host"]))
    assert soon(lambda: not folder.exists())


def test_without_binaries_the_tests_fail_and_say_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PG_BINDIR", str(tmp_path))
    monkeypatch.delenv("TEST_DATABASE_URL", raising=False)
    monkeypatch.setattr(postgres_server, "_shared", [])
    for start in (find_binaries, PostgresServer, shared_server):
        with pytest.raises(NoPostgresBinariesError, match="found none: install the group `test`"):
            start()


def binaries_in(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for program in ("initdb", "postgres"):
        (folder / program).touch(0o755)
    return folder


def test_the_wheel_comes_before_the_path_and_pg_bindir_before_both(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(postgres_server, "_INSTALLED", ())
    monkeypatch.delenv("PG_BINDIR", raising=False)
    on_path = binaries_in(tmp_path / "path")
    monkeypatch.setenv("PATH", str(on_path))
    monkeypatch.setattr(postgres_server, "_WHEELS", ("no_such_wheel",))
    assert find_binaries() == on_path
    in_wheel = binaries_in(tmp_path / "site" / "a_wheel" / "pginstall17" / "bin")
    in_wheel.parents[1].joinpath("__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setattr(postgres_server, "_WHEELS", ("no_such_wheel", "a_wheel"))
    assert find_binaries() == in_wheel
    chosen = binaries_in(tmp_path / "chosen")
    monkeypatch.setenv("PG_BINDIR", str(chosen))
    assert find_binaries() == chosen


# The schema of a test.


def test_a_test_begins_with_no_tables(conninfo: str) -> None:
    assert names_of_tables(conninfo) == []
    with psycopg.connect(conninfo) as session:
        session.execute("CREATE TABLE mine (n int)")
    assert names_of_tables(conninfo) == ["mine"]


def test_what_is_made_in_one_schema_is_not_seen_in_another_and_is_dropped_in_the_end() -> None:
    server = shared_server()
    with fresh_schema(server) as first, fresh_schema(server) as second:
        with psycopg.connect(first) as session:
            session.execute("CREATE TABLE mine (n int)")
        assert names_of_tables(second) == []
        assert names_of_tables(as_url(first)) == ["mine"]
    with psycopg.connect(first) as session:
        assert session.execute("SELECT to_regclass('mine')").fetchone() == (None,)


@pytest.mark.parametrize("name", ["", "another name"])
def test_a_session_left_open_with_a_lock_does_not_keep_the_schema(name: str) -> None:
    with fresh_schema(shared_server()) as schema:
        left = psycopg.connect(make_conninfo(schema, application_name=name or None))
        left.execute("CREATE TABLE mine (n int)")
        left.commit()
        left.execute("LOCK TABLE mine")
    with pytest.raises(psycopg.OperationalError):
        left.execute("SELECT 1")
    left.close()


def test_a_process_has_one_server(postgres_server: PostgresServer | GivenServer) -> None:
    assert shared_server() is postgres_server


def test_the_server_that_the_user_has_is_used_and_is_not_ours(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_server, "_shared", [])
    monkeypatch.setenv("TEST_DATABASE_URL", server.url)
    given = shared_server()
    assert not given.is_ours
    with fresh_schema(given) as schema:
        assert names_of_tables(schema) == []
    postgres_server.close_shared_server()
    assert server.is_running
