"""Looking after the store: what is in it, whether it is whole, and what is forgotten stays forgotten."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gua.export import stream
from gua_fleet.people import UserMap
from gua_fleet.store.care import forget_host, known_host, store_info, vacuum
from gua_fleet.store.check import check_store
from gua_fleet.store.database import open_store
from gua_fleet.store.forgotten import forget_user
from gua_fleet.store.models import OF_HISTORY
from gua_fleet.store.place import Place
from gua_fleet.store.session import Session
from gua_fleet.view import rendered
from gua_fleet.view_store import info_view
from tests.agent.export.exporting import export
from tests.agent.store.opened import steady, stored
from tests.agent.store.ticks import HOUR, MINUTE, MONDAY, card, holder
from tests.fleet.store.pulling import pull
from tests.fleet.store.reported import from_store, question

NOBODY = UserMap()


def recorded(path: Path, minutes: int = 60, start: int = 0) -> Path:
    people = (holder("zoltan", 1, uid=1001, name="train"), holder("uid:7", 2))
    return stored(path, steady(minutes, card("GPU-a", 50, people), start=start), interval_ms=MINUTE)


@pytest.fixture
def filled(session: Session, tmp_path: Path) -> Session:
    pull(session, recorded(tmp_path / "1.db"), "gpu01")
    pull(session, recorded(tmp_path / "2.db"), "gpu02")
    return session


def rows_of(session: Session, history: int) -> int:
    tables = [model._meta.table_name for model in OF_HISTORY]  # type: ignore[attr-defined]
    return sum(session.value(f"SELECT count(*) FROM {table} WHERE history = ?", (history,)) for table in tables)


def users(session: Session, names: list[str]) -> dict[str, float]:
    document = from_store(session, names, question(MONDAY, MONDAY + 4 * HOUR, MONDAY + 5 * HOUR))
    return {user["user"]: user["card_s"] for user in document["users"]}


def test_forgotten_host_leaves_nothing_and_the_others_all(filled: Session) -> None:
    kept, there = rows_of(filled, 2), rows_of(filled, 1)
    assert forget_host(filled, "gpu01", dry_run=True).rows == there
    assert rows_of(filled, 1) == there
    gone = forget_host(filled, "gpu01")
    assert (gone.histories, gone.rows) == (1, there)
    assert (rows_of(filled, 1), rows_of(filled, 2)) == (0, kept)
    assert not known_host(filled, "gpu01")
    assert known_host(filled, "gpu02")


def test_forgotten_users_time_stays_and_the_name_does_not_come_back(filled: Session, tmp_path: Path) -> None:
    forgot = forget_user(filled, "zoltan", NOBODY, MONDAY)
    assert (forgot.hosts, forgot.names) == (("gpu01", "gpu02"), 1)
    assert users(filled, ["gpu01"]) == {"(expired)": 3_600, "uid:7@gpu01": 3_600}
    # She goes on working there, under a new process too.
    more = steady(30, card("GPU-a", 50, (holder("zoltan", 9, uid=1001, name="again"),)), start=60)
    pull(filled, stored(tmp_path / "1.db", more, interval_ms=MINUTE), "gpu01")
    assert users(filled, ["gpu01"]) == {"(expired)": 5_400, "uid:7@gpu01": 3_600}
    # Nor on a host that was not there when she was forgotten.
    pull(filled, recorded(tmp_path / "3.db"), "gpu03")
    assert "zoltan" not in users(filled, ["gpu03"])
    for table, column in (("person", "name"), ("process", "name")):
        assert not {"zoltan", "train", "again"} & {name for (name,) in filled.rows(f"SELECT {column} FROM {table}")}
    assert filled.rows("SELECT uid FROM person WHERE uid = 1001") == []


def test_name_that_means_something_on_one_host_is_forgotten_there_only(filled: Session) -> None:
    forget_user(filled, "uid:7@gpu01", NOBODY, MONDAY)
    assert users(filled, ["gpu01", "gpu02"]) == {"(expired)": 3_600, "zoltan": 7_200, "uid:7@gpu02": 3_600}


def test_all_names_that_the_user_map_has_for_a_person_are_forgotten(filled: Session) -> None:
    forgot = forget_user(filled, "Zoltan L.", UserMap({"zoltan": "Zoltan L.", "uid:7@gpu02": "Zoltan L."}), MONDAY)
    assert forgot.names == 2
    assert users(filled, ["gpu01", "gpu02"]) == {"(expired)": 10_800, "uid:7@gpu01": 3_600}


def test_store_does_not_keep_who_was_forgotten(tmp_path: Path) -> None:
    file = tmp_path / "fleet.db"
    with open_store(Place(path=file), now_ms=MONDAY) as session:
        pull(session, recorded(tmp_path / "1.db"), "gpu01")
        forget_user(session, "zoltan", NOBODY, MONDAY)
        vacuum(session)
    assert b"zoltan" not in file.read_bytes()


def test_nobody_of_that_name_is_no_error_and_is_kept_out_later(filled: Session, tmp_path: Path) -> None:
    assert forget_user(filled, "ben", NOBODY, MONDAY).hosts == ()
    path = stored(tmp_path / "3.db", steady(60, card("GPU-a", 50, (holder("ben"),))), interval_ms=MINUTE)
    pull(filled, path, "gpu03")
    assert users(filled, ["gpu03"]) == {"(expired)": 3_600}


def test_whole_store_is_found_whole(filled: Session) -> None:
    assert list(check_store(filled)) == []


def test_check_names_what_is_wrong(filled: Session) -> None:
    filled.execute("UPDATE card_day SET covered_ms = covered_ms + 1 WHERE history = 1")
    filled.execute("UPDATE user_slot SET share_ms = share_ms - 1 WHERE history = 2")
    filled.execute("INSERT INTO boot (history, id, boot_id) VALUES (99, 1, 'b')")
    wrong = list(check_store(filled))
    assert any("gpu01: card_day and card_slot differ in covered_ms" in line for line in wrong)
    assert any("gpu02: user_day and user_slot differ in share_ms" in line for line in wrong)
    assert "boot: 1 rows belong to no history" in wrong
    assert len(wrong) == 3


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        # the same in all, but of another day, state or user
        ("UPDATE card_day SET verdict = verdict + 1", "gpu01: card_day and card_slot differ in covered_ms"),
        ("UPDATE user_day SET person = person + 1000", "gpu01: user_day and user_slot differ in"),
        ("UPDATE tick_day SET day = day + 1", "gpu01: tick_day and tick_slot differ in ticks"),
        ("UPDATE card_day SET samples = samples + 1", "gpu01: card_day and card_slot differ in samples"),
        ("UPDATE slot_day SET day = day + 1", "gpu01: slot_day and card_slot differ"),
        ("DELETE FROM slot_day", "gpu01: slot_day and card_slot differ"),
        ("DELETE FROM card_day", "gpu01: card_day and card_slot differ"),
        ("DELETE FROM card_slot", "gpu01: card_day and card_slot differ"),
        ("DELETE FROM device", "rows of card_day name a device that is not there"),
        ("DELETE FROM person", "rows of process name a person that is not there"),
        ("DELETE FROM process", "rows of hold name a process that is not there"),
        ("DELETE FROM occupancy", "rows of sample name a occupancy that is not there"),
        ("DELETE FROM sample", "gpu01: card_slot counts other samples than there are in sample"),
        ("DELETE FROM tick", "gpu01: tick_slot counts other ticks than there are in tick"),
        ("UPDATE sample SET verdict = verdict + 1", "gpu01: card_slot counts other samples"),
    ],
)
def test_check_finds_what_was_damaged(filled: Session, tmp_path: Path, damage: str, said: str) -> None:
    pull(filled, recorded(tmp_path / "2.db", 30, start=120), "gpu02")
    filled.execute(f"{damage} WHERE history = 1")
    wrong = list(check_store(filled))
    assert any(said in line for line in wrong), wrong
    assert not any("gpu02" in line for line in wrong)


def test_check_finds_nothing_wrong_with_a_pull_that_was_cut(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "CHUNK_ROWS", 40)
    path = recorded(tmp_path / "1.db")
    for end in range(1_000, len(export(path)), 2_000):
        pull(session, path, "gpu01", cut=end, now_ms=MONDAY + end)
        assert list(check_store(session)) == []
    pull(session, path, "gpu01", raw_ms=30 * MINUTE, now_ms=MONDAY + 2 * HOUR)
    assert list(check_store(session)) == []


def test_check_finds_a_damaged_file(tmp_path: Path) -> None:
    place = Place(path=tmp_path / "fleet.db")
    with open_store(place, now_ms=MONDAY) as session:
        pull(session, recorded(tmp_path / "1.db"), "gpu01")
        session.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        root = session.value("SELECT rootpage FROM sqlite_master WHERE name = 'hold'")
        size = session.value("PRAGMA page_size")
    with (tmp_path / "fleet.db").open("rb+") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * 20)
    with open_store(place, now_ms=MONDAY) as session:
        assert any(line.startswith("the file is damaged:") for line in check_store(session))


def test_vacuum_gives_room_back(filled: Session) -> None:
    forget_host(filled, "gpu01")
    before, after = vacuum(filled)
    assert after < before
    assert users(filled, ["gpu02"]) == {"zoltan": 3_600, "uid:7@gpu02": 3_600}


def test_info_says_what_is_there(filled: Session) -> None:
    info = store_info(filled)
    assert [(host.name, host.ticks, len(host.histories)) for host in info.hosts] == [("gpu01", 60, 1), ("gpu02", 60, 1)]
    assert info.rows["card_slot"] == 8
    assert info.size_bytes > 10_000
    view = info_view(info, place="fleet.db", now_ms=MONDAY + HOUR)
    assert "gpu01  1 h 00 min ago" in rendered(view, "table", None)
    document = json.loads(rendered(view, "json", None))
    assert document["hosts"][0]["first_day"] == "2026-03-02"
    assert document["schema"] == "gua.fleet-store-info/1"
