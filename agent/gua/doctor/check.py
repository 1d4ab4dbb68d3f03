"""What one check of the doctor says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

OK, WARN, FAIL, SKIP = "ok", "warn", "fail", "skip"

# Every check and its question, in the order they are told among equals. The ids are a contract: docs/doctor.md.
QUESTIONS: Mapping[str, str] = {
    "os": "is this a Linux that the agent runs on",
    "device_files": "are the driver's device files there, and may this user use them",
    "sandbox": "does the daemon's unit, or a container, hide device files or other people's processes",
    "pci": "does NVML have every card that is on the PCI bus",
    "nvidia_smi": "is the vendor's tool there, and of the driver's version",
    "nvml": "does NVML answer, for every card that this host ever had",
    "driver_match": "are the kernel module and the library of one version",
    "bindings": "does nvidia-ml-py read this driver's process lists right",
    "mig": "has every card in MIG mode instances, and does no change wait for a reset",
    "persistence_mode": "does the driver stay loaded while nobody uses a card",
    "hidepid": "does /proc show this user the processes of others",
    "pid_namespace": "do process ids here mean what they mean to the driver",
    "stuck_reading": "does no card read 0 % for a day while its processes work",
    "clock": "is the clock set, and not behind the history",
    "database": "is the database there, and may it be read",
    "database_integrity": "is the database whole",
    "database_rights": "may only its owner write the database and beside it",
    "database_filesystem": "is it on a local disk, with room left",
    "daemon": "is a daemon sampling into it, and how did its newest tick go",
    "cloud": "is this host enrolled with a board, and does that take what the daemon samples",
}

# Worst first; a check that was left out tells least.
SEVERITY = (FAIL, WARN, OK, SKIP)


@dataclass(frozen=True)
class Check:
    """id: stable, a contract. status: one of SEVERITY. summary: one line. cure: what to do, None when nothing is.

    details: facts for programs.
    """

    id: str
    status: str
    summary: str
    cure: Optional[str] = None
    details: Mapping[str, Any] = field(default_factory=dict)
