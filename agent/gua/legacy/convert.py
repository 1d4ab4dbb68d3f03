"""One sampling of gpu-usage-audit as a tick of ours. What it did not record is unknown here. Pure.

What its versions kept, and so what can be told:

- The memory in use counts what the driver reserves for itself (NVML's first call), from 1.1 on. Before that a card is
  judged by its listed processes alone, as that tool judged it.
- Before 1.4 only compute processes were listed, and those whose memory the driver did not tell were left out. So memory
  that no listed process accounts for may be a desktop's: more than a desktop takes makes the card unknown, not held.
- From 1.4 on a sample without usage_state says that the list of compute processes could not be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Optional

from gua.classify import classify, evidence_of
from gua.legacy.source import OldCard, OldProcess, OldTick
from gua.model import (
    READING_COMPUTE,
    READING_GRAPHICS,
    READING_MEMORY,
    USER_UNKNOWN,
    CardReading,
    CardTick,
    Fault,
    FaultKind,
    GpuProcess,
    Holder,
    MemorySource,
    ProcessIdentity,
    ProcessType,
    Tick,
    TickStatus,
    UserSource,
    UtilSource,
)
from gua.rulebook import RuleBook

# The highest number Linux gives a process; lists that hold others were misread by the bindings.
_PID_MAX = 4_194_304

_NOT_LISTED = Fault(
    "nvmlDeviceGetComputeRunningProcesses", "UNKNOWN", FaultKind.FAILED, "no usage state was recorded: the list failed"
)
_MISREAD = Fault("nvmlDeviceGetComputeRunningProcesses", "UNKNOWN", FaultKind.FAILED, "impossible process numbers")
_NOT_ASKED = Fault(
    "nvmlDeviceGetGraphicsRunningProcesses", "NOT_RECORDED", FaultKind.FAILED, "that version never asked for them"
)
_NO_MEMORY = Fault("nvmlDeviceGetMemoryInfo", "NOT_RECORDED", FaultKind.UNSUPPORTED, "that version kept no such figure")


@dataclass(frozen=True)
class Recorder:
    """What is the same for all samples of one run.

    key: stands for the boot in the identity of its processes. cover_ms: see Tick. has_states: it kept usage_state, and
    so processes' types. names: (model, memory in MiB) by UUID.
    """

    key: str
    cover_ms: int
    has_states: bool
    names: Mapping[str, tuple[Optional[str], Optional[int]]]
    rules: RuleBook


def to_tick(old: OldTick, recorder: Recorder) -> Tick:
    """The tick; PARTIAL where a process list is known to have failed."""
    cards = tuple(_card_tick(card, recorder) for card in old.cards)
    partial = any(card.reading.processes is None for card in cards)
    status = TickStatus.PARTIAL if partial else TickStatus.OK
    return Tick(ts_ms=old.ts_ms, status=status, cover_ms=recorder.cover_ms, cards=cards)


def _card_tick(card: OldCard, recorder: Recorder) -> CardTick:
    name, total_mb = recorder.names.get(card.uuid, (None, None))
    holders = tuple(_holder(process, recorder.key, total_mb) for process in _each_once(card.processes))
    fault = _list_fault(card, recorder)
    reading = CardReading(
        uuid=card.uuid,
        index=card.index,
        name=name,
        memory_total_mb=total_mb,
        memory_used_mb=card.memory_used_mb,
        memory_source=MemorySource.UNIFIED if card.memory_used_mb is None else MemorySource.V1,
        util_pct=min(100, max(0, card.util_pct)),
        util_source=UtilSource.POINT,
        processes=None if fault else tuple(holder.process for holder in holders),
        temperature_c=card.temperature_c,
        power_w=card.power_w,
        faults=_faults(card, recorder, fault),
    )
    evidence = evidence_of(reading)
    rule = recorder.rules.own_rule(name)
    verdict = classify(evidence, rule or recorder.rules.default)
    return CardTick(reading, evidence, verdict, () if fault else holders, rule)


def _list_fault(card: OldCard, recorder: Recorder) -> Optional[Fault]:
    if recorder.has_states and card.usage_state is None:
        return _NOT_LISTED
    return None if all(0 < process.pid <= _PID_MAX for process in card.processes) else _MISREAD


def _faults(card: OldCard, recorder: Recorder, list_fault: Optional[Fault]) -> dict[str, Fault]:
    faults = {READING_COMPUTE: list_fault} if list_fault else {}
    if not recorder.has_states:
        faults[READING_GRAPHICS] = _NOT_ASKED
    if card.memory_used_mb is None:
        faults[READING_MEMORY] = _NO_MEMORY
    return faults


def _each_once(processes: Iterable[OldProcess]) -> Iterable[OldProcess]:
    """One entry a process; a compute one wins over a graphics one."""
    by_pid: dict[int, OldProcess] = {}
    for process in processes:
        if process.type != "graphics" or process.pid not in by_pid:
            by_pid[process.pid] = process
    return by_pid.values()


def _holder(old: OldProcess, key: str, total_mb: Optional[int]) -> Holder:
    kind = ProcessType.GRAPHICS if old.type == "graphics" else ProcessType.COMPUTE
    user, source = _user(old)
    # No start time was kept: a number within one run stands for one process for as long as it is seen without a break.
    identity = ProcessIdentity(key, old.pid, None, old.name or "", user, source)
    return Holder(GpuProcess(old.pid, kind, _memory_mb(old.memory_mb, total_mb)), identity)


def _user(old: OldProcess) -> tuple[str, UserSource]:
    """The name as that tool gave it: of whoever logged in, else of the process's owner."""
    if old.login_user is not None:
        return old.login_user, UserSource.LOGINUID
    if old.owner_user is not None:
        return old.owner_user, UserSource.OWNER
    return USER_UNKNOWN, UserSource.UNKNOWN


def _memory_mb(memory_mb: Optional[int], total_mb: Optional[int]) -> Optional[int]:
    """The figure, unless it cannot be one: negative, or more than the card has (the driver's own 'not available')."""
    if memory_mb is None or memory_mb < 0 or memory_mb >= 1 << 40:
        return None
    return None if total_mb is not None and memory_mb > total_mb else memory_mb
