"""Jump hosts where OpenSSH is not installed: the library's own sessions, and the same strictness."""

from __future__ import annotations

import getpass
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gua_fleet.model import Outcome
from gua_fleet.probes.doctor import DOCTOR_PROBE
from gua_fleet.ssh.settings import SweepSettings
from gua_fleet.ssh.sweep import sweep
from tests.fleet.ssh.asking import ask
from tests.fleet.ssh.sshd import Keys, Sshd, host


@pytest.fixture
def bastions(tmp_path: Path, keys: Keys) -> Iterator[list[Sshd]]:
    with (
        Sshd(tmp_path / "first", keys, host_keys=("ecdsa_host",)) as first,
        Sshd(tmp_path / "second", keys, host_keys=("other_host",)) as second,
    ):
        yield [first, second]


@pytest.fixture
def known(sshd: Sshd, bastions: list[Sshd], monkeypatch: pytest.MonkeyPatch, keys: Keys) -> Path:
    """The user's own known_hosts and key; from here on this machine has no `ssh`."""
    folder = Path.home() / ".ssh"
    folder.mkdir()
    (folder / "id_ed25519").write_bytes(keys.client.read_bytes())
    file = folder / "known_hosts"
    file.write_text(sshd.known_line() + "".join(server.known_line() for server in bastions))
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, *more, **named: None if name == "ssh" else which(name))
    return file


def _jump(servers: list[Sshd]) -> str:
    return ",".join(f"{getpass.getuser()}@127.0.0.1:{server.port}" for server in servers)


@pytest.mark.parametrize("number", [1, 2])
def test_gateway_of_so_many_hops_reaches_the_host(
    sshd: Sshd, bastions: list[Sshd], keys: Keys, agent: Path, known: Path, number: int
) -> None:
    result = ask(host(sshd, keys, known, agent, jump=_jump(bastions[:number])))
    assert (result.outcome, result.detail) == (Outcome.OK, None)


def test_gateway_with_an_unknown_or_changed_key_is_refused(
    sshd: Sshd, bastions: list[Sshd], keys: Keys, agent: Path, known: Path
) -> None:
    target = host(sshd, keys, known, agent, jump=_jump(bastions[:1]))
    known.write_text(sshd.known_line())
    assert ask(target).outcome is Outcome.HOST_KEY_UNKNOWN
    known.write_text(sshd.known_line() + bastions[0].known_line("host"))
    result = ask(target)
    assert result.outcome is Outcome.HOST_KEY_CHANGED
    assert (result.detail or "").startswith("through jump host 127.0.0.1: ")


def test_ssh_config_without_openssh_is_read_by_the_library_and_what_it_skips_is_said(
    sshd: Sshd, keys: Keys, agent: Path, known: Path
) -> None:
    (known.parent / "config").write_text(f"Include more\nHost gpu1\n  HostName 127.0.0.1\n  Port {sshd.port}\n")
    notes: list[str] = []
    target = host(sshd, keys, known, agent, address="gpu1", port=None)
    (result,) = sweep([target], DOCTOR_PROBE, SweepSettings(timeout_s=60), notice=notes.append)
    assert (result.outcome, result.detail) == (Outcome.OK, None)
    assert [note for note in notes if "Include is skipped" in note]
