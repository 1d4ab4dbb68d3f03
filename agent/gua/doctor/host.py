"""Checks of the machine: system, device files, PCI bus, what /proc shows of other users. All read-only."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Optional

from gua.clock import SET_CLOCK_MS
from gua.doctor.check import FAIL, OK, SKIP, WARN, Check
from gua.identity.proc import ProcFs
from gua.model import Snapshot
from gua.pci import PciDevice, normal_address
from gua.units import format_duration, to_iso

# The first line of its help: `NVIDIA System Management Interface -- v570.86.15`
_SMI_VERSION = re.compile(r"System Management Interface\s+--\s+v(\d+\.\d+[\d.]*)")
# Clocks that are kept set are stepped by less.
_CLOCK_TOLERANCE_MS = 300_000


def check_os(etc: Path = Path("/etc")) -> Check:
    """A Linux with a Python we run on; the rest of the agent reads its /proc and /sys."""
    name = _pretty_name(etc / "os-release") or platform.system()
    details = {"system": platform.system(), "release": platform.release(), "name": name}
    if platform.system() != "Linux":
        return Check("os", FAIL, f"{name} is no Linux", "run the agent on a Linux host", details)
    return Check("os", OK, f"{name}, Linux {platform.release()}, Python {platform.python_version()}", None, details)


def _pretty_name(path: Path) -> Optional[str]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return next((line.split("=", 1)[1].strip('"') for line in lines if line.startswith("PRETTY_NAME=")), None)


def check_device_files(dev: Path, *, gpu_less: bool, nvml_works: bool) -> Check:
    """The driver's device files, and whether this user may use them."""
    files = sorted(path for path in dev.glob("nvidia*") if path.name == "nvidiactl" or path.name[6:].isdigit())
    details = {"files": [str(path) for path in files]}
    if gpu_less and not files:
        return Check("device_files", SKIP, "no NVIDIA device, so no device files", None, details)
    if dev / "nvidiactl" not in files:
        # Libraries that answer without device files exist (test rigs): then nothing is broken for us
        summary, cure = f"{dev}/nvidiactl is not there", "load the driver: run `nvidia-modprobe -u -c=0` as root"
        return Check("device_files", WARN if nvml_works else FAIL, summary, cure, details)
    closed = [str(path) for path in files if not os.access(path, os.R_OK | os.W_OK)]
    if closed:
        summary = f"no right to use {', '.join(closed)}"
        return Check("device_files", FAIL, summary, "add this user to the group that owns these files", details)
    return Check("device_files", OK, f"{len(files)} device files, all usable", None, details)


def check_pci(devices: Optional[Sequence[PciDevice]], snapshot: Snapshot) -> Check:
    """Cards on the bus against cards of NVML: one that fell off is named by its address."""
    seen = {normal_address(card.pci_bus_id) for card in snapshot.cards if card.pci_bus_id is not None}
    if devices is None:
        return Check("pci", SKIP, "this host shows no PCI bus", None, {"gpus": None})
    details = {"gpus": len(devices), "addresses": [device.address for device in devices]}
    if not devices:
        told = f", though NVML has {len(seen)} cards" if seen else ""
        return Check("pci", WARN, f"no NVIDIA device on the PCI bus{told}", None, details)
    ours = [device for device in devices if device.driver in (None, "nvidia")]
    absent = [device.address for device in ours if normal_address(device.address) not in seen]
    if snapshot.cards and len(absent) > _without_address(snapshot):
        summary = f"NVML has {len(ours) - len(absent)} of {len(ours)} cards: {', '.join(absent)} absent"
        return Check("pci", FAIL, summary, "look for Xid messages in `dmesg`; reset or reboot", details)
    elsewhere = "" if len(ours) == len(devices) else f", {len(devices) - len(ours)} given to another driver"
    return Check("pci", OK, f"{len(devices)} NVIDIA devices on the PCI bus{elsewhere}", None, details)


def _without_address(snapshot: Snapshot) -> int:
    """How many cards NVML has whose address it did not tell: a failed reading, or MIG on without an instance."""
    split = {card.mig.parent_uuid for card in snapshot.cards if card.mig is not None}
    silent = {card.mig.parent_uuid if card.mig else card.uuid for card in snapshot.cards if card.pci_bus_id is None}
    return len(silent) + len(set(snapshot.mig_parents) - split)


def find_nvidia_smi() -> Optional[str]:
    """Where the vendor's tool is; None when it is not on PATH."""
    return shutil.which("nvidia-smi")


def check_nvidia_smi(found: Optional[str], told: str, module: Optional[str], *, gpu_less: bool) -> Check:
    """The vendor's own tool. The agent does without; people who look into a fault do not.

    told: what `nvidia-smi -h` printed, which asks no driver; empty when it did not answer.
    """
    if found is None and gpu_less:
        return Check("nvidia_smi", SKIP, "no NVIDIA device, so no nvidia-smi")
    if found is None:
        cure = "install the driver's utilities, to look into faults"
        return Check("nvidia_smi", WARN, "nvidia-smi is not on PATH", cure, {"path": None, "version": None})
    match = _SMI_VERSION.search(told)
    version = None if match is None else match.group(1)
    details = {"path": found, "version": version}
    if version is not None and module is not None and version != module:
        summary = f"{found} is version {version}, the kernel module {module}"
        return Check("nvidia_smi", WARN, summary, "install the utilities of the driver's version", details)
    return Check("nvidia_smi", OK, f"{found}, version {version or 'not told'}", None, details)


def check_clock(now_ms: int, newest_tick_ms: Optional[int]) -> Check:
    """Whether the clock was set at all, and whether it is behind what the history already tells."""
    details = {"now": to_iso(now_ms), "newest_tick_at": None if newest_tick_ms is None else to_iso(newest_tick_ms)}
    cure = "set it, and keep it set: `timedatectl set-ntp true`"
    if now_ms < SET_CLOCK_MS:
        return Check("clock", FAIL, f"the clock says {to_iso(now_ms)}: it was never set", cure, details)
    behind_ms = 0 if newest_tick_ms is None else newest_tick_ms - now_ms
    if behind_ms > _CLOCK_TOLERANCE_MS:
        summary = f"the clock is {format_duration(behind_ms)} behind the newest tick of the history"
        return Check("clock", WARN, summary, cure, details)
    return Check("clock", OK, f"the clock is set: {to_iso(now_ms)}", None, details)


def check_hidepid(mountinfo: str, *, groups: Sequence[int], root: bool) -> Check:
    """Whether /proc hides other users' processes from us; then nobody can be named. mountinfo: the table's text."""
    options = _proc_options(mountinfo)
    mode = options.get("hidepid", "0")
    details = {"hidepid": mode}
    if mode in ("0", "off"):
        return Check("hidepid", OK, "/proc shows every process", None, details)
    group = options.get("gid", "0")
    if root or (group.isdigit() and int(group) in groups and group != "0"):
        return Check("hidepid", OK, f"/proc hides processes (hidepid={mode}), but not from this user", None, details)
    cure = "mount /proc with gid=GROUP and put the agent's user into that group"
    return Check("hidepid", WARN, f"/proc hides processes (hidepid={mode}): users will be unknown", cure, details)


def _proc_options(mountinfo: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        if left.split(" ")[4:5] == ["/proc"] and right.startswith("proc "):
            options = dict(part.partition("=")[::2] for part in right.split(" ")[-1].split(","))
    return options


def check_pid_namespace(procfs: ProcFs, *, trusted: bool) -> Check:
    """Whether the pids that NVML lists are ours too."""
    if not procfs.is_foreign_namespace():
        return Check("pid_namespace", OK, "process ids are the host's own", None, {"foreign": False})
    details = {"foreign": True, "trusted": trusted}
    if trusted:
        return Check("pid_namespace", OK, "a PID namespace of its own, trusted by the settings", None, details)
    summary = "in a PID namespace of its own: process ids mean nothing here, users will be unknown"
    return Check(
        "pid_namespace", WARN, summary, "run the agent on the host itself, or the container with --pid=host", details
    )
