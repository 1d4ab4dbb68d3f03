"""Cards and MIG instances that are not touched, because a call on them did not return in time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Optional

from gua.model import Fault, FaultKind, LostSlot, Reason

# Place (see gua.nvml.progress.Position) -> the call that hung there
LeaveOut = Mapping[str, str]
NOTHING: LeaveOut = {}


def left_out(index: int, hanging_call: str, uuid: Optional[str] = None) -> LostSlot:
    """What is told of one that is not touched. index: its card's."""
    text = f"{hanging_call} did not return in time; the card is left out, and tried again later"
    fault = Fault(hanging_call, "NO_ANSWER", FaultKind.FAILED, text)
    return LostSlot(index, fault, uuid, Reason.UNRESPONSIVE)
