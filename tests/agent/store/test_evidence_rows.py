from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Optional

import pytest

from gua.coverage import Span
from gua.model import DEFAULT_RULE, CardTick, ProcessType, State, TickStatus, UserSource, UtilSource
from gua.store.database import open_reader
from gua.store.evidence_rows import CardTickRow, HeldRow
from tests.agent.store.opened import steady, write, writing
from tests.agent.store.ticks import HOUR, MINUTE, MONDAY, SECOND, card, holder, tick

ALL = (MONDAY - HOUR, MONDAY + 24 * HOUR)


def rows(path: Path, window: Span = ALL, device: int = 1) -> list[CardTickRow]:
    with open_reader(path) as reader:
        return list(reader.card_ticks(device, window))


def test_a_tick_comes_back_with_all_that_was_known(tmp_path: Path) -> None:
    one = card(util_pct=3, holders=(holder("ada"), holder("gdm", 9, type=ProcessType.GRAPHICS, memory_mb=90)))
    one = replace(one, reading=replace(one.reading, util_max_pct=55, util_source=UtilSource.SAMPLES))
    (row,) = rows(write(tmp_path, [tick(MONDAY, one, status=TickStatus.PARTIAL)]))
    assert row == CardTickRow(
        tick_id=1,
        at_ms=MONDAY,
        spans=((MONDAY, MONDAY + 30 * SECOND),),
        status=TickStatus.PARTIAL,
        verdict=one.verdict,
        rule=DEFAULT_RULE,
        evidence=one.evidence,
        util_pct=3,
        util_max_pct=55,
        util_source=UtilSource.SAMPLES,
        memory_used_mb=4_090,
        temperature_c=40,
        power_w=100.0,
        holds=(
            HeldRow(1, "ada", UserSource.OWNER, "python", 100, ProcessType.COMPUTE, 4_000),
            HeldRow(2, "gdm", UserSource.OWNER, "python", 9, ProcessType.GRAPHICS, 90),
        ),
    )


def test_memory_is_that_of_the_tick_and_not_of_the_hold_s_end(tmp_path: Path) -> None:
    sizes = [1_000, 5_000, 5_000, 2_000]
    path = write(
        tmp_path, [steady(1, card(holders=(holder(memory_mb=size),)), start=n)[0] for n, size in enumerate(sizes)]
    )
    assert [row.holds[0].memory_mb for row in rows(path)] == sizes


def test_nobody_is_named_where_the_lists_could_not_be_read(tmp_path: Path) -> None:
    held = card(holders=(holder("ada"),))
    blind = card(holders=(holder("ada"),), lists_known=False)
    path = write(tmp_path, [*steady(1, held), *steady(1, blind, start=1), *steady(1, held, start=2)])
    assert [len(row.holds) for row in rows(path)] == [1, 0, 1]
    assert rows(path)[1].evidence.holders is None


def test_rows_come_in_time_order_and_reach_into_the_window(tmp_path: Path) -> None:
    times = [0, 60, 120, -90, 180]
    path = write(tmp_path, [tick(MONDAY + s * SECOND, card(), cover_ms=MINUTE) for s in times])
    assert [(row.at_ms - MONDAY) // SECOND for row in rows(path)] == sorted(times)
    window = (MONDAY + 30 * SECOND, MONDAY + 120 * SECOND)
    assert [(row.at_ms - MONDAY) // SECOND for row in rows(path, window)] == [0, 60]


def test_a_tick_around_another_covers_both_its_sides(tmp_path: Path) -> None:
    path = write(tmp_path, [tick(MONDAY + 20 * SECOND, card()), tick(MONDAY, card(), cover_ms=90 * SECOND)])
    assert rows(path)[0].spans == (
        (MONDAY, MONDAY + 20 * SECOND),
        (MONDAY + 50 * SECOND, MONDAY + 90 * SECOND),
    )


def test_each_card_has_the_rule_of_its_own(tmp_path: Path) -> None:
    strict = replace(DEFAULT_RULE, active_util_pct=50)
    judged: CardTick = replace(card("GPU-b", util_pct=20, rule=strict), rule=strict)
    path = write(tmp_path, steady(3, card("GPU-a", util_pct=20), judged))
    assert {row.rule for row in rows(path, device=1)} == {DEFAULT_RULE}
    assert {row.rule for row in rows(path, device=2)} == {strict}
    assert {row.verdict.state for row in rows(path, device=1)} == {State.ACTIVE}
    assert {row.verdict.state for row in rows(path, device=2)} == {State.TRULY_IDLE}


def test_a_pause_is_told_where_it_meets_the_window(tmp_path: Path) -> None:
    path = tmp_path / "gua.db"
    with writing(path) as writer:
        writer.begin_pause(MONDAY)
        writer.begin_pause(MONDAY + MINUTE)  # changes nothing
        writer.end_pause(MONDAY + 10 * MINUTE)
        writer.end_pause(MONDAY + 11 * MINUTE)
        writer.begin_pause(MONDAY + HOUR)
    with open_reader(path) as reader:
        assert reader.pauses((MONDAY + MINUTE, MONDAY + 2 * HOUR)) == [
            (MONDAY + MINUTE, MONDAY + 10 * MINUTE),
            (MONDAY + HOUR, MONDAY + 2 * HOUR),
        ]
        assert reader.pauses((MONDAY + 10 * MINUTE, MONDAY + HOUR)) == []


def test_a_pause_of_known_length_is_over_then_though_its_daemon_died_in_it(tmp_path: Path) -> None:
    path = tmp_path / "gua.db"
    with writing(path) as writer:
        writer.begin_pause(MONDAY, MONDAY + 5 * MINUTE)
        writer.begin_pause(MONDAY + MINUTE, MONDAY + 10 * MINUTE)  # asked for anew, for longer
    with open_reader(path) as reader:
        assert reader.pauses((MONDAY, MONDAY + HOUR)) == [(MONDAY, MONDAY + 10 * MINUTE)]
    with writing(path) as writer:
        writer.end_pause(MONDAY + HOUR)
    with open_reader(path) as reader:
        assert reader.pauses((MONDAY, MONDAY + HOUR)) == [(MONDAY, MONDAY + 10 * MINUTE)]
    with writing(path) as writer:
        writer.begin_pause(MONDAY + HOUR, MONDAY + 2 * HOUR)
        writer.end_pause(MONDAY + HOUR + MINUTE)  # resumed before its time
    with open_reader(path) as reader:
        assert reader.pauses((MONDAY + HOUR, MONDAY + 2 * HOUR)) == [(MONDAY + HOUR, MONDAY + HOUR + MINUTE)]


def test_a_pause_whose_end_lies_before_its_beginning_is_none(tmp_path: Path) -> None:
    path = tmp_path / "gua.db"
    with writing(path) as writer:
        writer.begin_pause(MONDAY)
        writer.end_pause(MONDAY - HOUR)
    with open_reader(path) as reader:
        assert reader.pauses(ALL) == []


@pytest.mark.parametrize("known", [True, False])
def test_only_a_known_card_in_service_can_be_retired(tmp_path: Path, known: bool) -> None:
    path = write(tmp_path, steady(10, card(holders=(holder(),))))
    with writing(path) as writer:
        assert writer.retire_card("GPU-a" if known else "GPU-z", MONDAY + 10 * MINUTE) is known
        assert writer.retire_card("GPU-a", MONDAY + 11 * MINUTE) is not known
        assert writer.known_devices() == ()
    with open_reader(path) as reader:
        assert reader.now() == {}
        (hold,), _ = reader.holds(ALL, 9)
    assert hold.until_ms == MONDAY + 10 * MINUTE


def test_the_share_of_the_multiprocessors_is_summed_where_it_is_known(tmp_path: Path) -> None:
    def used(pct: Optional[float]) -> CardTick:
        one = holder()
        return card(holders=(replace(one, process=replace(one.process, sm_util_pct=pct)),))

    path = write(tmp_path, [steady(1, used(pct), start=n)[0] for n, pct in enumerate([20.0, None, 41.5])])
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT sm_util_ms, sm_util_pct_ms FROM hold").fetchone() == (120_000, 61.5 * 60_000)
    connection.close()
