"""A store read by someone who may not write it, and while somebody else does."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gua_fleet.errors import StoreUnusable
from gua_fleet.export.files import Csv
from gua_fleet.export.names import Names
from gua_fleet.export.source import Source
from gua_fleet.export.tree import MANIFEST, write_export
from gua_fleet.people import UserMap
from gua_fleet.store import database as database_module
from gua_fleet.store.care import store_info
from gua_fleet.store.check import check_store
from gua_fleet.store.database import open_store, open_to_read
from gua_fleet.store.place import Place
from gua_fleet.store.session import Session
from tests.agent.store.opened import steady, stored
from tests.agent.store.ticks import HOUR, MINUTE, MONDAY, card, holder
from tests.fleet.ssh.sshd import REPOSITORY
from tests.fleet.store.postgres import Postgres
from tests.fleet.store.pulling import NOW_MS, pull
from tests.fleet.store.reported import from_store, question

NOBODY = 65534

# Has the store open, and some of a transaction in it, until its stdin ends.
_WRITER = """
import sys
from pathlib import Path
from gua_fleet.store.database import open_store
from gua_fleet.store.place import Place
with open_store(Place(path=Path(sys.argv[1])), now_ms=0) as session:
    session.execute("UPDATE host SET asked_ms = 7")
    with session.writing():
        session.execute("DELETE FROM card_slot")
        print("begun", flush=True)
        sys.stdin.read()
"""


@contextlib.contextmanager
def without_rights() -> Iterator[None]:
    """As an account that owns nothing. Who runs the tests and is not root has no rights in what follows anyway."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that everybody may look into: pytest's own are its user's alone."""
    path = Path(tempfile.mkdtemp(prefix="gua-read-only-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    path.chmod(0o755)
    shutil.rmtree(path)


@pytest.fixture
def file(folder: Path, tmp_path: Path) -> Path:
    """A store of one hour of one host, that everybody may read and nobody may write, nor anything beside it."""
    path = folder / "fleet.db"
    with open_store(Place(path=path), now_ms=NOW_MS) as session:
        fill(session, tmp_path)
    path.chmod(0o444)
    folder.chmod(0o555)
    return path


def fill(session: Session, tmp_path: Path) -> None:
    people = (holder("ada", 1, name="train"),)
    pull(session, stored(tmp_path / "host.db", steady(60, card("GPU-a", 50, people)), interval_ms=MINUTE))


def figures(session: Session) -> Any:
    return from_store(session, ["gpu01"], question(MONDAY, MONDAY + 2 * HOUR, MONDAY + 2 * HOUR))["card_s"]


WHOLE = {"active": 3_600, "idle-held": 0, "truly-idle": 0, "unknown": 0}


def assert_readable(place: Place, out: Path) -> None:
    """Everything that only reads works, and says what is there."""
    out.mkdir(mode=0o777)
    out.chmod(0o777)
    with without_rights(), open_to_read(place, now_ms=NOW_MS) as session:
        assert figures(session) == WHOLE
        with session.reading():
            assert [host.ticks for host in store_info(session).hosts] == [60]
            assert list(check_store(session)) == []
            written = write_export(Source(session, Names(UserMap())), Csv(), out / "csv", {})
    assert written.rows > 60
    assert (out / "csv" / MANIFEST).exists()


@contextlib.contextmanager
def writing(file: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process, in the midst of a transaction."""
    path = os.pathsep.join(str(REPOSITORY / part) for part in ("agent", "fleet"))
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(file)],
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        yield child
        child.kill()


def refused(file: Path) -> str:
    """Why it cannot be read."""
    with pytest.raises(StoreUnusable) as caught, open_to_read(Place(path=file), now_ms=NOW_MS):
        pass
    return str(caught.value)


def writable(file: Path) -> None:
    """By its owner again; everybody else goes on reading."""
    file.parent.chmod(0o755)
    file.chmod(0o644)


def test_a_file_that_one_may_only_read_is_read_and_nothing_is_left_beside_it(file: Path, folder: Path) -> None:
    folder.chmod(0o755)
    out = folder / "out"
    before = file.stat().st_mtime_ns
    assert_readable(Place(path=file), out)
    assert sorted(path.name for path in folder.iterdir()) == ["fleet.db", "out"]
    assert file.stat().st_mtime_ns == before


@pytest.mark.processes
def test_a_writer_in_mid_transaction_holds_no_reader_up_and_shows_it_nothing_half(file: Path, folder: Path) -> None:
    writable(file)
    with writing(file):
        assert_readable(Place(path=file), folder / "out")  # somebody else's
        with open_to_read(Place(path=file), now_ms=NOW_MS) as session:  # one's own
            assert figures(session) == WHOLE
            assert store_info(session).hosts[0].asked_ms == 7


@pytest.mark.processes
def test_what_a_killed_writer_left_is_read_without_the_right_to_mend_it(file: Path, folder: Path) -> None:
    writable(file)
    with writing(file) as child:
        child.kill()
        child.wait()
    assert (folder / "fleet.db-wal").stat().st_size
    with without_rights(), open_to_read(Place(path=file), now_ms=NOW_MS) as session:
        assert figures(session) == WHOLE
        assert store_info(session).hosts[0].asked_ms == 7
    (folder / "fleet.db-shm").unlink()  # as where such a file was copied from a backup
    with without_rights():
        assert "it was not closed, and this user may only read it" in refused(file)


def test_a_file_that_is_written_to_while_it_is_read_as_it_lies_is_told(file: Path) -> None:
    with without_rights(), contextlib.ExitStack() as stack:
        session = stack.enter_context(open_to_read(Place(path=file), now_ms=NOW_MS))
        assert figures(session) == WHOLE
        os.seteuid(os.getuid())
        os.utime(file, ns=(1, 1))
        with pytest.raises(StoreUnusable, match="it was written to while it was read: try again"):
            stack.close()


def test_a_network_folders_file_is_read_too(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no WAL there."""
    monkeypatch.setattr(database_module, "is_network_path", lambda path: True)
    with open_store(Place(path=folder / "fleet.db"), now_ms=NOW_MS) as session:
        fill(session, tmp_path)
    (folder / "fleet.db").chmod(0o444)
    assert_readable(Place(path=folder / "fleet.db"), folder / "out")


def test_a_file_that_one_may_not_read_is_said_in_one_line(file: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("whoever owns it may read it")
    file.chmod(0o600)
    with without_rights():
        assert "this user may not read it (Permission denied): ask its owner" in refused(file)
    file.chmod(0o644)
    file.parent.chmod(0o700)
    with without_rights():
        assert "this user may not read it (Permission denied)" in refused(file)


def test_what_is_no_store_is_not_read_as_one(folder: Path) -> None:
    (folder / "text.db").write_text("no database at all, but long enough to look like something")
    (folder / "text.db").chmod(0o444)
    (folder / "empty.db").touch(mode=0o444)
    with without_rights():
        assert "not a database" in refused(folder / "text.db")
        for name in ("empty.db", "none.db"):
            assert "there is no history yet" in refused(folder / name)
    assert not (folder / "none.db").exists()


@pytest.mark.processes
def test_an_account_of_postgresql_that_may_only_read_reads_while_another_writes(
    postgres: Postgres, tmp_path: Path
) -> None:
    with open_store(Place(url=postgres.url), now_ms=NOW_MS) as session:
        fill(session, tmp_path)
        for statement in (
            "DROP ROLE IF EXISTS reader",
            "CREATE ROLE reader LOGIN",
            "GRANT USAGE ON SCHEMA gua_fleet TO reader",
            "GRANT SELECT ON ALL TABLES IN SCHEMA gua_fleet TO reader",
        ):
            session.execute(statement)
        with session.writing():
            session.execute("SELECT pg_advisory_xact_lock(?)", (0x67756166,))  # as who makes or changes the schema
            session.execute("DELETE FROM card_slot")
            url = postgres.url.replace("gua@", "reader@")
            with open_to_read(Place(url=url), now_ms=NOW_MS) as other, other.reading():
                assert [host.ticks for host in store_info(other).hosts] == [60]
                assert list(check_store(other)) == []
        session.execute("DROP OWNED BY reader")
        session.execute("DROP ROLE reader")


def test_an_account_of_postgresql_without_rights_is_told_and_a_member_of_the_owner_pulls(
    postgres: Postgres, tmp_path: Path
) -> None:
    with open_store(Place(url=postgres.url), now_ms=NOW_MS) as session:
        fill(session, tmp_path)
        for statement in ("DROP ROLE IF EXISTS stranger", "CREATE ROLE stranger LOGIN"):
            session.execute(statement)
        place = Place(url=postgres.url.replace("gua@", "stranger:a?ss@"))
        for opened in (open_to_read, open_store):
            said = pytest.raises(StoreUnusable, match="may not look into its schema gua_fleet")
            with said, opened(place, now_ms=NOW_MS):
                pass
        session.execute("GRANT USAGE ON SCHEMA gua_fleet TO stranger")
        said = pytest.raises(StoreUnusable, match="this account has no right to that")
        with said, open_to_read(place, now_ms=NOW_MS):
            pass
        session.execute("GRANT gua TO stranger")
        with open_store(place, now_ms=NOW_MS) as member:
            fill(member, tmp_path)
            assert list(check_store(member)) == []
        session.execute("DROP OWNED BY stranger")
        session.execute("DROP ROLE stranger")
