from typing import Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gua.model import (
    READING_HANDLE,
    READING_POWER,
    CardReading,
    Fault,
    FaultKind,
    KnownDevice,
    LostSlot,
    Mig,
    Reason,
    Snapshot,
    TickStatus,
)
from gua.reconcile import reconcile

LOST = Fault("nvmlDeviceGetHandleByIndex_v2", "GPU_IS_LOST", FaultKind.FAILED, "GPU is lost")


def known(
    uuid: str, index: Optional[int] = None, *, pci: Optional[str] = None, mig: Optional[Mig] = None
) -> KnownDevice:
    return KnownDevice(uuid, index, pci or f"bus-{uuid}", "H100", 81559, mig, first_seen_ms=0, last_seen_ms=1)


def card(
    uuid: str, index: int, *, pci: Optional[str] = None, mig: Optional[Mig] = None, **faults: Fault
) -> CardReading:
    return CardReading(uuid, index, pci or f"bus-{uuid}", "H100", util_pct=0, mig=mig, faults=faults)


def absences(snapshot: Snapshot, *devices: KnownDevice) -> dict[str, Optional[Reason]]:
    return {reading.uuid: reading.absent for reading in reconcile(snapshot, devices).cards}


FOUR = tuple(known(uuid, index) for index, uuid in enumerate("ABCD"))


def test_all_known_cards_present_is_ok() -> None:
    done = reconcile(Snapshot(cards=(card("A", 0), card("B", 1))), FOUR[:2])
    assert done.status is TickStatus.OK
    assert [reading.absent for reading in done.cards] == [None, None]


def test_a_card_seen_for_the_first_time_is_simply_there() -> None:
    assert absences(Snapshot(cards=(card("A", 0), card("NEW", 1))), FOUR[0]) == {"A": None, "NEW": None}


def test_what_hardware_cannot_say_is_ok_and_what_failed_is_partial() -> None:
    unsupported = Fault("nvmlDeviceGetPowerUsage", "NOT_SUPPORTED", FaultKind.UNSUPPORTED)
    failed = Fault("nvmlDeviceGetPowerUsage", "UNKNOWN", FaultKind.FAILED)
    assert reconcile(Snapshot(cards=(card("A", 0, **{READING_POWER: unsupported}),)), ()).status is TickStatus.OK
    assert reconcile(Snapshot(cards=(card("A", 0, **{READING_POWER: failed}),)), ()).status is TickStatus.PARTIAL


def test_one_lost_slot_and_one_gone_card_are_the_same_card() -> None:
    snapshot = Snapshot(cards=(card("A", 0), card("B", 1), card("D", 3)), lost=(LostSlot(2, LOST),))
    done = reconcile(snapshot, FOUR)
    assert done.status is TickStatus.PARTIAL
    lost = done.cards[-1]
    assert (lost.uuid, lost.absent, lost.index) == ("C", Reason.CARD_LOST, 2)
    assert lost.faults == {READING_HANDLE: LOST}
    assert (lost.name, lost.pci_bus_id, lost.util_pct) == ("H100", "bus-C", None)


def test_a_count_that_drops_without_an_error_is_a_missing_card_and_shifts_nobody() -> None:
    snapshot = Snapshot(cards=(card("A", 0), card("C", 1), card("D", 2)))
    assert absences(snapshot, *FOUR) == {"A": None, "C": None, "D": None, "B": Reason.CARD_MISSING}


def test_as_many_lost_slots_as_gone_cards_are_those_cards_whatever_the_indexes() -> None:
    snapshot = Snapshot(cards=(card("D", 0), card("A", 1)), lost=(LostSlot(2, LOST), LostSlot(3, LOST)))
    assert absences(snapshot, *FOUR) == {"D": None, "A": None, "B": Reason.CARD_LOST, "C": Reason.CARD_LOST}


def test_an_index_names_the_lost_card_among_more_gone_ones_while_nobody_moved() -> None:
    snapshot = Snapshot(cards=(card("A", 0), card("B", 1)), lost=(LostSlot(2, LOST),))
    assert absences(snapshot, *FOUR)["C"] is Reason.CARD_LOST
    assert absences(snapshot, *FOUR)["D"] is Reason.CARD_MISSING


def test_an_index_names_nobody_once_others_moved() -> None:
    snapshot = Snapshot(cards=(card("B", 0), card("D", 2)), lost=(LostSlot(1, LOST),))
    assert absences(snapshot, *FOUR) == {
        "B": None,
        "D": None,
        "A": Reason.CARD_MISSING,
        "C": Reason.CARD_MISSING,
    }


def test_a_lost_slot_nobody_knows_makes_the_tick_partial_and_no_card_up() -> None:
    done = reconcile(Snapshot(cards=(card("A", 0),), lost=(LostSlot(1, LOST),)), FOUR[:1])
    assert [reading.uuid for reading in done.cards] == ["A"]
    assert done.status is TickStatus.PARTIAL


def test_a_driver_fault_makes_every_known_card_unknown() -> None:
    fault = Fault("nvmlInit_v2", "LIB_RM_VERSION_MISMATCH", FaultKind.FAILED)
    done = reconcile(Snapshot(fault=fault), FOUR)
    assert done.status is TickStatus.ERROR
    assert {reading.absent for reading in done.cards} == {Reason.DRIVER}
    assert len(done.cards) == 4
    assert done.cards[0].faults == {READING_HANDLE: fault}


def test_no_answer_makes_every_known_card_unresponsive() -> None:
    done = reconcile(Snapshot(unresponsive=True), FOUR)
    assert done.status is TickStatus.UNRESPONSIVE
    assert {reading.absent for reading in done.cards} == {Reason.UNRESPONSIVE}


def test_an_exchanged_card_is_no_longer_expected() -> None:
    assert absences(Snapshot(cards=(card("NEW", 0, pci="bus-A"),)), known("A", 0)) == {"NEW": None}


def test_a_known_card_that_moved_on_the_bus_takes_no_others_place() -> None:
    """After a reboot without one card the bus may be numbered anew, as indexes are."""
    shifted = (card("B", 0, pci="bus-A"), card("C", 1, pci="bus-B"))
    assert absences(Snapshot(cards=shifted), *FOUR[:3]) == {"B": None, "C": None, "A": Reason.CARD_MISSING}


def test_a_known_mig_card_that_moved_takes_no_others_place_with_its_new_instances() -> None:
    before = known("MIG-old", 1, pci="bus-P", mig=Mig("P", "1g.10gb"))
    after = card("MIG-new", 0, pci="bus-A", mig=Mig("P", "1g.10gb"))
    assert absences(Snapshot(cards=(after,)), FOUR[0], before) == {"MIG-new": None, "A": Reason.CARD_MISSING}


@pytest.mark.parametrize("pci", ["bus-P", None])
def test_a_card_split_into_instances_is_not_missing(pci: Optional[str]) -> None:
    instance = CardReading("MIG-1", 0, pci, mig=Mig("P", "1g.10gb"))
    assert absences(Snapshot(cards=(instance,)), known("P", 0)) == {"MIG-1": None}


@pytest.mark.parametrize("survivor", [card("P", 0), card("MIG-2", 0, pci="bus-P", mig=Mig("P", "1g.10gb"))])
def test_an_instance_removed_from_a_living_card_is_not_missing(survivor: CardReading) -> None:
    gone = known("MIG-1", 0, pci="bus-P", mig=Mig("P", "1g.10gb"))
    assert absences(Snapshot(cards=(survivor,)), gone) == {survivor.uuid: None}


@pytest.mark.parametrize("gone", [known("P", 0), known("MIG-1", 0, pci="bus-P", mig=Mig("P", "1g.10gb"))])
def test_a_card_cut_into_no_instance_at_all_is_not_missing(gone: KnownDevice) -> None:
    assert absences(Snapshot(cards=(card("A", 1),), mig_parents=("P",)), gone) == {"A": None}


def test_a_lost_slot_beside_a_lost_card_that_is_known_is_kept_as_a_stranger() -> None:
    snapshot = Snapshot(cards=(card("A", 0),), lost=(LostSlot(1, LOST), LostSlot(2, LOST)))
    done = reconcile(snapshot, [known("A", 0), known("B", 1)])
    assert [(reading.uuid, reading.absent) for reading in done.cards] == [("A", None), ("B", Reason.CARD_LOST)]
    assert done.strangers == (LostSlot(2, LOST),)


def test_all_instances_of_a_lost_card_are_lost() -> None:
    devices = [known(f"MIG-{n}", 1, pci="bus-P", mig=Mig("P", "1g.10gb")) for n in range(3)]
    snapshot = Snapshot(cards=(card("A", 0),), lost=(LostSlot(1, LOST),))
    found = absences(snapshot, known("A", 0), *devices)
    assert [found[device.uuid] for device in devices] == [Reason.CARD_LOST] * 3


HUNG = Fault("nvmlDeviceGetName", "NO_ANSWER", FaultKind.FAILED)


def hung(index: int, uuid: Optional[str] = None) -> LostSlot:
    return LostSlot(index, HUNG, uuid, Reason.UNRESPONSIVE)


def test_a_card_left_out_because_it_hangs_is_unresponsive_with_all_that_is_known_of_it() -> None:
    done = reconcile(Snapshot(cards=(card("A", 0),), lost=(hung(1, "B"),)), FOUR[:2])
    assert done.status is TickStatus.PARTIAL
    left_out = done.cards[-1]
    assert (left_out.uuid, left_out.absent, left_out.name) == ("B", Reason.UNRESPONSIVE, "H100")
    assert left_out.faults == {READING_HANDLE: HUNG}


def test_a_card_that_hangs_before_it_tells_its_uuid_is_unresponsive_and_not_lost() -> None:
    snapshot = Snapshot(cards=(card("A", 0),), lost=(hung(1),))
    assert absences(snapshot, *FOUR[:2]) == {"A": None, "B": Reason.UNRESPONSIVE}


def test_the_instances_of_a_card_that_hangs_are_unresponsive_and_not_gone() -> None:
    devices = [known(f"MIG-{n}", 1, pci="bus-P", mig=Mig("P", "1g.10gb")) for n in range(2)]
    found = absences(Snapshot(cards=(card("A", 0),), lost=(hung(1, "P"),)), known("A", 0), *devices)
    assert found == {"A": None, "MIG-0": Reason.UNRESPONSIVE, "MIG-1": Reason.UNRESPONSIVE}


@given(st.sets(st.sampled_from("ABCDEFGH")), st.sets(st.sampled_from("ABCDEFGH")), st.integers(0, 3))
def test_every_known_card_appears_once_and_no_present_card_is_absent(
    before: set[str], now: set[str], slots: int
) -> None:
    snapshot = Snapshot(
        cards=tuple(card(uuid, index) for index, uuid in enumerate(sorted(now))),
        lost=tuple(LostSlot(len(now) + n, LOST) for n in range(slots)),
    )
    done = reconcile(snapshot, [known(uuid, index) for index, uuid in enumerate(sorted(before))])
    assert sorted(reading.uuid for reading in done.cards) == sorted(before | now)
    assert {reading.uuid for reading in done.cards if reading.absent is None} == now
    lost = [reading for reading in done.cards if reading.absent is Reason.CARD_LOST]
    assert len(lost) <= slots
    assert (done.status is TickStatus.OK) == (before <= now and slots == 0)
