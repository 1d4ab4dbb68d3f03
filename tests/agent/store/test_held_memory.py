"""Memory held by user: what each process held by time, over the time in which the user held the card at all."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

from gua.model import Holder
from tests.agent.store.opened import hour, steady, write
from tests.agent.store.ticks import card, holder


def held_mb(folder: Path, *parts: tuple[int, tuple[Holder, ...]]) -> Optional[float]:
    """Of ada, who held card GPU-a for so many minutes by these processes, part after part."""
    ticks, start = [], 0
    for minutes, holders in parts:
        ticks += steady(minutes, card(holders=holders), start=start)
        start += minutes
    return {user["user"]: user["held_mb"] for user in hour(write(folder, ticks))["users"]}["ada"]


def test_two_processes_at_once_hold_both_their_memories(tmp_path: Path) -> None:
    two = (holder(pid=1, memory_mb=4_000), holder(pid=2, memory_mb=1_000))
    assert held_mb(tmp_path, (10, two)) == 5_000


def test_one_process_after_the_other_weigh_by_their_time(tmp_path: Path) -> None:
    parts = (10, (holder(pid=1, memory_mb=4_000),)), (30, (holder(pid=2, memory_mb=2_000),))
    assert held_mb(tmp_path, *parts) == (10 * 4_000 + 30 * 2_000) / 40


def test_a_process_that_takes_more_weighs_each_reading_by_its_time(tmp_path: Path) -> None:
    parts = (10, (holder(memory_mb=4_000),)), (20, (holder(memory_mb=None),)), (30, (holder(memory_mb=8_000),))
    # what it held while that could not be read is taken to be what it held otherwise
    assert held_mb(tmp_path, *parts) == (10 * 4_000 + 30 * 8_000) / 40


def test_a_process_without_a_reading_adds_neither_memory_nor_time(tmp_path: Path) -> None:
    parts = (10, (holder(pid=1, memory_mb=4_000),)), (30, (holder(pid=2, memory_mb=None),))
    assert held_mb(tmp_path, *parts) == 4_000
    assert held_mb(tmp_path / "unread", (10, (holder(memory_mb=None),))) is None
