"""A pull of rows with a higher `rev` than the last one misses nothing, whatever wrote them."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gua.store import retention
from gua.store.retention import DAY_MS, Retention
from gua.store.writer import StoreWriter
from tests.agent.store.histories import MANY, RULE, History, histories
from tests.agent.store.opened import SetClock, writing
from tests.agent.store.ticks import HOUR, MONDAY

WITH_REV = (
    *("rule", "run", "pause", "tick", "device", "user", "process", "hold", "hold_memory", "idle_stretch"),
    *("card_slot", "user_slot", "tick_slot"),
)
# A row without a rev of its own is pulled with its tick.
PULLED_WITH = {
    "sample": "SELECT sample.*, tick.rev AS rev FROM sample JOIN tick ON tick.id = sample.id >> 16",
    "tick_fragment": "SELECT tick_fragment.*, tick.rev AS rev FROM tick_fragment JOIN tick ON tick.id = tick",
    # at the latest with the tick it was made for; of one that outlived that tick nothing changes
    "occupancy": "SELECT occupancy.*, tick.rev AS rev FROM occupancy JOIN tick ON tick.id = first_tick",
}
# Kept once for a machine, told with each pull, or made anew from what comes.
NOT_PULLED = {"store", "boot", "card_now", "migration"}


@pytest.fixture(scope="module", autouse=True)
def small_slices() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retention, "SLICE_TICKS", 2)
        yield


def rows(path: Path) -> tuple[int, dict[tuple[Any, ...], int]]:
    """The database's rev, and the rev of each row by its table and all that it says."""
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    queries = {**{table: f"SELECT * FROM {table}" for table in WITH_REV}, **PULLED_WITH}
    found = {}
    for table, query in queries.items():
        for row in map(dict, connection.execute(query)):
            rev = row.pop("rev")
            found[(table, *row.items())] = rev
    (rev,) = connection.execute("SELECT max(rev) FROM store").fetchone()
    connection.close()
    return rev, found


def pulls_miss_nothing(before: tuple[int, dict[Any, int]], path: Path) -> tuple[int, dict[Any, int]]:
    rev, found = rows(path)
    missed = [row for row, of_row in found.items() if row not in before[1] and not before[0] < of_row <= rev]
    assert missed == []
    return rev, found


def lives(writer: StoreWriter, history: History, start: int, end: int) -> Iterator[None]:
    """One step of the history after another: retirements, pauses, ticks, and what is removed after a tick."""
    for number in range(start, end):
        for uuid, at in history.breaks.items():
            if number in at:
                writer.retire_card(uuid, at[number])
                yield
        if number in history.paused:
            writer.begin_pause(history.ticks[number].ts_ms - 1_000)
            yield
            writer.end_pause(history.ticks[number].ts_ms)
            yield
        # the two transactions of `write_tick`: a pull may come in between
        writer.write_ticks((history.ticks[number],))
        yield
        writer._tend()
        yield


@settings(max_examples=20 * MANY, deadline=None)
@given(histories(), st.sampled_from([0, HOUR, DAY_MS]), st.sampled_from([0, HOUR, DAY_MS]))
def test_every_row_that_a_step_wrote_is_newer_than_the_step_before(history: History, raw_ms: int, user_ms: int) -> None:
    clock = SetClock(MONDAY + 40 * DAY_MS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gua.db"
        last: tuple[int, dict[Any, int]] = (0, {})
        cuts = [0, *history.reopened, len(history.ticks)]
        for machine, (start, end) in enumerate(zip(cuts, cuts[1:])):
            with writing(
                path,
                RULE,
                interval_ms=DAY_MS,
                clock=clock,
                retention=Retention(raw_ms, user_ms),
                machine_id=f"m{machine // 2}",
                boot_id=f"b{machine}",
            ) as writer:
                last = pulls_miss_nothing(last, path)
                for _ in lives(writer, history, start, end):
                    last = pulls_miss_nothing(last, path)
            last = pulls_miss_nothing(last, path)


def test_every_table_is_pulled_or_known_not_to_be(tmp_path: Path) -> None:
    with writing(tmp_path / "gua.db"):
        pass
    connection = sqlite3.connect(tmp_path / "gua.db")
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.close()
    assert {name for name in tables if not name.startswith("sqlite_")} == {*WITH_REV, *PULLED_WITH, *NOT_PULLED}
