"""The check of a card that reads exactly 0 % for a day while a process that holds it works.

A driver may serve the same reading for ever. A process that works on the CPU alone looks the same from outside, so the
check says what was seen, and does not judge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional

from gua.doctor.check import OK, SKIP, WARN, Check
from gua.model import State
from gua.text import shown
from gua.units import format_duration

if TYPE_CHECKING:
    from gua.clock import Clock
    from gua.store.devices import DeviceRow
    from gua.store.reader import HoldRow, StoreReader

LEAST_MS = 24 * 3_600_000
# What is looked at tick by tick; before that, the sums of the hold say that the card was never active.
LOOKED_AT_MS = 2 * LEAST_MS
# Mean of the process's life, in cores; a notebook that waits takes a thousandth.
LEAST_CORES = 0.5
# How much of its life it must have held the card: what it did before says nothing of the card.
_HELD_PART = 0.9
# The longest list of one host has a few dozen; this bounds a host gone wild.
_MOST_HOLDS = 1000
_LOOK_S = 1.0
_ID = "stuck_reading"

# CPU time in seconds of the process of that pid and start (clock ticks since boot), None where it is not there; and
# how long ago it started, in seconds.
CpuTime = Callable[[int, int], Optional[float]]
Age = Callable[[int], float]


@dataclass(frozen=True)
class Zero:
    """A hold of a card that never read anything but 0 %. process_key: see HoldRow. covered_ms: of such readings."""

    card: str
    uuid: str
    pid: int
    process: str
    process_key: str
    held_ms: int
    covered_ms: int


@dataclass(frozen=True)
class Zeroes:
    """whole: False of a history so large that not all of it was looked at in the first second."""

    found: tuple[Zero, ...] = ()
    whole: bool = True


def read_zeroes(reader: StoreReader, clock: Clock) -> Zeroes:
    """The holds of now, for a day or longer, of cards that read exactly 0 % at every tick of them."""
    now_ms, until_s = clock.now_ms(), clock.monotonic_s() + _LOOK_S
    devices = {device.id: device for device in reader.devices()}
    read_0 = {device for device, row in reader.now().items() if row.util_pct == 0}
    holds, count = reader.holds((now_ms - 1, now_ms), _MOST_HOLDS)
    whole = count <= len(holds)
    looked: dict[tuple[int, int], tuple[Optional[int], int]] = {}
    found = []
    for hold in holds:
        old = hold.until_ms is None and now_ms - hold.since_ms >= LEAST_MS
        if not old or hold.device not in read_0 or hold.state_ms[State.ACTIVE]:
            continue
        place = hold.device, max(hold.since_ms, now_ms - LOOKED_AT_MS)
        if place not in looked:
            if clock.monotonic_s() >= until_s:
                whole = False
                break
            looked[place] = reader.highest_util(hold.device, (place[1], now_ms + 1))
        highest_pct, covered_ms = looked[place]
        if highest_pct == 0 and covered_ms >= LEAST_MS:
            found.append(_zero(hold, devices[hold.device], now_ms, covered_ms))
    return Zeroes(tuple(found), whole)


def _zero(hold: HoldRow, device: DeviceRow, now_ms: int, covered_ms: int) -> Zero:
    card = f"card {'-' if device.index is None else device.index} ({device.name or '-'}, {device.uuid})"
    held_ms = now_ms - hold.since_ms
    return Zero(card, device.uuid, hold.pid, hold.process, hold.process_key, held_ms, covered_ms)


def check_stuck_reading(zeroes: Optional[Zeroes], boot_id: str, cpu_s: CpuTime, age_s: Age, *, blind: bool) -> Check:
    """Whether a process works that holds a card which reads nothing but 0 %.

    zeroes: None without a history. blind: this user does not see the processes that the driver lists.
    """
    if zeroes is None:
        return Check(_ID, SKIP, "no history to look at")
    told = {
        zero: cores for zero in zeroes.found for cores in [_cores(zero, boot_id, cpu_s, age_s)] if cores is not None
    }
    if not told and zeroes.found and blind:
        cards = sorted({zero.uuid for zero in zeroes.found})
        summary = f"{', '.join(cards)} read 0 % for a day, and whether their processes work cannot be seen from here"
        return Check(_ID, SKIP, summary, None, {"cards": cards})
    if not told and not zeroes.whole:
        return Check(_ID, SKIP, f"too large a history to look at all of it in {_LOOK_S:g} s, and none was met")
    if not told:
        return Check(_ID, OK, "no card reads 0 % for a day while its processes work")
    summary = "; ".join(
        f"{zero.card} reads 0 % for {format_duration(zero.covered_ms)} though PID {zero.pid} ({shown(zero.process)}), "
        f"which holds it, works with {cores:.1f} cores: the reading may be stuck"
        for zero, cores in told.items()
    )
    cure = "see whether it draws power (`nvidia-smi`): then reset the card; else that process works on the CPU only"
    return Check(_ID, WARN, summary, cure, {"cards": sorted({zero.uuid for zero in told})})


def _cores(zero: Zero, boot_id: str, cpu_s: CpuTime, age_s: Age) -> Optional[float]:
    """How many cores the process used in the mean of its life; None where that is no work, or not of this hold."""
    boot, _, start = zero.process_key.rsplit(":", 2)
    if boot != boot_id or not start:
        return None
    lives_s, used_s = age_s(int(start)), cpu_s(zero.pid, int(start))
    if used_s is None or lives_s <= 0 or zero.held_ms / 1000 < _HELD_PART * lives_s:
        return None
    return used_s / lives_s if used_s / lives_s >= LEAST_CORES else None
