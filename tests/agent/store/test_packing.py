from __future__ import annotations

import sqlite3
from typing import Any, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gua.store.codes import UTIL_SOURCES, VERDICTS
from gua.store.packing import GPU_SAMPLE_VIEW, VERDICT_MASK, pack_readings, power_dw_of, util_pct_of


def maybe(least: int, most: int) -> st.SearchStrategy[Optional[int]]:
    return st.none() | st.integers(least, most)


def through_the_view(readings: int) -> tuple[Any, ...]:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE sample (id, occupancy, readings, energy_j)")
    columns = "id, rule, flags, memory_used_mb, holders, held_mb, unattributed_mb"
    connection.execute(f"CREATE TABLE occupancy ({columns})")
    connection.execute("INSERT INTO occupancy VALUES (1, 1, 0, NULL, NULL, 0, NULL)")
    connection.execute("INSERT INTO sample VALUES (65537, 1, ?, NULL)", (readings,))
    connection.execute(GPU_SAMPLE_VIEW)
    query = "SELECT verdict, util_source, util_pct, util_max_pct, temperature_c, power_dw, tick, device FROM gpu_sample"
    row: tuple[Any, ...] = connection.execute(query).fetchone()
    connection.close()
    return row


@given(
    st.integers(0, len(VERDICTS) - 1),
    maybe(0, len(UTIL_SOURCES) - 1),
    maybe(0, 100),
    maybe(0, 100),
    maybe(0, 250),
    maybe(0, 40_000),
)
def test_every_reading_comes_back_and_null_is_never_zero(
    verdict: int,
    source: Optional[int],
    util: Optional[int],
    util_max: Optional[int],
    celsius: Optional[int],
    power: Optional[int],
) -> None:
    readings = pack_readings(
        verdict, util_source=source, util_pct=util, util_max_pct=util_max, temperature_c=celsius, power_dw=power
    )
    assert through_the_view(readings) == (verdict, source, util, util_max, celsius, power, 1, 1)
    assert (readings & VERDICT_MASK, util_pct_of(readings), power_dw_of(readings)) == (verdict, util, power)
    assert readings < 1 << 47  # six bytes on disk


@pytest.mark.parametrize("odd", [127, 1_000, 1 << 40])
def test_a_nonsense_figure_spoils_no_other(odd: int) -> None:
    readings = pack_readings(1, util_source=0, util_pct=odd, util_max_pct=odd, temperature_c=odd, power_dw=7)
    verdict, source, util, util_max, celsius, power, _, _ = through_the_view(readings)
    assert (verdict, source, util, util_max, power) == (1, 0, 126, 126, 7)
    assert celsius == min(odd, 254)
