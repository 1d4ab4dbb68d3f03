"""The machine of the controller itself, asked without SSH."""

from __future__ import annotations

import os
import time
from pathlib import Path

from gua_fleet.model import Host, Outcome
from tests.fleet.ssh.asking import ask


def test_sweep_local_host_is_asked_without_ssh(agent: Path) -> None:
    local = Host(name="here", address="here", connection="local", gua_command=(str(agent),))
    assert ask(local).outcome is Outcome.OK


def test_sweep_local_command_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    marker, hang = tmp_path / "pid", tmp_path / "hang"
    # a shell is there at once, also on a busy machine
    hang.write_text(f'#!/bin/sh\nsleep 600 &\necho $$ $! >"{marker}"\nwait\n')
    hang.chmod(0o755)
    local = Host("here", "here", connection="local", gua_command=(str(hang),))
    result = ask(local, timeout_s=6.0)
    assert result.outcome_text == "timeout:output"
    pids = [int(line) for line in marker.read_text().split()]
    assert len(pids) == 2
    deadline = time.monotonic() + 40
    while any(_alive(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_sweep_local_agent_missing_is_named() -> None:
    result = ask(Host("here", "here", connection="local", gua_command=("/opt/none/gua",)))
    assert result.outcome is Outcome.AGENT_MISSING


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_alive_sees_this_process() -> None:
    assert _alive(os.getpid())
