"""Readings that may fail one by one: what fails leaves its fault and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, Optional, TypeVar

from gua.model import Fault
from gua.nvml.bindings import GPU_IS_LOST, CallFailed

Value = TypeVar("Value")

_NONE: Mapping[str, Fault] = {}


class Attempts:
    """Collects, under the reading's key, the fault of every reading that did not come."""

    def __init__(self, faults: Mapping[str, Fault] = _NONE) -> None:
        self.faults = dict(faults)

    def take(self, key: str, read: Callable[..., Value], *args: Any, **limits: int) -> Optional[Value]:
        """What `read` gives, or None with its fault kept."""
        try:
            return read(*args, **limits)
        except CallFailed as exc:
            self.faults[key] = exc.fault
            return None

    def note(self, key: str, fault: Optional[Fault]) -> None:
        """Keep a fault that was met otherwise, if there was one."""
        if fault is not None:
            self.faults[key] = fault

    def say_lost(self, key: str) -> bool:
        return key in self.faults and self.faults[key].error == GPU_IS_LOST
