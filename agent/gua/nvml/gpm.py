"""How busy a MIG instance was between two samples: from the GPM counters of Hopper and later cards.

Two snapshots of the counters make a figure. The older one is kept until the next sample, in memory of the driver's
library, and given back.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Optional

from gua.model import FIRST_SAMPLE, Fault, FaultKind
from gua.nvml.bindings import CallFailed, call, failure, make

_TAKE, _COMPUTE = "nvmlGpmMigSampleGet", "nvmlGpmMetricsGet"
_VERSION = 1  # NVML_GPM_METRICS_GET_VERSION
# Share of time in which anything ran, the figure of whole cards, and share of multiprocessors that were busy.
_GRAPHICS_UTIL, _SM_UTIL = 1, 2
_NOT_FOR_US = "NO_PERMISSION"


class GpmReader:
    """The older snapshot of every instance, and which cards have such counters. `forget` gives the memory back."""

    def __init__(self) -> None:
        self._supported: dict[str, bool] = {}
        self._before: dict[str, Any] = {}

    def read(self, card: Any, card_uuid: str, uuid: str, gpu_instance: int) -> int:
        """Percent of the time since the last read in which the instance was busy, rounded down.

        Raises CallFailed: of kind UNSUPPORTED where the card has no such counters, and on the first read.
        """
        self._check_supported(card, card_uuid)
        before = self._before.pop(uuid, None)
        try:
            now = self._before[uuid] = _take(card, gpu_instance)
            return _busy_pct(before, now)
        finally:
            if before is not None:
                _free(before)

    def forget(self, present: Collection[str] = ()) -> None:
        """Give back what is kept of instances that are not among these."""
        for uuid in [uuid for uuid in self._before if uuid not in present]:
            _free(self._before.pop(uuid))

    def _check_supported(self, card: Any, card_uuid: str) -> None:
        if card_uuid not in self._supported:
            self._supported[card_uuid] = bool(call("nvmlGpmQueryDeviceSupport", card).isSupportedDevice)
        if not self._supported[card_uuid]:
            raise failure("nvmlGpmQueryDeviceSupport", "NOT_SUPPORTED", "the card has no GPM counters")


def _take(card: Any, gpu_instance: int) -> Any:
    sample = call("nvmlGpmSampleAlloc")
    try:
        return call(_TAKE, card, gpu_instance, sample)
    except CallFailed as exc:
        _free(sample)
        raise _told(exc) from exc


def _busy_pct(before: Optional[Any], now: Any) -> int:
    if before is None:
        text = "activity of a MIG instance is known from the second sample on"
        raise CallFailed(Fault(_COMPUTE, FIRST_SAMPLE, FaultKind.UNSUPPORTED, text))
    asked = make("c_nvmlGpmMetricsGet_t")
    asked.version, asked.sample1, asked.sample2, asked.numMetrics = _VERSION, before, now, 2
    asked.metrics[0].metricId, asked.metrics[1].metricId = _GRAPHICS_UTIL, _SM_UTIL
    call(_COMPUTE, asked)
    values = [metric.value for metric in asked.metrics[:2] if metric.nvmlReturn == 0]
    if not values:
        raise failure(_COMPUTE, "NO_DATA", "the counters gave no figure for this interval")
    # The larger, so that no work is called idle because one counter does not count it.
    if not all(0 <= value <= 100.5 for value in values):  # counters are read one after the other: 100.1 happens
        raise failure(_COMPUTE, "IMPOSSIBLE_VALUE", f"the driver answered {max(values)}")
    return min(100, int(max(values)))


def _told(exc: CallFailed) -> CallFailed:
    """Counters that this user may not read are no fault of the card."""
    fault = exc.fault
    if fault.error != _NOT_FOR_US:
        return exc
    return CallFailed(Fault(fault.call, fault.error, FaultKind.UNSUPPORTED, fault.message))


def _free(sample: Any) -> None:
    try:
        call("nvmlGpmSampleFree", sample)
    except CallFailed:
        return  # the library ends with this process
