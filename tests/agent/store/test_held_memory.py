"""How much memory somebody held: by all readings of the window, weighed by their time."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Optional

from gua.model import CardTick
from gua.store.database import open_reader
from tests.agent.store.opened import steady, stored
from tests.agent.store.ticks import MINUTE, MONDAY, card, holder


def held_by_ada(path: Path, since_min: int, until_min: int) -> Optional[float]:
    with open_reader(path) as reader:
        (ada,) = (number for number, row in reader.users().items() if row.name == "ada")
        return reader.memory_held((MONDAY + since_min * MINUTE, MONDAY + until_min * MINUTE)).get(ada)


def with_mb(*amounts: Optional[int]) -> CardTick:
    return card(holders=tuple(holder("ada", pid=7 + n, memory_mb=mb) for n, mb in enumerate(amounts)))


def test_a_reading_stands_until_the_next_one(tmp_path: Path) -> None:
    ticks = [*steady(30, with_mb(1_000)), *steady(10, with_mb(9_000), start=30)]
    path = stored(tmp_path / "gua.db", ticks, interval_ms=MINUTE)
    assert held_by_ada(path, 0, 40) == 3_000
    assert held_by_ada(path, 0, 30) == 1_000
    assert held_by_ada(path, 25, 35) == 5_000
    assert held_by_ada(path, 35, 40) == 9_000
    assert held_by_ada(path, 50, 60) is None


def test_processes_on_one_card_add_up_and_unknown_amounts_say_nothing(tmp_path: Path) -> None:
    both = stored(tmp_path / "both.db", steady(10, with_mb(1_000, 500)), interval_ms=MINUTE)
    assert held_by_ada(both, 0, 10) == 1_500
    none = stored(tmp_path / "none.db", steady(10, with_mb(None)), interval_ms=MINUTE)
    assert held_by_ada(none, 0, 10) is None
    part = [*steady(10, with_mb(None)), *steady(10, with_mb(2_000), start=10)]
    assert held_by_ada(stored(tmp_path / "part.db", part, interval_ms=MINUTE), 0, 20) == 2_000


def test_the_newest_reading_stands_when_its_tick_is_gone(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", steady(20, with_mb(1_000)), interval_ms=MINUTE)
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM tick WHERE ts_ms < ?", (MONDAY + 10 * MINUTE,))
    connection.close()
    assert held_by_ada(path, 0, 20) == 1_000
