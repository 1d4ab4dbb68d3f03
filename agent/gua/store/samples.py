"""Card-ticks into rows of sample, and of occupancy where it changed."""

from __future__ import annotations

from typing import Any, Optional

from gua.model import CardTick
from gua.store.codes import UTIL_SOURCE_CODE
from gua.store.evidence import pack_flags
from gua.store.packing import pack_readings
from gua.store.sample_id import DEVICE_BITS, sample_id
from gua.store.session import Session

# An occupancy is made anew after so many ticks, changed or not: retention may delete one that is older than the
# oldest raw tick by more.
OCCUPANCY_TICKS = 2880

_KEY = "rule, flags, memory_used_mb, holders, held_mb, unattributed_mb"
INSERT_OCCUPANCY = f"INSERT INTO occupancy (id, first_tick, {_KEY}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_SAMPLE = "INSERT OR REPLACE INTO sample (id, occupancy, readings, energy_j) VALUES (?, ?, ?, ?)"

OccupancyKey = tuple[int, int, Optional[int], Optional[int], int, Optional[int]]
"""rule, flags, memory_used_mb, holders, held_mb, unattributed_mb"""


class Occupancies:
    """The newest occupancy of each card, kept in mind. new: rows to be inserted."""

    def __init__(self, newest_id: int = 0) -> None:
        self._newest_id = newest_id
        self._by_device: dict[int, tuple[OccupancyKey, int, int]] = {}
        self.new: list[tuple[Any, ...]] = []

    def remember(self, device: int, key: OccupancyKey, occupancy: int, first_tick: int) -> None:
        """An occupancy that is stored already and goes on."""
        self._by_device[device] = (key, occupancy, first_tick)

    def of(self, device: int, tick: int, key: OccupancyKey) -> int:
        """Id of the occupancy of this card-tick."""
        known = self._by_device.get(device)
        if known is None or known[0] != key or not known[2] <= tick < known[2] + OCCUPANCY_TICKS:
            self._newest_id += 1
            known = self._by_device[device] = (key, self._newest_id, tick)
            self.new.append((known[1], tick, *key))
        return known[1]


class Samples:
    """Rows that wait for `flush`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        newest = session.rows("SELECT coalesce(max(id), 0) FROM occupancy")[0][0]
        self._occupancies = Occupancies(int(newest))
        self._rows: list[tuple[Any, ...]] = []
        for device, occupancy, first_tick, *key in session.rows(
            f"SELECT device, occupancy.id, first_tick, {_KEY} FROM card_now"
            f" JOIN sample ON sample.id = (card_now.tick << {DEVICE_BITS} | device)"
            " JOIN occupancy ON occupancy.id = sample.occupancy"
        ):
            self._occupancies.remember(device, tuple(key), occupancy, first_tick)

    def add(
        self,
        tick: int,
        device: int,
        card: CardTick,
        *,
        verdict: int,
        rule: int,
        power_dw: Optional[int],
        energy_j: Optional[int],
    ) -> None:
        """Take in one card-tick. verdict, rule: code and id. power_dw: tenths of a watt. energy_j: see Sample."""
        reading, evidence = card.reading, card.evidence
        occupancy = self._occupancies.of(
            device,
            tick,
            (
                rule,
                pack_flags(evidence),
                reading.memory_used_mb,
                evidence.holders,
                evidence.held_mb,
                evidence.unattributed_mb,
            ),
        )
        readings = pack_readings(
            verdict,
            util_source=None if reading.util_source is None else UTIL_SOURCE_CODE[reading.util_source],
            util_pct=reading.util_pct,
            util_max_pct=reading.util_max_pct,
            temperature_c=reading.temperature_c,
            power_dw=power_dw,
        )
        self._rows.append((sample_id(tick, device), occupancy, readings, energy_j))

    def flush(self) -> None:
        self._session.connection.executemany(INSERT_OCCUPANCY, self._occupancies.new)
        self._session.connection.executemany(INSERT_SAMPLE, self._rows)
        self._occupancies.new.clear()
        self._rows.clear()
