"""How busy a card was since it was last read: from the samples that the driver keeps, else at a moment."""

from __future__ import annotations

import ctypes
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Optional

from gua.model import Fault, FaultKind, UtilSource
from gua.nvml.bindings import CallFailed, believable, call, call_until_stable, failure
from gua.nvml.watermark import Watermark, field_of

_POINT, _SAMPLES = "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetSamples"
_GPU_UTILIZATION = 1  # NVML_GPU_UTILIZATION_SAMPLES
# Member of nvmlValue_t by nvmlValueType_t
_SHORT = 6
_MEMBERS = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", _SHORT: "usVal"}


@dataclass(frozen=True)
class UtilReading:
    """Percent, whole, rounded down: 9.9 is not 10. max_pct and a mean only from SAMPLES.

    fault: why there are no samples though the card has them.
    """

    pct: int
    source: UtilSource
    max_pct: Optional[int] = None
    fault: Optional[Fault] = None


class UtilReader:
    """Remembers, by UUID, which samples it has seen."""

    def __init__(self) -> None:
        self._marks: dict[str, Watermark] = defaultdict(Watermark)

    def read(self, handle: Any, uuid: str) -> UtilReading:
        """Mean and maximum since the last read of this card; the point reading on the first, or without new samples.

        The driver keeps its last 15 to 100 seconds: of a longer interval that end is seen. Raises CallFailed.
        """
        fault = None
        try:
            values = self._read_new(handle, self._marks[uuid])
        except CallFailed as exc:
            values, fault = [], exc.fault if exc.fault.kind is FaultKind.FAILED else None
        if not values:
            return UtilReading(_read_point(handle), UtilSource.POINT, fault=fault)
        return UtilReading(int(sum(values) / len(values)), UtilSource.SAMPLES, int(max(values)))

    def _read_new(self, handle: Any, mark: Watermark) -> list[float]:
        try:
            kind, samples = call_until_stable(_SAMPLES, handle, _GPU_UTILIZATION, mark.since_us)
        except CallFailed as exc:
            if exc.fault.error != "NOT_FOUND":
                raise
            kind, samples = 1, []
        return [_percent(field_of(sample, "sampleValue"), kind) for sample in mark.take(samples)]


def _percent(value: Any, kind: int) -> float:
    number = getattr(value, _MEMBERS.get(kind, ""), None)
    if number is None and kind == _SHORT:  # old bindings have no such member; the bytes are there all the same
        number = ctypes.c_ushort.from_buffer_copy(value).value
    if number is None:
        raise failure(_SAMPLES, "IMPOSSIBLE_VALUE", f"the driver answered a sample of type {kind}")
    if not 0 <= number <= 100:  # also false for NaN
        raise failure(_SAMPLES, "IMPOSSIBLE_VALUE", f"the driver answered {number}")
    return float(number)


def _read_point(handle: Any) -> int:
    return believable(_POINT, call(_POINT, handle).gpu, highest=100)
