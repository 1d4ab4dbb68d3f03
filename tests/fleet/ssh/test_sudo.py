"""The sudo password: given to sudo alone, on its standard input, and only where the agent's own user is needed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gua_fleet.model import HostResult, Outcome
from gua_fleet.probes.probe import Probe
from gua_fleet.secrets import Secret
from gua_fleet.ssh.settings import SweepSettings
from gua_fleet.ssh.sweep import sweep
from tests.fleet.ssh.sshd import Keys, Sshd, host

WRITING = Probe("sync-once", "gua.doctor/1", ("doctor", "--json"), writes=True)


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """What the stand-in was called with, one JSON list a line."""
    return tmp_path / "calls"


@pytest.fixture
def server(tmp_path: Path, keys: Keys, calls: Path) -> Iterator[Sshd]:
    """A host whose `sudo` takes the password `sesame`, as the real one does with -S."""
    folder = tmp_path / "bin"
    folder.mkdir()
    sudo = folder / "sudo"
    sudo.write_text(
        f"""#!/bin/sh
for word; do printf '%s\\n' "$word"; done >> {calls}
read_it=no
while [ $# -gt 0 ]; do
  case $1 in
    -S) read_it=yes; shift ;;
    -n) shift ;;
    -p|-u) shift 2 ;;
    *) break ;;
  esac
done
[ $read_it = yes ] && IFS= read -r word
if [ "$word" = sesame ]; then exec "$@"; fi
echo 'sudo: a password is required' >&2
exit 1
"""
    )
    sudo.chmod(0o755)
    with Sshd(tmp_path / "sudoing", keys, f"SetEnv PATH={folder}:/usr/bin:/bin") as running:
        yield running


def _ask(server: Sshd, keys: Keys, agent: Path, tmp_path: Path, password: str | None) -> HostResult:
    known = tmp_path / "known_hosts"
    known.write_text(server.known_line())
    secret = None if password is None else Secret(password)
    target = host(server, keys, known, agent, become=True, become_password=secret)
    (result,) = sweep([target], WRITING, SweepSettings(timeout_s=60))
    return result


def test_sudo_gets_the_password_on_its_input_and_the_agent_runs(
    server: Sshd, keys: Keys, agent: Path, tmp_path: Path, calls: Path
) -> None:
    result = _ask(server, keys, agent, tmp_path, "sesame")
    assert (result.outcome, result.detail) == (Outcome.OK, None)
    said = calls.read_text().splitlines()
    assert said[:5] == ["-S", "-p", "", "-u", "gua"]
    assert "sesame" not in json.dumps([said, result.document])


@pytest.mark.parametrize("password", ["wrong", None])
def test_sudo_that_refuses_is_needs_privilege_and_the_password_is_not_shown(
    server: Sshd, keys: Keys, agent: Path, tmp_path: Path, password: str | None
) -> None:
    result = _ask(server, keys, agent, tmp_path, password)
    assert result.outcome is Outcome.NEEDS_PRIVILEGE
    assert "a password is required" in (result.detail or "")
    assert "wrong" not in repr(result)
