"""Every reading of one card or MIG instance, each on its own: what fails leaves its fault and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, TypeVar

from gua.model import (
    READING_ENERGY,
    READING_MEMORY,
    READING_NAME,
    READING_POWER,
    READING_TEMPERATURE,
    READING_UTIL,
    CardReading,
    Fault,
    FaultKind,
    Mig,
    Reason,
)
from gua.nvml.bindings import (
    GPU_IS_LOST,
    TEMPERATURE_GPU,
    CallFailed,
    DriverFailed,
    believable,
    call,
    call_number,
)
from gua.nvml.memory import MemoryReading, read_memory
from gua.nvml.processes import read_processes

Value = TypeVar("Value")

# Above these a driver has answered rubbish (all ones, for a sensor that is not there).
_HIGHEST_TEMPERATURE_C = 200
_HIGHEST_POWER_MW = 100_000_000
_HIGHEST_ENERGY_MJ = 2**63 - 1

_UTIL, _POWER = "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetPowerUsage"
_ENERGY, _TEMPERATURE = "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetTemperature"


@dataclass(frozen=True)
class Slot:
    """A card or MIG instance that told its UUID. mig_parent: the UUID of the card an instance is part of.

    name: None with a fault under `name`, as everywhere. faults: of what was asked so far.
    """

    handle: Any
    uuid: str
    index: int
    pci_bus_id: Optional[str] = None
    name: Optional[str] = None
    mig_parent: Optional[str] = None
    faults: Mapping[str, Fault] = field(default_factory=dict)


class Attempts:
    """Collects, under the reading's key, the fault of every reading that did not come."""

    def __init__(self, faults: Mapping[str, Fault]) -> None:
        self.faults = dict(faults)

    def take(self, key: str, read: Callable[..., Value], *args: Any, **limits: int) -> Optional[Value]:
        """What `read` gives, or None with its fault kept. Raises DriverFailed only."""
        try:
            return read(*args, **limits)
        except DriverFailed:
            raise
        except CallFailed as exc:
            self.faults[key] = exc.fault
            return None

    def say_lost(self, key: str) -> bool:
        return key in self.faults and self.faults[key].error == GPU_IS_LOST


def read_card(slot: Slot, *, pid_max: int) -> CardReading:
    """The card as far as it could be read. Raises DriverFailed only.

    A card whose utilisation or memory answers GPU_IS_LOST is absent, and is asked nothing more this time.
    """
    attempts = Attempts(slot.faults)
    util_pct = attempts.take(READING_UTIL, _read_util_pct, slot.handle)
    if attempts.say_lost(READING_UTIL):
        return _lost(slot, attempts)
    memory = read_memory(slot.handle, slot.name)
    if memory.fault is not None:
        attempts.faults[READING_MEMORY] = memory.fault
    if attempts.say_lost(READING_MEMORY):
        return _lost(slot, attempts)
    return _read_rest(slot, attempts, util_pct, memory, pid_max)


def _read_rest(
    slot: Slot, attempts: Attempts, util_pct: Optional[int], memory: MemoryReading, pid_max: int
) -> CardReading:
    listed = read_processes(slot.handle, pid_max)
    attempts.faults.update(listed.faults)
    ask = _not_of_instances if slot.mig_parent else call_number
    power_mw = attempts.take(READING_POWER, ask, _POWER, slot.handle, highest=_HIGHEST_POWER_MW)
    return CardReading(
        uuid=slot.uuid,
        index=slot.index,
        pci_bus_id=slot.pci_bus_id,
        name=slot.name,
        memory_total_mb=memory.total_mb,
        memory_used_mb=memory.used_mb,
        memory_source=memory.source,
        util_pct=util_pct,
        processes=listed.processes,
        temperature_c=attempts.take(
            READING_TEMPERATURE, ask, _TEMPERATURE, slot.handle, TEMPERATURE_GPU, highest=_HIGHEST_TEMPERATURE_C
        ),
        power_w=None if power_mw is None else power_mw / 1000,
        energy_mj=attempts.take(READING_ENERGY, ask, _ENERGY, slot.handle, highest=_HIGHEST_ENERGY_MJ),
        mig=_read_mig(slot),
        faults=attempts.faults,
    )


def _lost(slot: Slot, attempts: Attempts) -> CardReading:
    return CardReading(
        uuid=slot.uuid,
        index=slot.index,
        pci_bus_id=slot.pci_bus_id,
        name=slot.name,
        mig=_read_mig(slot),
        absent=Reason.CARD_LOST,
        faults=attempts.faults,
    )


def _read_util_pct(handle: Any) -> int:
    return believable(_UTIL, call(_UTIL, handle).gpu, highest=100)


def _not_of_instances(name: str, *args: Any, highest: int) -> int:
    """Stands in for `call_number`: sensors belong to the whole card, so a slice of it has no figure of its own."""
    raise CallFailed(Fault(name, "MIG_INSTANCE", FaultKind.UNSUPPORTED, "measured per card, not per MIG instance"))


def _read_mig(slot: Slot) -> Optional[Mig]:
    return None if slot.mig_parent is None else Mig(slot.mig_parent, _read_profile(slot))


def _read_profile(slot: Slot) -> str:
    """`1g.10gb` or `1c.3g.40gb`: from the name, as nvidia-smi shows it, else made from the slices; else `unknown`."""
    profile = (slot.name or "").partition(" MIG ")[2].strip()
    if profile:
        return profile
    attributes = Attempts({}).take(READING_NAME, call, "nvmlDeviceGetAttributes", slot.handle)
    if attributes is None:
        return "unknown"
    compute, slices = attributes.computeInstanceSliceCount, attributes.gpuInstanceSliceCount
    part = "" if compute == slices else f"{compute}c."
    return f"{part}{slices}g.{-(-attributes.memorySizeMB // 1024)}gb"
