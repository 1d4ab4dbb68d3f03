from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from gua_fleet.errors import HostFailure
from gua_fleet.model import Host, Outcome
from gua_fleet.ssh.hostkeys import Trust, read_known_hosts
from gua_fleet.ssh.target import Target, target_from_options
from gua_fleet.ssh.trust import HostKeys, prefer_types
from tests.fleet.ssh.sshd import needs_openssh

NAME = b"ssh-ed25519"


def _blob(number: int) -> bytes:
    return len(NAME).to_bytes(4, "big") + NAME + (32).to_bytes(4, "big") + bytes([number] * 32)


def _target(file: Path, name: str = "gpu1", port: int = 22) -> Target:
    return target_from_options(Host(name, name), {"port": [str(port)], "userknownhostsfile": [str(file)]})


def _at_once(calls: list[Callable[[], object]]) -> None:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_record_from_many_threads_tears_no_line(tmp_path: Path) -> None:
    file = tmp_path / ".ssh" / "known_hosts"
    keys = HostKeys(accept_new=True)
    _at_once([partial(keys.check, _target(file, f"h{n}"), _blob(n)) for n in range(50)])
    known = read_known_hosts([file])
    assert known.warnings == ()
    assert all(known.judge(f"h{n}", 22, _blob(n)).trust is Trust.KNOWN for n in range(50))
    assert len(file.read_text().splitlines()) == len(keys.recorded) == 50
    assert oct(file.parent.stat().st_mode & 0o777) == "0o700"


def test_record_the_same_name_met_twice_at_once_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    keys, other_program = HostKeys(accept_new=True), HostKeys(accept_new=True)
    checks = [partial(which.check, _target(file), _blob(1)) for which in (keys, other_program) for _ in range(8)]
    _at_once(checks)
    assert len(file.read_text().splitlines()) == len(keys.recorded + other_program.recorded) == 1


def test_record_second_key_for_a_name_of_the_same_sweep_is_changed(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    keys = HostKeys(accept_new=True)
    keys.check(_target(file), _blob(1))
    with pytest.raises(HostFailure) as caught:
        keys.check(_target(file), _blob(2))
    assert caught.value.outcome is Outcome.HOST_KEY_CHANGED
    assert len(file.read_text().splitlines()) == 1


def test_record_port_beside_a_known_host_of_port_22(tmp_path: Path) -> None:
    """A gateway that forwards ports: its own key must not stand in the way of those behind it."""
    file = tmp_path / "known_hosts"
    keys = HostKeys(accept_new=True)
    keys.check(_target(file), _blob(1))
    keys.check(_target(file, port=2201), _blob(2))
    assert [line.split()[0] for line in file.read_text().splitlines()] == ["gpu1", "[gpu1]:2201"]
    with pytest.raises(HostFailure) as caught:
        HostKeys(accept_new=False).check(_target(file, port=2202), _blob(3))
    assert caught.value.outcome is Outcome.HOST_KEY_UNKNOWN


def test_record_under_an_alias_has_no_port_as_ssh_looks_it_up(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    options = {"port": ["2222"], "hostkeyalias": ["cluster"], "userknownhostsfile": [str(file)]}
    HostKeys(accept_new=True).check(target_from_options(Host("gpu1", "gpu1"), options), _blob(1))
    assert file.read_text().split()[0] == "cluster"


def test_record_after_a_line_without_its_newline_starts_a_new_one(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    HostKeys(accept_new=True).check(_target(file, "a"), _blob(1))
    file.write_text(file.read_text().rstrip("\n"))
    HostKeys(accept_new=True).check(_target(file, "b"), _blob(2))
    known = read_known_hosts([file])
    assert [known.judge(name, 22, _blob(n)).trust for name, n in (("a", 1), ("b", 2))] == [Trust.KNOWN, Trust.KNOWN]


@needs_openssh
def test_record_writes_what_ssh_keygen_finds(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    HostKeys(accept_new=True).check(_target(file, port=2222), _blob(3))
    found = subprocess.run(["ssh-keygen", "-F", "[gpu1]:2222", "-f", str(file)], capture_output=True, text=True)
    assert found.returncode == 0


def test_prefer_types_on_file_come_first_and_none_is_lost() -> None:
    offered = ["ssh-ed25519", "ecdsa-sha2-nistp256", "rsa-sha2-512", "rsa-sha2-256"]
    preferred = prefer_types(offered, ["ssh-rsa", "ssh-dss"])
    assert preferred == ["rsa-sha2-512", "rsa-sha2-256", "ssh-ed25519", "ecdsa-sha2-nistp256"]
