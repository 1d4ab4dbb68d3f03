"""The child by itself: signals, an orphan's end, and what it loads."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from gua.nvml.child import COMMAND
from tests.nvml_stub import Card, Delay, Scene

WITHIN_S = 60.0


def _import_path() -> str:
    return os.pathsep.join(os.path.abspath(path) for path in sys.path if path)


class Worker:
    """A worker process and our side of its socket."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            env = {**os.environ, "PYTHONPATH": _import_path()}
            self.process = subprocess.Popen([*COMMAND, str(theirs.fileno())], pass_fds=(theirs.fileno(),), env=env)
        self.channel = Connection(ours.detach())
        assert self.channel.poll(WITHIN_S)
        assert self.channel.recv() is None

    def ask(self, number: int) -> object:
        self.channel.send(number)
        assert self.channel.poll(WITHIN_S)
        return self.channel.recv()


@pytest.fixture
def worker(nvml_scene: Path) -> Iterator[Worker]:
    Scene(cards=(Card("GPU-a"),)).save(nvml_scene)
    worker = Worker()
    yield worker
    worker.channel.close()
    worker.process.kill()
    worker.process.wait()


def test_request_is_answered_with_its_number(worker: Worker) -> None:
    number, snapshot = worker.ask(41)  # type: ignore[misc]
    assert number == 41
    assert [card.uuid for card in snapshot.cards] == ["GPU-a"]


def test_requests_that_piled_up_are_answered_by_the_newest(worker: Worker) -> None:
    worker.process.send_signal(signal.SIGSTOP)
    for number in (1, 2, 3):
        worker.channel.send(number)
    worker.process.send_signal(signal.SIGCONT)
    assert worker.channel.poll(WITHIN_S)
    assert worker.channel.recv()[0] == 3


def test_interrupt_of_the_terminal_is_ignored(worker: Worker) -> None:
    worker.process.send_signal(signal.SIGINT)
    assert worker.ask(1)[0] == 1  # type: ignore[index]


def test_terminated_worker_ends_with_success(worker: Worker) -> None:
    worker.ask(1)
    worker.process.terminate()
    assert worker.process.wait(WITHIN_S) == 0


def test_worker_ends_when_its_parent_is_gone(worker: Worker) -> None:
    worker.ask(1)
    worker.channel.close()
    assert worker.process.wait(WITHIN_S) == 0


def test_worker_in_a_hanging_call_ends_when_its_parent_is_gone(worker: Worker, nvml_scene: Path) -> None:
    Scene(cards=(Card("GPU-a"),), rules=(Delay("nvmlDeviceGetCount", 120_000, masked=True),)).save(nvml_scene)
    worker.channel.send(1)
    time.sleep(0.2)  # it is in the call now, or will be: both must end
    worker.channel.close()
    assert worker.process.wait(WITHIN_S) == 1


def test_worker_loads_nothing_of_the_daemon(worker: Worker) -> None:
    script = "import sys, gua.nvml.read, gua.nvml.worker; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"peewee", "sqlite3", "tabulate", "rich", "requests", "argparse", "asyncio"} & set(loaded)


def test_unusable_bindings_are_a_fault_and_no_crash(
    nvml_scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pynvml.py").write_text("raise ImportError('broken on purpose')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    worker = Worker()
    _, snapshot = worker.ask(1)  # type: ignore[misc]
    worker.channel.close()
    worker.process.wait(WITHIN_S)
    assert snapshot.fault.error == "ImportError"
    assert "broken on purpose" in snapshot.fault.message


def test_worker_started_by_hand_says_what_to_run_instead() -> None:
    done = subprocess.run(COMMAND, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": _import_path()})
    assert (done.returncode, done.stdout) == (2, "")
    assert "gua sync-once" in done.stderr
