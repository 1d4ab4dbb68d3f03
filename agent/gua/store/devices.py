"""The cards this host's history knows: met, renamed, retired when another card takes their place."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Optional

from gua.clock import SET_CLOCK_MS
from gua.coverage import Span, subtract
from gua.model import CardReading, CardTick, KnownDevice, Mig, Reason
from gua.reconcile import is_superseded, moved_to
from gua.store.session import Session

_COLUMNS = (
    "id, uuid, card_index, pci_bus_id, name, memory_total_mb, mig_parent_uuid, mig_profile, first_seen_ms, "
    "retired_at_ms"
)


@dataclass
class DeviceRow:
    id: int
    uuid: str
    index: Optional[int]
    pci_bus_id: Optional[str]
    name: Optional[str]
    memory_total_mb: Optional[int]
    mig_parent_uuid: Optional[str]
    mig_profile: Optional[str]
    first_seen_ms: int
    retired_at_ms: Optional[int]

    @property
    def mig(self) -> Optional[Mig]:
        return Mig(self.mig_parent_uuid, self.mig_profile or "") if self.mig_parent_uuid else None

    def known(self, last_seen_ms: Optional[int]) -> KnownDevice:
        return KnownDevice(
            uuid=self.uuid,
            index=self.index,
            pci_bus_id=self.pci_bus_id,
            name=self.name,
            memory_total_mb=self.memory_total_mb,
            mig=self.mig,
            first_seen_ms=self.first_seen_ms,
            last_seen_ms=last_seen_ms,
        )


def other_form_spans(row: DeviceRow, rows: Iterable[DeviceRow], until_ms: int) -> list[Span]:
    """When a whole card was cut into MIG instances, or the card of an instance was whole, as far as `rows` tell. Pure.

    A row has the first time and the last alone: of two lives that overlap the one that began later counts, as it was
    between two parts of the other.
    """
    others = (one for one in rows if one.mig_parent_uuid == row.uuid or one.uuid == row.mig_parent_uuid)
    return [_life(one, until_ms) for one in others if _begin(one) > _begin(row)]


def expected_spans(row: DeviceRow, rows: Iterable[DeviceRow], until_ms: int) -> tuple[Span, ...]:
    """When a card was to be seen: from when it was met until it was retired, or `until_ms`.

    Not while it was cut into instances, which were then expected in its place, nor an instance while its card was
    whole: what is there again would be counted a second time. Pure.
    """
    return subtract(_life(row, until_ms), other_form_spans(row, rows, until_ms))


def _begin(row: DeviceRow) -> tuple[int, bool]:
    """What was there at one and the same time was whole before it was cut."""
    return row.first_seen_ms, row.mig_parent_uuid is not None


def _life(row: DeviceRow, until_ms: int) -> Span:
    return row.first_seen_ms, until_ms if row.retired_at_ms is None else min(row.retired_at_ms, until_ms)


def load_devices(session: Session) -> dict[str, DeviceRow]:
    """Every card ever seen, by UUID, in the order they were first stored."""
    rows = session.rows(f"SELECT {_COLUMNS} FROM device ORDER BY id")
    return {row[1]: DeviceRow(*row) for row in rows}


class Devices:
    """The device table as the writer keeps it in mind. retired: ids of the cards retired since it was emptied."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.by_uuid = load_devices(session)
        self.retired: list[int] = []

    def note(
        self, cards: tuple[CardTick, ...], mig_parents: tuple[str, ...], ts_ms: int
    ) -> list[tuple[DeviceRow, CardTick]]:
        """Learn from one tick's cards. Gives those still expected, each card once, with their rows."""
        by_uuid = {card.reading.uuid: card for card in cards}
        readings = {uuid: card.reading for uuid, card in by_uuid.items()}
        expected = [row.known(None) for row in self.by_uuid.values() if row.retired_at_ms is None]
        moved = moved_to(expected, _answering(readings))
        noted = [(self._learn(card.reading, ts_ms), card) for card in by_uuid.values()]
        self._forget_places(readings, moved)
        self._retire_displaced(readings, mig_parents, ts_ms)
        return [(row, card) for row, card in noted if row.retired_at_ms is None]

    def retire(self, device: int, at_ms: int) -> None:
        """The card is expected no longer than `at_ms`, unless it is met again."""
        row = next(row for row in self.by_uuid.values() if row.id == device)
        row.retired_at_ms = max(row.first_seen_ms, at_ms)
        self.retired.append(device)
        self._save(row)

    def _learn(self, reading: CardReading, ts_ms: int) -> DeviceRow:
        row = self.by_uuid.get(reading.uuid)
        if row is None:
            row = self._insert(reading, ts_ms)
        if row.retired_at_ms is not None and reading.absent is not None:
            return row  # no longer this host's: a clock set back must not make it expected from then on
        before = (*vars(row).values(),)
        row.first_seen_ms = _earlier(row.first_seen_ms, ts_ms)
        if reading.absent is None:
            self._take_over(row, reading)
        if before != (*vars(row).values(),):
            self._save(row)
        return row

    def _insert(self, reading: CardReading, ts_ms: int) -> DeviceRow:
        row = DeviceRow(0, reading.uuid, None, None, None, None, None, None, ts_ms, None)
        self._take_over(row, reading)
        row.id = self._session.insert("device", uuid=reading.uuid, first_seen_ms=ts_ms, rev=self._session.rev)
        self._save(row)
        self.by_uuid[row.uuid] = row
        return row

    def _forget_places(self, readings: dict[str, CardReading], moved: Collection[str]) -> None:
        """Of absent cards whose address is another known card's since the bus was numbered anew."""
        answering = {reading.uuid for reading in _answering(readings)}
        for row in self.by_uuid.values():
            if row.retired_at_ms is None and row.pci_bus_id in moved and row.uuid not in answering:
                row.pci_bus_id = None
                self._save(row)

    def _retire_displaced(self, readings: dict[str, CardReading], mig_parents: tuple[str, ...], ts_ms: int) -> None:
        """One place holds one card: who was there before, and is not answering now, is gone for good."""
        answering = _answering(readings)
        for row in self.by_uuid.values():
            own = readings.get(row.uuid)
            # A lost card is in its place, though it does not answer
            gone = own is None or own.absent not in (None, Reason.CARD_LOST)
            if row.retired_at_ms is None and gone and is_superseded(row.known(None), answering, mig_parents, ()):
                self.retire(row.id, ts_ms)

    def _take_over(self, row: DeviceRow, reading: CardReading) -> None:
        _take_over(row, reading)

    def _save(self, row: DeviceRow) -> None:
        self._session.connection.execute(
            "UPDATE device SET card_index = ?, pci_bus_id = ?, name = ?, memory_total_mb = ?, mig_parent_uuid = ?,"
            " mig_profile = ?, first_seen_ms = ?, retired_at_ms = ?, rev = ? WHERE id = ?",
            (
                row.index,
                row.pci_bus_id,
                row.name,
                row.memory_total_mb,
                row.mig_parent_uuid,
                row.mig_profile,
                row.first_seen_ms,
                row.retired_at_ms,
                self._session.rev,
                row.id,
            ),
        )


def _answering(readings: dict[str, CardReading]) -> list[CardReading]:
    return [reading for reading in readings.values() if reading.absent is None]


def _earlier(first_ms: int, second_ms: int) -> int:
    """The earlier of two times; one of a clock that was never set says nothing beside one that was."""
    same = (first_ms < SET_CLOCK_MS) == (second_ms < SET_CLOCK_MS)
    return min(first_ms, second_ms) if same else max(first_ms, second_ms)


def _take_over(row: DeviceRow, reading: CardReading) -> None:
    """What a reading knows replaces what was known; what it could not read keeps standing."""
    row.index = reading.index if reading.index is not None else row.index
    row.pci_bus_id = reading.pci_bus_id or row.pci_bus_id
    row.name = reading.name or row.name
    row.memory_total_mb = reading.memory_total_mb if reading.memory_total_mb is not None else row.memory_total_mb
    if reading.mig is not None:
        row.mig_parent_uuid, row.mig_profile = reading.mig.parent_uuid, reading.mig.profile
    if reading.absent is None:
        row.retired_at_ms = None
