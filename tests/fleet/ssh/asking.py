"""One host asked by a sweep."""

from __future__ import annotations

from gua_fleet.model import Host, HostResult
from gua_fleet.probes.doctor import DOCTOR_PROBE
from gua_fleet.ssh.settings import SweepSettings
from gua_fleet.ssh.sweep import sweep


def ask(target: Host, *, timeout_s: float = 60, **settings: object) -> HostResult:
    """What became of it. timeout_s: patience with a busy machine, unless the test is about it."""
    (result,) = sweep([target], DOCTOR_PROBE, SweepSettings(timeout_s=timeout_s, **settings))  # type: ignore[arg-type]
    return result
