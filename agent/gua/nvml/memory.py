"""A card's memory: total, used, and what "used" means there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Optional

from gua.model import Fault, FaultKind, MemorySource
from gua.nvml.bindings import MEMORY_V2, CallFailed, believable, call, failure
from gua.units import bytes_to_mb

_CALL = "nvmlDeviceGetMemoryInfo"

# Boards whose GPU has no memory of its own: DGX Spark (GB10), where both calls answer NOT_SUPPORTED
# (https://github.com/XuehaiPan/nvitop/pull/208) or zeros (https://github.com/Syllo/nvtop/pull/411), and Jetson.
UNIFIED_BOARDS = re.compile(r"\b(GB10|Thor|Orin|Tegra)\b", re.IGNORECASE)

# The v2 call is not there, or not for this card; v1 may be.
_TRY_V1 = frozenset({"FUNCTION_NOT_FOUND", "NOT_SUPPORTED", "ARGUMENT_VERSION_MISMATCH", "INVALID_ARGUMENT"})
_LARGEST = 2**63 - 1  # SQLite's largest integer; NVML says 2^64-1 for "not available"


@dataclass(frozen=True)
class MemoryReading:
    """MiB. Without a number `fault` says why; source UNIFIED then means that there is none by design."""

    total_mb: Optional[int] = None
    used_mb: Optional[int] = None
    source: Optional[MemorySource] = None
    fault: Optional[Fault] = None


def read_memory(handle: Any, board: Optional[str]) -> MemoryReading:
    """Memory of one card or MIG instance; `board` is its name where known.

    v2 is asked first: its "used" leaves out what the driver reserves for itself, v1 counts that as used.
    Never raises for NVML trouble.
    """
    try:
        return _read_newest(handle)
    except CallFailed as exc:
        by_design = exc.fault.error == "NOT_SUPPORTED" and board is not None and UNIFIED_BOARDS.search(board)
        return MemoryReading(source=MemorySource.UNIFIED if by_design else None, fault=exc.fault)


def _read_newest(handle: Any) -> MemoryReading:
    try:
        return _measure(call(_CALL, handle, MEMORY_V2), MemorySource.V2)
    except CallFailed as exc:
        if exc.fault.error not in _TRY_V1:
            raise
    return _measure(call(_CALL, handle), MemorySource.V1)


def _measure(info: Any, source: MemorySource) -> MemoryReading:
    total = believable(_CALL, info.total, highest=_LARGEST)
    if total == 0:
        # A success without any memory is how a driver says that the board shares the host's.
        fault = Fault(_CALL, "ZERO_TOTAL", FaultKind.UNSUPPORTED, "the board has no memory of its own")
        return MemoryReading(source=MemorySource.UNIFIED, fault=fault)
    used = int(info.used)
    if not 0 <= used <= total:
        raise failure(_CALL, "IMPOSSIBLE_VALUE", f"{used} bytes used of {total}")
    return MemoryReading(bytes_to_mb(total), bytes_to_mb(used), source)
