from __future__ import annotations

import sqlite3
from pathlib import Path

from gua.model import ProcessType
from tests.agent.store.opened import hour, steady, write
from tests.agent.store.ticks import card, holder


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
