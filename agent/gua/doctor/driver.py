"""Checks of the driver, from one sample taken as the daemon takes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from gua.doctor.check import FAIL, OK, SKIP, WARN, Check
from gua.driver_files import HAS_ONE, MISMATCH, REMOVED, SAMPLES_ON, DriverFiles
from gua.model import (
    READING_COMPUTE,
    READING_MEMORY,
    READING_UTIL,
    CardReading,
    Fault,
    FaultKind,
    KnownDevice,
    LostSlot,
    MemorySource,
    Snapshot,
)
from gua.reconcile import reconcile
from gua.text import shown

_REBOOT = "reboot, or stop what uses the cards and reload the nvidia kernel modules"
# What helps against the errors that stop NVML as a whole; the names are NVML's.
_CURES = {
    MISMATCH: _REBOOT,
    "DRIVER_NOT_LOADED": "load the driver (`modprobe nvidia`), or look in `dmesg` why it does not load",
    REMOVED: "install the NVIDIA driver's libnvidia-ml.so.1",
    "NO_PERMISSION": "give this user the right to use /dev/nvidia*",
}


_PAUSED = "PAUSED"


def left_alone(why: str) -> Snapshot:
    """What there is instead of a sample while the driver must not be opened."""
    return Snapshot(fault=Fault("gua.doctor", _PAUSED, FaultKind.UNSUPPORTED, why))


def is_left_alone(snapshot: Snapshot) -> bool:
    """Whether that is so."""
    return snapshot.fault is not None and snapshot.fault.error == _PAUSED


def check_nvml(
    snapshot: Snapshot, known: Sequence[KnownDevice], *, gpu_less: bool, ticked: Optional[str] = None
) -> Check:
    """Whether NVML answers, and for every card. known: the cards that this host's history expects.

    ticked: see `check_driver_match`.
    """
    if snapshot.unresponsive:
        cure = "look in `dmesg` for a hung driver; only a reboot frees a call that blocks in the kernel"
        why = "" if snapshot.fault is None else f": {shown(snapshot.fault.message, 200)}"
        return Check("nvml", FAIL, f"NVML does not answer{why}", cure)
    if is_left_alone(snapshot):
        return Check("nvml", SKIP, "the driver is left alone while sampling is paused")
    if snapshot.fault is not None:
        return _without_nvml(snapshot.fault, gpu_less=gpu_less, ticked=ticked)
    absent = _absent(snapshot, known)
    details = {
        "gpus": len(snapshot.cards),
        "driver_version": snapshot.driver_version,
        "nvml_version": snapshot.nvml_version,
        "absent": absent,
    }
    if absent:
        cure = "look for Xid messages in `dmesg`; reset the card or reboot"
        return Check("nvml", FAIL, "; ".join(absent), cure, details)
    if not snapshot.cards and not snapshot.mig_parents and not gpu_less:
        cure = "look in `dmesg` why the driver does not take the cards"
        return Check("nvml", FAIL, "NVML answers, but lists no card", cure, details)
    failing = [text for card in snapshot.cards for text in _failures(card)]
    if failing:
        cure = "look for Xid messages in `dmesg`; the other readings are recorded all the same"
        return Check("nvml", WARN, "; ".join(failing), cure, details)
    mute = [text for card in snapshot.cards for text in _not_told(card)]
    if mute:
        cure = "another driver or nvidia-ml-py may tell it; until then that time is recorded as unknown"
        return Check("nvml", WARN, f"{'; '.join(mute)}: what is idle there will be unknown", cure, details)
    return Check("nvml", OK, f"{len(snapshot.cards)} cards, driver {snapshot.driver_version or '-'}", None, details)


def _absent(snapshot: Snapshot, known: Sequence[KnownDevice]) -> list[str]:
    """One text for each card that should be there and is not, or cannot be opened."""
    reconciled = reconcile(snapshot, known)
    cards = [card for card in reconciled.cards if card.absent is not None]
    told = [f"{_place(card)}, {card.uuid}: {_why_absent(card)}" for card in cards]
    # A slot that belongs to no known card has hardly more than its index
    return told + [f"card {_named(slot)}: {_error(slot.fault)}" for slot in reconciled.strangers]


def _named(slot: LostSlot) -> str:
    return str(slot.index) if slot.uuid is None else f"{slot.index}, {slot.uuid}"


def _why_absent(card: CardReading) -> str:
    # Of a card that was lost while it was read, the last call says so
    faults = [*card.faults.values()]
    return _error(faults[-1]) if faults else "missing, NVML does not list it"


def _error(fault: Fault) -> str:
    return f"{fault.call} does not return in time" if fault.error == "NO_ANSWER" else fault.error


def _place(card: CardReading) -> str:
    return f"card {'-' if card.index is None else card.index} at {card.pci_bus_id or '-'}"


def _without_nvml(fault: Fault, *, gpu_less: bool, ticked: Optional[str]) -> Check:
    if gpu_less:
        return Check("nvml", SKIP, "no NVIDIA device, so nothing to ask", None, {"gpus": 0})
    summary = f"NVML cannot be used: {fault.error}: {shown(fault.message, 200)}"
    if fault.error == MISMATCH and ticked is not None:
        summary += f"; the running daemon ({ticked}) samples on, see driver_match"
    if fault.error == REMOVED and ticked is not None:
        summary += f"; the running daemon ({ticked}) {HAS_ONE}"
    cure = _CURES.get(fault.error, "try `nvidia-smi`; look in `dmesg`")
    return Check("nvml", FAIL, summary, cure, {"error": fault.error, "call": fault.call})


def _failures(card: CardReading) -> list[str]:
    failed = sorted(f"{reading} {f.error}" for reading, f in card.faults.items() if f.kind is FaultKind.FAILED)
    return [f"{_place(card)}: {', '.join(failed)}"] if failed else []


def _not_told(card: CardReading) -> list[str]:
    """What this hardware or driver never says, though no idle card can be told from a held one without it."""
    needed = {READING_COMPUTE}
    # An instance has no utilisation of its own where there are no counters: that is told with its state
    needed |= {READING_UTIL} if card.mig is None else set()
    needed |= {READING_MEMORY} if card.memory_source is not MemorySource.UNIFIED else set()
    faults = {key: card.faults[key] for key in sorted(needed & card.faults.keys())}
    told = [f"{key} {fault.error}" for key, fault in faults.items() if fault.kind is FaultKind.UNSUPPORTED]
    return [f"{_place(card)}: {', '.join(told)}"] if told else []


def check_driver_match(
    module: Optional[str], snapshot: Snapshot, library: Optional[str] = None, *, ticked: Optional[str] = None
) -> Check:
    """The kernel module's version against the library's: after an upgrade they differ until a reboot.

    module: see `read_module_version`. library: what the library's file says, known also where NVML cannot start; of
    one that has started the driver's own answer is that of the module. ticked: of a daemon that samples well all the
    same, by the library loaded before, its last tick.
    """
    files = DriverFiles(module, library or snapshot.driver_version)
    details = {"kernel_module": files.module, "library": files.library}
    refused = snapshot.fault is not None and snapshot.fault.error == MISMATCH
    if not refused and (files.module is None or files.library is None):
        return Check("driver_match", SKIP, "no two versions to compare", None, details)
    if refused or files.differ:
        told = "" if ticked is None else f": the running daemon ({ticked}) {SAMPLES_ON}"
        return Check("driver_match", FAIL, f"{files}{told}", _REBOOT, details)
    return Check("driver_match", OK, f"module and library are both {module}", None, details)
