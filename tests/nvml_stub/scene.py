"""Scenes for the NVML stub: what a host's driver and cards answer. `scene.h` describes the file they become.

    Scene(cards=(Card("GPU-a", util=93), Card("GPU-b", rules=(Error("nvmlDeviceGetName", "UNKNOWN"),)))).save(path)

Sizes are bytes. A reading that is None is NOT_SUPPORTED.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Optional, Union

MIB = 1 << 20
GIB = 1 << 30
AUTO = "auto"
VALUE_NOT_AVAILABLE = 2**64 - 1
UNSIGNED_INT = 1  # NVML_VALUE_TYPE_UNSIGNED_INT


@dataclass(frozen=True)
class Error:
    """`call` answers NVML_ERROR_`name`: always, in its first `first` calls, or from call number `since` on."""

    call: str
    name: str
    first: Optional[int] = None
    since: Optional[int] = None

    def line(self) -> str:
        return f"error {self.call} {self.name}{_window(self.first, self.since)}"


@dataclass(frozen=True)
class Delay:
    """`call` sleeps `ms` before it answers. masked: no signal but SIGKILL wakes or ends it meanwhile."""

    call: str
    ms: int
    masked: bool = False
    first: Optional[int] = None
    since: Optional[int] = None

    def line(self) -> str:
        return f"delay {self.call} {self.ms}{' masked' if self.masked else ''}{_window(self.first, self.since)}"


Rule = Union[Error, Delay]


def _window(first: Optional[int], since: Optional[int]) -> str:
    if first is not None:
        return f" first {first}"
    return "" if since is None else f" from {since}"


@dataclass(frozen=True)
class Process:
    """A listed process. kind: compute, mps or graphics. memory: bytes, None where the driver does not say."""

    pid: int
    memory: Optional[int] = GIB
    kind: str = "compute"
    gpu_instance: Optional[int] = None
    compute_instance: Optional[int] = None

    def line(self) -> str:
        memory = "na" if self.memory is None else self.memory
        ids = "" if self.gpu_instance is None else f" {self.gpu_instance} {self.compute_instance or 0}"
        return f"process {self.kind} {self.pid} {memory}{ids}"


@dataclass(frozen=True)
class Samples:
    """Utilisation samples the driver keeps: (microseconds, percent), oldest first. kind: a value of nvmlValueType_t."""

    values: tuple[tuple[int, float], ...] = ()
    kind: int = UNSIGNED_INT

    def lines(self) -> Iterator[str]:
        yield f"samples {self.kind}"
        yield from (f"sample {at_us} {value}" for at_us, value in self.values)


@dataclass(frozen=True)
class Use:
    """What one process used of a card's multiprocessors, as the driver sampled it."""

    pid: int
    at_us: int
    sm_pct: int

    def line(self) -> str:
        return f"use {self.pid} {self.at_us} {self.sm_pct}"


@dataclass(frozen=True)
class Counters:
    """GPM counters up to now, in any unit: a metric is 100 x its difference / that of time."""

    time: float
    graphics: float
    sm: float

    def line(self) -> str:
        return f"counters {self.time} {self.graphics} {self.sm}"


@dataclass(frozen=True)
class Unit:
    """What cards and MIG instances have in common.

    memory_v1: (total, used) of the unversioned reading, where used is not simply memory_used + memory_reserved.
    samples, process_uses, counters: None where the driver has no such call for it.
    """

    uuid: str
    name: Optional[str] = "NVIDIA H100 80GB HBM3"
    memory_total: Optional[int] = 80 * GIB
    memory_reserved: int = 600 * MIB
    memory_used: int = 0
    memory_v1: Optional[tuple[int, int]] = None
    util: Optional[int] = 0
    processes: tuple[Process, ...] = ()
    rules: tuple[Rule, ...] = ()
    samples: Optional[Samples] = None
    process_uses: Optional[tuple[Use, ...]] = None
    counters: Optional[Counters] = None

    def lines(self) -> Iterator[str]:
        yield from _optional("name", self.name)
        yield from _optional("util", self.util)
        if self.memory_total is not None:
            yield f"memory {self.memory_total} {self.memory_reserved} {self.memory_used}"
        if self.memory_v1 is not None:
            yield f"memory1 {self.memory_v1[0]} {self.memory_v1[1]}"
        yield from (process.line() for process in self.processes)
        if self.samples is not None:
            yield from self.samples.lines()
        if self.process_uses is not None:
            yield from ("process-util", *(use.line() for use in self.process_uses))
        if self.counters is not None:
            yield self.counters.line()
        yield from (rule.line() for rule in self.rules)


@dataclass(frozen=True)
class Instance(Unit):
    """A MIG instance. slices: (GPU, compute) slice counts; None: the driver does not tell its attributes."""

    name: Optional[str] = "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
    memory_total: Optional[int] = 10 * GIB
    memory_reserved: int = 0
    util: Optional[int] = None
    slot: int = 0
    gpu_instance: int = 7
    compute_instance: int = 0
    slices: Optional[tuple[int, int]] = (1, 1)

    def lines(self) -> Iterator[str]:
        yield f"instance {self.slot} {self.uuid}"
        yield f"ids {self.gpu_instance} {self.compute_instance}"
        if self.slices is not None:
            yield f"slices {self.slices[0]} {self.slices[1]}"
        yield from super().lines()


@dataclass(frozen=True)
class Card(Unit):
    """A card; as it is, a healthy idle H100. pci: AUTO numbers the buses. mig_max: MIG is on when not None.

    parent_lists: processes of its instances are listed on the card alone. gpm: it has GPM counters.
    """

    pci: Optional[str] = AUTO
    temperature: Optional[int] = 35
    power_mw: Optional[int] = 70_000
    energy_mj: Optional[int] = 1_000_000
    mig_max: Optional[int] = None
    parent_lists: bool = False
    gpm: bool = False
    instances: tuple[Instance, ...] = ()

    def lines(self) -> Iterator[str]:
        yield f"card {self.uuid}"
        yield from super().lines()
        readings = {"temperature": self.temperature, "power": self.power_mw, "energy": self.energy_mj}
        for key, value in {**readings, "mig": self.mig_max}.items():
            yield from _optional(key, value)
        yield from (key for key, given in {"parent-lists": self.parent_lists, "gpm": self.gpm}.items() if given)


def _optional(key: str, value: Union[str, int, None]) -> Iterator[str]:
    if value is not None:
        yield f"{key} {value}"


@dataclass(frozen=True)
class Scene:
    """One host's driver. rules here hold for every card, and for calls that name no card (nvmlInit).

    generation: raise it, and everything is UNINITIALIZED until NVML is shut down and initialised again.
    process_info_size: bytes of a process entry as this driver writes them (535.43 to 535.86: 40; else 24).
    """

    cards: tuple[Card, ...] = ()
    driver: str = "570.86.15"
    nvml: str = "12.570.86.15"
    generation: int = 0
    process_info_size: int = 24
    rules: tuple[Rule, ...] = ()

    def lines(self) -> Iterator[str]:
        yield f"driver {self.driver}"
        yield f"nvml {self.nvml}"
        yield f"generation {self.generation}"
        yield f"process-info-size {self.process_info_size}"
        yield from (rule.line() for rule in self.rules)
        for position, card in enumerate(self.cards, start=1):
            yield from card.lines()
            pci = f"00000000:{position:02X}:00.0" if card.pci == AUTO else card.pci
            yield from _optional("pci", pci)
            for instance in card.instances:
                yield from instance.lines()

    def save(self, path: Path) -> Path:
        """Replace the scene file in one step, readable by every user, and give its path back."""
        handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w") as file:
            file.write("\n".join(self.lines()) + "\n")
        os.chmod(scratch, 0o644)
        os.replace(scratch, path)
        return path
