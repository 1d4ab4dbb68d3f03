"""A made-up host: what its cards did at any time, as a pure function of its profile and the time.

Nothing is drawn at random: every choice comes from a hash of where and when, so the same profile tells the same
story on every machine and Python, and a later run goes on where an earlier one ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Optional

from gua.classify import classify, evidence_of
from gua.demo.chance import fraction
from gua.demo.load import utilisation_pct
from gua.demo.people import Session, sessions_at
from gua.demo.profile import DEMO_HOSTS, CardModel, HostProfile, card_uuid
from gua.model import (
    READING_COMPUTE,
    READING_ENERGY,
    READING_HANDLE,
    CardReading,
    CardTick,
    Fault,
    FaultKind,
    GpuProcess,
    Holder,
    KnownDevice,
    MemorySource,
    ProcessIdentity,
    ProcessType,
    Reason,
    Tick,
    TickStatus,
    UserSource,
    UtilSource,
)
from gua.rulebook import RuleBook

DRIVER_VERSION = "560.35.03"

_NO_ENERGY = Fault("nvmlDeviceGetTotalEnergyConsumption", "NOT_SUPPORTED", FaultKind.UNSUPPORTED)
_LOST = Fault("nvmlDeviceGetHandleByIndex_v2", "GPU_IS_LOST", FaultKind.FAILED, "the card fell off the bus")
_NO_LIST = Fault("nvmlDeviceGetComputeRunningProcesses_v3", "UNKNOWN", FaultKind.FAILED)

# Now and then a driver answers no process list for a few minutes: every real fleet has such ticks.
_NO_LIST_CHANCE = 0.004
_NO_LIST_MS = 15 * 60_000

_XORG_MB = 96

_RULES = RuleBook()


class FakeSource:
    """A `TickSource` for `--fake`: the made-up host instead of this machine's NVML."""

    def __init__(self, profile: HostProfile = DEMO_HOSTS["demo"], rules: RuleBook = _RULES) -> None:
        self._profile = profile
        self._rules = rules

    def collect(self, *, ts_ms: int, cover_ms: int, known: Sequence[KnownDevice]) -> Tick:
        """The made-up host at `ts_ms`; it has no need of what is known from before."""
        return demo_tick(self._profile, ts_ms, cover_ms, self._rules)

    def judge_by(self, rules: RuleBook) -> None:
        """Judge later ticks by other rules."""
        self._rules = rules

    def close(self) -> bool:
        """Nothing is held open."""
        return True


def demo_tick(profile: HostProfile, ts_ms: int, cover_ms: int, rules: RuleBook = _RULES) -> Tick:
    """One sampling of the made-up host at `ts_ms` (Unix, UTC, milliseconds), standing for `cover_ms`."""
    cards = tuple(_card_tick(profile, index, ts_ms, rules) for index in range(len(profile.cards)))
    complete = all(card.reading.processes is not None for card in cards)
    return Tick(ts_ms, TickStatus.OK if complete else TickStatus.PARTIAL, cover_ms, cards, DRIVER_VERSION)


def _card_tick(profile: HostProfile, index: int, ts_ms: int, rules: RuleBook) -> CardTick:
    if index == profile.lost_card and profile.lost_from_ms is not None and ts_ms >= profile.lost_from_ms:
        return _judged(_lost_reading(profile.hostname, index), (), rules)
    card, local_ms = profile.cards[index], ts_ms + profile.utc_offset_ms
    sessions = sessions_at(profile.hostname, index, card.use, local_ms)
    holders = _holders(profile.boot_id, card.model.memory_total_mb, sessions, card.use == "desktop")
    listed = fraction("list", profile.hostname, index, ts_ms // _NO_LIST_MS) >= _NO_LIST_CHANCE
    util_pct = utilisation_pct(sessions, local_ms)
    reading = _reading(profile.hostname, index, card.model, util_pct, holders, listed)
    return _judged(reading, holders if listed else (), rules)


def _judged(reading: CardReading, holders: tuple[Holder, ...], rules: RuleBook) -> CardTick:
    evidence = evidence_of(reading)
    own = rules.own_rule(reading.name)
    return CardTick(reading, evidence, classify(evidence, own or rules.default), holders, own)


def _lost_reading(hostname: str, index: int) -> CardReading:
    return CardReading(
        card_uuid(hostname, index), index, _bus_id(index), absent=Reason.CARD_LOST, faults={READING_HANDLE: _LOST}
    )


@lru_cache(maxsize=16384)
def _reading(
    hostname: str, index: int, model: CardModel, util_pct: int, holders: tuple[Holder, ...], listed: bool
) -> CardReading:
    used_mb = 3 + sum(holder.process.memory_mb or 0 for holder in holders)
    load = util_pct / 100
    return CardReading(
        uuid=card_uuid(hostname, index),
        index=index,
        pci_bus_id=_bus_id(index),
        name=model.name,
        memory_total_mb=model.memory_total_mb,
        memory_used_mb=used_mb,
        memory_source=MemorySource.V2,
        util_pct=util_pct,
        util_max_pct=min(100, util_pct + util_pct // 4),
        util_source=UtilSource.SAMPLES,
        processes=tuple(holder.process for holder in holders) if listed else None,
        temperature_c=round(31 + 40 * load),
        power_w=round(model.idle_w + (model.peak_w - model.idle_w) * load, 1),
        faults={READING_ENERGY: _NO_ENERGY} if listed else {READING_ENERGY: _NO_ENERGY, READING_COMPUTE: _NO_LIST},
    )


@lru_cache(maxsize=4096)
def _holders(boot_id: str, memory_mb: int, sessions: tuple[Session, ...], desktop: bool) -> tuple[Holder, ...]:
    """The listed processes; a desktop's X server draws on its card without holding it."""
    holders = [_holder(boot_id, session, round(session.memory_share * memory_mb)) for session in sessions]
    if desktop:
        server = ProcessIdentity(boot_id, 2143, 1_204, "Xorg", "root", UserSource.SYSTEM, 0, 0)
        holders.append(Holder(GpuProcess(2143, ProcessType.GRAPHICS, _XORG_MB), server))
    return tuple(holders)


def _holder(boot_id: str, session: Session, memory_mb: int) -> Holder:
    container = session.user.partition(":")[2] if session.source is UserSource.CONTAINER else None
    identity = ProcessIdentity(
        boot_id=boot_id,
        pid=session.pid,
        start_ticks=session.start_ms // 10,
        name=session.process,
        user=session.user,
        user_source=session.source,
        uid=session.uid,
        owner_uid=session.uid if session.uid is not None else 0,
        container_id=container,
    )
    return Holder(GpuProcess(session.pid, ProcessType.COMPUTE, memory_mb), identity)


def _bus_id(index: int) -> Optional[str]:
    return f"00000000:{0x1B + 0x10 * index:02X}:00.0"
