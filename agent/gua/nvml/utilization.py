"""How busy a card was since it was last read: from the samples that the driver keeps, else at a moment."""

from __future__ import annotations

import ctypes
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Optional

from gua.model import SAMPLES_CONTRADICTED, Fault, FaultKind, UtilSource
from gua.nvml.bindings import CallFailed, believable, call, call_until_stable, failure
from gua.nvml.watermark import Watermark, field_of

_POINT, _SAMPLES = "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetSamples"
_GPU_UTILIZATION = 1  # NVML_GPU_UTILIZATION_SAMPLES
# Samples that are all 0 beside a point reading of this much tell another story, and that reading stands: to call a
# card idle that works is worse than the reverse. Once it may be a job that has just begun; a card of which it was true
# at so many readings, with no sample above 0 between them, has samples that say nothing.
_CLEAR_PCT = 10
_CONTRADICTIONS = 3
# Member of nvmlValue_t by nvmlValueType_t
_SHORT = 6
_MEMBERS = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", _SHORT: "usVal"}


@dataclass(frozen=True)
class UtilReading:
    """Percent, whole, rounded down: 9.9 is not 10. max_pct and a mean only from SAMPLES.

    fault: why there are no samples though the card has them, or why they are not believed.
    """

    pct: int
    source: UtilSource
    max_pct: Optional[int] = None
    fault: Optional[Fault] = None


class UtilReader:
    """Remembers, by UUID, which samples it has seen, and how often the point reading gave them the lie."""

    def __init__(self) -> None:
        self._marks: dict[str, Watermark] = defaultdict(Watermark)
        self._contradictions: dict[str, int] = defaultdict(int)

    def read(self, handle: Any, uuid: str) -> UtilReading:
        """Mean and maximum since the last read of this card; the point reading on the first, or without new samples.

        The driver keeps its last 15 to 100 seconds: of a longer interval that end is seen. Samples that are all 0
        count for nothing while the point reading is clearly not; after some of these, not before one of them is above
        0. Raises CallFailed.
        """
        fault = None
        try:
            values = self._read_new(handle, self._marks[uuid])
        except CallFailed as exc:
            values, fault = [], exc.fault if exc.fault.kind is FaultKind.FAILED else None
        if not values:
            return UtilReading(_read_point(handle), UtilSource.POINT, fault=fault)
        if max(values) == 0:
            return self._judge_nothing(handle, uuid)
        self._contradictions[uuid] = 0
        return UtilReading(int(sum(values) / len(values)), UtilSource.SAMPLES, int(max(values)))

    def _judge_nothing(self, handle: Any, uuid: str) -> UtilReading:
        """The reading where every new sample is 0: an idle card, or one whose samples are always so."""
        try:
            point_pct = _read_point(handle)
        except CallFailed:
            if self._contradictions[uuid] >= _CONTRADICTIONS:
                raise
            point_pct = 0  # no witness against them
        contradicted = point_pct >= _CLEAR_PCT
        self._contradictions[uuid] += contradicted
        if self._contradictions[uuid] >= _CONTRADICTIONS:
            return UtilReading(point_pct, UtilSource.POINT, fault=_not_believed(point_pct))
        return UtilReading(point_pct, UtilSource.POINT) if contradicted else UtilReading(0, UtilSource.SAMPLES, 0)

    def _read_new(self, handle: Any, mark: Watermark) -> list[float]:
        try:
            kind, samples = call_until_stable(_SAMPLES, handle, _GPU_UTILIZATION, mark.since_us)
        except CallFailed as exc:
            if exc.fault.error != "NOT_FOUND":
                raise
            kind, samples = 1, []
        return [_percent(field_of(sample, "sampleValue"), kind) for sample in mark.take(samples)]


def _not_believed(point_pct: int) -> Fault:
    """Not a failure: this driver's samples are worth nothing, and what is read instead is."""
    text = f"all samples are 0, though the card reads {point_pct} % now: the point reading is taken instead"
    return Fault(_SAMPLES, SAMPLES_CONTRADICTED, FaultKind.UNSUPPORTED, text)


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
