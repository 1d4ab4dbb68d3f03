"""Shape of `gua.observation/1`: what this host looks like now, whether that was stored, and where it was sent. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Optional, TypedDict

from gua.model import READING_COMPUTE, CardTick, FaultKind, Holder, ProcessType, Tick, TickStatus
from gua.report.document import HolderNow, HostInfo, MigInfo, Now
from gua.units import to_iso

SCHEMA = "gua.observation/1"

# The predecessor's words for what went wrong; boards know them.
PROCESS_LIST_UNAVAILABLE = "process_list_unavailable"
NVML_INIT_FAILED = "nvml_init_failed"


class ObservedCard(TypedDict):
    uuid: str
    index: Optional[int]
    name: Optional[str]
    memory_total_mb: Optional[int]
    mig: Optional[MigInfo]
    now: Now


class Push(TypedDict):
    """mode: never, auto, always. result: pushed, failed, not-enrolled, not-asked. reason: why it failed, or None."""

    mode: str
    result: str
    reason: Optional[str]


class Observation(TypedDict):
    """status: ok, partial, error, no-gpu. stored_reason: why it was not stored, None when it was.

    store_failed: whether that is a failure; to have no right to write, or nothing to store, is none.
    """

    schema: str
    observed_at: str
    status: str
    stored: bool
    stored_reason: Optional[str]
    store_failed: bool
    push: Push
    host: HostInfo
    cards: list[ObservedCard]
    errors: list[str]


def to_cards(tick: Tick, since_ms: Mapping[str, int]) -> list[ObservedCard]:
    """The cards of a tick. since_ms: by UUID, when the state of now began; a card without one began with this tick."""
    return [_to_card(card, tick.ts_ms, since_ms.get(card.reading.uuid, tick.ts_ms)) for card in tick.cards]


def to_errors(tick: Tick) -> list[str]:
    """What went wrong in a tick, each beginning with its word; empty when nothing did."""
    if tick.status is TickStatus.UNRESPONSIVE:
        return [f"unresponsive: NVML does not answer{'' if tick.fault is None else f': {tick.fault.message}'}"]
    if tick.fault is not None:
        return [f"{NVML_INIT_FAILED}: {tick.fault.error}: {tick.fault.message}"]
    strangers = [f"card_lost: card {slot.index}, never seen before: {slot.fault.error}" for slot in tick.strangers]
    return [text for card in tick.cards for text in _card_errors(card)] + strangers


def _to_card(card: CardTick, at_ms: int, since_ms: int) -> ObservedCard:
    reading, verdict = card.reading, card.verdict
    return {
        "uuid": reading.uuid,
        "index": reading.index,
        "name": reading.name,
        "memory_total_mb": reading.memory_total_mb,
        "mig": None
        if reading.mig is None
        else {"parent_uuid": reading.mig.parent_uuid, "profile": reading.mig.profile},
        "now": {
            "at": to_iso(at_ms),
            "state": verdict.state.value,
            "reason": None if verdict.reason is None else verdict.reason.value,
            "util_pct": reading.util_pct,
            "memory_used_mb": reading.memory_used_mb,
            "since": to_iso(since_ms),
            "holders": [_to_holder(holder) for holder in card.holders],
        },
    }


def _to_holder(holder: Holder) -> HolderNow:
    return {
        "user": holder.identity.user,
        "process": holder.identity.name,
        "pid": holder.process.pid,
        "memory_mb": holder.process.memory_mb,
        "type": "graphics" if holder.process.type is ProcessType.GRAPHICS else "compute",
    }


def _card_errors(card: CardTick) -> Iterable[str]:
    reading = card.reading
    if reading.absent is not None:
        yield f"{reading.absent.value}: card {reading.uuid}"
        return
    for name, fault in sorted(reading.faults.items()):
        if fault.kind is FaultKind.FAILED:
            word = PROCESS_LIST_UNAVAILABLE if name == READING_COMPUTE else f"{name}_unavailable"
            yield f"{word}: card {reading.uuid}: {fault.error}"
