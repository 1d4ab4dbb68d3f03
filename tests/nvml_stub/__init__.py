"""A libnvidia-ml.so.1 without a GPU: see scene.h for what it is told, scene.py to tell it."""

from tests.nvml_stub.library import StubUnavailable, build
from tests.nvml_stub.scene import (
    GIB,
    MIB,
    Card,
    Counters,
    Delay,
    Error,
    Instance,
    Process,
    Samples,
    Scene,
    Use,
)

__all__ = [
    "GIB",
    "MIB",
    "Card",
    "Counters",
    "Delay",
    "Error",
    "Instance",
    "Process",
    "Samples",
    "Scene",
    "StubUnavailable",
    "Use",
    "build",
]
