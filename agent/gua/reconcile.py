"""What was sampled against what is known to be here: a card that went away stays in the tick, and says why. Pure.

The UUID is the key: after a card dropped off the bus the indexes of the others shift, and say nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Optional, Union

from gua.model import (
    READING_HANDLE,
    CardReading,
    Fault,
    FaultKind,
    KnownDevice,
    LostSlot,
    Reason,
    Snapshot,
    TickStatus,
)


@dataclass(frozen=True)
class Reconciled:
    """cards: those sampled in NVML's order, then the absent ones in the order they are known.

    strangers: slots that NVML counts and cannot open, and that are no known card's.
    """

    cards: tuple[CardReading, ...]
    status: TickStatus
    strangers: tuple[LostSlot, ...] = ()


def reconcile(snapshot: Snapshot, known: Sequence[KnownDevice]) -> Reconciled:
    """Every card that is expected here, with what could be read of it or why it is absent, and how the tick went.

    known: the unretired cards of this host's history. A card whose place another one took (exchanged, or a MIG
    layout that changed) is left out: it is no longer expected, and retiring it in the history is the store's.
    """
    if snapshot.unresponsive:
        return Reconciled(_all_absent(known, Reason.UNRESPONSIVE, snapshot.fault), TickStatus.UNRESPONSIVE)
    if snapshot.fault is not None:
        return Reconciled(_all_absent(known, Reason.DRIVER, snapshot.fault), TickStatus.ERROR)
    present = {card.uuid for card in snapshot.cards}
    gone = [device for device in known if device.uuid not in present]
    lost = _match_lost(snapshot, known, gone)
    absent = _absent_cards(snapshot, known, gone, lost)
    partial = bool(absent or snapshot.lost) or any(_failed(card) for card in snapshot.cards)
    matched = {slot.index for slot in lost.values()}  # the instances of one MIG card share its index
    return Reconciled(
        cards=snapshot.cards + absent,
        status=TickStatus.PARTIAL if partial else TickStatus.OK,
        strangers=tuple(dict.fromkeys(slot for slot in snapshot.lost if slot.index not in matched)),
    )


def _all_absent(known: Sequence[KnownDevice], reason: Reason, fault: Optional[Fault]) -> tuple[CardReading, ...]:
    return tuple(_absent(device, reason, fault) for device in known)


def _absent(device: KnownDevice, reason: Reason, fault: Optional[Fault] = None) -> CardReading:
    return CardReading(
        uuid=device.uuid,
        index=device.index,
        pci_bus_id=device.pci_bus_id,
        name=device.name,
        memory_total_mb=device.memory_total_mb,
        mig=device.mig,
        absent=reason,
        faults={} if fault is None else {READING_HANDLE: fault},
    )


def _failed(card: CardReading) -> bool:
    """Whether something went wrong; what this hardware cannot say is not wrong."""
    return any(fault.kind is FaultKind.FAILED for fault in card.faults.values())


def _absent_cards(
    snapshot: Snapshot, known: Sequence[KnownDevice], gone: Sequence[KnownDevice], lost: Mapping[str, LostSlot]
) -> tuple[CardReading, ...]:
    moved = moved_to(known, snapshot.cards)
    return tuple(
        _absent(device, lost[device.uuid].reason, lost[device.uuid].fault)
        if device.uuid in lost
        else _absent(device, Reason.CARD_MISSING)
        for device in gone
        if device.uuid in lost or not is_superseded(device, snapshot.cards, snapshot.mig_parents, moved)
    )


def moved_to(known: Iterable[KnownDevice], cards: Iterable[CardReading]) -> frozenset[str]:
    """The PCI addresses at which a card answers that was known at another one.

    Bus numbers shift as indexes do, when a card does not come up at boot: such a card takes no other's place.
    """
    before = {_board(device): device.pci_bus_id for device in known if device.pci_bus_id is not None}
    now = {_board(card): card.pci_bus_id for card in cards if card.pci_bus_id is not None}
    return frozenset(address for board, address in now.items() if before.get(board, address) != address)


def _board(card: Union[KnownDevice, CardReading]) -> str:
    return card.uuid if card.mig is None else card.mig.parent_uuid


def is_superseded(
    device: KnownDevice, cards: Iterable[CardReading], mig_parents: Sequence[str], moved: Collection[str]
) -> bool:
    """Whether the place of an absent device is taken: by another card in its slot, by the instances that a card
    was split into, or by what a MIG card became after its instance was removed.

    cards: those that answer. mig_parents: see Snapshot. moved: see `moved_to`.
    """
    places = {device.uuid} if device.mig is None else {device.uuid, device.mig.parent_uuid}
    if not places.isdisjoint(mig_parents):
        return True
    for card in cards:
        if device.pci_bus_id is not None and card.pci_bus_id == device.pci_bus_id and card.pci_bus_id not in moved:
            return True
        if card.uuid in places or (card.mig is not None and card.mig.parent_uuid in places):
            return True
    return False


def _match_lost(
    snapshot: Snapshot, known: Sequence[KnownDevice], gone: Sequence[KnownDevice]
) -> Mapping[str, LostSlot]:
    """UUID -> slot, for the gone devices that are behind the slots that NVML counts but cannot open."""
    named = {
        device.uuid: slot
        for slot in snapshot.lost
        for device in gone
        if slot.uuid is not None and slot.uuid in (device.uuid, device.mig and device.mig.parent_uuid)
    }
    nameless = replace(snapshot, lost=tuple(slot for slot in snapshot.lost if slot.uuid is None))
    rest = [device for device in gone if device.uuid not in named]
    return {**_match_nameless(nameless, known, rest), **named}


def _match_nameless(
    snapshot: Snapshot, known: Sequence[KnownDevice], gone: Sequence[KnownDevice]
) -> Mapping[str, LostSlot]:
    """The same for slots of which only the index is known.

    As many slots as gone cards: all of them. Otherwise an index still names its card while no other card moved.
    """
    boards: dict[str, list[KnownDevice]] = {}
    for device in gone:
        # The instances of one MIG card share its slot
        boards.setdefault(_board(device), []).append(device)
    slots = {slot.index: slot for slot in snapshot.lost}
    matched = _match_by_index(boards, slots) if _indexes_hold(snapshot, known) else {}
    if len(boards) == len(slots):
        free_slots = [slot for slot in snapshot.lost if slot not in matched.values()]
        unmatched = [board for board in boards if board not in matched]
        matched.update(zip(unmatched, free_slots))
    return {device.uuid: slot for board, slot in matched.items() for device in boards[board]}


def _match_by_index(boards: Mapping[str, Sequence[KnownDevice]], slots: Mapping[int, LostSlot]) -> dict[str, LostSlot]:
    indexes = {board: devices[0].index for board, devices in boards.items()}
    return {board: slots[index] for board, index in indexes.items() if index is not None and index in slots}


def _indexes_hold(snapshot: Snapshot, known: Sequence[KnownDevice]) -> bool:
    """Whether every card that is both known and present sits at the index it had."""
    before = {device.uuid: device.index for device in known}
    return all(before.get(card.uuid, card.index) == card.index for card in snapshot.cards)
