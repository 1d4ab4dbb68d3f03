"""A call that never returns on one card or instance: its neighbours are read all the same."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from gua.clock import SystemClock
from gua.model import CardReading, KnownDevice, Reason, Snapshot
from gua.nvml.child import Child, NoAnswer
from gua.nvml.client import WorkerClient
from gua.nvml.isolation import successor_stall_s
from gua.nvml.leave_out import LeaveOut
from gua.nvml.progress import Position, Progress
from gua.reconcile import reconcile
from tests.agent.fakes import FakeClock
from tests.nvml_stub import Card, Delay, Error, Instance, Scene

pytestmark = pytest.mark.processes

SICK = 2
FOR_EVER_MS = 600_000
# A call that lasts half of it hangs.
DEADLINE_S = 3.0

HANGS = [
    ("nvmlDeviceGetHandleByIndex", False),
    ("nvmlDeviceGetUtilizationRates", False),
    ("nvmlDeviceGetComputeRunningProcesses", True),
]


@pytest.mark.parametrize(("call", "masked"), HANGS)
def test_call_that_hangs_on_one_card_costs_the_others_nothing_lasting(
    nvml_scene: Path, call: str, masked: bool
) -> None:
    rules = (Delay(call, FOR_EVER_MS, masked=masked), Error("nvmlDeviceGetSamples", "NOT_SUPPORTED"))
    cards = [Card(f"GPU-{index}", util=index) for index in range(4)]
    Scene(cards=tuple(cards)).save(nvml_scene)
    client = WorkerClient(clock=SystemClock(), deadline_s=DEADLINE_S)
    try:
        known = _known(_until_cards(client, 4))
        cards[SICK] = replace(cards[SICK], rules=rules)
        Scene(cards=tuple(cards)).save(nvml_scene)
        snapshot = _until_cards(client, 3)
        assert [(card.uuid, card.util_pct) for card in snapshot.cards] == [("GPU-0", 0), ("GPU-1", 1), ("GPU-3", 3)]
        absent = [card for card in reconcile(snapshot, known).cards if card.absent]
        assert [(card.uuid, card.absent) for card in absent] == [("GPU-2", Reason.UNRESPONSIVE)]
        assert absent[0].faults["handle"].error == "NO_ANSWER"
        assert absent[0].faults["handle"].call.startswith(call)
    finally:
        client.close()


def test_cards_that_begin_to_hang_at_once_cost_the_others_no_sample(nvml_scene: Path) -> None:
    """In one and the same sample. A machine so busy that a child starts for seconds is given more time."""
    cards = [Card(f"GPU-{index}", util=index) for index in range(5)]
    hangs = (Delay("nvmlDeviceGetUtilizationRates", FOR_EVER_MS),)
    hanging = [replace(card, rules=hangs) if index in (1, 2) else card for index, card in enumerate(cards)]
    for deadline_s in (9.0, 18.0, 36.0, 72.0):
        client = WorkerClient(clock=SystemClock(), deadline_s=deadline_s)
        try:
            Scene(cards=tuple(cards)).save(nvml_scene)
            _until_cards(client, 5)
            Scene(cards=tuple(hanging)).save(nvml_scene)
            snapshot = client.sample()
        finally:
            client.close()
        if not snapshot.unresponsive:
            break
    assert [(card.uuid, card.util_pct) for card in snapshot.cards] == [("GPU-0", 0), ("GPU-3", 3), ("GPU-4", 4)]
    assert [(slot.index, slot.reason) for slot in snapshot.lost] == [(1, Reason.UNRESPONSIVE), (2, Reason.UNRESPONSIVE)]


class _HangingChild:
    """One that hangs at the first of the sick cards which is not left out, for as long as it may; else it answers."""

    ready, pid = True, 1
    sick: tuple[str, ...] = ()
    stalls_s: ClassVar[list[float]] = []

    def __init__(self, command: object, *, clock: FakeClock, deadline_s: float) -> None:
        self._clock, self.started_s = clock, clock.monotonic_s()

    def ask(self, leave_out: LeaveOut, *, until_s: float, stall_s: float) -> Snapshot:
        at = next((uuid for uuid in self.sick if uuid not in leave_out), None)
        if at is None:
            return Snapshot(cards=(CardReading("GPU-well"),))
        self.stalls_s.append(stall_s)
        self._clock.sleep_s(min(stall_s, until_s - self._clock.monotonic_s()))
        raise NoAnswer(Position(at, "nvmlX"))

    def has_ended(self) -> bool:
        return False

    def kill(self) -> bool:
        return True

    def end(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("deadline_s", "hanging", "stalls_s", "well"),
    [
        (10.0, 1, [5.0], True),
        (10.0, 2, [5.0, 5 / 3], True),
        (10.0, 3, [5.0, 5 / 3, 10 / 9], True),
        (10.0, 4, [5.0, 5 / 3, 10 / 9, 1.0], True),
        (10.0, 5, [5.0, 5 / 3, 10 / 9, 1.0, 11 / 9], False),
        (6.0, 3, [3.0, 1.0, 1.0], True),
        (3.0, 1, [1.5], True),
        (3.0, 2, [1.5, 1.5], False),
    ],
)
def test_so_many_cards_may_begin_to_hang_in_one_sample(
    monkeypatch: pytest.MonkeyPatch, deadline_s: float, hanging: int, stalls_s: list[float], well: bool
) -> None:
    clock, child = FakeClock(), _HangingChild
    monkeypatch.setattr(child, "sick", tuple(f"GPU-{index}" for index in range(hanging)))
    monkeypatch.setattr(child, "stalls_s", [])
    monkeypatch.setattr("gua.nvml.client.Child", child)
    snapshot = WorkerClient(clock=clock, deadline_s=deadline_s).sample()
    assert child.stalls_s == pytest.approx(stalls_s)
    assert (bool(snapshot.cards), snapshot.unresponsive) == (well, not well)
    assert clock.elapsed_s <= deadline_s


def test_when_every_card_hangs_the_driver_as_a_whole_does_not_answer(nvml_scene: Path) -> None:
    hangs = (Delay("nvmlDeviceGetUtilizationRates", FOR_EVER_MS),)
    clock = SystemClock()
    client = WorkerClient(clock=clock, deadline_s=4.5)
    try:
        Scene(cards=tuple(Card(f"GPU-{index}") for index in range(4))).save(nvml_scene)
        _until_cards(client, 4)
        Scene(cards=tuple(Card(f"GPU-{index}", rules=hangs) for index in range(4))).save(nvml_scene)
        for _ in range(4):  # until each was tried, and once again
            snapshot = client.sample()
            assert (snapshot.unresponsive, snapshot.cards) == (True, ())
    finally:
        client.close()


@pytest.mark.parametrize(
    ("left_s", "stalls_s"), [(6.0, [2.0, 4 / 3, 1.0, 5 / 3]), (1.5, [1.5]), (2.0, [1.0, 1.0]), (1.99, [1.99]), (0, [0])]
)
def test_successors_take_a_third_of_what_is_left_and_none_is_blamed_in_less_than_a_second(
    left_s: float, stalls_s: list[float]
) -> None:
    found = []
    while not found or left_s > 1e-9:
        found.append(successor_stall_s(left_s))
        left_s -= found[-1]
    assert found == pytest.approx(stalls_s)


@pytest.mark.parametrize(("stood_still_s", "blamed"), [(0.0, True), (7.0, True), (8.0, False)])
def test_no_card_is_blamed_for_the_time_in_which_we_stood_still(
    monkeypatch: pytest.MonkeyPatch, stood_still_s: float, blamed: bool
) -> None:
    """As in a frozen service or virtual machine, where the child stands still, too."""
    clock = FakeClock()
    monkeypatch.setattr("time.monotonic", clock.monotonic_s)
    child = Child((sys.executable, "-c", "import time; time.sleep(600)"), clock=clock, deadline_s=10.0)
    pauses_s = [stood_still_s]

    def poll(timeout_s: float) -> bool:
        clock.sleep_s(timeout_s + (pauses_s.pop() if pauses_s else 0.0))
        return False

    try:
        monkeypatch.setattr(child._channel, "poll", poll)
        progress = Progress(child._progress.fd)
        progress.enter("GPU-a")
        progress.call("nvmlX")
        with pytest.raises(NoAnswer) as raised:
            child.ask({}, until_s=clock.monotonic_s() + 10.0, stall_s=5.0)
        assert (raised.value.at is not None) is blamed
    finally:
        child.kill()


def test_a_card_is_blamed_as_soon_as_it_was_given_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is waited beyond that, the children that read the other cards lack."""
    clock = FakeClock()
    monkeypatch.setattr("time.monotonic", clock.monotonic_s)
    child = Child((sys.executable, "-c", "import time; time.sleep(600)"), clock=clock, deadline_s=10.0)
    progress = Progress(child._progress.fd)

    def poll(timeout_s: float) -> bool:
        if clock.elapsed_s == 0:  # it comes to the card a little after it was asked
            clock.sleep_s(0.02)
            progress.enter("GPU-a")
            progress.call("nvmlX")
            timeout_s -= 0.02
        clock.sleep_s(timeout_s)
        return False

    try:
        monkeypatch.setattr(child._channel, "poll", poll)
        with pytest.raises(NoAnswer) as raised:
            child.ask({}, until_s=clock.monotonic_s() + 10.0, stall_s=5.0)
        assert raised.value.at is not None
        assert clock.elapsed_s == pytest.approx(5.02, abs=0.02)
    finally:
        child.kill()


def test_mig_instance_that_hangs_leaves_its_neighbours(nvml_scene: Path) -> None:
    def save(*rules: Delay) -> None:
        instances = (Instance("MIG-a", slot=0, gpu_instance=7), Instance("MIG-b", slot=1, gpu_instance=8, rules=rules))
        Scene(cards=(Card("GPU-cut", mig_max=7, instances=instances), Card("GPU-c"))).save(nvml_scene)

    save()
    client = WorkerClient(clock=SystemClock(), deadline_s=DEADLINE_S)
    try:
        known = _known(_until_cards(client, 3))
        save(Delay("nvmlDeviceGetMemoryInfo", FOR_EVER_MS))
        snapshot = _until_cards(client, 2)
        assert [card.uuid for card in snapshot.cards] == ["MIG-a", "GPU-c"]
        absent = [(card.uuid, card.absent) for card in reconcile(snapshot, known).cards if card.absent]
        assert absent == [("MIG-b", Reason.UNRESPONSIVE)]
    finally:
        client.close()


def test_card_that_is_slow_in_all_its_calls_costs_the_others_nothing_lasting(nvml_scene: Path) -> None:
    """No call of it hangs, and no sample with it would ever come to its end."""
    cards = [Card(f"GPU-{index}", util=index) for index in range(4)]
    Scene(cards=tuple(cards)).save(nvml_scene)
    client = WorkerClient(clock=SystemClock(), deadline_s=DEADLINE_S)
    try:
        known = _known(_until_cards(client, 4))
        cards[SICK] = replace(cards[SICK], rules=(Delay("*", int(DEADLINE_S * 1000 / 7)),))
        Scene(cards=tuple(cards)).save(nvml_scene)
        snapshot = _until_cards(client, 3)
        absent = [(card.uuid, card.absent) for card in reconcile(snapshot, known).cards if card.absent]
        assert absent == [("GPU-2", Reason.UNRESPONSIVE)]
    finally:
        client.close()


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
        assert position == Position("GPU-a", "nvmlX", position.since_s, position.place_since_s)
        assert 0 < position.place_since_s <= position.since_s <= SystemClock().monotonic_s()
        progress.rest()
        assert reader.read() is None
    finally:
        progress.close()


def test_progress_adds_up_how_long_a_sample_was_with_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, progress = FakeClock(), Progress.create()
    monkeypatch.setattr("time.monotonic", clock.monotonic_s)
    reader = Progress(progress.fd)

    def at(seconds_with_card: float) -> Position:
        progress.call("nvmlX")
        now_s = clock.monotonic_s()
        position = reader.read()
        assert position == Position(position.place if position else "", "nvmlX", now_s, now_s - seconds_with_card)
        return position

    try:
        progress.enter("index 0")
        clock.sleep_s(1)
        progress.known_as("GPU-a")
        clock.sleep_s(2)
        assert at(3.0).place == "GPU-a"
        progress.enter("MIG-a")
        clock.sleep_s(4)
        assert at(4.0).place == "MIG-a"
        progress.enter("GPU-a")
        assert at(3.0).place == "GPU-a"
        clock.sleep_s(1)
        progress.enter("MIG-a")
        assert at(4.0).place == "MIG-a"
        progress.rest()
        progress.enter("GPU-a")  # the next sample
        assert at(0.0).place == "GPU-a"
    finally:
        progress.close()


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
