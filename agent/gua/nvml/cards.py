"""Every reading of one card or MIG instance, each on its own: what fails leaves its fault and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

from gua.model import (
    READING_ENERGY,
    READING_MEMORY,
    READING_POWER,
    READING_PROCESS_USE,
    READING_TEMPERATURE,
    READING_UTIL,
    READING_UTIL_SAMPLES,
    CardReading,
    Fault,
    FaultKind,
    GpuProcess,
    Mig,
    Reason,
    UtilSource,
)
from gua.nvml.attempts import Attempts
from gua.nvml.bindings import TEMPERATURE_GPU, CallFailed, call_number
from gua.nvml.memory import MemoryReading, read_memory
from gua.nvml.process_use import ProcessUseReader
from gua.nvml.processes import Lists, to_processes
from gua.nvml.utilization import UtilReader, UtilReading

# Above these a driver has answered rubbish (all ones, for a sensor that is not there).
_HIGHEST_TEMPERATURE_C = 200
_HIGHEST_POWER_MW = 100_000_000
_HIGHEST_ENERGY_MJ = 2**63 - 1

_POWER = "nvmlDeviceGetPowerUsage"
_ENERGY, _TEMPERATURE = "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetTemperature"


@dataclass(frozen=True)
class Slot:
    """A card or MIG instance that told its UUID. name: None with a fault under `name`, as everywhere.

    faults: of what was asked so far.
    """

    handle: Any
    uuid: str
    index: int
    pci_bus_id: Optional[str] = None
    name: Optional[str] = None
    mig: Optional[Mig] = None
    faults: Mapping[str, Fault] = field(default_factory=dict)


class CardReader:
    """Reads cards, and remembers of each what it saw last, for figures of the time between two readings."""

    def __init__(self) -> None:
        self._util = UtilReader()
        self._use = ProcessUseReader()

    def read_card(self, slot: Slot, read_lists: Callable[[], Lists]) -> CardReading:
        """A whole card as far as it could be read. Never raises for NVML trouble.

        A card whose utilisation or memory answers GPU_IS_LOST is absent, and is asked nothing more this time.
        """
        attempts = Attempts(slot.faults)
        util = attempts.take(READING_UTIL, self._util.read, slot.handle, slot.uuid)
        if util is not None:
            attempts.note(READING_UTIL_SAMPLES, util.fault)
        if attempts.say_lost(READING_UTIL):
            return _lost(slot, attempts)
        memory = read_memory(slot.handle, slot.name)
        attempts.note(READING_MEMORY, memory.fault)
        if attempts.say_lost(READING_MEMORY):
            return _lost(slot, attempts)
        processes = self._add_use(slot, _take_processes(read_lists(), attempts), util, attempts)
        return _reading(slot, attempts, util, memory, processes, call_number)

    def read_instance(self, slot: Slot, lists: Lists, read_util: Callable[[], int]) -> CardReading:
        """A MIG instance: what only its card measures is UNSUPPORTED. Never raises for NVML trouble."""
        attempts = Attempts(slot.faults)
        memory = read_memory(slot.handle, slot.name)
        attempts.note(READING_MEMORY, memory.fault)
        if attempts.say_lost(READING_MEMORY):
            return _lost(slot, attempts)
        pct = attempts.take(READING_UTIL, read_util)
        util = None if pct is None else UtilReading(pct, UtilSource.GPM)
        return _reading(slot, attempts, util, memory, _take_processes(lists, attempts), _not_of_instances)

    def _add_use(
        self,
        slot: Slot,
        processes: Optional[tuple[GpuProcess, ...]],
        util: Optional[UtilReading],
        attempts: Attempts,
    ) -> Optional[tuple[GpuProcess, ...]]:
        if not processes:
            return processes
        nothing_ran = util is not None and util.max_pct == 0
        used, fault = self._use.read(slot.handle, slot.uuid, processes, nothing_ran=nothing_ran)
        attempts.note(READING_PROCESS_USE, fault)
        return used


def _take_processes(lists: Lists, attempts: Attempts) -> Optional[tuple[GpuProcess, ...]]:
    listed = to_processes(lists)
    attempts.faults.update(listed.faults)
    return listed.processes


def _reading(
    slot: Slot,
    attempts: Attempts,
    util: Optional[UtilReading],
    memory: MemoryReading,
    processes: Optional[tuple[GpuProcess, ...]],
    ask: Callable[..., int],
) -> CardReading:
    power_mw = attempts.take(READING_POWER, ask, _POWER, slot.handle, highest=_HIGHEST_POWER_MW)
    return CardReading(
        uuid=slot.uuid,
        index=slot.index,
        pci_bus_id=slot.pci_bus_id,
        name=slot.name,
        memory_total_mb=memory.total_mb,
        memory_used_mb=memory.used_mb,
        memory_source=memory.source,
        util_pct=None if util is None else util.pct,
        util_max_pct=None if util is None else util.max_pct,
        util_source=None if util is None else util.source,
        processes=processes,
        temperature_c=attempts.take(
            READING_TEMPERATURE, ask, _TEMPERATURE, slot.handle, TEMPERATURE_GPU, highest=_HIGHEST_TEMPERATURE_C
        ),
        power_w=None if power_mw is None else power_mw / 1000,
        energy_mj=attempts.take(READING_ENERGY, ask, _ENERGY, slot.handle, highest=_HIGHEST_ENERGY_MJ),
        mig=slot.mig,
        faults=attempts.faults,
    )


def _lost(slot: Slot, attempts: Attempts) -> CardReading:
    return CardReading(
        uuid=slot.uuid,
        index=slot.index,
        pci_bus_id=slot.pci_bus_id,
        name=slot.name,
        mig=slot.mig,
        absent=Reason.CARD_LOST,
        faults=attempts.faults,
    )


def _not_of_instances(name: str, *args: Any, highest: int) -> int:
    """Stands in for `call_number`: sensors belong to the whole card, so a slice of it has no figure of its own."""
    raise CallFailed(Fault(name, "MIG_INSTANCE", FaultKind.UNSUPPORTED, "measured per card, not per MIG instance"))
