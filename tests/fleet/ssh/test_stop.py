"""What Ctrl-C and its kin leave behind: what has come, and nothing else."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import paramiko
import pytest

from tests.fleet.ssh import stalls
from tests.fleet.ssh.sshd import REPOSITORY, Keys, Sshd, needs_openssh, write_agent

_PATIENCE_S = 90

# What a sweep goes through before a command runs.
_STAGES = ("connect", "auth", "open", "exec")

# A sweep in a process of its own, for a signal is for all of it. Arguments: port, key, known_hosts, agents...
_SWEEP = """
import os, signal, sys, threading
from pathlib import Path
from tests.fleet.ssh.sshd import Host, getpass
from gua_fleet.probes.doctor import DOCTOR_PROBE
from gua_fleet.ssh.settings import SweepSettings
from gua_fleet.ssh.sweep import sweep
def kill_aside():  # the main thread's wait is not interrupted, as by a signal that comes just before it begins
    for line in sys.stdin:
        signal.pthread_kill(threading.get_ident(), int(line))
threading.Thread(target=kill_aside, daemon=True).start()
port, key, known, *agents = sys.argv[1:]
options = {"userknownhostsfile": known, "globalknownhostsfile": "none"}
hosts = [
    Host(Path(agent).name, "127.0.0.1", port=int(port), user=getpass.getuser(), identity_file=key, ssh_options=options,
         gua_command=(agent,), proxy_command=os.environ.get("PROXY"))
    for agent in agents
]
for result in sweep(hosts, DOCTOR_PROBE, SweepSettings(timeout_s=600), progress=lambda s: print("one", flush=True)):
    print(result.host.name, result.outcome_text, result.detail, flush=True)
"""


def _wait_for(path: Path) -> None:
    deadline_s = time.monotonic() + _PATIENCE_S
    while not (path.exists() and path.read_text().strip()):
        assert time.monotonic() < deadline_s, f"{path} does not come"
        time.sleep(0.02)


@contextlib.contextmanager
def _sweeping(port: int, keys: Keys, known: Path, *agents: Path) -> Iterator[subprocess.Popen[str]]:
    paths = os.pathsep.join(str(REPOSITORY / part) for part in ("agent", "fleet", "."))
    with subprocess.Popen(
        [sys.executable, "-c", _SWEEP, str(port), str(keys.client), str(known), *map(str, agents)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()  # one that did not end is not waited for


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_sweep_stopped_by_a_signal_keeps_what_came_and_leaves_no_remote_process(
    sshd: Sshd, keys: Keys, tmp_path: Path, number: signal.Signals
) -> None:
    known, marker = tmp_path / "known_hosts", tmp_path / "pid"
    known.write_text(sshd.known_line())
    quick = write_agent(tmp_path / "quick")
    slow = write_agent(tmp_path / "slow", f"open({str(marker)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)")
    with _sweeping(sshd.port, keys, known, quick, slow) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "one\n"  # the quick one is in
        _wait_for(marker)
        process.send_signal(number)
        said, errors = process.communicate(timeout=_PATIENCE_S)
    assert (process.returncode, errors) == (0, "")
    assert "quick ok None" in said
    assert "slow timeout:output interrupted before it answered" in said
    pid, deadline_s = int(marker.read_text()), time.monotonic() + _PATIENCE_S
    while _is_running(pid):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def _stalling(stage: str, keys: Keys, reached: threading.Event) -> stalls.Conversation:
    if stage != "connect":
        return stalls.stalling(stage, paramiko.PKey.from_path(keys.host), reached)

    def silent(client: socket.socket, over: threading.Event) -> None:
        reached.set()
        stalls.silent(client, over)

    return silent


@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("stage", _STAGES)
def test_sweep_stopped_at_any_stage_ends_and_says_so(
    keys: Keys, tmp_path: Path, stage: str, number: signal.Signals
) -> None:
    known, reached = tmp_path / "known_hosts", threading.Event()
    with stalls.serving(_stalling(stage, keys, reached)) as port:
        known.write_text(f"[127.0.0.1]:{port} {keys.public('host')}\n")
        with _sweeping(port, keys, known, Path("/bin/agent")) as process:
            assert reached.wait(_PATIENCE_S)
            process.send_signal(number)
            said, errors = process.communicate(timeout=_PATIENCE_S)
    assert (process.returncode, errors) == (0, "")
    assert said == f"agent timeout:{stage} interrupted before it answered\n"


def test_signal_that_does_not_interrupt_the_wait_ends_the_sweep_too(keys: Keys, tmp_path: Path) -> None:
    known, reached = tmp_path / "known_hosts", threading.Event()
    with stalls.serving(_stalling("open", keys, reached)) as port:
        known.write_text(f"[127.0.0.1]:{port} {keys.public('host')}\n")
        with _sweeping(port, keys, known, Path("/bin/agent")) as process:
            assert reached.wait(_PATIENCE_S)
            said, errors = process.communicate(f"{signal.SIGTERM:d}\n", timeout=_PATIENCE_S)
    assert (process.returncode, errors) == (0, "")
    assert said == "agent timeout:open interrupted before it answered\n"


@needs_openssh
def test_sweep_stopped_while_a_jump_host_is_silent_leaves_no_ssh(
    keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = threading.Event()
    with stalls.serving(_stalling("connect", keys, reached)) as port:
        monkeypatch.setenv("PROXY", f"ssh -F none -o BatchMode=yes -W %h:%p -p {port} 127.0.0.1")
        with _sweeping(22, keys, tmp_path / "none", Path("/bin/agent")) as process:
            assert reached.wait(_PATIENCE_S)
            assert _ssh_to(port)
            process.send_signal(signal.SIGINT)
            said, errors = process.communicate(timeout=_PATIENCE_S)
        assert (process.returncode, errors) == (0, "")
        assert "interrupted before it answered" in said
        deadline_s = time.monotonic() + _PATIENCE_S
        while _ssh_to(port):
            assert time.monotonic() < deadline_s, "the proxy command is still there"
            time.sleep(0.05)


def _ssh_to(port: int) -> list[str]:
    """The `ssh` processes that speak to this port."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().split(b"\0")
        except OSError:  # it ended meanwhile
            continue
        if words[0].endswith(b"ssh") and str(port).encode() in words:
            found.append(place.parent.name)
    return found
