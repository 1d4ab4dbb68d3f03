"""The words of the board's contract for what went wrong. Pure."""

from __future__ import annotations

from gua.model import (
    READING_COMPUTE,
    READING_GRAPHICS,
    READING_MPS,
    CardReading,
    Fault,
    FaultKind,
    LostSlot,
    Reason,
    Tick,
    TickStatus,
)
from gua.observation import NVML_INIT_FAILED, PROCESS_LIST_UNAVAILABLE

UTILIZATION_UNAVAILABLE = "utilization_unavailable"
MEMORY_UNAVAILABLE = "memory_unavailable"
CARD_LOST = "card_lost"
DRIVER_MISMATCH = "driver_mismatch"
NVML_UNRESPONSIVE = "nvml_unresponsive"

_LISTS = (READING_COMPUTE, READING_MPS, READING_GRAPHICS)


def broken_code(tick: Tick) -> str:
    """Why nothing could be collected at all."""
    if tick.status is TickStatus.UNRESPONSIVE:
        return NVML_UNRESPONSIVE
    return NVML_INIT_FAILED if tick.fault is None else _driver_code(tick.fault)


def card_codes(card: CardReading) -> list[str]:
    """What the board must know of a card whose figures do not tell it."""
    if card.absent is not None:
        return [_absence(card.absent)]
    codes = []
    if card.util_pct is None:
        codes.append(UTILIZATION_UNAVAILABLE)
    if card.memory_used_mb is None or not has_size(card):
        codes.append(MEMORY_UNAVAILABLE)
    if card.processes is None or any(_failed(card, name) for name in _LISTS):
        codes.append(PROCESS_LIST_UNAVAILABLE)
    return codes


def has_size(card: CardReading) -> bool:
    """Whether the size of its memory is known; the contract tells no card without."""
    return card.memory_total_mb is not None and card.memory_total_mb > 0


def slot_code(slot: LostSlot) -> str:
    """The same for a card that NVML counts and that nobody has ever seen."""
    return _absence(slot.reason)


def _absence(reason: Reason) -> str:
    return {Reason.UNRESPONSIVE: NVML_UNRESPONSIVE, Reason.DRIVER: NVML_INIT_FAILED}.get(reason, CARD_LOST)


def _driver_code(fault: Fault) -> str:
    return DRIVER_MISMATCH if fault.error == "LIB_RM_VERSION_MISMATCH" else NVML_INIT_FAILED


def _failed(card: CardReading, name: str) -> bool:
    fault = card.faults.get(name)
    return fault is not None and fault.kind is FaultKind.FAILED
