"""MIG instances: where they sit in their card, what they are called, and whose process is whose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

from gua.model import READING_COMPUTE, READING_NAME, Fault, FaultKind, Mig
from gua.nvml.attempts import Attempts
from gua.nvml.bindings import CallFailed, call, call_number, call_text
from gua.nvml.processes import Entry, Lists

_HIGHEST_ID = 1 << 16


@dataclass(frozen=True)
class Place:
    """Which part of its card an instance is; None where the driver does not say."""

    gpu_instance: Optional[int]
    compute_instance: Optional[int]


@dataclass(frozen=True)
class Instance:
    """A MIG instance of the card `card_uuid` that told its UUID."""

    handle: Any
    uuid: str
    name: Optional[str]
    mig: Mig
    place: Place
    attempts: Attempts


def find_instance(card: Any, position: int) -> Optional[tuple[Any, str]]:
    """Handle and UUID of the instance in this position, None where there is none.

    Raises CallFailed when that cannot be told.
    """
    try:
        handle = call("nvmlDeviceGetMigDeviceHandleByIndex", card, position)
    except CallFailed as exc:
        if exc.fault.error == "NOT_FOUND":
            return None
        raise
    return handle, call_text("nvmlDeviceGetUUID", handle)


def describe_instance(handle: Any, uuid: str, card_uuid: str) -> Instance:
    """What is asked anew at every reading: the same UUID may come back with another profile."""
    attempts = Attempts()
    name = attempts.take(READING_NAME, call_text, "nvmlDeviceGetName", handle)
    return Instance(handle, uuid, name, Mig(card_uuid, _read_profile(handle, name)), _read_place(handle), attempts)


def _read_place(handle: Any) -> Place:
    quiet = Attempts()  # without a place its own process list still stands
    gpu_instance = quiet.take("gi", call_number, "nvmlDeviceGetGpuInstanceId", handle, highest=_HIGHEST_ID)
    compute_instance = quiet.take("ci", call_number, "nvmlDeviceGetComputeInstanceId", handle, highest=_HIGHEST_ID)
    return Place(gpu_instance, compute_instance)


def _read_profile(handle: Any, name: Optional[str]) -> str:
    """`1g.10gb` or `1c.3g.40gb`: from the name, as nvidia-smi shows it, else made from the slices; else `unknown`."""
    profile = (name or "").partition(" MIG ")[2].strip()
    if profile:
        return profile
    attributes = Attempts().take(READING_NAME, call, "nvmlDeviceGetAttributes", handle)
    if attributes is None:
        return "unknown"
    compute, slices = attributes.computeInstanceSliceCount, attributes.gpuInstanceSliceCount
    part = "" if compute == slices else f"{compute}c."
    return f"{part}{slices}g.{-(-attributes.memorySizeMB // 1024)}gb"


def share_out(own: Sequence[Lists], places: Sequence[Place], card: Lists, *, all_found: bool = True) -> list[Lists]:
    """The process lists of each instance of one card, from its own and those of the card. Pure.

    Drivers differ: some list a process with its instance, some with the card only, naming the instance; some list
    those of a neighbour too. own and places: one for each instance, in the same order. all_found: the card has no
    other instance, so a process that none of these accounts for is not somebody else's.
    """
    kept = [
        tuple(entry for entry in lists.entries if not _is_a_neighbours(entry, place, places))
        for lists, place in zip(own, places)
    ]
    listed = {entry.process.pid for entries in kept for entry in entries}
    unplaced = [entry for entry in card.entries if not _belongs_to_any(entry, places)]
    strays = [entry for entry in unplaced if all_found and entry.process.pid not in listed]
    return [
        _complete(lists, entries, [entry for entry in card.entries if _belongs(entry, place)], strays, card)
        for lists, place, entries in zip(own, places, kept)
    ]


def _complete(own: Lists, kept: tuple[Entry, ...], given: list[Entry], strays: list[Entry], card: Lists) -> Lists:
    faults = {key: fault for key, fault in own.faults.items() if not _is_made_up_for(key, fault, card)}
    if strays:
        # Somebody holds an instance, and nobody says which: then none of them can be called free.
        text = f"the card lists pid {strays[0].process.pid} without its instance"
        faults[READING_COMPUTE] = Fault(
            "nvmlDeviceGetComputeRunningProcesses", "NO_INSTANCE_ID", FaultKind.FAILED, text
        )
    elif not kept and not given:
        # An empty list may mean that this driver lists with the card, and there the list failed.
        faults.update({key: fault for key, fault in card.faults.items() if fault.kind is FaultKind.FAILED})
    return Lists(kept + tuple(given), faults)


def _is_made_up_for(key: str, fault: Fault, card: Lists) -> bool:
    return fault.kind is FaultKind.UNSUPPORTED and key not in card.faults


def _belongs(entry: Entry, place: Place) -> bool:
    if entry.gpu_instance is None or entry.gpu_instance != place.gpu_instance:
        return False
    return entry.compute_instance is None or entry.compute_instance == place.compute_instance


def _belongs_to_any(entry: Entry, places: Sequence[Place]) -> bool:
    return any(_belongs(entry, place) for place in places)


def _is_a_neighbours(entry: Entry, place: Place, places: Sequence[Place]) -> bool:
    return not _belongs(entry, place) and _belongs_to_any(entry, places)
