"""Checks of what a sample does not hold: persistence mode, MIG mode, and whether the bindings fit the driver. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

from gua.doctor.check import FAIL, OK, SKIP, WARN, Check
from gua.model import Snapshot

_IMPOSSIBLE_PID = "IMPOSSIBLE_PID"


@dataclass(frozen=True)
class CardModes:
    """One card. persistence, mig_now, mig_next (after a reset): None where the card cannot say."""

    uuid: str
    persistence: Optional[bool]
    mig_now: Optional[bool]
    mig_next: Optional[bool]


@dataclass(frozen=True)
class Modes:
    """What `gua.nvml.modes` answered. control_errno: why the driver's control device cannot be opened, else None."""

    control_errno: Optional[int] = None
    library_version: Optional[str] = None
    bindings_version: Optional[str] = None
    cards: tuple[CardModes, ...] = ()


def parse_modes(text: str) -> Optional[Modes]:
    """The answer's last line, for the driver's library may print what it likes before; None when it is no answer."""
    try:
        document: Any = json.loads(text.splitlines()[-1])
        return Modes(
            document["control_errno"],
            document["library_version"],
            document["bindings_version"],
            tuple(_card_modes(card) for card in document["cards"]),
        )
    except (ValueError, LookupError, TypeError):
        return None


def _card_modes(card: Any) -> CardModes:
    now, after = card["mig"] or (None, None)
    return CardModes(
        card["uuid"], card["persistence"], None if now is None else now == 1, None if after is None else after == 1
    )


def check_persistence_mode(modes: Optional[Modes]) -> Check:
    """Whether the driver stays loaded while nobody uses a card; else each first look takes seconds."""
    told = [card for card in modes.cards if card.persistence is not None] if modes is not None else []
    if not told:
        return Check("persistence_mode", SKIP, "no card says")
    off = [card.uuid for card in told if not card.persistence]
    details = {"on": len(told) - len(off), "off": off}
    if off:
        summary = (
            f"off on {_some(off, len(told))}: while nothing uses a card the driver unloads it, and waking takes long"
        )
        return Check("persistence_mode", WARN, summary, "enable the service nvidia-persistenced", details)
    return Check("persistence_mode", OK, f"on, {len(told)} cards", None, details)


def _some(cards: Sequence[str], count: int) -> str:
    return f"all {count} cards" if len(cards) == count else ", ".join(cards)


def check_mig(snapshot: Snapshot, modes: Optional[Modes]) -> Check:
    """Cards cut into instances: whether any has none, and whether a change still waits for a reset."""
    instances = [card for card in snapshot.cards if card.mig is not None]
    details = {"parents": list(snapshot.mig_parents), "instances": len(instances)}
    if snapshot.unresponsive or snapshot.fault is not None:
        return Check("mig", SKIP, "NVML cannot be asked")
    waiting = [card.uuid for card in modes.cards if card.mig_now != card.mig_next] if modes is not None else []
    if waiting:
        summary = f"a change of MIG mode waits for a reset of {', '.join(waiting)}"
        return Check("mig", WARN, summary, "`gua pause`, then `nvidia-smi -r`, then `gua resume`; or reboot", details)
    cut = {card.mig.parent_uuid for card in instances if card.mig is not None}
    empty = [uuid for uuid in snapshot.mig_parents if uuid not in cut]
    if empty:
        summary = f"in MIG mode without an instance, so nobody can use it: {', '.join(empty)}"
        return Check("mig", WARN, summary, "make instances (`nvidia-smi mig -cgi`), or turn MIG off", details)
    if not snapshot.mig_parents:
        return Check("mig", OK, "no card is in MIG mode", None, details)
    return Check("mig", OK, f"{len(snapshot.mig_parents)} cards cut into {len(instances)} instances", None, details)


def check_bindings(snapshot: Snapshot, modes: Optional[Modes]) -> Check:
    """Whether nvidia-ml-py reads this driver's structures right: a process list with an impossible pid says no."""
    version = None if modes is None else modes.bindings_version
    name = "nvidia-ml-py" if version is None else f"nvidia-ml-py {version}"
    # What an old driver or an old nvidia-ml-py lacks costs a reading, and is no misunderstanding
    lacking = list(snapshot.missing_calls)
    details = {"nvidia_ml_py": version, "driver_version": snapshot.driver_version, "missing_calls": lacking}
    if not snapshot.cards:
        return Check("bindings", SKIP, "no card's processes could be listed", None, details)
    wrong = [
        f"card {'-' if card.index is None else card.index}"
        for card in snapshot.cards
        if any(fault.error == _IMPOSSIBLE_PID for fault in card.faults.values())
    ]
    if wrong:
        summary = f"{name} misreads this driver's process lists ({', '.join(wrong)})"
        cure = "install another nvidia-ml-py into the agent's environment, one as new as the driver"
        return Check("bindings", FAIL, summary, cure, details)
    told = f", {len(lacking)} functions of it are missing" if lacking else ""
    return Check("bindings", OK, f"{name} fits the driver{told}", None, details)
