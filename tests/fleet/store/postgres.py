"""A real PostgreSQL server of one's own: Debian's programs, a folder in /tmp, no port, an account without rights."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

import pytest

_PREFIX = "gua-pg-"
_SET_PDEATHSIG = 1
REQUIRED = os.environ.get("GUA_POSTGRES_REQUIRED") == "1"


def find_programs() -> Optional[Path]:
    """The folder of initdb and postgres, of the newest version; None where they are not installed."""
    folders = [Path(shutil.which("postgres") or "/nowhere").parent, *Path("/usr/lib/postgresql").glob("*/bin")]
    found = [folder for folder in folders if (folder / "initdb").exists() and (folder / "postgres").exists()]
    return max(
        found, key=lambda folder: (folder.parts[:4] == ("/", "usr", "lib", "postgresql"), str(folder)), default=None
    )


def missing() -> Optional[str]:
    """Why no server can be had; None where it can. Raises where one is required."""
    reason = None
    try:
        import psycopg  # noqa: F401 - only whether it is there
    except ImportError:
        reason = "needs psycopg: pip install 'psycopg[binary]'"
    if find_programs() is None:
        reason = "needs PostgreSQL's server: install postgresql"
    if reason and REQUIRED:
        raise RuntimeError(f"GUA_POSTGRES_REQUIRED=1, and this {reason}")
    return reason


class Postgres:
    """A server that listens on a socket in its folder. It ends with the thread that started it, however that ends."""

    def __init__(self) -> None:
        programs = find_programs()
        assert programs is not None
        self._programs = programs
        # root may not run it; the path of a socket has a hundred bytes, so not in pytest's own folder
        self._account = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        clear_left_behind()
        self.folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir="/tmp"))
        if self._account:
            os.chown(self.folder, self._account.pw_uid, self._account.pw_gid)
        self.url = f"postgresql://gua@/postgres?host={self.folder}"
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._run("initdb", "-A", "trust", "-U", "gua", "--no-sync", "-E", "UTF8", "--locale=C").check_returncode()

    def _command(self, program: str, *arguments: str) -> list[str]:
        return [str(self._programs / program), "-D", str(self.folder / "data"), *arguments]

    def _run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            self._command(program, *arguments), capture_output=True, timeout=120, **self._as_account()
        )

    def _as_account(self) -> dict[str, object]:
        same = {"cwd": self.folder, "env": {**os.environ, "HOME": str(self.folder)}}
        if self._account is None:
            return same
        return {**same, "user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": []}

    def start(self) -> None:
        """Start it and wait until it answers."""
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.folder),
            "fsync": "off",
            "shared_buffers": "16MB",
            "max_connections": "20",
        }
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        log = (self.folder / "log").open("ab")
        with log:
            self._process = subprocess.Popen(
                self._command("postgres", *words),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_parent,  # noqa: PLW1509 - one call of the C library, no lock in it
                **self._as_account(),  # type: ignore[call-overload]
            )
        until_s = time.monotonic() + 120
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until_s:
                raise RuntimeError(f"PostgreSQL does not start: {(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        import psycopg

        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(self.url).close()
            return True
        return False

    def stop(self) -> None:
        """At once, as a crash would; its clients lose their connections."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(120)
            self._process = None

    def clear(self) -> None:
        """Forget what a test stored."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS gua_fleet CASCADE")

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def _end_with_parent() -> None:
    """Runs in the child, after it has become the other account: that would clear it."""
    ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGQUIT)


@contextlib.contextmanager
def running_postgres() -> Iterator[Postgres]:
    """A server while it is needed; where none can be had the test is skipped."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    server = Postgres()
    try:
        server.start()
        yield server
    finally:
        server.close()


def clear_left_behind() -> None:
    """Remove the folders of test runs that were killed; their servers ended with them."""
    for folder in Path("/tmp").glob(f"{_PREFIX}*"):
        owner = folder.name.removeprefix(_PREFIX).split("-")[0]
        if owner.isdecimal() and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(folder, ignore_errors=True)
