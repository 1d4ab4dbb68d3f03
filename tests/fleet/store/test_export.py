"""The whole history as files: every row once, days in folders, a manifest that is true, nothing half written."""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gua.errors import UsageError
from gua_fleet.export.datasets import DATASETS
from gua_fleet.export.files import Csv, Form, Parquet
from gua_fleet.export.names import Names, nameless
from gua_fleet.export.source import Source
from gua_fleet.export.tree import Written, write_export
from gua_fleet.people import UserMap
from gua_fleet.store.session import Session
from tests.agent.store.opened import steady, stored
from tests.agent.store.ticks import MINUTE, MONDAY, card, holder, tick
from tests.fleet.store.pulling import pull

HOUR = 3_600
DAY_MINUTES = 24 * 60
NEXT_DAY = "2026-03-03"


@pytest.fixture
def filled(session: Session, tmp_path: Path) -> Session:
    """Two hosts: one with an hour on Monday and half an hour on Tuesday, one with a minute on Monday."""
    zoltan, uid = (holder("zoltan", name="=cmd"),), (holder("uid:7", 8),)
    cards = (card("GPU-a", 50, zoltan), card("GPU-b", 0, uid, index=1), card("GPU-c", 0, power_w=None, index=2))
    ticks = steady(60, *cards) + steady(30, *cards, start=DAY_MINUTES)
    pull(session, stored(tmp_path / "1.db", ticks, interval_ms=MINUTE), "zoltan-box")
    pull(session, stored(tmp_path / "2.db", steady(1, card("GPU-z", None)), interval_ms=MINUTE), "gpu02")
    return session


def export(session: Session, folder: Path, form: Form | None = None, names: Names | None = None) -> Written:
    with session.reading():
        return write_export(Source(session, names or Names()), form or Csv(), folder, {"names": names is None})


def rows(folder: Path, dataset: str) -> list[dict[str, str]]:
    found = []
    for file in sorted((folder / dataset).rglob("*.csv")):
        with file.open(encoding="utf-8", newline="") as text:
            found += list(csv.DictReader(text))
    return found


def test_time_adds_up_to_what_was_recorded(filled: Session, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    export(filled, folder)
    covered: dict[tuple[str, str], float] = {}
    for row in rows(folder, "card_slots"):
        key = (row["card_uuid"], row["state"])
        covered[key] = covered.get(key, 0.0) + float(row["covered_s"])
    assert covered == {
        ("GPU-a", "active"): 1.5 * HOUR,
        ("GPU-b", "idle-held"): 1.5 * HOUR,
        ("GPU-c", "truly-idle"): 1.5 * HOUR,
        ("GPU-z", "unknown"): 60.0,
    }
    held = {row["user"]: row["user_source"] for row in rows(folder, "user_slots")}
    assert held == {"zoltan": "owner", "uid:7@zoltan-box": "owner"}
    assert sum(float(row["share_s"]) for row in rows(folder, "user_slots")) == 3 * HOUR
    assert sum(int(row["ticks"]) for row in rows(folder, "tick_slots")) == 91


def test_unknown_is_empty_and_never_0(filled: Session, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    export(filled, folder)
    silent = next(row for row in rows(folder, "card_slots") if row["card_uuid"] == "GPU-c")
    assert (silent["energy_j"], silent["energy_known_s"]) == ("", "0.0")
    unread = next(row for row in rows(folder, "samples") if row["card_uuid"] == "GPU-z")
    assert (unread["util_pct"], unread["state"], unread["reason"]) == ("", "unknown", "util_unavailable")


def test_days_lie_in_folders_of_their_own(filled: Session, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    export(filled, folder)
    for dataset in ("card_slots", "user_slots", "tick_slots", "samples"):
        assert sorted(path.name for path in (folder / dataset).iterdir()) == ["day=2026-03-02", f"day={NEXT_DAY}"]
    assert {row["at"][:10] for row in rows(folder / "samples", f"day={NEXT_DAY}")} == {NEXT_DAY}
    # A hold lies where it began, whole.
    assert [path.name for path in (folder / "holds").iterdir()] == ["day=2026-03-02"]


def test_sample_and_hold_have_their_values(filled: Session, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    export(filled, folder)
    sample = next(row for row in rows(folder, "samples") if row["card_uuid"] == "GPU-a")
    assert (sample["at"], sample["util_pct"], sample["power_w"]) == ("2026-03-02T00:00:00Z", "50", "100.0")
    hold = next(row for row in rows(folder, "holds") if row["user"] == "zoltan")
    assert (hold["process"], hold["type"], hold["is_open"]) == ("'=cmd", "compute", "1")
    assert float(hold["active_s"]) == 1.5 * HOUR


def test_manifest_describes_every_file_and_column(filled: Session, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    written = export(filled, folder)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    assert manifest["schema"] == "gua.fleet-export/1"
    assert manifest["window"] == {"first_day": "2026-03-02", "last_day": NEXT_DAY}
    there = {str(path.relative_to(folder)) for path in folder.rglob("*.csv")}
    assert {one["name"] for one in manifest["files"]} == there
    for one in manifest["files"]:
        content = (folder / one["name"]).read_bytes()
        assert (one["bytes"], one["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
        assert one["rows"] == content.count(b"\n") - 1
    assert sum(one["rows"] for one in manifest["files"]) == written.rows
    assert [one["name"] for one in manifest["datasets"]] == [one.name for one in DATASETS]
    assert not [path for path in folder.rglob(".*") if path.is_file()]


def test_same_store_gives_the_same_files_and_leaves_them(filled: Session, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    first = export(filled, folder)
    stood = {path: (path.read_bytes(), path.stat().st_ino) for path in folder.rglob("*.csv")}
    manifest = (folder / "manifest.json").read_bytes()
    again = export(filled, folder)
    assert (first.new, again.new) == (first.files, 0)
    assert {path: (path.read_bytes(), path.stat().st_ino) for path in folder.rglob("*.csv")} == stood
    assert (folder / "manifest.json").read_bytes() == manifest


def test_file_of_a_day_that_is_gone_goes(filled: Session, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    export(filled, folder)
    filled.execute("DELETE FROM tick WHERE ts_ms >= ?", (MONDAY + DAY_MINUTES * MINUTE,))
    export(filled, folder)
    assert [path.name for path in (folder / "samples").iterdir()] == ["day=2026-03-02"]


def test_database_put_back_from_a_copy_has_each_hold_once(session: Session, tmp_path: Path) -> None:
    path, copy = tmp_path / "1.db", tmp_path / "copy.db"
    stored(path, steady(30, card("GPU-a", 50, (holder("ada"),))), interval_ms=MINUTE)
    shutil.copy(path, copy)
    stored(path, steady(30, card("GPU-a", 50, (holder("ben", 200),)), start=30), interval_ms=MINUTE)
    pull(session, path)
    stored(copy, steady(30, card("GPU-a", 50, (holder("chi", 300),)), start=90), interval_ms=MINUTE)
    pull(session, copy)
    export(session, tmp_path / "out")
    assert sorted(row["user"] for row in rows(tmp_path / "out", "holds")) == ["ada", "ben", "chi"]


def test_export_that_fails_leaves_nothing_that_is_called_whole(filled: Session, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    export(filled, folder)

    class Full(Csv):
        def write(self, path: Path, dataset: Any, batches: Any) -> int:
            if dataset.name == "samples":
                raise OSError(28, "No space left on device")
            return super().write(path, dataset, batches)

    with pytest.raises(OSError, match="No space"):
        export(filled, folder, Full())
    assert not (folder / "manifest.json").exists()
    export(filled, folder)
    assert json.loads((folder / "manifest.json").read_bytes())["files"]


@pytest.mark.parametrize("content", ["{}", '{"schema": "other/1", "files": []}', "no json"])
def test_folder_with_something_else_in_it_is_left_alone(filled: Session, tmp_path: Path, content: str) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "manifest.json").write_text(content)
    with pytest.raises(UsageError, match="name another folder"):
        export(filled, folder)
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        export(filled, other)
    assert (other / "thesis.txt").read_text() == "mine"


def test_without_names_nobody_is_named(filled: Session, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with filled.reading():
        names = nameless(filled, UserMap({"uid:7": "grace"}))
    export(filled, folder, names=names)
    texts = "".join(path.read_text() for path in folder.rglob("*.csv"))
    for told in ("zoltan", "grace", "uid:7", "cmd"):
        assert told not in texts
    # uid:7 held a card without work, zoltan did not; zoltan's own machine is called after her.
    held = {row["card_uuid"]: (row["user"], row["host"]) for row in rows(folder, "user_slots")}
    assert held == {"GPU-a": ("user 2", "host 2"), "GPU-b": ("user 1", "host 2")}


def test_user_map_names_people(filled: Session, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    export(filled, folder, names=Names(UserMap({"uid:7": "grace"})))
    assert {row["user"] for row in rows(folder, "user_slots")} == {"zoltan", "grace"}


def test_parquet_says_what_csv_says(filled: Session, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow: pip install gua-fleet[parquet]")
    export(filled, tmp_path / "csv")
    export(filled, tmp_path / "parquet", Parquet())
    for dataset in DATASETS:
        found = []
        for file in sorted((tmp_path / "parquet" / dataset.name).rglob("*.parquet")):
            table = parquet.ParquetFile(file).read()
            assert table.schema.names == [column.name for column in dataset.columns]
            found += table.to_pylist()
        assert [_as_text(row) for row in found] == rows(tmp_path / "csv", dataset.name)


def _as_text(row: dict[str, Any]) -> dict[str, str]:
    return {key: _cell(value) for key, value in row.items()}


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if hasattr(value, "isoformat"):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"'{value}" if str(value).startswith("=") else str(value)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_no_text_of_a_host_steers_the_terminal_that_shows_the_file(session: Session, tmp_path: Path, form: str) -> None:
    evil = "e\x1b[2J\x07\u202e"
    path = stored(tmp_path / "1.db", steady(5, card(evil, 50, (holder(evil, name=evil),))), interval_ms=MINUTE)
    pull(session, path)
    folder = tmp_path / "out"
    if form == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        export(session, folder, Parquet())
        said = str([parquet.read_table(file).to_pylist() for file in folder.rglob("*.parquet")]).replace("\\\\", "\\")
    else:
        export(session, folder)
        said = "".join(file.read_text(encoding="utf-8") for file in folder.rglob("*.csv"))
    assert "\x1b" not in said
    assert said.count(r"e\x1b[2J\x07\u202e") >= 5


def test_memory_is_bounded_by_batches(tmp_path: Path) -> None:
    """Rows of a thousand batches are never there at once."""
    alive = most = 0

    class Counted(list[Any]):
        def __init__(self, values: list[Any]) -> None:
            nonlocal alive, most
            super().__init__(values)
            alive += 1
            most = max(most, alive)

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    def batches() -> Iterator[list[Any]]:
        for number in range(1_000):
            yield Counted([("a", number, number, None)])

    pauses = next(dataset for dataset in DATASETS if dataset.name == "pauses")
    assert Csv().write(tmp_path / "pauses.csv", pauses, batches()) == 1_000
    assert most <= 3


def test_tick_without_cards_is_exported(session: Session, tmp_path: Path) -> None:
    pull(session, stored(tmp_path / "1.db", [tick(MONDAY)]), "gpu01")
    export(session, tmp_path / "out")
    assert len(rows(tmp_path / "out", "tick_slots")) == 1
    assert rows(tmp_path / "out", "samples") == []
