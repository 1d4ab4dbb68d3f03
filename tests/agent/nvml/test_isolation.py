"""The arithmetic of leaving cards out, and one card that hangs among others, with real children on the stub."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Callable, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gua.clock import SystemClock
from gua.model import Reason, Snapshot
from gua.nvml.child import Child
from gua.nvml.client import WorkerClient
from gua.nvml.isolation import Isolation, wait_s
from tests.nvml_stub import Card, Delay, Scene

pytestmark = pytest.mark.processes

CARDS = ("A", "B", "C")
# Half of it must be enough for a busy machine to read four healthy cards one by one, and start a child.
DEADLINE_S = 10.0
HOUR_MS = 3_600_000


def test_the_wait_grows_to_ten_minutes() -> None:
    assert [wait_s(hangs) for hangs in range(1, 9)] == [0, 30, 60, 120, 240, 480, 600, 600]
    assert wait_s(10_000) == 600


def test_a_card_that_hung_once_is_tried_again_at_once_and_then_left_alone() -> None:
    isolation = Isolation()
    isolation.hung("A", "call", 100.0)
    assert isolation.left_out(100.0) == {}
    isolation.hung("A", "call", 130.0)
    assert isolation.left_out(159.9) == {"A": "call"}
    assert isolation.left_out(160.0) == {}
    isolation.answered(isolation.left_out(160.0))
    isolation.hung("A", "call", 170.0)
    assert isolation.left_out(170.0) == {}  # it answered in between: it begins anew


def test_an_answer_without_a_card_says_nothing_about_it() -> None:
    isolation = Isolation()
    for name in ("A", "A", "B"):
        isolation.hung(name, "call", 0.0)
    isolation.answered({"A": "call"})
    assert isolation.left_out(1.0) == {"A": "call"}


# What happens to a host, second by second: which cards hang just then.
host_life = st.lists(st.tuples(st.floats(0.1, 400.0), st.sets(st.sampled_from(CARDS))), max_size=60)


@given(host_life)
def test_healthy_cards_are_asked_always_and_hung_ones_at_least_every_ten_minutes(
    life: list[tuple[float, set[str]]],
) -> None:
    isolation, now_s = Isolation(), 0.0
    ever_hung: set[str] = set()
    asked_s = dict.fromkeys(CARDS, 0.0)
    for step_s, hanging in life:
        now_s += step_s
        left_out = isolation.left_out(now_s)
        assert left_out.keys() <= ever_hung
        for card in set(CARDS) - left_out.keys():
            asked_s[card] = now_s
        hung = sorted(hanging - left_out.keys())
        if hung:  # a child hangs at one card only
            ever_hung.add(hung[0])
            isolation.hung(hung[0], "call", now_s)
        else:
            isolation.answered(left_out)
        # A card whose time has come waits for those whose time came before it
        assert all(now_s - at_s <= 600.0 + len(CARDS) * 400.0 for at_s in asked_s.values())


@given(st.lists(st.sampled_from(CARDS), max_size=30), st.floats(0, 10_000))
def test_at_most_one_card_that_hung_is_tried_at_a_time(hangs: list[str], now_s: float) -> None:
    isolation = Isolation()
    for name in hangs:
        isolation.hung(name, "call", 0.0)
    assert len(set(hangs) - isolation.left_out(now_s).keys()) <= 1


class LaterClock(SystemClock):
    """The machine's clock, which a test may put forward while nobody waits."""

    later_s = 0.0

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self.later_s


@pytest.fixture
def clock() -> LaterClock:
    return LaterClock()


@pytest.fixture
def client(nvml_scene: Path, clock: LaterClock) -> Iterator[WorkerClient]:
    client = WorkerClient(clock=clock, deadline_s=DEADLINE_S)
    yield client
    client.close()


def _absences(snapshot: Snapshot) -> dict[str, Optional[Reason]]:
    left_out = {slot.uuid or f"index {slot.index}": slot.reason for slot in snapshot.lost}
    return {**{card.uuid: card.absent for card in snapshot.cards}, **left_out}


HEALTHY = {"GPU-a": None, "GPU-b": None, "GPU-c": None}


def _scene(*rules: Delay) -> Scene:
    return Scene(cards=(Card("GPU-a"), Card("GPU-b", rules=rules), Card("GPU-c")))


def _until(condition: Callable[[], bool]) -> None:
    assert any(condition() for _ in range(20))


HANGING = {**HEALTHY, "GPU-b": Reason.UNRESPONSIVE}


def test_a_card_that_hangs_costs_the_others_no_sample(
    client: WorkerClient, nvml_scene: Path, clock: LaterClock
) -> None:
    _scene().save(nvml_scene)
    _until(lambda: _absences(client.sample()) == HEALTHY)
    _scene(Delay("nvmlDeviceGetTotalEnergyConsumption", HOUR_MS, masked=True)).save(nvml_scene)
    assert [_absences(client.sample()) for _ in range(3)] == [HANGING] * 3
    _scene().save(nvml_scene)
    assert _absences(client.sample()) == HANGING  # it hung twice: it is left alone for half a minute
    clock.later_s += 31.0
    assert _absences(client.sample()) == HEALTHY


def test_a_card_that_hangs_before_it_tells_its_uuid_is_known_by_its_place(
    client: WorkerClient, nvml_scene: Path
) -> None:
    _scene().save(nvml_scene)
    _until(lambda: _absences(client.sample()) == HEALTHY)
    _scene(Delay("nvmlDeviceGetHandleByIndex", HOUR_MS)).save(nvml_scene)
    assert _absences(client.sample()) == {"GPU-a": None, "index 1": Reason.UNRESPONSIVE, "GPU-c": None}
    _scene().save(nvml_scene)
    assert _absences(client.sample()) == HEALTHY  # it hung once only: it is tried again at once


def test_a_card_that_takes_the_place_of_one_that_hung_is_read(
    client: WorkerClient, nvml_scene: Path, clock: LaterClock
) -> None:
    """It hung before it told its UUID, then dropped off the bus: the indexes behind it shift."""
    for _ in range(4):
        client._isolation.hung("index 1 of 3", "nvmlDeviceGetHandleByIndex", clock.monotonic_s())
    _scene().save(nvml_scene)
    _until(lambda: _absences(client.sample()) == {"GPU-a": None, "index 1": Reason.UNRESPONSIVE, "GPU-c": None})
    Scene(cards=(Card("GPU-a"), Card("GPU-c"))).save(nvml_scene)
    assert _absences(client.sample()) == {"GPU-a": None, "GPU-c": None}


def test_a_host_whose_every_card_hangs_does_not_answer(client: WorkerClient, nvml_scene: Path) -> None:
    Scene(cards=(Card("GPU-a"),)).save(nvml_scene)
    _until(lambda: bool(client.sample().cards))
    Scene(cards=(Card("GPU-a", rules=(Delay("nvmlDeviceGetName", HOUR_MS),)),), generation=1).save(nvml_scene)
    _until(lambda: client.sample().unresponsive)
    Scene(cards=(Card("GPU-a"),), generation=1).save(nvml_scene)
    _until(lambda: _absences(client.sample()) == {"GPU-a": None})


def test_a_driver_that_begins_anew_makes_every_card_be_asked_again(
    client: WorkerClient, nvml_scene: Path, clock: LaterClock
) -> None:
    for _ in range(4):
        client._isolation.hung("GPU-b", "call", clock.monotonic_s())
    _scene().save(nvml_scene)
    _until(lambda: _absences(client.sample()).get("GPU-b") is Reason.UNRESPONSIVE)
    Scene(cards=_scene().cards, generation=1).save(nvml_scene)
    _until(lambda: _absences(client.sample()) == HEALTHY)


def test_no_second_child_while_the_one_that_hangs_at_a_card_cannot_be_killed(
    client: WorkerClient, nvml_scene: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _scene().save(nvml_scene)
    _until(lambda: _absences(client.sample()) == HEALTHY)
    assert client._child is not None
    held = client._child.pid
    _scene(Delay("nvmlDeviceGetPowerUsage", HOUR_MS)).save(nvml_scene)
    with monkeypatch.context() as patch:
        patch.setattr(subprocess.Popen, "kill", lambda _: None)  # as a call held in the kernel shrugs it off
        assert client.sample().unresponsive
    assert client._child is None
    assert client.sample().unresponsive
    assert client.close() is False
    os.kill(held, signal.SIGKILL)
    os.waitid(os.P_PID, held, os.WEXITED | os.WNOWAIT)
    assert client.close() is True
    _until(lambda: _absences(client.sample()) == HANGING)


class _Stop(BaseException):
    """As a signal handler raises it, in the middle of anything."""


def test_a_child_that_a_stop_left_half_killed_is_not_forgotten(
    client: WorkerClient, nvml_scene: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def stop(*_: object) -> bool:
        raise _Stop

    _scene().save(nvml_scene)
    _until(lambda: _absences(client.sample()) == HEALTHY)
    assert client._child is not None
    held = client._child.pid
    _scene(Delay("nvmlDeviceGetPowerUsage", HOUR_MS)).save(nvml_scene)
    with monkeypatch.context() as patch:
        patch.setattr(subprocess.Popen, "kill", lambda _: None)  # as a call held in the kernel shrugs it off
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(Child, "_wait", stop)
            with pytest.raises(_Stop):
                client.sample()
        assert client.close() is False
    assert f"left behind, held by the driver pid={held}" in caplog.text
    os.kill(held, signal.SIGKILL)
    os.waitid(os.P_PID, held, os.WEXITED | os.WNOWAIT)
    assert client.close() is True
