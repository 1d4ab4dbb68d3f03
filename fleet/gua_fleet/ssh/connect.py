"""Asks one host over SSH: Fabric on the target, tuned as measured, every wait bounded by the host's deadline."""

from __future__ import annotations

import contextlib
import logging
import random
import shlex
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import fabric  # type: ignore[import-untyped]  # it has no type hints
import paramiko
from paramiko.packet import Packetizer

from gua_fleet.errors import HostFailure, KeysLocked
from gua_fleet.model import Host
from gua_fleet.probes.answer import Answer
from gua_fleet.probes.remote_command import command_line
from gua_fleet.ssh.attempt import Attempt
from gua_fleet.ssh.dial import dial, hang_up
from gua_fleet.ssh.keys import KeyRing, OfferKeys, locked_out
from gua_fleet.ssh.proxy import Proxy, ProxyDropped, proxy_argv, proxy_failure, start_proxy
from gua_fleet.ssh.runner import FleetConnection, NoSshConfig
from gua_fleet.ssh.target import SshConfig, Target
from gua_fleet.ssh.translate import translate
from gua_fleet.ssh.trust import HostKeys, prefer_types

# Of the deadline, what a TCP connection and SSH's hand-shake may take: dead hosts should cost little.
CONNECT_LIMIT_S = 10.0
# sshd drops connections beyond MaxStartups (10 by default) that have not logged in yet.
_PER_JUMP_HOST = 8
# Offered last by the library, and broken or weak: nobody should end up with them.
_DISABLED = {
    "ciphers": ["aes128-cbc", "aes192-cbc", "aes256-cbc", "3des-cbc"],
    "macs": ["hmac-sha1", "hmac-md5", "hmac-sha1-96", "hmac-md5-96"],
}
# Everything the two libraries and the operating system raise when a conversation fails.
_FAILURES = (OSError, EOFError, paramiko.SSHException, HostFailure)


class Connector:
    """What all connections of one sweep share: keys, known hosts, configuration. Safe to use from many threads."""

    def __init__(self, *, accept_new: bool) -> None:
        # The library logs every failure with its traceback; here each becomes one line of a table.
        logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)
        self._accept_new = accept_new
        # lazy: a ~/.fabric.yml written for other work could forward the agent to every host, or set a gateway
        self._config = fabric.Config(ssh_config=NoSshConfig(), lazy=True)
        self._ssh_config = SshConfig()
        self._keys = KeyRing()
        self._host_keys = HostKeys(accept_new=accept_new)
        self._jump_slots: dict[str, threading.BoundedSemaphore] = {}
        self._lock = threading.Lock()

    def refuse_locked_keys(self, hosts: Iterable[Host]) -> None:
        """Raise FleetError when no host of these can be asked, because every key needs a passphrase nobody can give.

        Ends at the first host that has a key to offer, so it costs next to nothing where all is well.
        """
        locked: dict[Path, None] = {}
        for host in hosts:
            try:
                found = locked_out(self._ssh_config.target(host), self._keys)
            except (OSError, LookupError, ValueError):  # its own turn will tell what is wrong with this one
                return
            if not found:
                return
            locked.update(dict.fromkeys(found))
        if locked:
            raise KeysLocked(
                f"no key can be used: {', '.join(map(str, locked))} needs a passphrase, and no SSH agent has it: "
                f"run `ssh-add {shlex.join(map(str, locked))}` first",
                tuple(locked),
            )

    def notes(self) -> tuple[str, ...]:
        """What of ssh_config could not be used, and which host keys were recorded; one line each."""
        recorded = [f"recorded the host key of {line}" for line in self._host_keys.recorded]
        return (*self._ssh_config.warnings, *recorded)

    def host_key_warnings(self) -> tuple[str, ...]:
        """The lines of known_hosts files that could not be used."""
        return self._host_keys.warnings()

    def ask(self, attempt: Attempt, argv: Sequence[str], *, cap_bytes: int) -> Answer:
        """What `argv` prints on the attempt's host. Raises HostFailure for everything else.

        The connection stays for `attempt.close()`, which may take its time once the answer is in.
        """
        target = self._ssh_config.target(attempt.host)
        keys = OfferKeys(target, self._keys)
        try:
            connection = self._open(attempt, target, keys)
            answer: Answer = connection.run(command_line(argv), attempt=attempt, cap_bytes=cap_bytes)
        except _FAILURES as exc:
            raise translate(exc, attempt, target, keys.offered) from exc
        return answer

    def _open(self, attempt: Attempt, target: Target, keys: OfferKeys) -> FleetConnection:
        if not (target.jump or target.proxy_command):
            connection = dial(
                attempt, target.address, target.port, family=target.family, limit_s=_limit_s(attempt, target)
            )
            return self._speak_ssh(attempt, target, keys, connection)
        with self._jump_slot(attempt, target.jump or target.proxy_command or ""):
            try:
                return self._through_proxy(attempt, target, keys)
            except ProxyDropped:
                time.sleep(min(random.uniform(0.2, 1.0), attempt.remaining_s()))
                return self._through_proxy(attempt, target, keys)

    def _through_proxy(self, attempt: Attempt, target: Target, keys: OfferKeys) -> FleetConnection:
        proxy = start_proxy(attempt, proxy_argv(target, accept_new=self._accept_new))
        attempt.on_close(proxy.close)
        try:
            return self._speak_ssh(attempt, target, keys, proxy.connection)
        except _FAILURES as exc:
            if attempt.stage == "connect":
                raise _of_proxy(proxy, target, attempt) or exc from exc
            raise

    def _speak_ssh(self, attempt: Attempt, target: Target, keys: OfferKeys, connection: Any) -> FleetConnection:
        """Hand-shake, host key, log-in over a connected socket."""
        attempt.on_close(connection.close)
        fabric_connection = FleetConnection(
            target.address,
            user=target.user,
            port=target.port,
            config=self._config,
            connect_kwargs=self._connect_kwargs(attempt, target, keys, connection),
        )
        client: paramiko.SSHClient = fabric_connection.client
        client.set_missing_host_key_policy(_OurPolicy(attempt, target, self._host_keys))
        # After a failed connect only the client's own close frees its thread, and only a closed socket wakes that.
        attempt.on_close(client.close)
        attempt.on_close(lambda: hang_up(connection))
        fabric_connection.open()
        return fabric_connection

    def _connect_kwargs(self, attempt: Attempt, target: Target, keys: OfferKeys, connection: Any) -> dict[str, Any]:
        limit_s = _limit_s(attempt, target)
        on_file = self._host_keys.key_types(target)

        def transport(sock: Any, **kwargs: Any) -> paramiko.Transport:
            made = paramiko.Transport(sock, packetizer_class=_UntimedPacketizer, **kwargs)
            options = made.get_security_options()
            options.key_types = prefer_types(tuple(options.key_types), on_file)
            # authenticated ones first: the library compares the other kind's MACs byte by byte in Python
            options.ciphers = sorted(options.ciphers, key=lambda name: "gcm" not in name)
            return made

        return {
            "sock": connection,
            "timeout": limit_s,
            "banner_timeout": limit_s,
            "auth_timeout": attempt.timeout_s,
            "channel_timeout": attempt.timeout_s,
            "disabled_algorithms": _DISABLED,
            "transport_factory": transport,
            "auth_strategy": keys,
        }

    @contextlib.contextmanager
    def _jump_slot(self, attempt: Attempt, jump: str) -> Iterator[None]:
        with self._lock:
            slots = self._jump_slots.setdefault(jump, threading.BoundedSemaphore(_PER_JUMP_HOST))
        if not slots.acquire(timeout=attempt.remaining_s()):
            raise attempt.timeout()
        try:
            yield
        finally:
            slots.release()


class _UntimedPacketizer(Packetizer):
    """Leaves a silent hand-shake to the client's own limit.

    The library's timer beside it would call the host one that closed the connection, and its thread outlives a dead
    connection by the whole time it was set for.
    """

    def start_handshake(self, timeout: float) -> None:
        """Set no timer. timeout: seconds."""


class _OurPolicy(paramiko.MissingHostKeyPolicy):
    """Decides about every host key: the client itself is given no known keys, so that it asks for each."""

    def __init__(self, attempt: Attempt, target: Target, host_keys: HostKeys) -> None:
        self._attempt = attempt
        self._target = target
        self._host_keys = host_keys

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        """Return to accept the key; raises HostFailure to refuse it. The log-in follows."""
        self._host_keys.check(self._target, key.asbytes())
        self._attempt.stage = "auth"


def _limit_s(attempt: Attempt, target: Target) -> float:
    return min(attempt.remaining_s(), target.connect_limit_s or CONNECT_LIMIT_S, CONNECT_LIMIT_S)


def _of_proxy(proxy: Proxy, target: Target, attempt: Attempt) -> HostFailure | None:
    """The proxy's own words, where it ended by itself; None when it still runs and the target was the trouble."""
    attempt.remaining_s()
    return proxy_failure(proxy, target)
