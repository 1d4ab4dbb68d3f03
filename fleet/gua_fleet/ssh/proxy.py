"""Reaches a host through a command: `ssh -W` to a jump host, or a ProxyCommand from the inventory or ssh_config."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO

from gua_fleet.errors import HostFailure
from gua_fleet.model import Outcome
from gua_fleet.probes.remote_command import command_line
from gua_fleet.ssh.attempt import Attempt
from gua_fleet.ssh.dial import hang_up
from gua_fleet.ssh.target import Target

_END_WAIT_S = 1.0
# ssh's own words for the hop that it makes for: aliases of ssh_config have been looked up in them.
_NEXT_HOP = "[%h]:%p"
# All that the hops of a chain say that are not the one in trouble.
_ECHO = re.compile(r"exchange_identification: |Connection (closed|reset) by UNKNOWN port|^Permanently added ")


class ProxyDropped(HostFailure):
    """The jump host hung up before it spoke: it takes no more newcomers just now, and may in a moment."""


@dataclass
class Proxy:
    """A running proxy command. connection: our end of it, a real socket, so that time-outs work as on any other."""

    connection: socket.socket
    process: subprocess.Popen[bytes]
    errors: IO[bytes]

    def said(self) -> tuple[str, ...]:
        """The lines it wrote on stderr."""
        self.errors.seek(0)
        lines = self.errors.read()[-4096:].decode("utf-8", "replace").splitlines()
        return tuple(line.strip() for line in lines if line.strip())

    def recorded(self) -> tuple[str, ...]:
        """The host keys that OpenSSH wrote down, in its own words."""
        return tuple(line for line in self.said() if "Permanently added" in line)

    def kill(self) -> None:
        """End it and whatever it started, without waiting."""
        hang_up(self.connection)
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGTERM)

    def close(self) -> None:
        """End it and reap it, by force after a second, so that no zombie stays."""
        self.kill()
        try:
            self.process.wait(_END_WAIT_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.connection.close()
        self.errors.close()


def proxy_argv(target: Target, accepts_new: Callable[[str], bool]) -> list[str]:
    """The command that connects its stdin and stdout to the target. Raises HostFailure: ssh is needed and missing.

    accepts_new: whether the key of this jump host (one of the chain) may be recorded when it is new.
    """
    if target.proxy_command:
        return ["/bin/sh", "-c", f"exec {_expand(target.proxy_command, target)}"]
    ssh = shutil.which("ssh")
    if ssh is None:
        raise HostFailure(Outcome.UNREACHABLE, "a jump host needs the OpenSSH client on this machine: install `ssh`")
    common = [ssh, "-o", "BatchMode=yes", "-o", "ControlPersist=no"]
    common += ["-F", target.config_file] if target.config_file else []
    return _hop_argv(common, target.hops, f"[{target.address}]:{target.port}", accepts_new)


def _hop_argv(common: list[str], hops: Sequence[str], to: str, accepts_new: Callable[[str], bool]) -> list[str]:
    """`ssh` to the last hop, through those before it. Not by -J: that would leave their host keys to ssh_config."""
    *before, last = hops
    through: list[str] = []
    if before:
        inner = _hop_argv(common, before, _NEXT_HOP, accepts_new)
        command = command_line([word if word == _NEXT_HOP else word.replace("%", "%%") for word in inner])
        through = ["-o", f"ProxyCommand={command}"]
    policy = ["-o", f"StrictHostKeyChecking={'accept-new' if accepts_new(last) else 'yes'}"]
    return [*common, *policy, *through, "-W", to, last if "://" in last else f"ssh://{last}"]


def start_proxy(attempt: Attempt, argv: Sequence[str]) -> Proxy:
    """The started command, ended when the attempt is cancelled. It has no terminal, so it can ask nobody anything."""
    ours, theirs = socket.socketpair()
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - Proxy.close closes it
    try:
        process = subprocess.Popen(
            argv,
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=errors,
            start_new_session=True,
            env={**os.environ, "SSH_ASKPASS_REQUIRE": "never"},
        )
    except OSError as exc:
        ours.close()
        errors.close()
        raise HostFailure(Outcome.UNREACHABLE, f"the proxy command cannot be started: {exc.strerror}") from exc
    finally:
        theirs.close()
    proxy = Proxy(ours, process, errors)
    attempt.on_cancel(proxy.kill)
    return proxy


def proxy_failure(proxy: Proxy, target: Target) -> HostFailure | None:
    """Why the proxy gave up, in its own words; None when it did not, so that the target is the trouble."""
    said = proxy.said()
    try:
        proxy.process.wait(_END_WAIT_S if said else 0.1)
    except subprocess.TimeoutExpired:
        return None
    text = " ".join(said)
    through = f"through jump host {target.jump}" if target.jump else "through its proxy command"
    reasons = [line for line in said if not _ECHO.search(line)] or said
    detail = f"{through}: {', '.join(reasons[-2:]) or f'it ended with status {proxy.process.returncode}'}"
    if "IDENTIFICATION HAS CHANGED" in text:
        place = re.search(r"Offending .*? in (\S+:\d+)", text)
        where = f" from that in {place.group(1)}" if place else ""
        return HostFailure(Outcome.HOST_KEY_CHANGED, f"{through}: its host key has changed{where}")
    if "is marked as revoked" in text or "revoked" in text.lower():
        return HostFailure(Outcome.HOST_KEY_CHANGED, f"{through}: its host key is revoked: do not trust that host")
    if "Host key verification failed" in text:
        return HostFailure(Outcome.HOST_KEY_UNKNOWN, f"{through}: its host key is not on file: connect there once")
    denied = next((line for line in said if "Permission denied" in line), None)
    if denied:
        return HostFailure(Outcome.AUTH_FAILED, f"{through}: {denied}")
    # last, for in a chain every hop but the one in trouble says no more than this
    if "exchange_identification" in text:
        return ProxyDropped(Outcome.UNREACHABLE, detail)
    return HostFailure(Outcome.UNREACHABLE, detail)


def _expand(command: str, target: Target) -> str:
    """ssh_config's tokens. Raises HostFailure for a value that would mean something to the shell."""
    values = {"h": target.address, "p": str(target.port), "r": target.user, "n": target.key_name, "%": "%"}

    def value(token: re.Match[str]) -> str:
        text = values[token.group(1)]
        if not re.fullmatch(r"[\w.@%:+=,/-]+", text):
            raise HostFailure(Outcome.UNREACHABLE, f"{text!r} cannot stand for {token.group()} in its proxy command")
        return text

    return re.sub(r"%([hprn%])", value, command)
