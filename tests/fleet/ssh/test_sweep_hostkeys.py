"""No host is believed whose key nobody vouched for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gua_fleet.model import Outcome
from gua_fleet.probes.doctor import DOCTOR_PROBE
from gua_fleet.ssh.settings import SweepSettings
from gua_fleet.ssh.sweep import sweep
from tests.fleet.ssh.asking import ask
from tests.fleet.ssh.sshd import Keys, Sshd, host, needs_openssh, ssh_options


def test_sweep_unknown_host_key_is_refused_and_shown(sshd: Sshd, keys: Keys, agent: Path, tmp_path: Path) -> None:
    result = ask(host(sshd, keys, tmp_path / "empty", agent))
    assert result.outcome is Outcome.HOST_KEY_UNKNOWN
    assert f"connect once with `ssh -p {sshd.port} " in (result.detail or "")
    assert "SHA256:" in (result.detail or "")


@pytest.mark.parametrize("hashed", ["no", "yes"])
def test_sweep_accept_new_records_the_key_and_then_knows_it(
    sshd: Sshd, keys: Keys, agent: Path, tmp_path: Path, hashed: str
) -> None:
    file = tmp_path / "fresh" / "known_hosts"
    target = host(sshd, keys, file, agent, ssh_options=ssh_options(file, hashknownhosts=hashed))
    notes: list[str] = []
    (result,) = sweep([target], DOCTOR_PROBE, SweepSettings(accept_new=True), notice=notes.append)
    assert result.outcome is Outcome.OK
    assert (file.read_text() == sshd.known_line(), file.read_text().startswith("|1|")) == (
        hashed == "no",
        hashed == "yes",
    )
    assert oct(file.stat().st_mode & 0o777) == "0o600"
    assert notes[0].startswith(f"recorded the host key of [127.0.0.1]:{sshd.port} SHA256:")
    assert ask(target).outcome is Outcome.OK


@pytest.mark.parametrize(("word", "warned"), [("accept-new", False), ("no", True), ("off", True)])
def test_sweep_strict_host_key_checking_of_the_inventory_is_honoured_but_never_off(
    sshd: Sshd, keys: Keys, agent: Path, tmp_path: Path, word: str, warned: bool
) -> None:
    file = tmp_path / "known_hosts"
    target = host(sshd, keys, file, agent, ssh_options=ssh_options(file, stricthostkeychecking=word))
    notes: list[str] = []
    (result,) = sweep([target], DOCTOR_PROBE, SweepSettings(), notice=notes.append)
    assert result.outcome is Outcome.OK
    assert any("is taken as accept-new" in note for note in notes) is warned
    assert any("recorded the host key" in note for note in notes)
    file.write_text(sshd.known_line("other_host"))
    assert ask(target).outcome is Outcome.HOST_KEY_CHANGED


@pytest.mark.parametrize("accept_new", [False, True])
def test_sweep_changed_host_key_is_never_accepted(
    sshd: Sshd, keys: Keys, agent: Path, tmp_path: Path, accept_new: bool
) -> None:
    file = tmp_path / "changed"
    file.write_text("# one\n" + sshd.known_line("other_host"))
    result = ask(host(sshd, keys, file, agent), accept_new=accept_new)
    assert result.outcome is Outcome.HOST_KEY_CHANGED
    assert f"{file}:2" in (result.detail or "")
    assert "ssh-keygen" in (result.detail or "")
    assert sshd.known_line() not in file.read_text()


@pytest.mark.parametrize("accept_new", [False, True])
def test_sweep_revoked_host_key_is_never_accepted(
    sshd: Sshd, keys: Keys, agent: Path, known: Path, accept_new: bool
) -> None:
    known.write_text(known.read_text() + f"@revoked * {keys.public('host')}\n")
    result = ask(host(sshd, keys, known, agent), accept_new=accept_new)
    assert result.outcome is Outcome.HOST_KEY_CHANGED
    assert f"is revoked in {known}:2" in (result.detail or "")


def test_sweep_damaged_known_hosts_still_trusts_its_good_lines(
    sshd: Sshd, keys: Keys, agent: Path, known: Path
) -> None:
    known.write_bytes(b"@cert-authority * ssh-ed25519 AAAA\n\xe9\xff junk\n" + known.read_bytes())
    assert ask(host(sshd, keys, known, agent)).outcome is Outcome.OK


def test_sweep_asks_for_the_key_type_that_is_on_file(keys: Keys, agent: Path, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    with Sshd(tmp_path / "two", keys, host_keys=("host", "ecdsa_host")) as server:
        known.write_text(server.known_line("ecdsa_host"))
        assert ask(host(server, keys, known, agent)).outcome is Outcome.OK


@needs_openssh
@pytest.mark.parametrize(("listed", "outcome"), [("host", Outcome.HOST_KEY_CHANGED), ("other_host", Outcome.OK)])
def test_sweep_binary_list_of_revoked_keys_is_honoured(
    sshd: Sshd, keys: Keys, agent: Path, known: Path, tmp_path: Path, listed: str, outcome: Outcome
) -> None:
    revoked = tmp_path / "revoked.krl"
    command = ["ssh-keygen", "-q", "-k", "-f", str(revoked), str(keys.folder / f"{listed}.pub")]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    result = ask(host(sshd, keys, known, agent, ssh_options=ssh_options(known, revokedhostkeys=str(revoked))))
    assert result.outcome is outcome
    assert ("is revoked in" in (result.detail or "")) is (listed == "host")


def test_sweep_list_of_revoked_keys_that_is_damaged_or_missing_lets_no_key_be_believed(
    sshd: Sshd, keys: Keys, agent: Path, known: Path, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged.krl"
    damaged.write_bytes(b"SSHKRL\n\0 and no more")
    for file in (damaged, tmp_path / "missing.krl"):
        result = ask(host(sshd, keys, known, agent, ssh_options=ssh_options(known, revokedhostkeys=str(file))))
        assert result.outcome is Outcome.HOST_KEY_CHANGED
        assert "no host key can be believed" in (result.detail or "")
