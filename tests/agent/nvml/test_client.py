"""The child and its parent: hangs, deaths, drivers that come back. Every test ends what it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest

from gua.clock import SystemClock
from gua.model import Snapshot
from gua.nvml.child import COMMAND, Child, NoAnswer
from gua.nvml.client import WorkerClient
from gua.nvml.leave_out import NOTHING
from tests.nvml_stub import Card, Delay, Error, Scene

pytestmark = pytest.mark.processes

HEALTHY = Scene(cards=(Card("GPU-a", util=5),))
UTIL = "nvmlDeviceGetUtilizationRates"
DEADLINE_S = 1.0
LONG_MS = 600_000
# Far less than a call hangs here, and enough for a machine that runs a lot besides.
BUSY_S = 120.0

Start = Callable[..., WorkerClient]


@pytest.fixture
def start(nvml_scene: Path) -> Iterator[Start]:
    """Makes clients, with a short deadline unless told; all are closed in the end."""
    clients = []

    def make(**options: object) -> WorkerClient:
        clients.append(WorkerClient(clock=SystemClock(), **{"deadline_s": 20.0, **options}))  # type: ignore[arg-type]
        return clients[-1]

    yield make
    for client in clients:
        client.close()
        if client._unreaped is not None:
            client._unreaped.kill()


def _child_of(client: WorkerClient) -> int:
    assert client._child is not None
    return client._child.pid


def _until(condition: Callable[[], bool], within_s: float = 60.0) -> None:
    ends_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < ends_s, "it did not happen in time"
        time.sleep(0.01)


def _children() -> set[int]:
    return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


def _count_fds() -> int:
    return len(os.listdir("/proc/self/fd"))


def _seconds(action: Callable[[], object]) -> float:
    began_s = time.monotonic()
    action()
    return time.monotonic() - began_s


def _warm(client: WorkerClient, scene: Path) -> None:
    """One good sample, however long a busy machine takes to start the child."""
    HEALTHY.save(scene)
    _recover(client)


def _recover(client: WorkerClient) -> None:
    _until(lambda: [card.util_pct for card in client.sample().cards] == [5])


def _why(snapshot: Snapshot) -> tuple[bool, str, str]:
    assert snapshot.fault is not None
    return snapshot.unresponsive, snapshot.fault.call, snapshot.fault.message


def _error(snapshot: Snapshot) -> str:
    assert snapshot.fault is not None
    return snapshot.fault.error


def test_one_child_serves_every_sample(start: Start, nvml_scene: Path) -> None:
    client = start()
    _warm(client, nvml_scene)
    pid = _child_of(client)
    assert [client.sample().cards[0].util_pct for _ in range(3)] == [5, 5, 5]
    assert _child_of(client) == pid


def test_parent_never_loads_the_library(start: Start, nvml_scene: Path) -> None:
    _warm(start(), nvml_scene)
    assert "libnvidia-ml" not in Path("/proc/self/maps").read_text()


@pytest.mark.parametrize("masked", [False, True])
def test_hanging_call_is_unresponsive_at_the_deadline_and_recovers(
    start: Start, nvml_scene: Path, masked: bool
) -> None:
    client = start(deadline_s=DEADLINE_S)
    _warm(client, nvml_scene)
    Scene(cards=(Card("GPU-a", rules=(Delay(UTIL, LONG_MS, masked=masked),)),)).save(nvml_scene)
    snapshots: list[Snapshot] = []
    took_s = _seconds(lambda: snapshots.append(client.sample()))
    assert _why(snapshots[0]) == (True, UTIL, f"{UTIL} does not return in time on card GPU-a")
    assert DEADLINE_S / 2 <= took_s < DEADLINE_S + BUSY_S
    HEALTHY.save(nvml_scene)
    _recover(client)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (Delay("nvmlDeviceGetCount", LONG_MS), "nvmlDeviceGetCount does not return in time"),
        (Delay("nvmlInit", LONG_MS), "nvmlInit does not return in time"),
    ],
)
def test_a_driver_that_does_not_answer_is_told_with_the_call(
    start: Start, nvml_scene: Path, rule: Delay, message: str
) -> None:
    client = start(deadline_s=DEADLINE_S)
    Scene(cards=(Card("GPU-a"),), rules=(rule,)).save(nvml_scene)
    _until(lambda: _why(client.sample()) == (True, rule.call, message))


def test_stopped_child_is_unresponsive_and_replaced(start: Start, nvml_scene: Path) -> None:
    client = start(deadline_s=DEADLINE_S)
    _warm(client, nvml_scene)
    stopped = _child_of(client)
    os.kill(stopped, signal.SIGSTOP)
    assert client.sample().unresponsive
    assert stopped not in _children()
    _recover(client)


def test_child_that_cannot_be_killed_has_no_successor_until_it_is_gone(
    start: Start, nvml_scene: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = start(deadline_s=DEADLINE_S)
    _warm(client, nvml_scene)
    held = _child_of(client)
    os.kill(held, signal.SIGSTOP)
    with monkeypatch.context() as patch:
        patch.setattr(subprocess.Popen, "kill", lambda _: None)  # as a call held in the kernel shrugs it off
        assert client.sample().unresponsive
    before = _children()
    # Each waits for nothing, not even for a deadline
    assert _seconds(lambda: [client.sample() for _ in range(40)]) < 40 * DEADLINE_S / 2
    assert client.sample().unresponsive
    assert (held in before, _children()) == (True, before)
    os.kill(held, signal.SIGKILL)
    _recover(client)
    assert held not in _children()


def test_child_killed_between_ticks_costs_no_tick(start: Start, nvml_scene: Path) -> None:
    client = start()
    _warm(client, nvml_scene)
    killed = _child_of(client)
    time.sleep(1.1)  # older than a child whose successor waits a tick
    os.kill(killed, signal.SIGKILL)
    os.waitid(os.P_PID, killed, os.WEXITED | os.WNOWAIT)  # it has ended with all its threads, and is not reaped
    assert client.sample().cards[0].util_pct == 5
    assert _child_of(client) != killed


@pytest.mark.parametrize(("script", "how"), [("exit 7", "exit status 7"), ("kill -9 $$", "killed by signal 9")])
def test_child_that_dies_while_asked_is_a_fault(start: Start, script: str, how: str) -> None:
    snapshot = start(command=["/bin/sh", "-c", script]).sample()
    assert _error(snapshot) == "WORKER_ENDED"
    assert how in (snapshot.fault.message if snapshot.fault else "")


def test_child_that_sampled_before_and_dies_while_asked_costs_no_tick(
    start: Start, nvml_scene: Path, tmp_path: Path
) -> None:
    client = start(deadline_s=120.0)
    _warm(client, nvml_scene)
    Scene(cards=(Card("GPU-a", rules=(Delay(UTIL, LONG_MS),)),)).save(nvml_scene)
    healthy, killed = HEALTHY.save(tmp_path / "healthy"), _child_of(client)
    killer = subprocess.Popen(["/bin/sh", "-c", f"sleep 0.3; kill -9 {killed}; mv {healthy} {nvml_scene}"])
    assert [card.util_pct for card in client.sample().cards] == [5]
    killer.wait()
    assert _child_of(client) != killed


def test_command_that_does_not_exist_is_a_fault(start: Start) -> None:
    client = start(command=["/nonexistent/gua-worker"])
    before = _count_fds()
    assert _error(client.sample()) == "WORKER_NOT_STARTED"
    assert _count_fds() == before


@pytest.mark.parametrize(
    "script",
    [
        "import os,sys; os.write(int(sys.argv[1]), b'rubbish, and not a message')",
        "import os,sys; os.write(int(sys.argv[1]), b'\\0\\0\\0\\4rub!')",
        "import sys; from multiprocessing.connection import Connection; Connection(int(sys.argv[1])).send(3.5)",
    ],
    ids=["no message", "no pickle", "no answer"],
)
def test_rubbish_on_the_channel_is_a_fault(start: Start, script: str) -> None:
    client = start(command=[sys.executable, "-c", script])
    assert _error(client.sample()) == "WORKER_ENDED"


def test_child_stopped_within_its_answer_is_unresponsive(start: Start) -> None:
    half = "import os,sys,time; os.write(int(sys.argv[1]), b'\\0\\0\\1\\0half of'); time.sleep(60)"
    client = start(command=[sys.executable, "-c", half], deadline_s=DEADLINE_S)
    _until(lambda: client.sample().unresponsive and client._child is None)


def test_what_a_child_prints_is_no_answer(start: Start, nvml_scene: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = (
        "import sys; from gua.nvml import worker; print('\\0\\0\\0\\4rub!', flush=True); print('x', file=sys.stderr);"
        " worker.main(sys.argv)"
    )
    HEALTHY.save(nvml_scene)
    assert start(command=[sys.executable, "-c", script]).sample().cards[0].util_pct == 5
    assert capfd.readouterr() == ("", "")


def test_reloaded_driver_costs_no_sample(start: Start, nvml_scene: Path) -> None:
    client = start()
    _warm(client, nvml_scene)
    Scene(cards=(Card("GPU-a", util=6),), driver="580.1", generation=1).save(nvml_scene)
    seen = client.sample()
    assert (seen.driver_version, [card.util_pct for card in seen.cards]) == ("580.1", [6])


@pytest.mark.parametrize("error", ["DRIVER_NOT_LOADED", "LIB_RM_VERSION_MISMATCH"])
def test_driver_that_comes_late_is_picked_up_within_two_samples(start: Start, nvml_scene: Path, error: str) -> None:
    Scene(rules=(Error("nvmlInit", error),)).save(nvml_scene)
    client = start()
    assert [_error(client.sample()) for _ in range(5)] == [error] * 5
    HEALTHY.save(nvml_scene)
    assert any(client.sample().cards for _ in range(2))


def test_broken_driver_is_tried_every_other_time_at_short_intervals(
    start: Start, nvml_scene: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Scene(rules=(Error("nvmlInit", "DRIVER_NOT_LOADED"),)).save(nvml_scene)
    client = start()
    now_s = 0.0
    monkeypatch.setattr(client, "_clock", type("Still", (), {"monotonic_s": lambda _: now_s})())
    starts: list[float] = []
    launch = Child.__init__

    def count(self: Child, *args: object, **options: object) -> None:
        starts.append(now_s)
        launch(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Child, "__init__", count)
    for _ in range(6):
        assert _error(client.sample()) == "DRIVER_NOT_LOADED"
        now_s += 0.2
    assert len(starts) == 3
    for _ in range(3):
        now_s += 30.0
        client.sample()
    assert len(starts) == 6


def test_library_that_reaches_no_card_any_more_is_loaded_afresh(start: Start, nvml_scene: Path) -> None:
    """The driver was upgraded beneath a running child: its calls fail, and only a new start tells why."""
    client = start()
    _warm(client, nvml_scene)
    upgraded = (Error("nvmlInit", "LIB_RM_VERSION_MISMATCH"), Error("*", "UNKNOWN"))
    Scene(cards=(Card("GPU-a"),), rules=upgraded).save(nvml_scene)
    assert _error(client.sample()) == "LIB_RM_VERSION_MISMATCH"


def test_slow_initialisation_is_left_to_finish(start: Start, nvml_scene: Path) -> None:
    slow = Scene(cards=(Card("GPU-a", util=5),), rules=(Delay("nvmlInit", 4000),))
    slow.save(nvml_scene)
    client = start(deadline_s=1.5)
    assert client.sample().unresponsive
    pid = _child_of(client)
    _until(lambda: bool(client.sample().cards))
    assert _child_of(client) == pid


def test_initialisation_without_end_is_given_up(start: Start, nvml_scene: Path) -> None:
    Scene(rules=(Delay("nvmlInit", LONG_MS),)).save(nvml_scene)
    client = start(deadline_s=0.3, start_grace_s=0.3)
    assert client.sample().unresponsive
    assert client._child is None


def test_late_answer_is_never_taken_for_the_present(start: Start) -> None:
    script = """if True:
        import sys
        from multiprocessing.connection import Connection
        from gua.model import Snapshot
        channel = Connection(int(sys.argv[1]))
        late, number = channel.recv(), channel.recv()
        channel.send((late, Snapshot(driver_version="late")))
        while True:
            channel.send((number, Snapshot(driver_version="now")))
            number = channel.recv()
    """
    client = start(command=[sys.executable, "-c", script], deadline_s=0.3)
    assert client.sample().unresponsive
    answers = []
    _until(lambda: answers.append(client.sample()) or not answers[-1].unresponsive)  # type: ignore[func-returns-value]
    assert answers[-1].driver_version == "now"


def test_many_restarts_leave_no_process_and_no_descriptor(start: Start, nvml_scene: Path) -> None:
    client = start(deadline_s=5.0)
    _warm(client, nvml_scene)
    fds, children = _count_fds(), len(_children())
    for generation in range(1, 13):
        Scene(cards=(Card("GPU-a"),), generation=generation).save(nvml_scene)
        for _ in range(3):
            client.sample()
    assert client.sample().cards
    assert (_count_fds(), len(_children())) == (fds, children)


def test_close_ends_the_child_and_a_later_sample_starts_one(start: Start, nvml_scene: Path) -> None:
    client = start()
    _warm(client, nvml_scene)
    pid = _child_of(client)
    assert _seconds(client.close) < BUSY_S
    assert pid not in _children()
    client.close()
    assert any(client.sample().cards for _ in range(2))


def test_close_is_bounded_when_the_child_hangs(start: Start, nvml_scene: Path) -> None:
    client = start()
    _warm(client, nvml_scene)
    pid = _child_of(client)
    os.kill(pid, signal.SIGSTOP)
    assert _seconds(client.close) < BUSY_S
    assert pid not in _children()


def test_a_child_that_a_call_holds_for_long_is_killed_at_once(
    nvml_scene: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot come to nvmlShutdown: waiting for that would cost a stop half a second."""
    monkeypatch.setattr("gua.nvml.child._GENTLE_S", BUSY_S)
    Scene(cards=(Card("GPU-a", rules=(Delay(UTIL, LONG_MS),)),)).save(nvml_scene)
    clock = SystemClock()
    child = Child(COMMAND, clock=clock, deadline_s=BUSY_S)

    def held() -> bool:
        with pytest.raises(NoAnswer) as caught:
            child.ask(NOTHING, until_s=clock.monotonic_s() + 0.1, stall_s=BUSY_S)
        doing = caught.value.doing
        return doing is not None and doing.call == UTIL and clock.monotonic_s() - doing.since_s >= 1.0

    try:
        _until(held)
        assert child.end()
        assert child._process.returncode == -signal.SIGKILL  # left alone, it would have ended itself after a while
    finally:
        child.kill()


def test_a_driver_that_never_answers_is_warned_of_once(
    start: Start, nvml_scene: Path, caplog: pytest.LogCaptureFixture
) -> None:
    HEALTHY.save(nvml_scene)
    client = start(start_grace_s=0.0, deadline_s=0.2)
    Scene(rules=(Delay("nvmlInit", 60_000),)).save(nvml_scene)
    for _ in range(4):
        assert client.sample().unresponsive
    assert caplog.text.count("missed its deadline") == 1


class LaterClock(SystemClock):
    later_s = 0.0

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self.later_s


def test_an_answer_found_long_after_the_deadline_is_none(nvml_scene: Path) -> None:
    """Both stood still, as in a suspended host: what was read then is not how it is, and no card is to blame."""
    clock = LaterClock()
    client = WorkerClient(clock=clock, deadline_s=20.0)
    try:
        _warm(client, nvml_scene)
        Scene(cards=(Card("GPU-a", util=5, rules=(Delay(UTIL, 1500),)),)).save(nvml_scene)
        threading.Timer(0.3, lambda: setattr(clock, "later_s", 3600.0)).start()
        assert client.sample().unresponsive
        # A real suspension moves the child's clock, too; one that is an hour behind would seem to hang in every call.
        clock.later_s = 0.0
        HEALTHY.save(nvml_scene)
        assert client.sample().cards[0].util_pct == 5
    finally:
        client.close()


def test_a_library_that_is_installed_late_is_found_within_two_samples(
    start: Start, nvml_scene: Path, nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    HEALTHY.save(nvml_scene)
    folder = tmp_path / "lib"
    folder.mkdir()
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
    client = start()
    first = client.sample()
    if first.fault is None or first.fault.error != "LIBRARY_NOT_FOUND":
        pytest.skip("this machine has a driver of its own")
    (folder / nvml_library.name).symlink_to(nvml_library)
    assert any(client.sample().cards for _ in range(2))


def test_close_lets_the_child_shut_nvml_down_first(
    start: Start, nvml_scene: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gua.nvml.child._GENTLE_S", BUSY_S)  # that it is killed after half a second is told elsewhere
    client = start()
    _warm(client, nvml_scene)
    slow = (Delay("nvmlShutdown", 250),)
    Scene(cards=(Card("GPU-a", util=5),), rules=slow).save(nvml_scene)
    _recover(client)
    assert client._child is not None
    process = client._child._process
    assert _seconds(client.close) >= 0.25
    assert process.returncode == 0
