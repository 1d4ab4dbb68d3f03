from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest

from gua_fleet.ssh.hostkeys import KnownHosts, Trust, fingerprint, host_key_name, read_known_hosts
from tests.fleet.ssh.sshd import needs_openssh


def _blob(number: int, key_type: str = "ssh-ed25519") -> bytes:
    name = key_type.encode()
    return len(name).to_bytes(4, "big") + name + (32).to_bytes(4, "big") + bytes([number] * 32)


def _text(number: int, key_type: str = "ssh-ed25519") -> str:
    return f"{key_type} {base64.b64encode(_blob(number, key_type)).decode()}"


def _read(tmp_path: Path, content: str | bytes) -> KnownHosts:
    file = tmp_path / "known_hosts"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_known_hosts([file])


@pytest.mark.parametrize(
    ("names", "host", "port", "trust"),
    [
        ("gpu1", "gpu1", 22, Trust.KNOWN),
        ("gpu1", "GPU1", 22, Trust.KNOWN),
        ("gpu1", "gpu11", 22, Trust.UNKNOWN),
        ("gpu0,gpu1", "gpu1", 22, Trust.KNOWN),
        ("[gpu1]:2222", "gpu1", 2222, Trust.KNOWN),
        ("[gpu1]:2222", "gpu1", 22, Trust.UNKNOWN),
        ("[gpu1]:2222", "gpu1", 2223, Trust.UNKNOWN),
        ("gpu1", "gpu1", 2222, Trust.KNOWN),  # a line without a port vouches at every port, as in OpenSSH
        ("gpu?.example.org", "gpu1.example.org", 22, Trust.KNOWN),
        ("*.example.org", "gpu1.example.org", 22, Trust.KNOWN),
        ("*.example.org,!gpu1.example.org", "gpu1.example.org", 22, Trust.UNKNOWN),
        ("[gpu*]:2222", "gpu1", 2222, Trust.KNOWN),
        ("[ab]", "a", 22, Trust.UNKNOWN),  # brackets are no set here
        ("fe80::1%eth0", "fe80::1%eth0", 22, Trust.KNOWN),
    ],
)
def test_judge_names(tmp_path: Path, names: str, host: str, port: int, trust: Trust) -> None:
    assert _read(tmp_path, f"{names} {_text(1)}\n").judge(host, port, _blob(1)).trust is trust


@needs_openssh
@pytest.mark.parametrize("port", [22, 2222])
def test_judge_hashed_name_as_ssh_keygen_writes_it(tmp_path: Path, port: int) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"{host_key_name('gpu1', port)} {_text(1)}\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    known = read_known_hosts([file])
    assert "gpu1" not in file.read_text()
    assert known.judge("gpu1", port, _blob(1)).trust is Trust.KNOWN
    assert known.judge("gpu2", port, _blob(1)).trust is Trust.UNKNOWN


def test_judge_other_key_is_changed_and_names_the_line(tmp_path: Path) -> None:
    judgement = _read(tmp_path, f"# comment\n\ngpu1 {_text(1)}\n").judge("gpu1", 22, _blob(2))
    assert judgement.trust is Trust.CHANGED
    assert judgement.entry is not None
    assert judgement.entry.place == f"{tmp_path}/known_hosts:3"


def test_judge_other_key_at_a_port_without_a_line_is_unknown_as_in_openssh(tmp_path: Path) -> None:
    assert _read(tmp_path, f"gpu1 {_text(1)}\n").judge("gpu1", 2222, _blob(2)).trust is Trust.UNKNOWN


def test_judge_key_of_another_type_than_on_file_is_changed(tmp_path: Path) -> None:
    known = _read(tmp_path, f"gpu1 {_text(1)}\n")
    assert known.judge("gpu1", 22, _blob(1, "ssh-rsa")).trust is Trust.CHANGED


def test_judge_any_of_several_keys_is_known(tmp_path: Path) -> None:
    known = _read(tmp_path, f"gpu1 {_text(1)}\ngpu1 {_text(2)}\n")
    assert known.judge("gpu1", 22, _blob(2)).trust is Trust.KNOWN


@pytest.mark.parametrize("names", ["gpu1", "*", "[gpu1]:2222"])
def test_judge_revoked_wins_over_known(tmp_path: Path, names: str) -> None:
    known = _read(tmp_path, f"[gpu1]:2222 {_text(1)}\n@revoked {names} {_text(1)}\n")
    assert known.judge("gpu1", 2222, _blob(1)).trust is Trust.REVOKED


def test_judge_revoked_line_does_not_hide_the_valid_ones(tmp_path: Path) -> None:
    known = _read(tmp_path, f"@revoked * {_text(9)}\ngpu1 {_text(1)}\n")
    assert known.judge("gpu1", 2222, _blob(1)).trust is Trust.KNOWN
    assert known.judge("gpu2", 2222, _blob(1)).trust is Trust.UNKNOWN


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"@cert-authority * {_text(3)}".encode(), "host certificates are not supported"),
        (b"gpu2 ssh-ed25519 AAAAC3Nza", "damaged"),
        (b"gpu2 ssh-ed25519 !!!", "damaged"),
        (f"gpu2 ssh-rsa {_text(1).split()[1]}".encode(), "ssh-rsa"),
        (b"gpu2", "not a host key"),
        (b"@wrong gpu2 ssh-ed25519 AAAA", "unknown marker"),
        (b"\xff\xfe \x00 \xe9", "damaged"),
    ],
)
def test_read_odd_line_is_a_warning_and_costs_no_other_line(tmp_path: Path, line: bytes, words: str) -> None:
    before, after = f"gpu0 {_text(1)}\n".encode(), f"\ngpu1 {_text(1)} caf\xe9\n".encode("latin-1")
    known = _read(tmp_path, before + line + after)
    assert known.judge("gpu0", 22, _blob(1)).trust is Trust.KNOWN
    assert known.judge("gpu1", 22, _blob(1)).trust is Trust.KNOWN
    (warning,) = known.warnings
    assert warning.startswith(f"{tmp_path}/known_hosts:2: ")
    assert words in warning


def test_read_unreadable_file_is_a_warning_and_trusts_nobody(tmp_path: Path) -> None:
    known = read_known_hosts([tmp_path, tmp_path / "missing"])
    assert known.judge("gpu1", 22, _blob(1)).trust is Trust.UNKNOWN
    (warning,) = known.warnings
    assert str(tmp_path) in warning


def test_key_types_are_those_on_file(tmp_path: Path) -> None:
    content = f"gpu1 {_text(1)}\ngpu1 {_text(2, 'ssh-rsa')}\n@revoked gpu1 {_text(3, 'ecdsa-sha2-nistp256')}\n"
    assert _read(tmp_path, content).key_types("gpu1", 22) == ("ssh-ed25519", "ssh-rsa")


@needs_openssh
def test_fingerprint_is_what_ssh_keygen_prints(tmp_path: Path) -> None:
    file = tmp_path / "key.pub"
    file.write_text(_text(7) + "\n")
    printed = subprocess.run(["ssh-keygen", "-lf", str(file)], check=True, capture_output=True, text=True).stdout
    assert fingerprint(_blob(7)) in printed
