"""What Ctrl-C and its kin leave behind: what has come, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fleet.ssh.sshd import REPOSITORY, Keys, Sshd, write_agent

_PATIENCE_S = 90

# A sweep in a process of its own, for a signal is for all of it. Arguments: port, key, known_hosts, agents...
_SWEEP = """
import sys
from pathlib import Path
from tests.fleet.ssh.sshd import Host, getpass
from gua_fleet.probes.doctor import DOCTOR_PROBE
from gua_fleet.ssh.sweep import SweepSettings, sweep
port, key, known, *agents = sys.argv[1:]
options = {"userknownhostsfile": known, "globalknownhostsfile": "none"}
hosts = [
    Host(Path(agent).name, "127.0.0.1", port=int(port), user=getpass.getuser(), identity_file=key, ssh_options=options,
         gua_command=(agent,))
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
    paths = os.pathsep.join(str(REPOSITORY / part) for part in ("agent", "fleet", "."))
    process = subprocess.Popen(
        [sys.executable, "-c", _SWEEP, str(sshd.port), str(keys.client), str(known), str(quick), str(slow)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "one\n"  # the quick one is in
        _wait_for(marker)
        process.send_signal(number)
        said = process.stdout.read()
    assert process.wait(_PATIENCE_S) == 0
    assert "quick ok None" in said
    assert "slow timeout:output interrupted before it answered" in said
    pid, deadline_s = int(marker.read_text()), time.monotonic() + _PATIENCE_S
    while _is_running(pid):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
