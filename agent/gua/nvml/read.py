"""Reads one Snapshot of all cards. One failing call costs its reading; one lost card costs that card."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable, Optional, Union

from gua.model import (
    HANGS,
    READING_HANDLE,
    READING_NAME,
    READING_PCI,
    CardReading,
    Fault,
    FaultKind,
    LostSlot,
    Reason,
    Snapshot,
)
from gua.nvml.bindings import GPU_IS_LOST, MIG_ENABLED, CallFailed, DriverFailed, call, call_text
from gua.nvml.cards import Attempts, Slot, read_card
from gua.nvml.isolation import place_of
from gua.nvml.processes import read_pid_max

Found = Union[CardReading, LostSlot]

_LEFT_OUT = Fault("gua.nvml.worker", HANGS, FaultKind.FAILED, "a driver call about this card did not return")


class NvmlReader:
    """NVML in this process, from `open` to `close`. Not for use by several threads."""

    def __init__(self) -> None:
        self._driver_version: Optional[str] = None
        self._nvml_version: Optional[str] = None
        # By UUID, for as long as this initialisation lasts. MIG instances are not kept: the same UUID may come
        # back with another profile.
        self._names: dict[str, str] = {}
        self._pci_bus_ids: dict[str, str] = {}
        self._pid_max = 0
        self._mig_parents: list[str] = []  # met in the reading under way

    def open(self) -> Optional[Fault]:
        """Load the library and initialise it. None when that worked, else what failed."""
        attempts = Attempts({})
        try:
            call("nvmlInit")
            self._driver_version = attempts.take("driver", call_text, "nvmlSystemGetDriverVersion")
            self._nvml_version = attempts.take("nvml", call_text, "nvmlSystemGetNVMLVersion")
        except CallFailed as exc:
            return exc.fault
        self._pid_max = read_pid_max()
        return None

    def close(self) -> None:
        """Let go of the driver; what it says to that is of no interest any more."""
        try:
            call("nvmlShutdown")
        except CallFailed:
            return

    def read(self, leave_out: frozenset[str] = frozenset(), at: Callable[[str], None] = lambda card: None) -> Snapshot:
        """All cards now. A driver-level error is the snapshot's `fault`; nothing is raised for NVML trouble.

        leave_out: cards that are not asked, and come out as unresponsive. at: told each card before it is asked.
        Both by the names of `gua.nvml.isolation`.
        """
        self._mig_parents.clear()
        try:
            count = call("nvmlDeviceGetCount")
            found = [entry for index in range(count) for entry in self._read_index(index, leave_out, at)]
        except CallFailed as exc:
            return Snapshot(driver_version=self._driver_version, nvml_version=self._nvml_version, fault=exc.fault)
        return Snapshot(
            cards=tuple(entry for entry in found if isinstance(entry, CardReading)),
            lost=tuple(entry for entry in found if isinstance(entry, LostSlot)),
            mig_parents=tuple(self._mig_parents),
            driver_version=self._driver_version,
            nvml_version=self._nvml_version,
        )

    def _read_index(self, index: int, leave_out: frozenset[str], at: Callable[[str], None]) -> Iterator[Found]:
        if place_of(index) in leave_out:
            yield LostSlot(index, _LEFT_OUT)
            return
        at(place_of(index))
        try:
            handle = call("nvmlDeviceGetHandleByIndex", index)
            uuid = call_text("nvmlDeviceGetUUID", handle)
        except DriverFailed:
            raise
        except CallFailed as exc:
            yield LostSlot(index, exc.fault)
            return
        if uuid in leave_out:
            yield CardReading(uuid, index, absent=Reason.UNRESPONSIVE, faults={READING_HANDLE: _LEFT_OUT})
            return
        at(uuid)
        card = self._describe(handle, uuid, index)
        if _has_mig_enabled(handle):
            self._mig_parents.append(uuid)
            yield from self._read_instances(card)
        else:
            yield read_card(card, pid_max=self._pid_max)

    def _describe(self, handle: Any, uuid: str, index: int) -> Slot:
        """The card with what never changes about it; asked once."""
        attempts = Attempts({})
        if uuid not in self._names:
            name = attempts.take(READING_NAME, call_text, "nvmlDeviceGetName", handle)
            self._names.update({} if name is None else {uuid: name})
        if uuid not in self._pci_bus_ids:
            bus_id = attempts.take(READING_PCI, _read_pci_bus_id, handle)
            self._pci_bus_ids.update({} if bus_id is None else {uuid: bus_id})
        return Slot(handle, uuid, index, self._pci_bus_ids.get(uuid), self._names.get(uuid), faults=attempts.faults)

    def _read_instances(self, card: Slot) -> Iterator[Found]:
        """The MIG instances of one card, in order of position; a card with MIG on and no instance gives none."""
        attempts = Attempts({})
        count = attempts.take(READING_HANDLE, call, "nvmlDeviceGetMaxMigDeviceCount", card.handle)
        if count is None:
            yield LostSlot(card.index, attempts.faults[READING_HANDLE])
        for position in range(count or 0):
            try:
                instance = _find_instance(card, position)
            except DriverFailed:
                raise
            except CallFailed as exc:
                yield LostSlot(card.index, exc.fault)
                if exc.fault.error == GPU_IS_LOST:  # then every other position says the same
                    return
                continue
            if instance is not None:
                yield read_card(instance, pid_max=self._pid_max)


def _find_instance(card: Slot, position: int) -> Optional[Slot]:
    """The instance in this position, None where there is none. Raises CallFailed when that cannot be told."""
    try:
        handle = call("nvmlDeviceGetMigDeviceHandleByIndex", card.handle, position)
    except CallFailed as exc:
        if exc.fault.error == "NOT_FOUND":
            return None
        raise
    uuid = call_text("nvmlDeviceGetUUID", handle)
    attempts = Attempts({})
    name = attempts.take(READING_NAME, call_text, "nvmlDeviceGetName", handle)
    return Slot(handle, uuid, card.index, card.pci_bus_id, name, mig_parent=card.uuid, faults=attempts.faults)


def _has_mig_enabled(handle: Any) -> bool:
    """Whether the card is cut into instances. A card that cannot say is read as a whole one."""
    modes = Attempts({}).take("mig", call, "nvmlDeviceGetMigMode", handle)
    return modes is not None and modes[0] == MIG_ENABLED


def _read_pci_bus_id(handle: Any) -> str:
    """`00000000:17:00.0`, the form nvidia-smi shows."""
    bus_id = call("nvmlDeviceGetPciInfo", handle).busId
    return bus_id.decode(errors="replace") if isinstance(bus_id, bytes) else str(bus_id)
