"""The child and its parent: hangs, deaths, drivers that come back. Every test ends what it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Callable

import pytest

from gua.clock import SystemClock
from gua.model import Snapshot
from gua.nvml.child import COMMAND, Child, NoAnswer
from gua.nvml.client import WorkerClient
from gua.nvml.leave_out import NOTHING
from tests.agent.nvml.clients import HEALTHY, LONG_MS, Start, child_of, error_of, recover, until, warm
from tests.nvml_stub import Card, Delay, Scene

pytestmark = pytest.mark.processes

UTIL = "nvmlDeviceGetUtilizationRates"
DEADLINE_S = 1.0
# Far less than a call hangs here, and enough for a machine that runs a lot besides.
BUSY_S = 120.0


def _children() -> set[int]:
    return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


def _count_fds() -> int:
    return len(os.listdir("/proc/self/fd"))


def _seconds(action: Callable[[], object]) -> float:
    began_s = time.monotonic()
    action()
    return time.monotonic() - began_s


def _why(snapshot: Snapshot) -> tuple[bool, str, str]:
    assert snapshot.fault is not None
    return snapshot.unresponsive, snapshot.fault.call, snapshot.fault.message


def test_one_child_serves_every_sample(start: Start, nvml_scene: Path) -> None:
    client = start()
    warm(client, nvml_scene)
    pid = child_of(client)
    assert [client.sample().cards[0].util_pct for _ in range(3)] == [5, 5, 5]
    assert child_of(client) == pid


def test_parent_never_loads_the_library(start: Start, nvml_scene: Path) -> None:
    warm(start(), nvml_scene)
    assert "libnvidia-ml" not in Path("/proc/self/maps").read_text()


@pytest.mark.parametrize("masked", [False, True])
def test_hanging_call_is_unresponsive_at_the_deadline_and_recovers(
    start: Start, nvml_scene: Path, masked: bool
) -> None:
    client = start(deadline_s=DEADLINE_S)
    warm(client, nvml_scene)
    Scene(cards=(Card("GPU-a", rules=(Delay(UTIL, LONG_MS, masked=masked),)),)).save(nvml_scene)
    snapshots: list[Snapshot] = []
    took_s = _seconds(lambda: snapshots.append(client.sample()))
    assert _why(snapshots[0]) == (True, UTIL, f"{UTIL} does not return in time on card GPU-a")
    assert DEADLINE_S / 2 <= took_s < DEADLINE_S + BUSY_S
    HEALTHY.save(nvml_scene)
    recover(client)


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
    until(lambda: _why(client.sample()) == (True, rule.call, message))


def test_stopped_child_is_unresponsive_and_replaced(start: Start, nvml_scene: Path) -> None:
    client = start(deadline_s=DEADLINE_S)
    warm(client, nvml_scene)
    stopped = child_of(client)
    os.kill(stopped, signal.SIGSTOP)
    assert client.sample().unresponsive
    assert stopped not in _children()
    recover(client)


def test_child_that_cannot_be_killed_has_no_successor_until_it_is_gone(
    start: Start, nvml_scene: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = start(deadline_s=DEADLINE_S)
    warm(client, nvml_scene)
    held = child_of(client)
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
    recover(client)
    assert held not in _children()


def test_child_killed_between_ticks_costs_no_tick(start: Start, nvml_scene: Path) -> None:
    client = start()
    warm(client, nvml_scene)
    killed = child_of(client)
    time.sleep(1.1)  # older than a child whose successor waits a tick
    os.kill(killed, signal.SIGKILL)
    os.waitid(os.P_PID, killed, os.WEXITED | os.WNOWAIT)  # it has ended with all its threads, and is not reaped
    assert client.sample().cards[0].util_pct == 5
    assert child_of(client) != killed


@pytest.mark.parametrize(("script", "how"), [("exit 7", "exit status 7"), ("kill -9 $$", "killed by signal 9")])
def test_child_that_dies_while_asked_is_a_fault(start: Start, script: str, how: str) -> None:
    snapshot = start(command=["/bin/sh", "-c", script]).sample()
    assert error_of(snapshot) == "WORKER_ENDED"
    assert how in (snapshot.fault.message if snapshot.fault else "")


def test_child_that_sampled_before_and_dies_while_asked_costs_no_tick(
    start: Start, nvml_scene: Path, tmp_path: Path
) -> None:
    client = start(deadline_s=120.0)
    warm(client, nvml_scene)
    Scene(cards=(Card("GPU-a", rules=(Delay(UTIL, LONG_MS),)),)).save(nvml_scene)
    healthy, killed = HEALTHY.save(tmp_path / "healthy"), child_of(client)
    killer = subprocess.Popen(["/bin/sh", "-c", f"sleep 0.3; kill -9 {killed}; mv {healthy} {nvml_scene}"])
    assert [card.util_pct for card in client.sample().cards] == [5]
    killer.wait()
    assert child_of(client) != killed


def test_command_that_does_not_exist_is_a_fault(start: Start) -> None:
    client = start(command=["/nonexistent/gua-worker"])
    before = _count_fds()
    assert error_of(client.sample()) == "WORKER_NOT_STARTED"
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
    assert error_of(client.sample()) == "WORKER_ENDED"


def test_child_stopped_within_its_answer_is_unresponsive(start: Start) -> None:
    half = "import os,sys,time; os.write(int(sys.argv[1]), b'\\0\\0\\1\\0half of'); time.sleep(60)"
    client = start(command=[sys.executable, "-c", half], deadline_s=DEADLINE_S)
    until(lambda: client.sample().unresponsive and client._child is None)


def test_what_a_child_prints_is_no_answer(start: Start, nvml_scene: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = (
        "import sys; from gua.nvml import worker; print('\\0\\0\\0\\4rub!', flush=True); print('x', file=sys.stderr);"
        " worker.main(sys.argv)"
    )
    HEALTHY.save(nvml_scene)
    assert start(command=[sys.executable, "-c", script]).sample().cards[0].util_pct == 5
    assert capfd.readouterr() == ("", "")


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
    until(lambda: answers.append(client.sample()) or not answers[-1].unresponsive)  # type: ignore[func-returns-value]
    assert answers[-1].driver_version == "now"


def test_many_restarts_leave_no_process_and_no_descriptor(start: Start, nvml_scene: Path) -> None:
    client = start(deadline_s=5.0)
    warm(client, nvml_scene)
    fds, children = _count_fds(), len(_children())
    for generation in range(1, 13):
        Scene(cards=(Card("GPU-a"),), generation=generation).save(nvml_scene)
        for _ in range(3):
            client.sample()
    assert client.sample().cards
    assert (_count_fds(), len(_children())) == (fds, children)


def test_close_ends_the_child_and_a_later_sample_starts_one(start: Start, nvml_scene: Path) -> None:
    client = start()
    warm(client, nvml_scene)
    pid = child_of(client)
    assert _seconds(client.close) < BUSY_S
    assert pid not in _children()
    client.close()
    assert any(client.sample().cards for _ in range(2))


def test_close_is_bounded_when_the_child_hangs(start: Start, nvml_scene: Path) -> None:
    client = start()
    warm(client, nvml_scene)
    pid = child_of(client)
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
        until(held)
        assert child.end()
        assert child._process.returncode == -signal.SIGKILL  # left alone, it would have ended itself after a while
    finally:
        child.kill()


class LaterClock(SystemClock):
    later_s = 0.0

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self.later_s


def test_an_answer_found_long_after_the_deadline_is_none(nvml_scene: Path) -> None:
    """Both stood still, as in a suspended host: what was read then is not how it is, and no card is to blame."""
    clock = LaterClock()
    client = WorkerClient(clock=clock, deadline_s=20.0)
    try:
        warm(client, nvml_scene)
        Scene(cards=(Card("GPU-a", util=5, rules=(Delay(UTIL, 1500),)),)).save(nvml_scene)
        child = client._child
        assert child is not None

        def jump() -> None:  # once the sample has begun
            while (at := child._progress.read()) is None or at.call != UTIL:
                time.sleep(0.01)
            clock.later_s = 3600.0

        threading.Thread(target=jump, daemon=True).start()
        assert client.sample().unresponsive
        # A real suspension moves the child's clock, too; one that is an hour behind would seem to hang in every call.
        clock.later_s = 0.0
        HEALTHY.save(nvml_scene)
        assert client.sample().cards[0].util_pct == 5
    finally:
        client.close()


def test_close_lets_the_child_shut_nvml_down_first(
    start: Start, nvml_scene: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gua.nvml.child._GENTLE_S", BUSY_S)  # that it is killed after half a second is told elsewhere
    client = start()
    warm(client, nvml_scene)
    slow = (Delay("nvmlShutdown", 250),)
    Scene(cards=(Card("GPU-a", util=5),), rules=slow).save(nvml_scene)
    recover(client)
    assert client._child is not None
    process = client._child._process
    assert _seconds(client.close) >= 0.25
    assert process.returncode == 0
