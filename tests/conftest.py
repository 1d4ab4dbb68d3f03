"""Fixtures every test may use, and which rooms of tests this Python leaves out."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Optional

import pytest
from hypothesis import HealthCheck, settings

from tests.nvml_stub.fixture import nvml_library, nvml_scene

__all__ = ["nvml_library", "nvml_scene"]

TESTS = Path(__file__).parent
# Rooms that import the controller or what its extra installs, down to their conftest.
CONTROLLER_ROOMS = ("ansible", "fleet", "lab")

# A shell lets what it runs in the background ignore these, and every process that a test starts would inherit it.
for _number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)


# How long an example takes says more of the machine than of the program.
settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# What lands is decided by the same examples each time; everywhere else they are new ones at each run, which is how what
# nobody thought of is found.
settings.register_profile("same-examples", settings.get_profile("any-machine"), derandomize=True)
settings.load_profile("same-examples" if os.environ.get("GUA_SAME_EXAMPLES") else "any-machine")


class LeftOut(pytest.Collector):
    """A room that is neither read nor run, and is listed as skipped with the reason."""

    def collect(self) -> list[pytest.Item]:
        pytest.skip(f"tests/{self.name}: the controller needs Python 3.10 or later, this is {sys.version.split()[0]}")


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> Optional[pytest.Collector]:
    """Leave the controller's rooms out on the agent's oldest Python, where its libraries cannot be installed."""
    if sys.version_info < (3, 10) and path.parent == TESTS and path.name in CONTROLLER_ROOMS:
        return LeftOut.from_parent(parent, name=path.name, path=path)
    return None
