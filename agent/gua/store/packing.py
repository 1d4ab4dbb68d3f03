"""The readings of one card-tick in one integer, and the view that takes them apart again. Pure.

From the lowest bit: verdict 5, source 3, utilisation 7, highest utilisation 7, temperature 8, and power above them,
where it may grow. Six bytes on disk up to 13 kW. NULL is a code: 0 for source and power (which are kept one higher),
all ones for the others.
"""

from __future__ import annotations

from typing import Optional

from gua.store.sample_id import DEVICE_BITS

VERDICT_BITS, SOURCE_BITS, UTIL_BITS, TEMPERATURE_BITS = 5, 3, 7, 8
SOURCE_AT = VERDICT_BITS
UTIL_AT = SOURCE_AT + SOURCE_BITS
UTIL_MAX_AT = UTIL_AT + UTIL_BITS
TEMPERATURE_AT = UTIL_MAX_AT + UTIL_BITS
POWER_AT = TEMPERATURE_AT + TEMPERATURE_BITS

NO_UTIL = (1 << UTIL_BITS) - 1
NO_TEMPERATURE = (1 << TEMPERATURE_BITS) - 1
VERDICT_MASK = (1 << VERDICT_BITS) - 1


def pack_readings(
    verdict: int,
    *,
    util_source: Optional[int],
    util_pct: Optional[int],
    util_max_pct: Optional[int],
    temperature_c: Optional[int],
    power_dw: Optional[int],
) -> int:
    """One integer of a verdict's code, a source's code, percent, degrees and tenths of a watt.

    A figure beyond what its bits hold (no card shows 127 % or 255 degrees) is kept as the highest they do.
    """
    return (
        verdict
        | (0 if util_source is None else util_source + 1) << SOURCE_AT
        | _code(util_pct, NO_UTIL) << UTIL_AT
        | _code(util_max_pct, NO_UTIL) << UTIL_MAX_AT
        | _code(temperature_c, NO_TEMPERATURE) << TEMPERATURE_AT
        | (0 if power_dw is None else max(0, power_dw) + 1) << POWER_AT
    )


def _code(value: Optional[int], none: int) -> int:
    return none if value is None else min(max(0, value), none - 1)


def power_dw_of(readings: int) -> Optional[int]:
    """Tenths of a watt; None where unknown."""
    return (readings >> POWER_AT) - 1 if readings >> POWER_AT else None


def util_pct_of(readings: int) -> Optional[int]:
    """Percent; None where unknown."""
    code = readings >> UTIL_AT & NO_UTIL
    return None if code == NO_UTIL else code


def _field(at: int, mask: int) -> str:
    return f"(readings >> {at} & {mask})"


GPU_SAMPLE_VIEW = (
    f"CREATE VIEW gpu_sample AS SELECT sample.id AS id, readings & {VERDICT_MASK} AS verdict, flags,"
    f" nullif({_field(UTIL_AT, NO_UTIL)}, {NO_UTIL}) AS util_pct, memory_used_mb,"
    f" nullif({_field(TEMPERATURE_AT, NO_TEMPERATURE)}, {NO_TEMPERATURE}) AS temperature_c,"
    f" nullif(readings >> {POWER_AT}, 0) - 1 AS power_dw, energy_j, holders, held_mb, unattributed_mb,"
    f" nullif({_field(UTIL_MAX_AT, NO_UTIL)}, {NO_UTIL}) AS util_max_pct,"
    f" nullif({_field(SOURCE_AT, (1 << SOURCE_BITS) - 1)}, 0) - 1 AS util_source, rule,"
    f" sample.id >> {DEVICE_BITS} AS tick, sample.id & {(1 << DEVICE_BITS) - 1} AS device"
    " FROM sample JOIN occupancy ON occupancy.id = sample.occupancy"
)
