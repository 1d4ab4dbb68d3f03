"""What the PCI bus says beside NVML: whether there is any card at all, and whether one is there that NVML hides."""

from __future__ import annotations

from pathlib import Path
from typing import Optional, Protocol

from gua.clock import Clock
from gua.model import Tick, TickStatus
from gua.pci import is_gpu_less, missing_on_nvml, read_nvidia_devices

# Reading the bus costs as much as a tick; a card that drops off it is told by NVML's own list at once.
_REPEAT_S = 600.0


class Bus(Protocol):
    def has_no_gpu(self) -> bool:
        """Whether this host has no card. Asked when a tick has none, and none was ever known."""
        ...

    def troubles(self, tick: Tick) -> frozenset[str]:
        """One line for each device that NVML should list and does not."""
        ...


class PciBus:
    """This host's bus, looked at once in ten minutes, and when the number of cards in a tick changed."""

    def __init__(self, sysfs: Path, procfs: Path, clock: Clock) -> None:
        self._sysfs, self._procfs, self._clock = sysfs, procfs, clock
        self._looked: Optional[tuple[float, int]] = None  # when, and at how many cards
        self._troubles: frozenset[str] = frozenset()

    def has_no_gpu(self) -> bool:
        return is_gpu_less(read_nvidia_devices(self._sysfs), self._sysfs, self._procfs)

    def troubles(self, tick: Tick) -> frozenset[str]:
        if tick.status not in (TickStatus.OK, TickStatus.PARTIAL):
            return self._troubles
        now_s, cards = self._clock.monotonic_s(), len(tick.cards)
        if self._looked is None or self._looked[1] != cards or now_s - self._looked[0] >= _REPEAT_S:
            self._looked = now_s, cards
            self._troubles = self._look(tick)
        return self._troubles

    def _look(self, tick: Tick) -> frozenset[str]:
        missing = missing_on_nvml(
            read_nvidia_devices(self._sysfs) or (),
            [card.reading for card in tick.cards],
            tick.mig_parents,
            len(tick.strangers),
        )
        return frozenset(
            f"NVML does not list the card at {device.address}: look for Xid messages in `dmesg`; reset or reboot"
            for device in missing
        )


class MadeUpBus:
    """The bus of a made-up host: nothing is missing."""

    def has_no_gpu(self) -> bool:
        return False

    def troubles(self, tick: Tick) -> frozenset[str]:
        return frozenset()
