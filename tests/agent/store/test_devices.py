from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gua.model import CardReading, Mig, Reason
from tests.agent.store.opened import SetClock, hour, report, steady, stored, write, writing
from tests.agent.store.ticks import HOUR, MINUTE, MONDAY, card, holder, tick


def test_a_card_swapped_at_its_address_is_retired_and_no_longer_expected(tmp_path: Path) -> None:
    old, new = card("GPU-old", pci="0:1"), card("GPU-new", pci="0:1")
    gone = card("GPU-old", absent=Reason.CARD_MISSING)
    path = write(tmp_path, [*steady(20, old), *steady(40, new, gone, start=20)])
    found = hour(path)
    cards = {one["uuid"]: one for one in found["cards"]}
    assert cards["GPU-old"]["retired_at"] == "2026-03-02T00:20:00Z"
    assert cards["GPU-old"]["now"] is None
    assert found["coverage"]["expected_card_s"] == found["coverage"]["observed_card_s"] == 3_600
    with writing(path) as writer:
        assert [one.uuid for one in writer.known_devices()] == ["GPU-new"]


def test_a_card_that_is_gone_stays_expected_where_the_others_moved_up_on_the_bus(tmp_path: Path) -> None:
    first, second, third = (card(f"GPU-{n}", pci=f"0:{n}") for n in range(3))
    gone = card("GPU-0", absent=Reason.CARD_MISSING)
    moved = [card("GPU-1", pci="0:0"), card("GPU-2", pci="0:1"), gone]
    path = write(tmp_path, [*steady(20, first, second, third), *steady(40, *moved, start=20)])
    with writing(path) as writer:
        places = {one.uuid: one.pci_bus_id for one in writer.known_devices()}
    assert places == {"GPU-0": None, "GPU-1": "0:0", "GPU-2": "0:1"}
    assert hour(path)["card_s"]["unknown"] == 2_400


def test_a_missing_card_stays_expected_and_unknown(tmp_path: Path) -> None:
    path = write(tmp_path, [*steady(30, card()), *steady(30, card(absent=Reason.CARD_MISSING), start=30)])
    found = hour(path)
    assert found["card_s"] == {"active": 0, "idle-held": 0, "truly-idle": 1_800, "unknown": 1_800}
    with writing(path) as writer:
        (known,) = writer.known_devices()
    assert (known.name, known.first_seen_ms, known.last_seen_ms) == ("NVIDIA A100", MONDAY, MONDAY + 29 * MINUTE)


def test_a_card_that_comes_back_is_the_same_card(tmp_path: Path) -> None:
    old, new = card("GPU-old", pci="0:1"), card("GPU-new", pci="0:1")
    found = hour(write(tmp_path, [*steady(5, old), *steady(5, new, start=5), *steady(5, old, start=10)]))
    retired = {one["uuid"]: one["retired_at"] for one in found["cards"]}
    assert retired == {"GPU-old": None, "GPU-new": "2026-03-02T00:10:00Z"}


def test_switching_mig_on_and_off_retires_what_is_gone(tmp_path: Path) -> None:
    whole = card("GPU-whole", pci="0:1")
    slices = [card(f"MIG-{n}", pci="0:1", mig=Mig("GPU-whole", "1g.10gb")) for n in range(2)]
    path = write(tmp_path, [*steady(1, whole), *steady(1, *slices, start=1)])
    with writing(path) as writer:
        assert [one.uuid for one in writer.known_devices()] == ["MIG-0", "MIG-1"]
        assert writer.known_devices()[0].mig == Mig("GPU-whole", "1g.10gb")
        writer.write_tick(steady(1, whole, start=2)[0])
        assert [one.uuid for one in writer.known_devices()] == ["GPU-whole"]


def test_a_card_that_is_whole_again_was_not_expected_while_it_was_cut(tmp_path: Path) -> None:
    whole = card("GPU-whole", pci="0:1")
    slices = [card(f"MIG-{n}", pci="0:1", mig=Mig("GPU-whole", "1g.10gb")) for n in range(2)]
    found = hour(write(tmp_path, [*steady(10, whole), *steady(30, *slices, start=10), *steady(20, whole, start=40)]))
    assert {one["uuid"]: one["expected_card_s"] for one in found["cards"]} == {
        "GPU-whole": 1_800,
        "MIG-0": 1_800,
        "MIG-1": 1_800,
    }
    assert found["coverage"]["unobserved_card_s"] == 0


def test_instances_that_are_made_again_were_not_expected_while_their_card_was_whole(tmp_path: Path) -> None:
    whole = card("GPU-whole", pci="0:1")
    slices = [card(f"MIG-{n}", pci="0:1", mig=Mig("GPU-whole", "1g.10gb")) for n in range(2)]
    found = hour(write(tmp_path, [*steady(10, *slices), *steady(30, whole, start=10), *steady(20, *slices, start=40)]))
    assert {one["uuid"]: one["expected_card_s"] for one in found["cards"]} == {
        "GPU-whole": 1_800,
        "MIG-0": 1_800,
        "MIG-1": 1_800,
    }
    assert found["coverage"]["unobserved_card_s"] == 0


def test_two_mig_instances_at_one_address_are_two_cards_and_have_no_energy(tmp_path: Path) -> None:
    slices = [card(f"MIG-{n}", pci="0:1", mig=Mig("GPU-whole", "1g.10gb")) for n in range(2)]
    found = hour(write(tmp_path, steady(60, *slices)))
    assert found["coverage"]["expected_card_s"] == 7_200
    assert [one["energy_j"] for one in found["cards"]] == [None, None]


def test_a_card_known_only_as_absent_is_expected_from_then_on(tmp_path: Path) -> None:
    reading = CardReading("GPU-ghost", absent=Reason.CARD_LOST)
    path = write(tmp_path, steady(60, replace(card(absent=Reason.CARD_LOST), reading=reading)))
    found = hour(path)
    assert (found["cards"][0]["name"], found["card_s"]["unknown"]) == ("unknown", 3_600)


@pytest.mark.parametrize("position", [0, 30, 60])
def test_a_tick_of_a_clock_that_was_never_set_moves_no_beginning(tmp_path: Path, position: int) -> None:
    ticks = steady(60, card())
    ticks.insert(position, tick(5_000, card(), cover_ms=MINUTE))
    found = report(write(tmp_path, ticks), MONDAY - 30 * 24 * HOUR, MONDAY + HOUR)
    assert found["window"]["history_begins"] == "2026-03-02T00:00:00Z"
    assert found["coverage"]["expected_card_s"] == found["coverage"]["observed_card_s"] == 3_600


def test_a_first_tick_a_month_ahead_does_not_delay_the_beginning(tmp_path: Path) -> None:
    ahead = tick(MONDAY + 30 * 24 * HOUR, card(), cover_ms=MINUTE)
    found = hour(write(tmp_path, [ahead, *steady(60, card())]))
    assert found["coverage"]["expected_card_s"] == found["coverage"]["observed_card_s"] == 3_600


def test_on_a_host_whose_clock_was_never_set_history_begins_with_its_first_tick(tmp_path: Path) -> None:
    path = write(tmp_path, [tick(n * MINUTE, card(), cover_ms=MINUTE) for n in range(30, 60)])
    found = report(path, 0, HOUR)
    assert found["window"]["history_begins"] == "1970-01-01T00:30:00Z"
    assert found["coverage"]["expected_card_s"] == 1_800


def test_an_instance_removed_beside_a_living_one_is_retired(tmp_path: Path) -> None:
    slices = [card(f"MIG-{n}", pci="0:1", mig=Mig("GPU-whole", "1g.10gb")) for n in range(2)]
    found = hour(write(tmp_path, [*steady(10, *slices), *steady(50, slices[0], start=10)]))
    assert {one["uuid"]: one["retired_at"] for one in found["cards"]} == {
        "MIG-0": None,
        "MIG-1": "2026-03-02T00:10:00Z",
    }
    assert found["coverage"]["unobserved_card_s"] == 0


def test_instances_whose_card_was_exchanged_are_retired(tmp_path: Path) -> None:
    slices = [card(f"MIG-{n}", pci="0:1", mig=Mig("GPU-whole", "1g.10gb")) for n in range(2)]
    found = hour(write(tmp_path, [*steady(10, *slices), *steady(50, card("GPU-new", pci="0:1"), start=10)]))
    assert [one["retired_at"] is None for one in found["cards"]] == [False, False, True]
    assert found["coverage"]["unobserved_card_s"] == 0


def test_a_lost_instance_beside_a_living_one_stays_expected(tmp_path: Path) -> None:
    slices = [card(f"MIG-{n}", pci="0:1", mig=Mig("GPU-whole", "1g.10gb")) for n in range(2)]
    lost = card("MIG-1", absent=Reason.CARD_LOST)
    found = hour(write(tmp_path, [*steady(10, *slices), *steady(50, slices[0], lost, start=10)]))
    assert [one["retired_at"] for one in found["cards"]] == [None, None]
    assert found["coverage"]["unknown_by_reason"] == {"card_lost": 3_000}


def test_nothing_holds_a_retired_card_any_more(tmp_path: Path) -> None:
    old, new = card("GPU-old", pci="0:1", holders=(holder(),)), card("GPU-new", pci="0:1")
    (hold,) = hour(write(tmp_path, [*steady(10, old), *steady(50, new, start=10)]))["holds"]
    assert hold["until"] == "2026-03-02T00:10:00Z"


def test_a_process_of_another_boot_holds_nothing_though_its_card_is_missing_since(tmp_path: Path) -> None:
    path = write(tmp_path, steady(10, card(holders=(holder(),))))
    stored(path, steady(50, card(absent=Reason.CARD_MISSING), start=10), boot_id="next")
    (hold,) = hour(path)["holds"]
    assert hold["until"] == "2026-03-02T00:10:00Z"


def test_a_database_copied_to_another_machine_expects_none_of_the_former_ones_cards(tmp_path: Path) -> None:
    path = write(tmp_path, steady(10, card("GPU-theirs", holders=(holder(),))))
    with writing(path, machine_id="m2", clock=SetClock(MONDAY + 20 * MINUTE)) as writer:
        assert writer.known_devices() == ()
        writer.write_ticks(steady(40, card("GPU-ours"), start=20))
    found = hour(path)
    expected = {one["uuid"]: (one["retired_at"], one["expected_card_s"]) for one in found["cards"]}
    assert expected == {"GPU-theirs": ("2026-03-02T00:10:00Z", 600), "GPU-ours": (None, 2_400)}
    assert found["holds"][0]["until"] == "2026-03-02T00:10:00Z"
    assert [finding["id"] for finding in found["findings"]] == ["retired"]


def test_a_host_installed_anew_goes_on_with_its_cards(tmp_path: Path) -> None:
    path = write(tmp_path, steady(10, card()))
    with writing(path, machine_id="m2", clock=SetClock(MONDAY + 20 * MINUTE)) as writer:
        writer.write_ticks(steady(40, card(), start=20))
        assert [one.uuid for one in writer.known_devices()] == ["GPU-a"]
    (one,) = hour(path)["cards"]
    assert (one["retired_at"], one["expected_card_s"], one["unobserved_card_s"]) == (None, 3_600, 600)


def test_the_last_instance_of_a_mig_card_is_retired_when_it_is_removed(tmp_path: Path) -> None:
    other, instance = card("GPU-b"), card("MIG-0", pci="0:1", mig=Mig("GPU-whole", "1g.10gb"))
    without = [replace(one, mig_parents=("GPU-whole",)) for one in steady(50, other, start=10)]
    found = hour(write(tmp_path, [*steady(10, other, instance), *without]))
    assert [one["retired_at"] for one in found["cards"]] == [None, "2026-03-02T00:10:00Z"]
    assert found["coverage"]["unobserved_card_s"] == 0
