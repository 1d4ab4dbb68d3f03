"""The copy of a database as it was before its schema was changed: what an older agent can go on from."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gua.errors import DatabaseUnusable
from gua.store.copies import _connect, find_copies, keep_copy
from gua.store.retention import DAY_MS, Retention
from gua.store.version import SCHEMA_VERSION
from tests.agent.store.opened import SetClock, report, stored, writing
from tests.agent.store.test_migrations import old_database, schema
from tests.agent.store.ticks import HOUR, MONDAY, card, tick

COPY = "gua.db.schema-1-20260302T000000Z"


def content(path: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as connection:
        return list(connection.iterdump())


def beside(path: Path) -> list[str]:
    """All but the database and SQLite's own files."""
    return sorted(one.name for one in path.parent.iterdir() if one.name not in ("gua.db", "gua.db-wal", "gua.db-shm"))


@contextlib.contextmanager
def an_agent_of(version: int) -> Iterator[None]:
    """Within it this program knows no newer schema."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("version", "migrations", "database"):
            patch.setattr(f"gua.store.{module}.SCHEMA_VERSION", version)
        yield


def test_before_its_schema_changes_a_database_is_copied_with_its_rights(tmp_path: Path) -> None:
    path = old_database(tmp_path)
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)
    before = content(path)
    with writing(path):
        pass
    assert beside(path) == [COPY]
    copy = path.with_name(COPY)
    assert content(copy) == before
    whose = [(status.st_uid, status.st_gid, status.st_mode) for status in (copy.stat(), path.stat())]
    assert whose[0] == whose[1]


def _refused(*_: int) -> None:
    raise PermissionError(1, "as where a unit filters the call")


def test_where_no_owner_may_be_changed_the_group_reads_the_copy_if_it_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = old_database(tmp_path)
    path.chmod(0o640)
    monkeypatch.setattr("os.fchown", _refused)
    assert keep_copy(path, 1, MONDAY).stat().st_mode & 0o777 == 0o640
    if os.geteuid() == 0:
        os.chown(path, -1, 65534)
        assert keep_copy(path, 1, MONDAY).stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a file away")
def test_who_writes_to_anothers_database_finds_the_copy_that_could_not_be_given_to_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = old_database(tmp_path)
    os.chown(path, 65534, -1)
    monkeypatch.setattr("os.fchown", _refused)
    copy = keep_copy(path, 1, MONDAY)
    strange = path.with_name("gua.db.schema-1-20260301T000000Z")
    strange.touch()
    os.chown(strange, 65533, -1)
    assert [one.path for one in find_copies(path)] == [copy]


def test_nobody_else_opens_a_copy_before_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = old_database(tmp_path)
    path.chmod(0o644)
    seen = []

    def connect(opened: Path, mode: str) -> sqlite3.Connection:
        seen.append(path.with_name("gua.db.schema-1.unfinished").stat().st_mode & 0o777)
        return _connect(opened, mode)

    monkeypatch.setattr("gua.store.copies._connect", connect)
    assert keep_copy(path, 1, MONDAY).stat().st_mode & 0o777 == 0o644
    assert seen == [0o600, 0o600]


def test_a_new_database_and_one_up_to_date_are_not_copied(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", [])
    with writing(path):
        pass
    assert beside(path) == []


def test_an_older_agent_refuses_the_newer_database_names_the_copy_and_goes_on_from_it(tmp_path: Path) -> None:
    path = old_database(tmp_path)
    stored(path, [tick(MONDAY + 2 * HOUR, card())])
    newer = content(path)
    with an_agent_of(1):
        said = f"schema {SCHEMA_VERSION}, this one knows 1.: update gua here; or go on from {COPY}, the copy of before"
        with pytest.raises(DatabaseUnusable, match=said), writing(path):
            pass
        with pytest.raises(DatabaseUnusable, match=said):
            report(path, MONDAY, MONDAY + HOUR)
        assert content(path) == newer
        assert beside(path) == [COPY]
        # what docs/store.md tells to do; the real older agent would write to it, this one only knows its number
        path.rename(path.with_name("gua.db.newer"))
        shutil.copyfile(path.with_name(COPY), path)
        with writing_nothing(path):
            pass
        assert content(path) == content(path.with_name(COPY))


DOCS = Path(__file__).parents[3] / "docs" / "store.md"


def test_the_way_back_of_the_docs_loses_no_newer_database_when_it_is_taken_again(tmp_path: Path) -> None:
    (line,) = re.findall(r"^    (cd /var/lib/gua && .* gua\.db)$", DOCS.read_text("utf-8"), flags=re.MULTILINE)
    words = line.replace("/var/lib/gua", str(tmp_path)).replace("20260302T081500Z", "20260302T000000Z")
    files = {name: tmp_path / name for name in ("gua.db", "gua.db-wal", COPY)}
    for newer, more in (("first", ["gua.db-wal"]), ("second", [])):
        files[COPY].write_text("of before")
        for name in ["gua.db", *more]:
            files[name].write_text(newer)
        assert subprocess.run(["sh", "-c", words], capture_output=True).returncode == 0
        assert files["gua.db"].read_text() == "of before"
        assert not files["gua.db-wal"].exists()  # SQLite would put it into the older one
        assert (tmp_path / "newer" / "gua.db").read_text() == newer
        files["gua.db"].write_text("newer again")
        assert subprocess.run(["sh", "-c", words], capture_output=True).returncode != 0
        assert files["gua.db"].read_text() == "newer again"
        shutil.rmtree(tmp_path / "newer")


@contextlib.contextmanager
def writing_nothing(path: Path) -> Iterator[None]:
    """Opened as a writer opens it, down to the schema."""
    from gua.store.writable import _open_writable

    database = _open_writable(path, MONDAY)
    yield
    database.close()


def _in_a_child(path: Path, limit_bytes: int, **more: Any) -> int:
    """The wait status of a process that opens the database to write and dies of a file longer than that."""
    child = os.fork()
    if child == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            with writing(path, **more):
                pass
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1]


def test_killed_in_the_midst_of_the_copy_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    path = old_database(tmp_path)
    before = content(path)
    status = _in_a_child(path, path.stat().st_size // 2)
    assert os.WIFSIGNALED(status)
    assert beside(path) == ["gua.db.schema-1.unfinished"]
    assert content(path) == before
    with writing(path):
        pass
    assert beside(path) == [COPY]
    assert content(path.with_name(COPY)) == before


def test_what_is_left_of_a_copy_goes_though_no_other_is_made(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", [])  # who went back to the older program, or on by another way
    names = [
        f"gua.db.schema-{part}" for part in ("1.unfinished", "12.unfinished", "1.unfinished-journal", "x.unfinished")
    ]
    for name in names:
        path.with_name(name).touch()
    path.with_name("gua.db.schema-3.unfinished").symlink_to("elsewhere")
    with writing(path):
        pass
    assert beside(path) == [
        "gua.db.schema-1.unfinished-journal",
        "gua.db.schema-3.unfinished",
        "gua.db.schema-x.unfinished",
    ]


def test_where_no_copy_can_be_made_nothing_is_changed(tmp_path: Path) -> None:
    path = old_database(tmp_path)
    before = content(path)
    path.with_name("gua.db.schema-1.unfinished").mkdir()
    with pytest.raises(DatabaseUnusable) as said, writing(path):
        pass
    assert str(said.value).startswith(f"{path} stays as it is, at schema 1: no copy of it could be put into {tmp_path}")
    assert "\n" not in str(said.value)
    assert content(path) == before


def test_a_change_that_fails_leaves_no_copy_however_often_it_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = old_database(tmp_path)
    before, older = content(path), [f"gua.db.schema-1-2026022{day}T000000Z" for day in (7, 8)]
    for name in older:
        path.with_name(name).touch()

    def full(connection: sqlite3.Connection) -> None:
        connection.execute("DROP TABLE gpu_sample")
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("gua.store.migrations.STEPS", (full,))
    for _ in range(3):
        with pytest.raises(DatabaseUnusable, match="disk is full"), writing(path):
            pass
    assert beside(path) == older
    assert content(path) == before


def test_a_database_that_is_damaged_is_moved_aside_as_ever(tmp_path: Path) -> None:
    path = old_database(tmp_path)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    with writing(path) as writer:
        assert writer.moved_aside is not None
    assert schema(path) == schema(stored(tmp_path / "new.db", []))


def test_copies_go_after_a_month_of_believed_time_for_they_hold_names(tmp_path: Path) -> None:
    path = old_database(tmp_path)
    clock = SetClock()
    retention = Retention(raw_ms=90 * DAY_MS, user_ms=400 * DAY_MS)
    with writing(path, clock=clock, interval_ms=3_600_000, retention=retention) as writer:
        for day, left in ((0, [COPY]), (30, [COPY]), (32, [])):
            for hour in range(25):  # a clock is believed once a day's ticks agree with it
                clock.ms = MONDAY + day * DAY_MS + hour * HOUR
                writer.write_tick(tick(clock.ms, card()))
            assert beside(path) == left
