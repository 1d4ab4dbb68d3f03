"""A store whose schema is changed: a copy of before is kept, and whatever interrupts it, nothing is lost."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gua.store.copies import keep_copy
from gua_fleet.errors import StoreUnusable
from gua_fleet.store import database, migrations
from gua_fleet.store.care import store_info
from gua_fleet.store.check import check_store
from gua_fleet.store.database import open_store, open_to_read
from gua_fleet.store.place import Place
from gua_fleet.store.session import Session
from tests.agent.store.opened import steady, stored
from tests.agent.store.ticks import MINUTE, card, holder
from tests.fleet.store.killing import PATHS
from tests.fleet.store.pulling import NOW_MS, pull
from tests.fleet.store.test_read_only import folder, without_rights

__all__ = ["folder"]  # a fixture

DAY_MS = 86_400_000

# A gua-fleet that knows one schema more. It waits in its step for a line on stdin, where asked to; its files may get
# so many bytes long (0: any), and it dies of more.
_NEWER = """
import resource, signal, sys
from pathlib import Path
from gua_fleet.errors import StoreUnusable
from gua_fleet.store import database, migrations
from gua_fleet.store.place import Place

def step(session):
    session.execute("ALTER TABLE host ADD COLUMN colour TEXT")
    print("in its step", flush=True)
    if waits == "waits":
        sys.stdin.readline()

_, store, now_ms, waits, limit = sys.argv
migrations.STEPS, migrations.SCHEMA_VERSION, database.SCHEMA_VERSION = (step,), 2, 2
if int(limit):
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
place = Place(url=store) if "://" in store else Place(path=Path(store))
try:
    with database.open_store(place, now_ms=int(now_ms)) as session:
        print("schema", session.value("SELECT max(version) FROM migration"))
except StoreUnusable as exc:
    sys.exit(str(exc))
"""


def newer(place: Place, *, waits: bool = False, limit: int = 0) -> subprocess.Popen[str]:
    """A newer gua-fleet that opens this store to write."""
    words = [place.url or str(place.path), str(NOW_MS), "waits" if waits else "goes on", str(limit)]
    return subprocess.Popen(
        [sys.executable, "-c", _NEWER, *words],
        env={**os.environ, **PATHS},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def add_colour(session: Session) -> None:
    session.execute("ALTER TABLE host ADD COLUMN colour TEXT")


def add_nonsense(session: Session) -> None:
    add_colour(session)
    session.execute("ALTER TABLE no_such_table ADD COLUMN colour TEXT")


@contextlib.contextmanager
def knowing(*steps: Any) -> Iterator[None]:
    """Within it this program's schema is that of these steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrations, "STEPS", steps)
        for module in (migrations, database):
            patch.setattr(module, "SCHEMA_VERSION", len(steps) + 1)
        yield


@pytest.fixture
def filled(place: Place, tmp_path: Path) -> Place:
    """A store of schema 1 with an hour of one host."""
    people = (holder("ada", 1, name="train"),)
    with open_store(place, now_ms=NOW_MS) as session:
        pull(session, stored(tmp_path / "host.db", steady(60, card("GPU-a", 50, people)), interval_ms=MINUTE))
    return place


@pytest.fixture
def file(tmp_path: Path, filled: Place) -> Path:
    """The same, where it is a file."""
    if filled.path is None:
        pytest.skip("of files only")
    return filled.path


only_files = pytest.mark.parametrize("place", ["sqlite"], indirect=True)


def copies(path: Path) -> list[str]:
    """All that lies beside the store and is no file of SQLite's."""
    ours = {path.name, "host.db"}
    return sorted(one.name for one in path.parent.iterdir() if one.name not in ours and one.suffix[:4] != ".db-")


def assert_whole(place: Place, schema: int) -> None:
    """Everything that was pulled is there, by a program that knows this schema."""
    with knowing(*[add_colour] * (schema - 1)), open_to_read(place, now_ms=NOW_MS) as session, session.reading():
        assert [host.ticks for host in store_info(session).hosts] == [60]
        assert list(check_store(session)) == []
        assert session.value("SELECT max(version) FROM migration") == schema


def test_an_older_store_is_brought_up_to_date_and_nothing_is_lost(filled: Place) -> None:
    assert_whole(filled, 1)
    assert_whole(filled, 2)
    with pytest.raises(StoreUnusable, match="written by a newer gua-fleet"):
        assert_whole(filled, 1)


def test_a_step_that_fails_leaves_the_store_as_it_was(filled: Place) -> None:
    words = "no_such_table"
    with knowing(add_nonsense), pytest.raises(StoreUnusable, match=words), open_store(filled, now_ms=NOW_MS):
        pass
    assert_whole(filled, 1)
    assert_whole(filled, 2)


def test_what_becomes_of_a_copy_is_said(filled: Place, capsys: pytest.CaptureFixture[str]) -> None:
    with knowing(add_colour):
        for _ in range(2):
            with open_store(filled, now_ms=NOW_MS):
                pass
    if filled.path is None:
        said = "no copy is made of a PostgreSQL database: its backups are its administrator's"
    else:
        said = f"the copy of before is {filled.path}.schema-1-20260302T000000Z"
    assert capsys.readouterr().err == f"store: {filled}: schema 1 becomes 2; {said}\n"


@only_files
def test_the_copy_is_the_store_of_before_and_an_older_program_goes_on_from_it(file: Path) -> None:
    file.chmod(0o640)
    with open_store(Place(path=file), now_ms=NOW_MS) as older:  # what it writes is not folded back into the file yet
        older.execute("UPDATE host SET detail = 'newest'")
        with knowing(add_colour), open_store(Place(path=file), now_ms=NOW_MS):
            pass
    (name,) = copies(file)
    copy = file.with_name(name)
    assert copy.stat().st_mode == file.stat().st_mode
    with pytest.raises(StoreUnusable, match=f"update gua-fleet here; or go on from {name}, the copy of before"):
        assert_whole(Place(path=file), 1)
    assert_whole(Place(path=copy), 1)
    with open_to_read(Place(path=copy), now_ms=NOW_MS) as session:
        assert session.value("SELECT detail FROM host") == "newest"


@only_files
def test_new_stores_and_those_up_to_date_need_no_copy(file: Path) -> None:
    file.with_name("fleet.db.schema-1.unfinished").touch()  # of one that was interrupted
    for name in (file.name, "new.db"):
        with open_store(Place(path=file.with_name(name)), now_ms=NOW_MS):
            pass
    assert copies(file) == ["new.db"]


@only_files
def test_two_steps_take_one_copy(file: Path) -> None:
    def add_shape(session: Session) -> None:
        session.execute("ALTER TABLE host ADD COLUMN shape TEXT")

    with knowing(add_colour, add_shape), open_store(Place(path=file), now_ms=NOW_MS) as session:
        assert [row[0] for row in session.rows("SELECT version FROM migration ORDER BY 1")] == [1, 2, 3]
    assert [name.split("-")[1] for name in copies(file)] == ["1"]


@pytest.mark.processes
def test_killed_in_a_step_leaves_the_store_of_before(filled: Place) -> None:
    with newer(filled, waits=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "in its step\n"
        child.kill()
    assert_whole(filled, 1)
    assert_whole(filled, 2)


@pytest.mark.processes
@only_files
def test_killed_in_the_midst_of_the_copy_leaves_nothing_that_looks_whole(file: Path) -> None:
    with newer(Place(path=file), limit=file.stat().st_size // 2) as child:
        child.communicate()
    assert child.returncode == -signal.SIGXFSZ
    (left,) = copies(file)
    assert left == "fleet.db.schema-1.unfinished"
    assert 0 < file.with_name(left).stat().st_size < file.stat().st_size
    assert_whole(Place(path=file), 1)
    assert_whole(Place(path=file), 2)
    assert copies(file) == ["fleet.db.schema-1-20260302T000000Z"]


@pytest.mark.processes
def test_two_programs_at_once_make_one_change_and_one_copy(filled: Place) -> None:
    with newer(filled, waits=True) as first, newer(filled) as second:
        assert first.stdout is not None
        said = first.communicate("go on\n")[0], second.communicate()[0]
    # whichever came first
    assert sorted(said) == ["in its step\nschema 2\n", "schema 2\n"]
    assert (first.returncode, second.returncode) == (0, 0)
    assert_whole(filled, 2)
    if filled.path is not None:
        assert copies(filled.path) == ["fleet.db.schema-1-20260302T000000Z"]


@pytest.mark.processes
@only_files
def test_who_reads_meanwhile_reads_what_was_there_before(file: Path) -> None:
    with newer(Place(path=file), waits=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert_whole(Place(path=file), 1)
        child.communicate("go on\n")
    assert_whole(Place(path=file), 2)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount")
@only_files
def test_where_the_disk_is_full_nothing_is_changed(file: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    size = file.stat().st_size
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size * 3 // 2 // 1024 + 40}k", "tmpfs", str(disk)], check=True
    )
    try:
        moved = disk / "fleet.db"
        moved.write_bytes(file.read_bytes())
        with knowing(add_colour), pytest.raises(StoreUnusable) as said, open_store(Place(path=moved), now_ms=NOW_MS):
            pass
        assert str(said.value) == (
            f"{moved} stays as it is, at schema 1: no copy of it could be put into {disk} before the change "
            f"(No space left on device): make {size // 1_000_000 + 1} MB of room there, and try again"
        )
        assert said.value.exit_status == 2
        assert copies(moved) == []
        assert_whole(Place(path=moved), 1)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@only_files
def test_what_stands_in_the_copys_way_is_said_and_stays(file: Path) -> None:
    way = file.with_name("fleet.db.schema-1.unfinished")
    way.mkdir()
    with knowing(add_colour), pytest.raises(StoreUnusable) as said, open_store(Place(path=file), now_ms=NOW_MS):
        pass
    assert f"put into {file.parent} before the change (Is a directory: {way}): see to it" in str(said.value)
    assert copies(file) == [way.name]
    assert_whole(Place(path=file), 1)


@only_files
def test_the_newest_copies_stay_and_what_is_not_ours(file: Path) -> None:
    ours = [f"fleet.db.schema-1-2026022{day}T000000Z" for day in (6, 7, 8)]
    others = ["fleet.db.schema-1-notes", "other.db.schema-1-20260226T000000Z", "fleet.db.schema-1-20260226T000000Z.gz"]
    for name in (*ours, *others):
        file.with_name(name).touch()
    link = file.with_name("fleet.db.schema-1-20260201T000000Z")
    link.symlink_to(file)
    if os.geteuid() == 0:
        strange = file.with_name("fleet.db.schema-1-20260202T000000Z")
        strange.touch()
        os.chown(strange, 65534, 65534)
        others.append(strange.name)
    with knowing(add_colour), open_store(Place(path=file), now_ms=NOW_MS):
        pass
    assert copies(file) == sorted([*others, link.name, ours[-1], "fleet.db.schema-1-20260302T000000Z"])


@only_files
def test_a_copy_is_not_kept_for_ever_for_it_holds_names(file: Path) -> None:
    with knowing(add_colour):
        for days, left in ((0, 1), (30, 1), (31, 0)):
            with open_store(Place(path=file), now_ms=NOW_MS + days * DAY_MS):
                assert len(copies(file)) == left


@only_files
def test_a_change_that_fails_leaves_no_copy_and_costs_none_of_before(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = [f"fleet.db.schema-1-2026022{day}T000000Z" for day in (7, 8)]
    for name in before:
        file.with_name(name).touch()
    for _ in range(3):
        with knowing(add_nonsense), pytest.raises(StoreUnusable), open_store(Place(path=file), now_ms=NOW_MS):
            pass
    assert copies(file) == before
    assert capsys.readouterr().err == ""


@only_files
def test_two_copies_of_one_second_are_two(file: Path) -> None:
    for _ in range(2):
        keep_copy(file, 1, NOW_MS)
    assert copies(file) == ["fleet.db.schema-1-20260302T000000Z", "fleet.db.schema-1-20260302T000000Z-2"]
    for name in copies(file):
        with contextlib.closing(sqlite3.connect(file.with_name(name))) as copy:
            assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@only_files
def test_who_may_only_read_an_older_store_is_told_who_must_come_first(file: Path, folder: Path) -> None:
    theirs = folder / "fleet.db"
    theirs.write_bytes(file.read_bytes())
    theirs.chmod(0o444)
    folder.chmod(0o555)
    with without_rights(), knowing(add_colour), pytest.raises(StoreUnusable, match="let its owner run"):
        open_to_read(Place(path=theirs), now_ms=NOW_MS).__enter__()
    assert copies(theirs) == []
