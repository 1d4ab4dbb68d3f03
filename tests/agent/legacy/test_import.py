from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gua.legacy import take_over
from gua.store.database import open_reader
from gua.store.retention import Retention
from tests.agent.legacy.importing import Cut, take
from tests.agent.legacy.old_databases import SCHEMAS, OldFile, OldProc, OldSample, old_database
from tests.agent.store.opened import SetClock, report, writing
from tests.agent.store.ticks import HOUR, MINUTE, MONDAY, SECOND, card, holder, tick

ACTIVE = OldSample(util_pct=10, procs=(OldProc(),), state="active")
HELD = OldSample(util_pct=9, procs=(OldProc(memory_mb=101),), state="idle_held")
FREE = OldSample(util_pct=9)
# 4 ticks active, 3 held, 3 free, of 30 seconds each.
MIXED = [[ACTIVE]] * 4 + [[HELD]] * 3 + [[FREE]] * 3


def states(path: Path, until_ms: int = MONDAY + HOUR) -> dict[str, float]:
    return {state: amount for state, amount in report(path, MONDAY, until_ms)["card_s"].items() if amount}


def dump(path: Path, *, runs: bool = True) -> dict[str, list[Any]]:
    """Everything that is stored, without revisions and what tells one store from another."""
    connection = sqlite3.connect(path)
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = {}
    for table in tables:
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[1] != "rev"]
        if table not in ("store", "migration"):
            found[table] = sorted(connection.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall(), key=repr)
    connection.close()
    return found


@pytest.mark.parametrize("version", SCHEMAS)
def test_every_version_gives_the_headline_that_tool_gave(tmp_path: Path, version: str) -> None:
    """Its rule: active from 10 %, held above 100 MB of listed memory, free otherwise, each sample alike."""
    taken = take(old_database(tmp_path / "old.db", version, MIXED), tmp_path / "gua.db")
    assert (taken.ticks, taken.samples, taken.processes, taken.cards, taken.users) == (10, 10, 7, {"GPU-a"}, {"ada"})
    assert (taken.from_ms, taken.until_ms) == (MONDAY, MONDAY + 300 * SECOND)
    assert states(tmp_path / "gua.db") == {"active": 120, "idle-held": 90, "truly-idle": 90}
    found = report(tmp_path / "gua.db", MONDAY, MONDAY + 300 * SECOND)
    assert found["coverage"]["unobserved_card_s"] == 0
    (user,) = found["users"]
    assert (user["user"], user["card_s"], user["idle_held_card_s"]) == ("ada", 210, 90)


def test_the_installed_version_alone_decides_what_is_said_to_be_unknown(tmp_path: Path) -> None:
    seen = {}
    for version in ("1.0.0", "1.3.0", "1.8.0"):
        taken = take(old_database(tmp_path / f"{version}.db", version, MIXED), tmp_path / f"gua-{version}.db")
        seen[version] = (taken.unmeasured, taken.ungraphed, sorted(taken.inferred_ms), sorted(taken.intervals_ms))
    assert seen == {
        "1.0.0": (10, 10, [30_000], []),
        "1.3.0": (0, 10, [], [30_000]),
        "1.8.0": (0, 0, [], [30_000]),
    }


def test_a_list_that_failed_is_unknown_and_never_free(tmp_path: Path) -> None:
    failed = OldSample(util_pct=0, used_mb=2_000, state=None)
    take(
        old_database(tmp_path / "old.db", "1.8.0", [[FREE], [failed], [replace(failed, util_pct=50)]]),
        tmp_path / "gua.db",
    )
    assert states(tmp_path / "gua.db") == {"truly-idle": 30, "unknown": 30, "active": 30}
    found = report(tmp_path / "gua.db", MONDAY, MONDAY + HOUR)
    assert found["coverage"]["unknown_by_reason"] == {"processes_unavailable": 30}


def test_rows_of_before_an_upgrade_are_not_taken_for_failed_lists(tmp_path: Path) -> None:
    file = OldFile(tmp_path / "old.db", "1.8.0")
    before, after = file.run(), file.run(start_s=30)
    file.tick(before, 0, replace(FREE, state=None))
    file.tick(after, 30, FREE)
    take(file.close(), tmp_path / "gua.db")
    assert states(tmp_path / "gua.db") == {"truly-idle": 60}


def test_much_memory_in_nobodys_name_is_unknown_where_graphics_processes_were_not_listed(tmp_path: Path) -> None:
    nobodys = OldSample(used_mb=1_501)
    for version, state in (("1.3.0", "unknown"), ("1.8.0", "idle-held")):
        take(old_database(tmp_path / f"{version}.db", version, [[nobodys]]), tmp_path / f"gua-{version}.db")
        assert states(tmp_path / f"gua-{version}.db") == {state: 30}


def test_a_desktop_holds_no_card_and_a_process_without_a_figure_does(tmp_path: Path) -> None:
    desktop = OldSample(procs=(OldProc("gdm", 1_800, type="graphics"),), state="idle")
    silent = OldSample(procs=(OldProc("ada", None),), state="idle_held")
    absurd = OldSample(procs=(OldProc("ada", 17_592_186_044_415),), used_mb=10, state="idle_held")
    take(old_database(tmp_path / "old.db", "1.8.0", [[desktop], [silent], [absurd]]), tmp_path / "gua.db")
    assert states(tmp_path / "gua.db") == {"truly-idle": 30, "idle-held": 60}
    assert [row["user"] for row in report(tmp_path / "gua.db", MONDAY, MONDAY + HOUR)["users"]] == ["ada"]


def test_process_numbers_that_cannot_be_make_the_list_unknown(tmp_path: Path) -> None:
    rubbish = OldSample(procs=(OldProc("ada", 4_000, 1184), OldProc("root", 9, 4_294_967_295)), state="idle_held")
    take(old_database(tmp_path / "old.db", "1.8.0", [[rubbish]]), tmp_path / "gua.db")
    assert states(tmp_path / "gua.db") == {"unknown": 30}
    assert report(tmp_path / "gua.db", MONDAY, MONDAY + HOUR)["users"] == []


def test_users_are_those_named_then(tmp_path: Path) -> None:
    procs = (
        OldProc("EXAMPLE\\ada", pid=1, owner="root"),
        OldProc(None, pid=2, owner="ben"),
        OldProc(None, pid=3, owner=None),
    )
    taken = take(old_database(tmp_path / "old.db", "1.8.0", [[OldSample(procs=procs)]]), tmp_path / "gua.db")
    assert taken.users == {"EXAMPLE\\ada", "ben", "unknown"}
    with open_reader(tmp_path / "gua.db") as reader:
        sources = {row.name: row.source.value for row in reader.users().values()}
    assert sources == {"EXAMPLE\\ada": "loginuid", "ben": "owner", "unknown": "unknown", "unattributed": "unattributed"}


def test_two_runs_at_once_count_no_second_twice(tmp_path: Path) -> None:
    file = OldFile(tmp_path / "old.db", "1.8.0")
    first, second = file.run(30), file.run(60, start_s=10)
    for n in range(10):
        file.tick(first, 30 * n, FREE)
        if n % 2 == 0:
            file.tick(second, 30 * n + 10, FREE)
    take(file.close(), tmp_path / "gua.db")
    # the last ticks: 270 + 30 of the first, 250 + 60 of the second
    assert states(tmp_path / "gua.db") == {"truly-idle": 310}


def test_a_missed_tick_stays_unobserved_also_where_the_interval_was_never_recorded(tmp_path: Path) -> None:
    file = OldFile(tmp_path / "old.db", "1.0.0")
    for n in range(40):
        if n not in (11, 12, 30):
            file.tick(None, 30 * n, FREE)
    take(file.close(), tmp_path / "gua.db")
    assert states(tmp_path / "gua.db") == {"truly-idle": 37 * 30}


def test_a_single_sample_of_sync_once_stands_for_no_time(tmp_path: Path) -> None:
    file = OldFile(tmp_path / "old.db", "1.8.0")
    run = file.run()
    file.tick(run, 0, FREE)
    file.tick(None, 100, ACTIVE)
    taken = take(file.close(), tmp_path / "gua.db")
    assert (taken.points, taken.ticks) == (1, 2)
    assert states(tmp_path / "gua.db") == {"truly-idle": 30}


def test_a_second_import_changes_nothing_and_a_grown_file_adds_what_is_new(tmp_path: Path) -> None:
    old_database(tmp_path / "old.db", "1.8.0", MIXED)
    take(tmp_path / "old.db", tmp_path / "gua.db")
    before = dump(tmp_path / "gua.db")
    again = take(tmp_path / "old.db", tmp_path / "gua.db")
    assert (again.ticks, again.known) == (0, 10)
    assert dump(tmp_path / "gua.db") == before
    file = OldFile(tmp_path / "old.db", "1.8.0")
    for n in range(10, 14):
        file.tick(1, 30 * n, HELD)
    later = file.run(start_s=600)
    file.tick(later, 600, FREE)
    assert take(file.close(), tmp_path / "gua.db").ticks == 5
    assert states(tmp_path / "gua.db") == {"active": 120, "idle-held": 210, "truly-idle": 120}


def some_days(path: Path) -> Path:
    """Stretches that turn long, holds that change hands, a card that comes and goes; 600 ticks of a minute."""
    file = OldFile(path, "1.8.0")
    run = file.run(60)
    for n in range(600):
        who = OldProc("ada" if n % 170 < 90 else "ben", 2_000 + n // 50, pid=1 + n // 85)
        first = OldSample("GPU-a", 0 if n % 110 < 70 else 80, (who,), state="active")
        second = OldSample("GPU-b", 0, (OldProc("chi", pid=9),) if n % 200 > 120 else (), index=1)
        file.tick(run, 60 * n, *([first] if 250 < n < 270 else [first, second]))
    return file.close()


@pytest.mark.parametrize("batches", [1, 3, 4, 7])
def test_an_import_that_was_cut_goes_on_as_if_it_had_not_been(
    tmp_path: Path, batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    some_days(tmp_path / "old.db")
    monkeypatch.setattr(take_over, "_BATCH_SAMPLES", 110)
    take(tmp_path / "old.db", tmp_path / "whole.db")
    with pytest.raises(Cut):
        take(tmp_path / "old.db", tmp_path / "gua.db", batches)
    take(tmp_path / "old.db", tmp_path / "gua.db")
    assert dump(tmp_path / "gua.db") == dump(tmp_path / "whole.db")
    found = report(tmp_path / "gua.db", MONDAY, MONDAY + 10 * HOUR)
    assert sum(user["idle_held_long_card_s"] for user in found["users"]) > 0


def live(path: Path, ticks: Sequence[Any], **more: Any) -> None:
    with writing(path, **more) as writer:
        writer.write_ticks(ticks)


def test_the_present_is_not_disturbed_by_the_past(tmp_path: Path) -> None:
    now = [tick(MONDAY + HOUR + n * 30_000, card(holders=(holder("eve"),)), cover_ms=30_000) for n in range(120)]
    live(tmp_path / "gua.db", now)
    window = (MONDAY + HOUR, MONDAY + 2 * HOUR)
    before = report(tmp_path / "gua.db", *window)
    take(old_database(tmp_path / "old.db", "1.8.0", [[ACTIVE, OldSample("GPU-gone")]] * 100), tmp_path / "gua.db")
    after = report(tmp_path / "gua.db", *window)
    for part in ("card_s", "coverage", "holds", "users", "findings", "host"):
        assert after[part] == before[part]  # type: ignore[literal-required]
    assert [row["now"] for row in after["cards"] if row["uuid"] == "GPU-a"] == [before["cards"][0]["now"]]
    with open_reader(tmp_path / "gua.db") as reader:
        gone = next(row for row in reader.devices() if row.uuid == "GPU-gone")
        assert reader.newest_tick_ms() == now[-1].ts_ms
    assert gone.retired_at_ms == MONDAY + 100 * 30_000
    assert states(tmp_path / "gua.db") == {"active": 3_000, "truly-idle": 3_000}


def test_a_daemon_that_writes_meanwhile_and_the_import_keep_to_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same file into an empty database and into one whose daemon writes a tick after every batch."""
    some_days(tmp_path / "old.db")
    monkeypatch.setattr(take_over, "_BATCH_SAMPLES", 110)
    take(tmp_path / "old.db", tmp_path / "alone.db")
    start_ms = MONDAY + 24 * HOUR
    live(tmp_path / "gua.db", [tick(start_ms, card(holders=(holder("eve"),)))])
    for n in range(1, 8):
        with pytest.raises(Cut):
            take(tmp_path / "old.db", tmp_path / "gua.db", 1)
        live(tmp_path / "gua.db", [tick(start_ms + n * 30_000, card(holders=(holder("eve"),)))])
    take(tmp_path / "old.db", tmp_path / "gua.db")
    window = (MONDAY, MONDAY + 10 * HOUR)
    alone, beside = report(tmp_path / "alone.db", *window), report(tmp_path / "gua.db", *window)
    for part in ("card_s", "users", "hours_of_week", "samples"):
        assert beside[part] == alone[part]  # type: ignore[literal-required]
    (hold,) = report(tmp_path / "gua.db", start_ms, start_ms + HOUR)["holds"]
    assert (hold["user"], hold["states"]["idle-held"]) == ("eve", 240)


def test_time_that_ours_saw_too_counts_once(tmp_path: Path) -> None:
    ours = [tick(MONDAY + n * 30_000, card(util_pct=90), cover_ms=30_000) for n in range(5, 15)]
    live(tmp_path / "gua.db", ours)
    take(old_database(tmp_path / "old.db", "1.8.0", [[FREE]] * 10), tmp_path / "gua.db")
    assert states(tmp_path / "gua.db") == {"active": 300, "truly-idle": 150}


def test_what_was_counted_stays_counted_once_when_its_raw_ticks_are_gone(tmp_path: Path) -> None:
    step, day = 10 * MINUTE, 24 * HOUR
    keep = Retention(raw_ms=day, user_ms=400 * day)
    clock = SetClock()
    old = old_database(tmp_path / "old.db", "1.8.0", [[FREE]] * 60, 60)
    with writing(tmp_path / "gua.db", interval_ms=step, clock=clock, retention=keep) as writer:
        for n in range(3, 4 * 144):  # from the second half of the old file's hour on
            clock.ms = MONDAY + n * step
            writer.write_tick(tick(clock.ms, card(util_pct=90), cover_ms=step))
    assert report(tmp_path / "gua.db", MONDAY, MONDAY + HOUR)["card_s"]["active"] == 30 * 60
    taken = take(old, tmp_path / "gua.db")
    found = report(tmp_path / "gua.db", MONDAY, MONDAY + HOUR)["card_s"]
    assert (taken.ticks, taken.counted_before) == (30, 30)
    assert (found["active"], found["truly-idle"]) == (30 * 60, 30 * 60)
    assert take(old, tmp_path / "gua.db").ticks == 0
