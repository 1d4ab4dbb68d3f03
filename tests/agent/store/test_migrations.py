from __future__ import annotations

import os
import resource
import sqlite3
from pathlib import Path

import pytest

from gua.errors import DatabaseUnusable
from gua.store.migrations import STEPS
from gua.store.version import SCHEMA_VERSION
from tests.agent.store.opened import report, stored, writing
from tests.agent.store.ticks import HOUR, MINUTE, MONDAY, card, holder, tick

# Written by the program that made schema 1: two cards for 40 minutes, a gap, then an instance beside one of them.
VERSION_1 = Path(__file__).parents[2] / "data" / "store_v1.sql"


def old_database(folder: Path) -> Path:
    path = folder / "gua.db"
    connection = sqlite3.connect(path)
    connection.executescript(VERSION_1.read_text("utf-8"))
    connection.close()
    return path


def schema(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Columns of every table, view and index, whatever words made them."""
    connection = sqlite3.connect(path)
    names = connection.execute("SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'").fetchall()
    found = {
        name: sorted(
            row[1:]
            for row in connection.execute(f"PRAGMA {'index_xinfo' if kind == 'index' else 'table_info'}({name})")
        )
        for kind, name in names
    }
    connection.close()
    return found


def test_a_database_brought_up_to_date_is_as_one_made_anew(tmp_path: Path) -> None:
    old, new = old_database(tmp_path), stored(tmp_path / "new.db", [])
    with writing(old):
        pass
    assert schema(old) == schema(new)


def test_every_step_is_on_record(tmp_path: Path) -> None:
    path = old_database(tmp_path)
    with writing(path):
        pass
    connection = sqlite3.connect(path)
    assert [row[0] for row in connection.execute("SELECT version FROM migration")] == list(range(1, SCHEMA_VERSION + 1))
    assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    connection.close()


def test_samples_of_version_1_read_the_same_after_they_were_packed(tmp_path: Path) -> None:
    path = old_database(tmp_path)
    columns = (
        "id, verdict, flags, util_pct, memory_used_mb, temperature_c, power_dw, energy_j, holders, held_mb,"
        " unattributed_mb"
    )
    query = f"SELECT {columns} FROM gpu_sample ORDER BY id"
    with sqlite3.connect(path) as connection:
        before = connection.execute(query).fetchall()
    connection.close()
    with writing(path):
        pass
    with sqlite3.connect(path) as connection:
        assert connection.execute(query).fetchall() == before
        more = connection.execute("SELECT DISTINCT util_max_pct, util_source, rule FROM gpu_sample").fetchall()
    connection.close()
    assert len(before) > 80
    assert more == [(None, None, 1)]


def test_reports_go_on_over_an_old_database(tmp_path: Path) -> None:
    path = old_database(tmp_path)
    held = card(used_mb=9_000)
    with writing(path) as writer:
        writer.write_ticks(tick(MONDAY + n * MINUTE, held, cover_ms=MINUTE) for n in range(55, 90))
    found = report(path, MONDAY, MONDAY + 2 * HOUR)
    (first,) = (one for one in found["cards"] if one["uuid"] == "GPU-a")
    # ada's 35 minutes, then 5 + 35 minutes of memory that nobody listed holds: both stretches are long
    assert first["card_s"]["idle-held"] == (35 + 5 + 35) * 60
    long = {one["user"]: one["idle_held_long_card_s"] for one in found["users"]}
    assert long == {"ada": 35 * 60, "ben": 0, "unattributed": 40 * 60}


def test_a_migration_that_fails_leaves_the_old_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = old_database(tmp_path)
    monkeypatch.setattr("gua.store.migration_2.GPU_SAMPLE_VIEW", "CREATE VIEW nonsense")
    with pytest.raises(Exception, match="cannot write"), writing(path):
        pass
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    assert connection.execute("SELECT type FROM sqlite_master WHERE name = 'gpu_sample'").fetchone() == ("table",)
    assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'sample'").fetchone() == (0,)
    connection.close()


def _refused_where_files_may_not_grow(path: Path) -> str:
    """What opening to write says in a process whose files may be 40 kB long: as on a disk that fills up."""
    hear, say = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
            with writing(path):
                os.write(say, b"it went through")
        except DatabaseUnusable as exc:
            os.write(say, str(exc).encode())
        finally:
            os._exit(0)
    os.close(say)
    with open(hear, encoding="utf-8") as file:
        said = file.read()
    os.waitpid(child, 0)
    return said


def test_a_disk_that_fills_up_meanwhile_is_said_and_leaves_the_old_database(tmp_path: Path) -> None:
    path = old_database(tmp_path)
    said = _refused_where_files_may_not_grow(path)
    assert said.startswith(f"{path} stays as it is, at schema 1: no copy of it could be put into {tmp_path}")
    assert "disk" in said
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    connection.close()
    with writing(path):
        pass
    assert report(path, MONDAY, MONDAY + HOUR)["samples"] > 0


def test_an_old_database_is_read_by_nobody_before_a_writer_brought_it_up_to_date(tmp_path: Path) -> None:
    path = old_database(tmp_path)
    with pytest.raises(Exception, match="older gua"):
        report(path, MONDAY, MONDAY + HOUR)
    with writing(path) as writer:
        writer.write_tick(tick(MONDAY + 2 * HOUR, card(holders=(holder(),))))
    assert report(path, MONDAY, MONDAY + HOUR)["samples"] > 0


def test_the_version_is_that_of_the_last_step() -> None:
    assert len(STEPS) + 1 == SCHEMA_VERSION
