"""A tick as the board's `availability.snapshot.v1`, in both of its revisions. Pure.

Revision 2 has `usageState`, the processes' `type`, and processes of unknown memory; revision 1 refuses all three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from gua import __version__
from gua.cloud.codes import MEMORY_UNAVAILABLE, broken_code, card_codes, has_size, slot_code
from gua.model import CardReading, CardTick, Holder, ProcessType, State, Tick, TickStatus
from gua.text import shown
from gua.units import to_iso

SCHEMA_VERSION = "availability.snapshot.v1"
UNKNOWN = "unknown"
_STATES = {State.ACTIVE: "active", State.IDLE_HELD: "idle_held", State.TRULY_IDLE: "idle"}


@dataclass(frozen=True)
class Sender:
    """Who pushes. host_id, display_name: for people, the board knows the host by its token."""

    hostname: str
    host_id: str
    display_name: str


@dataclass(frozen=True)
class Payload:
    """body: the JSON object to send. left_out: one line for every card that the contract has no way to tell."""

    body: Mapping[str, Any]
    left_out: tuple[str, ...] = ()


def to_payload(tick: Tick, sender: Sender, revision: int, *, broken: bool = False) -> Payload:
    """What the board is told of a tick. Readings that could not be taken are named as errors, never passed off as 0.

    revision: 1 or 2. broken: nothing was collected though the tick does not say so (NVML lists no card of those on
    the bus).
    """
    if broken or tick.status in (TickStatus.ERROR, TickStatus.UNRESPONSIVE):
        return Payload(_body(tick, sender, "error", [], [broken_code(tick)]))
    codes = {code for card in tick.cards for code in card_codes(card.reading)} | set(map(slot_code, tick.strangers))
    fit = [card for card in tick.cards if has_size(card.reading)]
    if revision == 1 and any(holder.process.memory_mb is None for card in fit for holder in card.holders):
        codes.add(MEMORY_UNAVAILABLE)
    gpus = [_to_gpu(card, position, revision) for position, card in enumerate(fit)]
    left_out = tuple(_why_left_out(card.reading) for card in tick.cards if not has_size(card.reading))
    return Payload(_body(tick, sender, "partial" if codes else "ok", gpus, sorted(codes)), left_out)


def _body(tick: Tick, sender: Sender, status: str, gpus: list[Any], errors: Sequence[str]) -> Mapping[str, Any]:
    names = {"hostId": sender.host_id, "displayName": sender.display_name}
    return {
        "schemaVersion": SCHEMA_VERSION,
        "collectionStatus": status,
        "observedAt": to_iso(tick.ts_ms),
        "host": {
            "hostname": shown(sender.hostname, 255) or UNKNOWN,
            "agentVersion": __version__[:64],
            "driverVersion": shown(tick.driver_version or UNKNOWN, 64),
            **{name: text for name, text in names.items() if text},
        },
        "gpus": gpus,
        "errors": list(errors),
    }


def _to_gpu(card: CardTick, position: int, revision: int) -> Mapping[str, Any]:
    reading = card.reading
    total_mb = reading.memory_total_mb or 0
    gpu = {
        "index": position if reading.index is None else max(0, reading.index),
        "uuid": reading.uuid or UNKNOWN,
        "name": shown(reading.name or UNKNOWN, 255),
        "memoryTotalMb": total_mb,
        "utilPct": _clamped(reading.util_pct, 100),
        "memoryUsedMb": _clamped(reading.memory_used_mb, total_mb),
        "temperatureC": _not_negative(reading.temperature_c),
        "powerW": _not_negative(reading.power_w),
        "processes": [_to_process(holder, revision) for holder in card.holders if holder.process.pid > 0],
    }
    state = _STATES.get(card.verdict.state)
    # A state beside a utilisation that is not one would say more than was seen.
    if revision > 1 and state is not None and reading.util_pct is not None:
        gpu["usageState"] = state
    return gpu


def _to_process(holder: Holder, revision: int) -> Mapping[str, Any]:
    memory_mb = _not_negative(holder.process.memory_mb)
    process: dict[str, Any] = {
        "pid": holder.process.pid,
        "linuxUser": shown(holder.identity.user) or UNKNOWN,
        "name": shown(holder.identity.name) or UNKNOWN,
        "memoryUsedMb": memory_mb,
    }
    if revision == 1:
        return {**process, "memoryUsedMb": memory_mb or 0}
    return {**process, "type": "graphics" if holder.process.type is ProcessType.GRAPHICS else "compute"}


def _clamped(value: Optional[int], most: int) -> int:
    """A mandatory figure; 0 stands in for what is not known, and `errors` says so."""
    return 0 if value is None else min(most, max(0, value))


def _not_negative(value: Optional[float]) -> Optional[int]:
    return None if value is None else max(0, round(value))


def _why_left_out(reading: CardReading) -> str:
    return f"card {reading.uuid} cannot be told to the board: the size of its memory is not known"
