"""Starts a real OpenSSH server on a high loopback port, as whoever runs the tests."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
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
    """A server on address:port, of this machine only. settings: more lines of sshd_config.

    The listening socket is ours from the start, with an `sshd -i` for each connection: no other server can get the
    port, none is ever refused because sshd is not up yet, and each sshd ends with its connection, so with the tests.
    greeting: sent before sshd speaks, as a server may.
    """

    def __init__(
        self,
        folder: Path,
        keys: Keys,
        *settings: str,
        host_keys: tuple[str, ...] = ("host",),
        greeting: bytes = b"",
        wrapper: tuple[str, ...] = (),
        address: str = "127.0.0.1",
    ) -> None:
        folder.mkdir()
        family, *_, place = socket.getaddrinfo(address, 0, type=socket.SOCK_STREAM)[0]
        self._listener = socket.create_server(place, family=family, backlog=128)
        self.address = address
        self.port = int(self._listener.getsockname()[1])
        self._keys = keys
        self._host_keys = host_keys
        self._greeting = greeting
        self._command = [*wrapper, find_sshd(), "-i", "-e", "-f", str(folder / "config")]
        self._running: list[subprocess.Popen[bytes]] = []
        self._write_config(folder, settings)
        self._log = (folder / "log").open("ab")

    def _write_config(self, folder: Path, settings: Sequence[str]) -> None:
        authorized = folder / "authorized_keys"
        authorized.write_text((self._keys.folder / "client.pub").read_text())
        lines = [
            *settings,  # first, for the first of two wins
            f"Port {self.port}",
            "ListenAddress 127.0.0.1",
            *(f"HostKey {self._keys.folder / name}" for name in self._host_keys),
            f"AuthorizedKeysFile {authorized}",
            "StrictModes no",
            "UsePAM no",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PermitRootLogin yes",
            "MaxStartups 1000",
            "PidFile none",
        ]
        (folder / "config").write_text("\n".join(lines) + "\n")

    def __enter__(self) -> Sshd:
        _make_run_folder()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.end_sessions()
        self._log.close()

    def end_sessions(self) -> None:
        """Cut every connection there is, as a reboot would."""
        for process in self._running:
            process.kill()
            process.wait(60)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed
                return
            with connection:
                connection.sendall(self._greeting)
                descriptor = connection.fileno()
                process = subprocess.Popen(self._command, stdin=descriptor, stdout=descriptor, stderr=self._log)
            self._running = [each for each in self._running if each.poll() is None] + [process]

    def known_line(self, key: str | None = None) -> str:
        return f"[{self.address}]:{self.port} {self._keys.public(key or self._host_keys[0])}\n"


class StandingSshd(Sshd):
    """The same with an sshd that listens by itself, as on a real host: for measuring what the client costs."""

    def __enter__(self) -> Sshd:
        self._listener.close()
        _make_run_folder()
        self._server = subprocess.Popen(
            [find_sshd(), "-D", "-e", *self._command[-2:]], stderr=self._log, stdin=subprocess.DEVNULL
        )
        deadline_s = time.monotonic() + 60
        while time.monotonic() < deadline_s:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.02)
        raise RuntimeError("sshd does not listen")

    def __exit__(self, *exc: object) -> None:
        self._server.terminate()
        self._server.wait(60)
        self._log.close()


def _make_run_folder() -> None:
    """Where sshd's own user is locked in; a package makes it when the service starts, and root's sshd ends without."""
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)


@contextlib.contextmanager
def closed_port() -> Iterator[int]:
    """One at which nobody listens: it is ours meanwhile, so that nobody else can get it."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        yield int(closed.getsockname()[1])


def host(server: Sshd | int, keys: Keys, known_hosts: Path, command: Path | tuple[str, ...], **more: object) -> Host:
    """An inventory host that points at `server`. known_hosts: its user file."""
    port = server if isinstance(server, int) else server.port
    values: dict[str, object] = {
        "name": f"host{port}",
        "address": "127.0.0.1" if isinstance(server, int) else server.address,
        "port": port,
        "user": getpass.getuser(),
        "identity_file": str(keys.client),
        "ssh_options": ssh_options(known_hosts),
        "gua_command": command if isinstance(command, tuple) else (str(command),),
        **more,
    }
    return Host(**values)  # type: ignore[arg-type]


def ssh_options(known_hosts: Path, **options: str) -> dict[str, str]:
    """Of a host, as they are in an ssh_config of the machine or in the inventory's ssh arguments."""
    return {"userknownhostsfile": str(known_hosts), "globalknownhostsfile": "none", **options}


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
from gua.schemas import DOCUMENTS
nonce = sys.argv[sys.argv.index("--frame") + 1]
def frame(document):
    return wrap_document(json.dumps(document), nonce)
def answer(**more):
    document = {{"schema": "gua.doctor/1", "generated_at": "2026-03-02T12:00:10Z", "ready": True, "checks": []}}
    document["agent"] = {{"version": "0.1.0", "documents": DOCUMENTS}}
    document["arguments"] = sys.argv[1:]
    sys.stdout.write(frame({{**document, **more}}))
{body}
"""
    )
    path.chmod(0o755)
    return path
