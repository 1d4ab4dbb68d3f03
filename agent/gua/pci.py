"""NVIDIA GPUs as the PCI bus shows them: what should be there, whatever the driver says."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from gua.model import CardReading

_NVIDIA_VENDOR = "0x10de"
# VGA and 3D controllers; audio functions, USB controllers and bridges of the same vendor are no cards.
_DISPLAY_CLASSES = ("0x0300", "0x0302")


@dataclass(frozen=True)
class PciDevice:
    """One NVIDIA display-class device. address: `0000:3b:00.0`. driver: the kernel driver bound to it, or None."""

    address: str
    driver: Optional[str]


def sysfs_root(environ: Mapping[str, str] = os.environ) -> Path:
    """Where sysfs is: `GUA_SYSFS_ROOT` or `/sys`."""
    return Path(environ.get("GUA_SYSFS_ROOT") or "/sys")


def read_nvidia_devices(root: Path) -> Optional[tuple[PciDevice, ...]]:
    """The NVIDIA cards on the PCI bus in address order; None when this host shows no PCI bus at all.

    Virtual functions of a card split for virtual machines are left out: they are not this host's cards.
    """
    try:
        entries = sorted((root / "bus/pci/devices").iterdir())
    except OSError:
        return None
    return tuple(PciDevice(entry.name, _driver(entry)) for entry in entries if _is_nvidia_card(entry))


def _is_nvidia_card(entry: Path) -> bool:
    return (
        _read(entry / "vendor") == _NVIDIA_VENDOR
        and _read(entry / "class").startswith(_DISPLAY_CLASSES)
        and not (entry / "physfn").exists()
    )


def _driver(entry: Path) -> Optional[str]:
    try:
        return os.path.basename(os.readlink(entry / "driver"))
    except OSError:
        return None


def _read(path: Path) -> str:
    # A device may leave the bus between listing and reading: then it simply is no card.
    try:
        return path.read_text(encoding="ascii", errors="replace").strip().lower()
    except OSError:
        return ""


def is_gpu_less(devices: Optional[Sequence[PciDevice]], sysfs: Path, procfs: Path) -> bool:
    """Whether this host has no NVIDIA card: none on its bus (or it has no bus), and no driver loaded for one.

    A quiet, valid state; a card without a working driver is not, nor a bus that is hidden from us. Trust it only where
    NVML has no card either. devices: what `read_nvidia_devices` gave.
    """
    looked = devices is not None or _has_no_bus(sysfs)
    return looked and not devices and not (procfs / "driver/nvidia/version").exists()


def _has_no_bus(sysfs: Path) -> bool:
    """Some boards have none; without sysfs, or the right to look into it, nobody knows."""
    return os.path.isdir(sysfs / "bus") and not os.path.lexists(sysfs / "bus/pci")


def missing_on_nvml(
    devices: Iterable[PciDevice], cards: Iterable[CardReading], mig_parents: Iterable[str], strangers: int
) -> tuple[PciDevice, ...]:
    """The devices on the bus that NVML does not list and no card explains, in their order. Pure.

    cards: those that answer and those known to be absent, whose loss is told already. mig_parents: see
    `gua.model.Snapshot`. strangers: how many slots NVML counts and cannot open. A device that is given to another
    driver (to a virtual machine) is not the host's. While there are as many cards without a known address as devices
    without a card, nothing is missing: they are probably the same.
    """
    told = tuple(cards)
    explained = {normal_address(card.pci_bus_id) for card in told if card.pci_bus_id is not None}
    unexplained = tuple(
        device
        for device in devices
        if device.driver in (None, "nvidia") and normal_address(device.address) not in explained
    )
    silent = {_board(card) for card in told if card.pci_bus_id is None}
    silent |= set(mig_parents) - {_board(card) for card in told}
    return unexplained if len(unexplained) > len(silent) + strangers else ()


def _board(card: CardReading) -> str:
    return card.uuid if card.mig is None else card.mig.parent_uuid


def normal_address(address: str) -> str:
    """A PCI address as sysfs writes it: NVML says `00000000:3B:00.0` for `0000:3b:00.0`. Pure."""
    domain, _, rest = address.lower().partition(":")
    return f"{domain[-4:].rjust(4, '0')}:{rest}"
