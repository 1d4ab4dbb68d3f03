from __future__ import annotations

import json
from pathlib import Path

from tests.agent.store.opened import report, stored
from tests.agent.store.ticks import HOUR, MINUTE, MONDAY, SECOND, card, holder, tick


def test_one_hour_of_one_card_is_told_by_state_user_and_coverage(tmp_path: Path) -> None:
    ticks = [
        tick(MONDAY + n * 30 * SECOND, card(util_pct=90 if n < 40 else 0, holders=(holder("ada"),))) for n in range(120)
    ]
    path = stored(tmp_path / "gua.db", ticks)

    found = report(path, MONDAY, MONDAY + HOUR)

    assert found["card_s"] == {"active": 1200, "idle-held": 2400, "truly-idle": 0, "unknown": 0}
    assert found["samples"] == 120
    assert found["coverage"]["expected_card_s"] == found["coverage"]["observed_card_s"] == 3600
    (user,) = found["users"]
    assert (user["user"], user["card_s"], user["share_s"], user["shared_card_s"]) == ("ada", 3600, 3600, 0)
    assert user["idle_held_long_card_s"] == 2400
    assert user["energy_j"] == 360_000
    (hold,) = found["holds"]
    assert hold["states"]["idle-held"] == hold["idle_held_long_card_s"] == 2400
    now = found["cards"][0]["now"]
    assert now is not None
    assert now["since"] == "2026-03-02T00:20:00Z"
    assert json.dumps(found).isascii()


def test_ragged_window_equals_the_part_of_the_ticks_in_it(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", [tick(MONDAY + n * 30 * SECOND, card(util_pct=50)) for n in range(120)])

    found = report(path, MONDAY + 7 * MINUTE + 10 * SECOND, MONDAY + 52 * MINUTE + 5 * SECOND)

    assert found["card_s"]["active"] == 45 * 60 - 5
    assert found["coverage"]["unobserved_card_s"] == 0
