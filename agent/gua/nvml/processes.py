"""The processes on a card: three lists of the driver made into one, or none where a list cannot be believed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from gua.model import (
    READING_COMPUTE,
    READING_GRAPHICS,
    READING_MPS,
    Fault,
    FaultKind,
    GpuProcess,
    ProcessType,
)
from gua.nvml.bindings import FUNCTION_NOT_FOUND, CallFailed, call_until_stable, failure
from gua.units import bytes_to_mb

# Strongest first: a process in several lists is what it is in the first of them.
_LISTS = (
    (ProcessType.COMPUTE, READING_COMPUTE, "nvmlDeviceGetComputeRunningProcesses"),
    (ProcessType.MPS, READING_MPS, "nvmlDeviceGetMPSComputeRunningProcesses"),
    (ProcessType.GRAPHICS, READING_GRAPHICS, "nvmlDeviceGetGraphicsRunningProcesses"),
)
_STRENGTH = [kind for kind, _, _ in _LISTS]
_HIGHEST_PID = 1 << 22  # PID_MAX_LIMIT of a 64-bit kernel
_UNBELIEVABLE_BYTES = 2**63 - 1  # 2^64-1 means "not available", 2^63-1 the same to some; SQLite holds no larger
_NO_INSTANCE = 2**32 - 1  # what an entry says that belongs to no MIG instance


@dataclass(frozen=True)
class Entry:
    """A line of one list. gpu_instance, compute_instance: the MIG instance that it names, None where none."""

    process: GpuProcess
    gpu_instance: Optional[int] = None
    compute_instance: Optional[int] = None


@dataclass(frozen=True)
class Lists:
    """What the three lists of a card or instance say; by the reading's key, why one of them says nothing."""

    entries: tuple[Entry, ...] = ()
    faults: Mapping[str, Fault] = field(default_factory=dict)


@dataclass(frozen=True)
class ProcessReading:
    """processes: None when who holds the card could not be read or believed; `faults` says why."""

    processes: Optional[tuple[GpuProcess, ...]] = None
    faults: Mapping[str, Fault] = field(default_factory=dict)


def read_pid_max() -> int:
    """The highest pid this kernel gives out; the highest any kernel can where that cannot be read."""
    root = os.environ.get("GUA_PROCFS_ROOT") or "/proc"
    try:
        # At every tick, so not by a Path: each one interns its parts, and CPython's table of those grows by that
        with open(f"{root}/sys/kernel/pid_max", encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return _HIGHEST_PID


def read_lists(handle: Any, pid_max: int) -> Lists:
    """The process lists of one card or MIG instance. Never raises for NVML trouble."""
    entries: list[Entry] = []
    faults: dict[str, Fault] = {}
    for kind, key, name in _LISTS:
        try:
            entries += _read_list(handle, kind, name, pid_max)
        except CallFailed as exc:
            faults[key] = exc.fault
    return Lists(tuple(entries), faults)


def to_processes(lists: Lists) -> ProcessReading:
    """Every process on one card or MIG instance, once. Pure.

    A list this driver does not have leaves the others standing (before MPS there was no MPS list), except the
    compute list. An impossible pid in any list means that bindings and driver disagree about the structure, so
    none is believed.
    """
    if holders_unknown(lists.faults):
        return ProcessReading(None, lists.faults)
    return ProcessReading(merge_processes(entry.process for entry in lists.entries), lists.faults)


def merge_processes(listed: Iterable[GpuProcess]) -> tuple[GpuProcess, ...]:
    """One entry per pid, ascending: the strongest type, and the largest amount that any list knows.

    The lists of one process repeat the same amount, so amounts are never added.
    """
    merged: dict[int, GpuProcess] = {}
    for process in listed:
        other = merged.get(process.pid, process)
        kind = min(process.type, other.type, key=_STRENGTH.index)
        known = [amount for amount in (process.memory_mb, other.memory_mb) if amount is not None]
        merged[process.pid] = GpuProcess(process.pid, kind, max(known, default=None))
    return tuple(merged[pid] for pid in sorted(merged))


def holders_unknown(faults: Mapping[str, Fault]) -> bool:
    """Whether a process that holds the card may be missing from what the lists say. Pure."""
    failed_mps = READING_MPS in faults and faults[READING_MPS].kind is FaultKind.FAILED
    scrambled = any(fault.error == "IMPOSSIBLE_PID" for fault in faults.values())
    return READING_COMPUTE in faults or failed_mps or scrambled


def _read_list(handle: Any, kind: ProcessType, name: str, pid_max: int) -> list[Entry]:
    listed = _list(name, handle)
    _check_pids(listed, name, pid_max)
    return [_to_entry(line, kind) for line in listed]


def _to_entry(line: Any, kind: ProcessType) -> Entry:
    process = GpuProcess(int(line.pid), kind, _memory_mb(line.usedGpuMemory))
    return Entry(process, _instance_id(line, "gpuInstanceId"), _instance_id(line, "computeInstanceId"))


def _instance_id(line: Any, name: str) -> Optional[int]:
    number = getattr(line, name, None)
    return None if number is None or number == _NO_INSTANCE else int(number)


def _list(name: str, handle: Any) -> Any:
    """The entries of the list, from the function's version 3, or 2 on drivers before 510: both fill the same struct."""
    try:
        return call_until_stable(name, handle)
    except CallFailed as exc:
        if exc.fault.error != FUNCTION_NOT_FOUND:
            raise
    return call_until_stable(f"{name}_v2", handle)


def _check_pids(entries: Sequence[Any], name: str, pid_max: int) -> None:
    wrong = [int(entry.pid) for entry in entries if not 0 < int(entry.pid) <= pid_max]
    if wrong:
        raise failure(name, "IMPOSSIBLE_PID", f"pid {wrong[0]}: nvidia-ml-py does not fit this driver's process list")


def _memory_mb(used_bytes: Optional[int]) -> Optional[int]:
    if used_bytes is None or used_bytes >= _UNBELIEVABLE_BYTES:
        return None
    return bytes_to_mb(int(used_bytes))
