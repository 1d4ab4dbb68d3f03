"""Fixtures every test may use."""

from tests.nvml_stub.fixture import nvml_library, nvml_scene

__all__ = ["nvml_library", "nvml_scene"]
