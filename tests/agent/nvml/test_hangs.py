"""A call that never returns on one card: the others lose one sample, and that card is unresponsive until it is back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Optional

import pytest

from gua.clock import SystemClock
from gua.model import KnownDevice, Reason, Snapshot
from gua.nvml.client import WorkerClient
from gua.nvml.hangs import HangingCards, hanging
from gua.nvml.progress import Position, Progress
from gua.reconcile import reconcile
from tests.nvml_stub import Card, Delay, Error, Instance, Scene

SICK = 2
FOR_EVER_MS = 600_000
HANGS = [
    ("nvmlDeviceGetHandleByIndex", False),
    ("nvmlDeviceGetUtilizationRates", False),
    ("nvmlDeviceGetComputeRunningProcesses", True),
]


@pytest.mark.parametrize(("call", "masked"), HANGS)
def test_call_that_hangs_on_one_card_costs_the_others_one_sample(nvml_scene: Path, call: str, masked: bool) -> None:
    rules = (Delay(call, FOR_EVER_MS, masked=masked), Error("nvmlDeviceGetSamples", "NOT_SUPPORTED"))
    cards = [Card(f"GPU-{index}", util=index) for index in range(4)]
    Scene(cards=tuple(cards)).save(nvml_scene)
    client = WorkerClient(clock=SystemClock(), deadline_s=2.0)
    try:
        known = _known(_until_cards(client, 4))
        cards[SICK] = replace(cards[SICK], rules=rules)
        Scene(cards=tuple(cards)).save(nvml_scene)
        assert client.sample().unresponsive
        snapshot = _until_cards(client, 3)
        assert [(card.uuid, card.util_pct) for card in snapshot.cards] == [("GPU-0", 0), ("GPU-1", 1), ("GPU-3", 3)]
        absent = [card for card in reconcile(snapshot, known).cards if card.absent]
        assert [(card.uuid, card.absent) for card in absent] == [("GPU-2", Reason.UNRESPONSIVE)]
        assert absent[0].faults["handle"].error == "NO_ANSWER"
        assert absent[0].faults["handle"].call.startswith(call)
    finally:
        client.close()


def test_card_that_hung_is_tried_again_and_comes_back(nvml_scene: Path) -> None:
    sick = Card("GPU-1", rules=(Delay("nvmlDeviceGetMigMode", FOR_EVER_MS),))
    Scene(cards=(Card("GPU-0"), Card("GPU-1"))).save(nvml_scene)
    client = WorkerClient(clock=SystemClock(), deadline_s=2.0, hang_retry_s=3.0)
    try:
        _until_cards(client, 2)
        Scene(cards=(Card("GPU-0"), sick)).save(nvml_scene)
        assert client.sample().unresponsive
        _until_cards(client, 1)
        Scene(cards=(Card("GPU-0"), Card("GPU-1"))).save(nvml_scene)
        assert [card.uuid for card in _until_cards(client, 2).cards] == ["GPU-0", "GPU-1"]
    finally:
        client.close()


def _until_cards(client: WorkerClient, count: int) -> Snapshot:
    """The first snapshot with so many cards: a busy machine may need several deadlines to start a child."""
    clock = SystemClock()
    ends_s = clock.monotonic_s() + 90
    while clock.monotonic_s() < ends_s:
        snapshot = client.sample()
        if len(snapshot.cards) == count:
            return snapshot
    raise AssertionError(f"never {count} cards: {snapshot}")


def _known(snapshot: Snapshot) -> list[KnownDevice]:
    return [
        KnownDevice(card.uuid, card.index, card.pci_bus_id, card.name, card.memory_total_mb, card.mig, 0, 0)
        for card in snapshot.cards
    ]


def test_mig_instance_that_hangs_leaves_its_neighbours(nvml_scene: Path) -> None:
    def save(*rules: Delay) -> None:
        instances = (Instance("MIG-a", slot=0, gpu_instance=7), Instance("MIG-b", slot=1, gpu_instance=8, rules=rules))
        Scene(cards=(Card("GPU-cut", mig_max=7, instances=instances), Card("GPU-c"))).save(nvml_scene)

    save()
    client = WorkerClient(clock=SystemClock(), deadline_s=2.0)
    try:
        known = _known(_until_cards(client, 3))
        save(Delay("nvmlDeviceGetMemoryInfo", FOR_EVER_MS))
        assert client.sample().unresponsive
        snapshot = _until_cards(client, 2)
        assert [card.uuid for card in snapshot.cards] == ["MIG-a", "GPU-c"]
        absent = [(card.uuid, card.absent) for card in reconcile(snapshot, known).cards if card.absent]
        assert absent == [("MIG-b", Reason.UNRESPONSIVE)]
    finally:
        client.close()


def test_only_card_that_hangs_costs_no_new_child_at_every_sample(nvml_scene: Path) -> None:
    Scene(cards=(Card("GPU-a"),)).save(nvml_scene)
    client = WorkerClient(clock=SystemClock(), deadline_s=2.0)
    try:
        _until_cards(client, 1)
        Scene(cards=(Card("GPU-a", rules=(Delay("nvmlDeviceGetMigMode", FOR_EVER_MS),)),)).save(nvml_scene)
        snapshot = client.sample()
        while snapshot.unresponsive:
            snapshot = client.sample()
        child = client._child
        assert child is not None
        assert [slot.reason for slot in client.sample().lost] == [Reason.UNRESPONSIVE]
        assert client._child is child
    finally:
        client.close()


def test_card_is_left_out_for_twice_as_long_each_time_it_hangs_again() -> None:
    cards = HangingCards(first_retry_s=10.0)
    cards.blame("GPU-a", "call", 0.0)
    assert (cards.leave_out(9.9), cards.leave_out(10.0)) == ({"GPU-a": "call"}, {})
    cards.blame("GPU-a", "call", 20.0)
    assert (cards.leave_out(39.9), cards.leave_out(40.0)) == ({"GPU-a": "call"}, {})
    for _ in range(20):
        cards.blame("GPU-a", "call", 50.0)
    assert (cards.leave_out(50.0 + 7199), cards.leave_out(50.0 + 7200)) == ({"GPU-a": "call"}, {})


def test_card_that_answered_when_tried_again_is_forgotten_and_one_left_out_is_not() -> None:
    cards = HangingCards(first_retry_s=10.0)
    cards.blame("GPU-a", "call", 0.0)
    cards.blame("GPU-b", "other", 5.0)
    cards.answered(cards.leave_out(12.0))
    cards.blame("GPU-a", "call", 20.0)
    cards.blame("GPU-b", "other", 20.0)
    assert cards.leave_out(29.9) == {"GPU-a": "call", "GPU-b": "other"}
    assert cards.leave_out(39.9) == {"GPU-b": "other"}


def test_progress_tells_the_call_under_way_and_nothing_between_samples() -> None:
    progress = Progress.create()
    try:
        reader = Progress(progress.fd)
        assert reader.read() is None
        progress.enter("GPU-a")
        progress.call("nvmlDeviceGetName")
        progress.call("nvmlX")
        position = reader.read()
        assert position is not None
        assert position == Position("GPU-a", "nvmlX", position.since_s)
        assert 0 < position.since_s <= SystemClock().monotonic_s()
        progress.rest()
        assert reader.read() is None
    finally:
        progress.close()


@pytest.mark.parametrize(
    ("position", "blamed"),
    [
        (Position("GPU-a", "call", 92.0), True),
        (Position("GPU-a", "call", 98.0), False),  # it has only begun: the whole host is slow
        (Position("", "nvmlDeviceGetCount", 90.0), False),  # about no card
        (None, False),
    ],
)
def test_call_is_blamed_when_it_took_most_of_the_sample(position: Optional[Position], blamed: bool) -> None:
    assert (hanging(position, now_s=100.0, deadline_s=10.0) is not None) == blamed
