"""What each process of a card used of its multiprocessors since the previous sample."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Optional

from gua.model import Fault, FaultKind, GpuProcess
from gua.nvml.bindings import CallFailed, call_until_stable
from gua.nvml.watermark import Watermark

_CALL = "nvmlDeviceGetProcessUtilization"
# No sample is newer than those seen: nobody used the card, or the driver took none. SUCCESS: nvidia-ml-py raises it
# when there is no room to ask for, that is, no process.
_NO_SAMPLES = frozenset({"NOT_FOUND", "SUCCESS"})
# Some drivers tell this to root alone. That is their answer, not a fault.
_NOT_FOR_US = "NO_PERMISSION"


class ProcessUseReader:
    """Remembers, by UUID of the card, which samples it has seen."""

    def __init__(self) -> None:
        self._marks: dict[str, Watermark] = defaultdict(Watermark)

    def read(
        self, handle: Any, uuid: str, processes: tuple[GpuProcess, ...], *, nothing_ran: bool
    ) -> tuple[tuple[GpuProcess, ...], Optional[Fault]]:
        """The processes with their sm_util_pct, and why that could not be had where it should have been.

        nothing_ran: the card itself did nothing all the time. Then nobody used it, though the driver lists no sample.
        """
        try:
            samples = call_until_stable(_CALL, handle, self._marks[uuid].since_us)
        except CallFailed as exc:
            if exc.fault.error not in _NO_SAMPLES:
                return processes, _worth_telling(exc.fault)
            samples = []
        means = mean_use(self._marks[uuid].take(samples))
        if not nothing_ran and all(mean is None for mean in means.values()):
            return processes, None
        # The driver lists those only that used the card: whoever is not in a list that has others used nothing.
        return tuple(replace(process, sm_util_pct=means.get(process.pid, 0.0)) for process in processes), None


def mean_use(samples: Iterable[Any]) -> Mapping[int, Optional[float]]:
    """pid -> mean percent over that process's samples, impossible ones left out; None where all are. Pure."""
    used: dict[int, list[int]] = defaultdict(list)
    for sample in samples:
        used[int(sample.pid)] += [int(sample.smUtil)] if 0 <= sample.smUtil <= 100 else []
    return {pid: sum(values) / len(values) if values else None for pid, values in used.items()}


def _worth_telling(fault: Fault) -> Optional[Fault]:
    return None if fault.kind is FaultKind.UNSUPPORTED or fault.error == _NOT_FOR_US else fault
