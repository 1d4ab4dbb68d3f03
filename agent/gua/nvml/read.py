"""Reads one Snapshot of all cards. One failing call costs its reading; one lost card costs that card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Optional, Union

from gua.model import (
    READING_MIG,
    READING_NAME,
    READING_PCI,
    CardReading,
    Fault,
    FaultKind,
    LostSlot,
    Snapshot,
)
from gua.nvml import bindings
from gua.nvml.attempts import Attempts
from gua.nvml.bindings import DRIVER_ERRORS, MIG_ENABLED, CallFailed, call, call_number, call_text, one_line, to_text
from gua.nvml.cards import CardReader, Slot
from gua.nvml.leave_out import NOTHING, LeaveOut, left_out
from gua.nvml.mig import MigReader
from gua.nvml.processes import read_lists, read_pid_max
from gua.nvml.progress import Progress

Found = Union[CardReading, LostSlot]

# More than any host has; above it a driver has answered rubbish, and asking about each would never end.
_MOST_CARDS = 1024


class NvmlReader:
    """NVML in this process, from `open` to `close`. Not for use by several threads.

    progress: where to tell which call of which card is under way.
    """

    def __init__(self, progress: Optional[Progress] = None) -> None:
        self._progress = progress
        self._driver_version: Optional[str] = None
        self._nvml_version: Optional[str] = None
        # By UUID, for as long as this initialisation lasts.
        self._names: dict[str, str] = {}
        self._pci_bus_ids: dict[str, str] = {}
        self._mig_on: dict[str, bool] = {}
        self._pid_max = 0
        self._cards = CardReader()
        self._mig = MigReader(self._cards, self._enter)

    def open(self) -> Optional[Fault]:
        """Load the library and initialise it. None when that worked, else what failed."""
        if self._progress is not None:
            bindings.observe(self._progress.call)
        attempts = Attempts()
        try:
            call("nvmlInit")
            self._driver_version = attempts.take("driver", call_text, "nvmlSystemGetDriverVersion")
            self._nvml_version = attempts.take("nvml", call_text, "nvmlSystemGetNVMLVersion")
        except CallFailed as exc:
            return exc.fault
        finally:
            self._rest()
        return None

    def close(self) -> None:
        """Let go of the driver; what it says to that is of no interest any more."""
        self._mig.close()
        try:
            call("nvmlShutdown")
        except CallFailed:
            return

    def read(self, leave_out: LeaveOut = NOTHING) -> Snapshot:
        """All cards now. A driver-level error is the snapshot's `fault`; nothing is raised for NVML trouble.

        leave_out: places (see Position) whose calls do not return -> the call; they are not touched, and are told
        as slots that are UNRESPONSIVE.
        """
        # At every reading: an administrator may raise it while we run
        self._pid_max = self._mig.pid_max = read_pid_max()
        self._mig.begin()
        self._rest()
        try:
            count = call_number("nvmlDeviceGetCount", highest=_MOST_CARDS)
            entries = (entry for index in range(count) for entry in self._read_index(index, count, leave_out))
            found = _without_doubles(entries)
            fault = _driver_fault(found)
        except CallFailed as exc:
            found, fault = [], exc.fault
        self._mig.end()
        self._rest()
        return self._snapshot(found if fault is None else [], fault)

    def _snapshot(self, found: Iterable[Found], fault: Optional[Fault]) -> Snapshot:
        found = tuple(found)
        return Snapshot(
            cards=tuple(entry for entry in found if isinstance(entry, CardReading)),
            lost=tuple(entry for entry in found if isinstance(entry, LostSlot)),
            mig_parents=tuple(self._mig.parents) if fault is None else (),
            missing_calls=tuple(sorted(bindings.missing)),
            driver_version=self._driver_version,
            nvml_version=self._nvml_version,
            fault=fault,
        )

    def _enter(self, place: str) -> None:
        if self._progress is not None:
            self._progress.enter(place)

    def _rest(self) -> None:
        if self._progress is not None:
            self._progress.rest()

    def _read_index(self, index: int, count: int, leave_out: LeaveOut) -> Iterator[Found]:
        # A card that drops off the bus shifts the indexes of others: none of them may be left out for what it was
        place = f"index {index} of {count}"
        if place in leave_out:
            yield left_out(index, leave_out[place])
            return
        self._enter(place)
        try:
            handle = call("nvmlDeviceGetHandleByIndex", index)
            uuid = call_text("nvmlDeviceGetUUID", handle)
        except CallFailed as exc:
            yield LostSlot(index, exc.fault)
            return
        if uuid in leave_out:
            yield left_out(index, leave_out[uuid], uuid)
            return
        if self._progress is not None:
            self._progress.known_as(uuid)
        try:
            yield from self._read_known(self._describe(handle, uuid, index), leave_out)
        except Exception as exc:  # noqa: BLE001 - an answer of a shape we do not know costs this card, no other
            yield LostSlot(index, Fault("gua.nvml.read", type(exc).__name__, FaultKind.FAILED, one_line(exc)), uuid)

    def _read_known(self, card: Slot, leave_out: LeaveOut) -> Iterator[Found]:
        mode_fault = self._ask_mig_mode(card)
        if mode_fault is not None:
            card = replace(card, faults={**card.faults, READING_MIG: mode_fault})
        if mode_fault is not None and card.uuid not in self._mig_on:
            yield LostSlot(card.index, mode_fault, card.uuid)
        elif self._mig_on[card.uuid]:
            yield from self._mig.read(card, leave_out)
        else:
            yield self._cards.read_card(card, lambda: read_lists(card.handle, self._pid_max))

    def _describe(self, handle: Any, uuid: str, index: int) -> Slot:
        """The card with what never changes about it; asked once."""
        attempts = Attempts()
        if uuid not in self._names:
            name = attempts.take(READING_NAME, call_text, "nvmlDeviceGetName", handle)
            self._names.update({} if name is None else {uuid: name})
        if uuid not in self._pci_bus_ids:
            bus_id = attempts.take(READING_PCI, _read_pci_bus_id, handle)
            self._pci_bus_ids.update({} if bus_id is None else {uuid: bus_id})
        return Slot(handle, uuid, index, self._pci_bus_ids.get(uuid), self._names.get(uuid), faults=attempts.faults)

    def _ask_mig_mode(self, card: Slot) -> Optional[Fault]:
        """Learn whether the card is cut into instances; the fault when it should have said so, and did not.

        A call that fails leaves what it said last. A card taken for a whole one, or for a cut one, by mistake would
        end the history of what it really is; one that has no room for instances is whole without asking further.
        """
        attempts = Attempts()
        modes = attempts.take("mig", call, "nvmlDeviceGetMigMode", card.handle)
        if modes is not None:
            self._mig_on[card.uuid] = modes[0] == MIG_ENABLED
        elif attempts.faults["mig"].kind is FaultKind.UNSUPPORTED:
            self._mig_on.setdefault(card.uuid, False)
        elif card.uuid not in self._mig_on:
            room = attempts.take("room", call, "nvmlDeviceGetMaxMigDeviceCount", card.handle)
            if room == 0 or (room is None and attempts.faults["room"].kind is FaultKind.UNSUPPORTED):
                self._mig_on[card.uuid] = False
        fault = attempts.faults.get("mig")
        return fault if fault is not None and fault.kind is FaultKind.FAILED else None


def _without_doubles(found: Iterable[Found]) -> list[Found]:
    """The same, where of cards that tell one UUID none is believed: nobody knows whose readings theirs are. Pure."""
    found = tuple(found)
    tellers = Counter(entry.uuid for entry in found if isinstance(entry, CardReading))
    return [entry if isinstance(entry, LostSlot) or tellers[entry.uuid] == 1 else _doubted(entry) for entry in found]


def _doubted(card: CardReading) -> LostSlot:
    assert card.index is not None  # what was just read has its place
    fault = Fault("nvmlDeviceGetUUID", "NOT_UNIQUE", FaultKind.FAILED, f"another card tells {card.uuid} too")
    return LostSlot(card.index, fault, None if card.mig is None else card.mig.parent_uuid)


def _driver_fault(found: Iterable[Found]) -> Optional[Fault]:
    """The driver-level error that every card met, if there is one; met by one card only, it is that card's fault."""
    first: Optional[Fault] = None
    for entry in found:
        faults = entry.faults.values() if isinstance(entry, CardReading) else (entry.fault,)
        met = next((fault for fault in faults if fault.error in DRIVER_ERRORS), None)
        if met is None:
            return None
        first = first or met
    return first


def _read_pci_bus_id(handle: Any) -> str:
    """`00000000:17:00.0`, the form nvidia-smi shows."""
    name = "nvmlDeviceGetPciInfo"
    return to_text(name, call(name, handle).busId)
