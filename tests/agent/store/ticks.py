"""Small hand-made ticks for tests of the store and the report."""

from __future__ import annotations

from typing import Optional

from gua.classify import classify, evidence_of
from gua.model import (
    DEFAULT_RULE,
    CardReading,
    CardTick,
    GpuProcess,
    Holder,
    MemorySource,
    Mig,
    ProcessIdentity,
    ProcessType,
    Reason,
    Rule,
    Tick,
    TickStatus,
    UserSource,
)

BOOT = "5f0c2f1e-boot"
SECOND = 1_000
MINUTE = 60_000
HOUR = 3_600_000
# 2026-03-02 00:00 UTC, a Monday and a slot edge.
MONDAY = 1_772_409_600_000


def holder(
    user: str = "ada",
    pid: int = 100,
    *,
    memory_mb: Optional[int] = 4_000,
    type: ProcessType = ProcessType.COMPUTE,
    name: str = "python",
    start: Optional[int] = 7,
    boot: str = BOOT,
    source: UserSource = UserSource.OWNER,
    uid: Optional[int] = 1000,
) -> Holder:
    identity = ProcessIdentity(
        boot_id=boot, pid=pid, start_ticks=start, name=name, user=user, user_source=source, uid=uid
    )
    return Holder(GpuProcess(pid, type, memory_mb), identity)


def card(
    uuid: str = "GPU-a",
    util_pct: Optional[int] = 0,
    holders: tuple[Holder, ...] = (),
    *,
    used_mb: Optional[int] = None,
    absent: Optional[Reason] = None,
    power_w: Optional[float] = 100.0,
    index: Optional[int] = 0,
    pci: Optional[str] = None,
    mig: Optional[Mig] = None,
    lists_known: bool = True,
    rule: Rule = DEFAULT_RULE,
) -> CardTick:
    """A judged card. used_mb None: exactly what the holders hold."""
    if absent is not None:
        reading = CardReading(uuid=uuid, absent=absent)
        return CardTick(reading, evidence_of(reading), classify(evidence_of(reading), rule))
    reading = CardReading(
        uuid=uuid,
        index=index,
        pci_bus_id=pci or f"00000000:{uuid}",
        name="NVIDIA A100",
        memory_total_mb=81_920,
        memory_used_mb=sum(h.process.memory_mb or 0 for h in holders) if used_mb is None else used_mb,
        memory_source=MemorySource.V2,
        util_pct=util_pct,
        processes=tuple(h.process for h in holders) if lists_known else None,
        temperature_c=40,
        power_w=power_w,
        mig=mig,
    )
    evidence = evidence_of(reading)
    return CardTick(reading, evidence, classify(evidence, rule), holders if lists_known else ())


def tick(ts_ms: int, *cards: CardTick, cover_ms: int = 30 * SECOND, status: TickStatus = TickStatus.OK) -> Tick:
    return Tick(ts_ms=ts_ms, status=status, cover_ms=cover_ms, cards=cards, driver_version="550.90.07")
