"""Starts a real OpenSSH server on a high loopback port, as whoever runs the tests."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gua_fleet.model import Host

REPOSITORY = Path(__file__).resolve().parents[3]


_HAS_CLIENT = all(shutil.which(command) for command in ("ssh", "ssh-keygen"))
_NO_CLIENT = "needs OpenSSH's ssh and ssh-keygen: install openssh-client"
needs_openssh = pytest.mark.skipif(not _HAS_CLIENT, reason=_NO_CLIENT)


def find_sshd() -> str:
    """Path of sshd; skips the test where it is not installed."""
    path = shutil.which("sshd") or next((p for p in ("/usr/sbin/sshd",) if os.access(p, os.X_OK)), None)
    if path is None:
        pytest.skip("needs OpenSSH's sshd: install openssh-server")
    return path


class Keys:
    """Key pairs made once: `client` is let in, `stranger` is not, `host`, `other_host` and `ecdsa_host` are hosts'."""

    def __init__(self, folder: Path) -> None:
        if not _HAS_CLIENT:
            pytest.skip(_NO_CLIENT)
        self.folder = folder
        for name, kind in (
            ("client", "ed25519"),
            ("stranger", "ed25519"),
            ("host", "ed25519"),
            ("other_host", "ed25519"),
            ("ecdsa_host", "ecdsa"),
        ):
            self.make(name, kind)

    def make(self, name: str, kind: str, passphrase: str = "") -> Path:
        path = self.folder / name
        command = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", name, "-f", str(path)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
        return path

    def __getattr__(self, name: str) -> Path:
        return self.folder / name

    def public(self, name: str) -> str:
        """`type base64`, as a known_hosts line ends."""
        return " ".join((self.folder / f"{name}.pub").read_text().split()[:2])


class Sshd:
    """A server on 127.0.0.1:port. settings: more lines of sshd_config."""

    def __init__(self, folder: Path, keys: Keys, *settings: str, host_keys: tuple[str, ...] = ("host",)) -> None:
        self.port = free_port()
        self._keys = keys
        self._host_keys = host_keys
        folder.mkdir()
        authorized = folder / "authorized_keys"
        authorized.write_text((keys.folder / "client.pub").read_text())
        self._log = folder / "log"
        self._config = folder / "config"
        lines = [
            f"Port {self.port}",
            "ListenAddress 127.0.0.1",
            *(f"HostKey {keys.folder / name}" for name in host_keys),
            f"AuthorizedKeysFile {authorized}",
            "StrictModes no",
            "UsePAM no",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PermitRootLogin yes",
            "MaxStartups 100",
            "PidFile none",
            *settings,
        ]
        self._config.write_text("\n".join(lines) + "\n")

    def __enter__(self) -> Sshd:
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        command = [find_sshd(), "-D", "-e", "-f", str(self._config)]
        self._output = self._log.open("wb")
        self._process = subprocess.Popen(command, stderr=self._output, stdin=subprocess.DEVNULL)
        self._wait_until_it_listens()
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.terminate()
        self._process.wait(60)
        self._output.close()

    def _wait_until_it_listens(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                pytest.fail(f"sshd did not start: {self._log.read_text()}")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        pytest.fail("sshd does not listen")

    def known_line(self, key: str | None = None) -> str:
        return f"[127.0.0.1]:{self.port} {self._keys.public(key or self._host_keys[0])}\n"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def host(server: Sshd | int, keys: Keys, known_hosts: Path, command: Path | tuple[str, ...], **more: object) -> Host:
    """An inventory host that points at `server`. known_hosts: its user file."""
    port = server if isinstance(server, int) else server.port
    values: dict[str, object] = {
        "name": f"host{port}",
        "address": "127.0.0.1",
        "port": port,
        "user": getpass.getuser(),
        "identity_file": str(keys.client),
        "ssh_options": {"userknownhostsfile": str(known_hosts), "globalknownhostsfile": "none"},
        "gua_command": command if isinstance(command, tuple) else (str(command),),
        **more,
    }
    return Host(**values)  # type: ignore[arg-type]


def write_agent(path: Path, body: str = "answer()") -> Path:
    """An executable agent. body: Python with `answer(document=..., **more)`, `frame(document)`, `nonce`, sys, time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        # A first line cannot name an interpreter whose path holds a blank; to Python the second one is a text.
        f"""#!/bin/sh
"exec" {json.dumps(sys.executable)} "$0" "$@"
import json, os, sys, time
sys.path.insert(0, {str(REPOSITORY / "agent")!r})
from gua.frames import wrap_document
nonce = sys.argv[sys.argv.index("--frame") + 1]
def frame(document):
    return wrap_document(json.dumps(document), nonce)
def answer(**more):
    document = {{"schema": "gua.doctor/1", "generated_at": "2026-03-02T12:00:10Z", "ready": True, "checks": []}}
    document["arguments"] = sys.argv[1:]
    sys.stdout.write(frame({{**document, **more}}))
{body}
"""
    )
    path.chmod(0o755)
    return path
