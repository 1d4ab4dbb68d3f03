"""All checks, and the document `gua.doctor/1` they make."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gua.clock import Clock
from gua.collect import Sampler
from gua.doctor import database, driver, host
from gua.doctor.check import FAIL, SEVERITY, Check
from gua.host import procfs_root
from gua.identity.proc import ProcFs
from gua.location import Location
from gua.pci import is_gpu_less, read_nvidia_devices, sysfs_root
from gua.units import to_iso

SCHEMA = "gua.doctor/1"


def run_doctor(
    *, sampler: Sampler, clock: Clock, location: Location, trust_pid_namespace: bool, dev: Path = Path("/dev")
) -> dict[str, Any]:
    """Look at everything, change nothing, and answer worst first.

    sampler: asked once; its deadline bounds the whole, and it is closed here. Ready means that no check failed.
    """
    procfs = procfs_root()
    devices = read_nvidia_devices(sysfs_root())
    try:
        snapshot = sampler.sample()
    finally:
        sampler.close()
    history = database.read_history(location.path)
    # A card that died in a reboot is on no bus any more, and loads no driver: the history alone knows of it
    gpu_less = is_gpu_less(devices, procfs) and not history.known
    checks = [
        host.check_os(),
        host.check_device_files(dev, gpu_less=gpu_less, nvml_works=bool(snapshot.cards)),
        host.check_pci(devices, snapshot),
        host.check_nvidia_smi(gpu_less=gpu_less),
        driver.check_nvml(snapshot, history.known, gpu_less=gpu_less),
        driver.check_driver_match(procfs, snapshot),
        driver.check_persistence_mode(),
        host.check_hidepid(_mountinfo(procfs), groups=os.getgroups(), root=os.geteuid() == 0),
        host.check_pid_namespace(ProcFs(procfs), trusted=trust_pid_namespace),
        database.check_database(location, history),
        database.check_database_rights(location.path),
        database.check_database_filesystem(location.path),
        database.check_daemon(location.path, history, now_ms=clock.now_ms(), gpu_less=gpu_less),
        database.check_cloud(),
    ]
    return to_document(checks, clock.now_ms())


def to_document(checks: Sequence[Check], now_ms: int) -> dict[str, Any]:
    """The checks as `gua.doctor/1`, worst first, else in their order. Pure."""
    return {
        "schema": SCHEMA,
        "generated_at": to_iso(now_ms),
        "ready": all(check.status != FAIL for check in checks),
        "checks": [
            {
                "id": check.id,
                "status": check.status,
                "summary": check.summary,
                "cure": check.cure,
                "details": dict(check.details),
            }
            for check in sorted(checks, key=lambda check: SEVERITY.index(check.status))
        ],
    }


def _mountinfo(procfs: Path) -> str:
    try:
        return (procfs / "self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
