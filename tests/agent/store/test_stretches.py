from __future__ import annotations

from pathlib import Path

import pytest

from gua.model import Reason, Tick
from tests.agent.store.opened import hour, steady, write
from tests.agent.store.ticks import card, holder


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
