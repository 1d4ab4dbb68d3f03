from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gua.errors import DatabaseUnusable
from gua.model import DEFAULT_RULE, CardReading, Mig, ProcessType, Reason, Tick
from gua.store.database import open_reader
from tests.agent.store.opened import report, stored, writing
from tests.agent.store.ticks import HOUR, MINUTE, MONDAY, SECOND, card, holder, tick

DAY = 24 * HOUR


def steady(count: int, *cards: Any, start: int = 0) -> list[Tick]:
    return [tick(MONDAY + n * MINUTE, *cards, cover_ms=MINUTE) for n in range(start, start + count)]


def hour(path: Path) -> Any:
    return report(path, MONDAY, MONDAY + HOUR)


def write(folder: Path, ticks: Iterable[Tick], **more: Any) -> Path:
    return stored(folder / "gua.db", ticks, **more)


def test_a_tick_before_any_run_is_refused(tmp_path: Path) -> None:
    with writing(tmp_path / "gua.db") as writer:
        writer.end_run()
        with pytest.raises(RuntimeError, match="begin_run"):
            writer.write_tick(tick(MONDAY, card()))


def test_overlapping_ticks_cover_each_second_once(tmp_path: Path) -> None:
    ticks = [tick(MONDAY + n * 10 * SECOND, card(), cover_ms=30 * SECOND) for n in range(6)]
    assert hour(write(tmp_path, ticks))["card_s"]["truly-idle"] == 50 + 30


def test_missed_ticks_stay_unobserved(tmp_path: Path) -> None:
    found = hour(write(tmp_path, [*steady(10, card()), *steady(10, card(), start=50)]))
    assert found["card_s"]["truly-idle"] == 20 * 60
    assert found["coverage"]["unobserved_card_s"] == 40 * 60


def test_one_tick_stamped_a_month_ahead_swallows_nothing(tmp_path: Path) -> None:
    first, *rest = steady(60, card())
    path = write(tmp_path, [first, tick(MONDAY + 30 * DAY, card()), *rest])
    assert hour(path)["card_s"]["truly-idle"] == 3_600


def test_a_tick_that_fills_the_gap_between_two_covers_both_its_sides(tmp_path: Path) -> None:
    ticks = [
        tick(MONDAY + 20 * SECOND, card(), cover_ms=10 * SECOND),
        tick(MONDAY + 40 * SECOND, card(), cover_ms=10 * SECOND),
        tick(MONDAY + 10 * SECOND, card(util_pct=50), cover_ms=60 * SECOND),
    ]
    found = hour(write(tmp_path, ticks))
    assert found["card_s"] == {"active": 10 + 10 + 20, "idle-held": 0, "truly-idle": 20, "unknown": 0}


def test_a_sync_once_covers_nothing_and_is_the_newest_state(tmp_path: Path) -> None:
    path = write(tmp_path, [*steady(2, card()), tick(MONDAY + 90 * SECOND, card(util_pct=70), cover_ms=0)])
    found = hour(path)
    assert found["card_s"] == {"active": 0, "idle-held": 0, "truly-idle": 120, "unknown": 0}
    assert found["samples"] == 3
    now = found["cards"][0]["now"]
    assert (now["state"], now["at"], now["since"]) == ("active", "2026-03-02T00:01:30Z", "2026-03-02T00:01:30Z")


def test_a_card_swapped_at_its_address_is_retired_and_no_longer_expected(tmp_path: Path) -> None:
    old, new = card("GPU-old", pci="0:1"), card("GPU-new", pci="0:1")
    gone = card("GPU-old", absent=Reason.CARD_MISSING)
    path = write(tmp_path, [*steady(20, old), *steady(40, new, gone, start=20)])
    found = hour(path)
    cards = {one["uuid"]: one for one in found["cards"]}
    assert cards["GPU-old"]["retired_at"] == "2026-03-02T00:20:00Z"
    assert cards["GPU-old"]["now"] is None
    assert found["coverage"]["expected_card_s"] == found["coverage"]["observed_card_s"] == 3_600
    with writing(path) as writer:
        assert [one.uuid for one in writer.known_devices()] == ["GPU-new"]


def test_a_missing_card_stays_expected_and_unknown(tmp_path: Path) -> None:
    path = write(tmp_path, [*steady(30, card()), *steady(30, card(absent=Reason.CARD_MISSING), start=30)])
    found = hour(path)
    assert found["card_s"] == {"active": 0, "idle-held": 0, "truly-idle": 1_800, "unknown": 1_800}
    with writing(path) as writer:
        (known,) = writer.known_devices()
    assert (known.name, known.first_seen_ms, known.last_seen_ms) == ("NVIDIA A100", MONDAY, MONDAY + 29 * MINUTE)


def test_a_card_that_comes_back_is_the_same_card(tmp_path: Path) -> None:
    old, new = card("GPU-old", pci="0:1"), card("GPU-new", pci="0:1")
    found = hour(write(tmp_path, [*steady(5, old), *steady(5, new, start=5), *steady(5, old, start=10)]))
    retired = {one["uuid"]: one["retired_at"] for one in found["cards"]}
    assert retired == {"GPU-old": None, "GPU-new": "2026-03-02T00:10:00Z"}


def test_switching_mig_on_and_off_retires_what_is_gone(tmp_path: Path) -> None:
    whole = card("GPU-whole", pci="0:1")
    slices = [card(f"MIG-{n}", pci="0:1", mig=Mig("GPU-whole", "1g.10gb")) for n in range(2)]
    path = write(tmp_path, [*steady(1, whole), *steady(1, *slices, start=1)])
    with writing(path) as writer:
        assert [one.uuid for one in writer.known_devices()] == ["MIG-0", "MIG-1"]
        assert writer.known_devices()[0].mig == Mig("GPU-whole", "1g.10gb")
        writer.write_tick(steady(1, whole, start=2)[0])
        assert [one.uuid for one in writer.known_devices()] == ["GPU-whole"]


def test_two_mig_instances_at_one_address_are_two_cards_and_have_no_energy(tmp_path: Path) -> None:
    slices = [card(f"MIG-{n}", pci="0:1", mig=Mig("GPU-whole", "1g.10gb")) for n in range(2)]
    found = hour(write(tmp_path, steady(60, *slices)))
    assert found["coverage"]["expected_card_s"] == 7_200
    assert [one["energy_j"] for one in found["cards"]] == [None, None]


def test_a_user_counts_once_per_card_however_many_processes(tmp_path: Path) -> None:
    crowd = tuple(holder("ada", pid) for pid in range(1, 9))
    (user,) = hour(write(tmp_path, steady(60, card(holders=crowd))))["users"]
    assert (user["card_s"], user["share_s"], user["shared_card_s"], user["samples"]) == (3_600, 3_600, 0, 60)


def test_three_users_on_one_card_share_its_time(tmp_path: Path) -> None:
    crowd = tuple(holder(name, pid) for pid, name in enumerate(("ada", "ben", "chi"), start=1))
    users = hour(write(tmp_path, steady(60, card(util_pct=50, holders=crowd))))["users"]
    assert [one["card_s"] for one in users] == [3_600] * 3
    assert [one["shared_card_s"] for one in users] == [3_600] * 3
    assert sum(one["share_s"] for one in users) == 3_600
    assert sum(one["energy_j"] or 0 for one in users) == 360_000


def test_graphics_processes_are_shown_and_charged_nothing(tmp_path: Path) -> None:
    xorg = holder("gdm", type=ProcessType.GRAPHICS, memory_mb=90)
    found = hour(write(tmp_path, steady(60, card(holders=(xorg,)))))
    assert (found["users"], found["holds"]) == ([], [])
    assert [one["type"] for one in found["cards"][0]["now"]["holders"]] == ["graphics"]


def test_a_holder_is_charged_while_the_state_is_unknown(tmp_path: Path) -> None:
    found = hour(write(tmp_path, steady(60, card(util_pct=None, holders=(holder("ada"),)))))
    assert found["users"][0]["states"]["unknown"] == 3_600


def test_ticks_that_could_not_look_are_bridged_and_not_charged(tmp_path: Path) -> None:
    held = card(holders=(holder("ada"),))
    blind = card(holders=(holder("ada"),), lists_known=False)
    path = write(tmp_path, [*steady(10, held), *steady(10, blind, start=10), *steady(40, held, start=20)])
    found = hour(path)
    (hold,) = found["holds"]
    assert (hold["since"], hold["until"]) == ("2026-03-02T00:00:00Z", None)
    assert sum(hold["states"].values()) == found["users"][0]["card_s"] == 50 * 60


def test_a_process_that_went_and_came_back_is_two_holds(tmp_path: Path) -> None:
    held, free = card(holders=(holder("ada"),)), card()
    path = write(tmp_path, [*steady(10, held), *steady(10, free, start=10), *steady(10, held, start=20)])
    assert [one["until"] for one in hour(path)["holds"]] == [None, "2026-03-02T00:10:00Z"]


def test_a_reused_pid_is_another_process(tmp_path: Path) -> None:
    first, second = (card(holders=(holder("ada", 7, start=start),)) for start in (100, 200))
    path = write(tmp_path, [*steady(10, first), *steady(10, second, start=10)])
    assert len(hour(path)["holds"]) == 2


def test_a_process_that_changes_its_owner_charges_each_for_their_own_time(tmp_path: Path) -> None:
    root, ada = (card(util_pct=50, holders=(holder(name, 7),)) for name in ("root", "ada"))
    found = hour(write(tmp_path, [*steady(20, root), *steady(40, ada, start=20)]))
    assert {one["user"]: one["card_s"] for one in found["users"]} == {"ada": 2_400, "root": 1_200}


def test_a_name_that_is_no_text_is_stored_escaped(tmp_path: Path) -> None:
    odd = holder("ada", name="\udcff\x00evil\n")
    assert hour(write(tmp_path, steady(1, card(holders=(odd,)))))["holds"][0]["process"] == "\\udcff\x00evil\n"


def test_memory_of_a_hold_is_kept_as_a_span_per_change(tmp_path: Path) -> None:
    sizes = [1_000, 1_000, 5_000, 5_000, 5_000, 1_000]
    path = write(
        tmp_path, [steady(1, card(holders=(holder(memory_mb=size),)), start=n)[0] for n, size in enumerate(sizes)]
    )
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT tick, memory_mb FROM hold_memory ORDER BY tick").fetchall()
    connection.close()
    assert rows == [(1, 1_000), (3, 5_000), (6, 1_000)]


@pytest.mark.parametrize(("minutes", "long_s"), [(29, 0), (30, 1_800), (31, 1_860)])
def test_idle_held_time_counts_as_long_from_thirty_minutes_on(tmp_path: Path, minutes: int, long_s: int) -> None:
    path = write(tmp_path, [*steady(minutes, card(holders=(holder(),))), *steady(1, card(), start=minutes)])
    found = hour(path)
    assert found["users"][0]["idle_held_long_card_s"] == long_s
    assert found["holds"][0]["idle_held_long_card_s"] == long_s


def test_a_restart_of_the_writer_does_not_break_a_stretch(tmp_path: Path) -> None:
    held = card(holders=(holder(),))
    write(tmp_path, steady(20, held))
    write(tmp_path, steady(20, held, start=20))
    assert hour(tmp_path / "gua.db")["users"][0]["idle_held_long_card_s"] == 2_400


@pytest.mark.parametrize(
    "between",
    [
        [],
        steady(2, card(util_pct=50, holders=(holder(),)), start=20),
        steady(2, card(absent=Reason.CARD_LOST), start=20),
    ],
)
def test_a_stretch_is_broken_by_another_state_and_by_a_gap(tmp_path: Path, between: list[Tick]) -> None:
    held = card(holders=(holder(),))
    path = write(tmp_path, [*steady(20, held), *between, *steady(20, held, start=22)])
    assert hour(path)["users"][0]["idle_held_long_card_s"] == 0


def test_one_missed_tick_does_not_break_a_stretch(tmp_path: Path) -> None:
    held = card(holders=(holder(),))
    path = write(tmp_path, [*steady(20, held), *steady(20, held, start=21)])
    assert hour(path)["users"][0]["idle_held_long_card_s"] == 40 * 60


def test_unattributed_memory_can_be_long_idle_held(tmp_path: Path) -> None:
    (user,) = hour(write(tmp_path, steady(60, card(used_mb=9_000))))["users"]
    assert (user["user"], user["user_source"], user["uid"]) == ("unattributed", "unattributed", None)
    assert user["idle_held_long_card_s"] == 3_600


def test_every_rule_in_force_is_told(tmp_path: Path) -> None:
    strict = replace(DEFAULT_RULE, active_util_pct=50)
    write(tmp_path, steady(10, card(util_pct=20)))
    path = write(tmp_path, steady(10, card(util_pct=20, rule=strict), start=10), rule=strict)
    found = hour(path)
    assert [rule["active_util_pct"] for rule in found["rules"]] == [10, 50]
    assert (found["card_s"]["active"], found["card_s"]["truly-idle"]) == (600, 600)


def test_every_interval_in_the_window_is_told(tmp_path: Path) -> None:
    path = write(tmp_path, [*steady(5, card()), tick(MONDAY + 10 * MINUTE, card(), cover_ms=30 * SECOND)])
    assert hour(path)["intervals_s"] == [30, 60]


def test_each_row_carries_the_number_of_the_transaction_that_last_wrote_it(tmp_path: Path) -> None:
    path = write(tmp_path, steady(3, card(holders=(holder(),))))
    with sqlite3.connect(path) as connection:
        ticks = [row[0] for row in connection.execute("SELECT rev FROM tick ORDER BY id")]
        tables = ("hold", "card_slot", "user_slot", "tick_slot")
        newest = [connection.execute(f"SELECT max(rev) FROM {table}").fetchone()[0] for table in tables]
        (device,) = connection.execute("SELECT rev FROM device").fetchone()
    connection.close()
    assert ticks == sorted(set(ticks))
    assert newest == [ticks[-1]] * 4
    assert device == ticks[0]


def test_many_ticks_in_one_transaction_have_one_revision(tmp_path: Path) -> None:
    with writing(tmp_path / "gua.db") as writer:
        with open_reader(tmp_path / "gua.db") as reader:
            before = reader.rev()
        writer.write_ticks(steady(500, card()))
        with open_reader(tmp_path / "gua.db") as reader:
            assert reader.rev() == before + 1


def test_the_counter_of_a_card_is_kept_as_its_movement(tmp_path: Path) -> None:
    def metered(energy_mj: int | None) -> Any:
        plain = card()
        return replace(plain, reading=replace(plain.reading, energy_mj=energy_mj))

    counters = [5_000_000, 8_000_500, 8_000_999, 1_000_000, None, 2_000_000, 3_000_000]
    path = write(tmp_path, [steady(1, metered(value), start=n)[0] for n, value in enumerate(counters)])
    with sqlite3.connect(path) as connection:
        rows = [row[0] for row in connection.execute("SELECT energy_j FROM gpu_sample ORDER BY id")]
    connection.close()
    assert rows == [None, 3_000, 0, None, None, None, 1_000]


def test_a_database_removed_under_the_writer_is_an_error_and_no_silent_loss(tmp_path: Path) -> None:
    with writing(tmp_path / "gua.db") as writer:
        for name in tmp_path.iterdir():
            name.unlink()
        with pytest.raises(DatabaseUnusable, match="removed or replaced"):
            writer.write_tick(tick(MONDAY, card()))


def test_a_locked_database_is_one_clear_line_and_works_again_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gua.store.database.BUSY_TIMEOUT_MS", 20)
    with writing(tmp_path / "gua.db") as writer:
        other = sqlite3.connect(tmp_path / "gua.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseUnusable, match="locked"):
            writer.write_tick(tick(MONDAY, card()))
        other.close()
        writer.write_tick(tick(MONDAY, card()))
    assert hour(tmp_path / "gua.db")["samples"] == 1


def test_the_newest_tick_of_a_daemon_is_not_hidden_by_a_sync_once(tmp_path: Path) -> None:
    with writing(tmp_path / "gua.db") as writer:
        writer.write_tick(tick(MONDAY, card()))
        writer.begin_run("sync-once", 0, DEFAULT_RULE, "0.1.0")
        writer.write_tick(tick(MONDAY + HOUR, card(), cover_ms=0))
    with open_reader(tmp_path / "gua.db") as reader:
        newest = reader.newest_daemon_tick()
    assert newest is not None
    assert (newest.at_ms, newest.interval_ms) == (MONDAY, 30_000)


def test_a_card_known_only_as_absent_is_expected_from_then_on(tmp_path: Path) -> None:
    reading = CardReading("GPU-ghost", absent=Reason.CARD_LOST)
    path = write(tmp_path, steady(60, replace(card(absent=Reason.CARD_LOST), reading=reading)))
    found = hour(path)
    assert (found["cards"][0]["name"], found["card_s"]["unknown"]) == ("unknown", 3_600)
