"""The processes on a card: three lists of the driver made into one, or none where a list cannot be believed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
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
from gua.nvml.bindings import FUNCTION_NOT_FOUND, CallFailed, DriverFailed, call, failure
from gua.units import bytes_to_mb

# Strongest first: a process in several lists is what it is in the first of them.
_LISTS = (
    (ProcessType.COMPUTE, READING_COMPUTE, "nvmlDeviceGetComputeRunningProcesses"),
    (ProcessType.MPS, READING_MPS, "nvmlDeviceGetMPSComputeRunningProcesses"),
    (ProcessType.GRAPHICS, READING_GRAPHICS, "nvmlDeviceGetGraphicsRunningProcesses"),
)
_STRENGTH = [kind for kind, _, _ in _LISTS]
_HIGHEST_PID = 1 << 22  # PID_MAX_LIMIT of a 64-bit kernel
_UNBELIEVABLE_BYTES = 2**63  # 2^64-1 means "not available"; SQLite holds no larger integer


@dataclass(frozen=True)
class ProcessReading:
    """processes: None when who holds the card could not be read or believed; `faults` says why."""

    processes: Optional[tuple[GpuProcess, ...]] = None
    faults: Mapping[str, Fault] = field(default_factory=dict)


def read_pid_max() -> int:
    """The highest pid this kernel gives out; the highest any kernel can where that cannot be read."""
    root = os.environ.get("GUA_PROCFS_ROOT") or "/proc"
    try:
        return int(Path(root, "sys/kernel/pid_max").read_text())
    except (OSError, ValueError):
        return _HIGHEST_PID


def read_processes(handle: Any, pid_max: int) -> ProcessReading:
    """Every process on one card or MIG instance, once.

    A list this driver does not have leaves the others standing (before MPS there was no MPS list), except the
    compute list. An impossible pid in any list means that bindings and driver disagree about the structure, so
    none is believed. Raises DriverFailed only.
    """
    found: list[GpuProcess] = []
    faults: dict[str, Fault] = {}
    for kind, key, name in _LISTS:
        try:
            found += _read_list(handle, kind, name, pid_max)
        except DriverFailed:
            raise
        except CallFailed as exc:
            faults[key] = exc.fault
    return ProcessReading(None if _holders_unknown(faults) else merge_processes(found), faults)


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


def _holders_unknown(faults: Mapping[str, Fault]) -> bool:
    failed_mps = READING_MPS in faults and faults[READING_MPS].kind is FaultKind.FAILED
    scrambled = any(fault.error == "IMPOSSIBLE_PID" for fault in faults.values())
    return READING_COMPUTE in faults or failed_mps or scrambled


def _read_list(handle: Any, kind: ProcessType, name: str, pid_max: int) -> list[GpuProcess]:
    entries = _list(name, handle)
    _check_pids(entries, name, pid_max)
    return [GpuProcess(int(entry.pid), kind, _memory_mb(entry.usedGpuMemory)) for entry in entries]


def _list(name: str, handle: Any) -> Any:
    """The entries of the list, from the function's version 3, or 2 on drivers before 510: both fill the same struct."""
    try:
        return call(name, handle)
    except CallFailed as exc:
        if exc.fault.error != FUNCTION_NOT_FOUND:
            raise
    return call(f"{name}_v2", handle)


def _check_pids(entries: Sequence[Any], name: str, pid_max: int) -> None:
    wrong = [int(entry.pid) for entry in entries if not 0 < int(entry.pid) <= pid_max]
    if wrong:
        raise failure(name, "IMPOSSIBLE_PID", f"pid {wrong[0]}: nvidia-ml-py does not fit this driver's process list")


def _memory_mb(used_bytes: Optional[int]) -> Optional[int]:
    if used_bytes is None or used_bytes >= _UNBELIEVABLE_BYTES:
        return None
    return bytes_to_mb(int(used_bytes))
