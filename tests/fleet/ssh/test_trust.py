from __future__ import annotations

import subprocess
import threading
from pathlib import Path

from gua_fleet.ssh.hostkeys import Trust, read_known_hosts
from gua_fleet.ssh.trust import append_known_host, prefer_types
from tests.fleet.ssh.sshd import needs_openssh

NAME = b"ssh-ed25519"


def _blob(number: int) -> bytes:
    return len(NAME).to_bytes(4, "big") + NAME + (32).to_bytes(4, "big") + bytes([number] * 32)


def test_append_from_many_threads_tears_no_line(tmp_path: Path) -> None:
    file = tmp_path / ".ssh" / "known_hosts"
    threads = [threading.Thread(target=append_known_host, args=(file, f"h{n}", _blob(n))) for n in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    known = read_known_hosts([file])
    assert known.warnings == ()
    assert all(known.judge(f"h{n}", 22, _blob(n)).trust is Trust.KNOWN for n in range(50))
    assert oct(file.parent.stat().st_mode & 0o777) == "0o700"


def test_append_after_a_line_without_its_newline_starts_a_new_one(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    append_known_host(file, "a", _blob(1))
    file.write_text(file.read_text().rstrip("\n"))
    append_known_host(file, "b", _blob(2))
    known = read_known_hosts([file])
    assert [known.judge(name, 22, _blob(n)).trust for name, n in (("a", 1), ("b", 2))] == [Trust.KNOWN, Trust.KNOWN]


@needs_openssh
def test_append_writes_what_ssh_keygen_finds(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    append_known_host(file, "[gpu1]:2222", _blob(3))
    found = subprocess.run(["ssh-keygen", "-F", "[gpu1]:2222", "-f", str(file)], capture_output=True, text=True)
    assert found.returncode == 0


def test_prefer_types_on_file_come_first_and_none_is_lost() -> None:
    offered = ["ssh-ed25519", "ecdsa-sha2-nistp256", "rsa-sha2-512", "rsa-sha2-256"]
    preferred = prefer_types(offered, ["ssh-rsa", "ssh-dss"])
    assert preferred == ["rsa-sha2-512", "rsa-sha2-256", "ssh-ed25519", "ecdsa-sha2-nistp256"]
