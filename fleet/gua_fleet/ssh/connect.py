"""Asks one host over SSH, directly, through jump hosts or a proxy command; every wait bounded by its deadline."""

from __future__ import annotations

import contextlib
import logging
import random
import shlex
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import paramiko

from gua_fleet.errors import FleetError, HostFailure
from gua_fleet.model import Host
from gua_fleet.probes.answer import Answer
from gua_fleet.probes.remote_command import command_line
from gua_fleet.ssh.attempt import Attempt
from gua_fleet.ssh.dial import dial
from gua_fleet.ssh.gateway import open_gateway
from gua_fleet.ssh.handshake import Shared, limit_s, shake_hands
from gua_fleet.ssh.keys import KeyRing, OfferKeys, locked_out
from gua_fleet.ssh.line import Line
from gua_fleet.ssh.proxy import Proxy, ProxyDropped, proxy_argv, proxy_failure, start_proxy
from gua_fleet.ssh.runner import AnswerRunner, FleetConnection, NoSshConfig, SharedConfig, StreamRunner
from gua_fleet.ssh.ssh_config import SshConfig
from gua_fleet.ssh.stream import Consume
from gua_fleet.ssh.target import Target
from gua_fleet.ssh.translate import FAILURES, is_refused_banner, translate
from gua_fleet.ssh.trust import HostKeys

# sshd drops connections beyond MaxStartups (10 by default) that have not logged in yet.
_PER_JUMP_HOST = 8


class Connector:
    """What all connections of one sweep share: keys, known hosts, configuration. Safe to use from many threads."""

    def __init__(self, *, accept_new: bool) -> None:
        # The library logs every failure with its traceback; here each becomes one line of a table.
        logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)
        self._accept_new = accept_new
        self._ssh_config = SshConfig(accept_new=accept_new)
        self._keys = KeyRing()
        self._host_keys = HostKeys(accept_new=accept_new)
        # lazy: a ~/.fabric.yml written for other work could forward the agent to every host, or set a gateway
        self._shared = Shared(SharedConfig(ssh_config=NoSshConfig(), lazy=True), self._host_keys)
        self._jump_slots: dict[str, threading.BoundedSemaphore] = {}
        self._said: dict[str, None] = {}  # an ordered set
        self._lock = threading.Lock()

    def refuse_locked_keys(self, hosts: Iterable[Host]) -> None:
        """Raise FleetError when no host of these can be asked, because every key needs a passphrase nobody can give.

        Ends at the first host that has a key or a password to offer, so it costs next to nothing where all is well.
        """
        locked: dict[Path, None] = {}
        for host in hosts:
            try:
                found = locked_out(self._ssh_config.target(host), self._keys, host.passphrase)
            except (OSError, LookupError, ValueError):  # its own turn will tell what is wrong with this one
                return
            if not found or host.password is not None:
                return
            locked.update(dict.fromkeys(found))
        if locked:
            raise FleetError(
                f"no key can be used: {', '.join(map(str, locked))} needs a passphrase, and no SSH agent has it: "
                f"run `ssh-add {shlex.join(map(str, locked))}` first"
            )

    def notes(self) -> tuple[str, ...]:
        """What of ssh_config could not be used, and which host keys were recorded; one line each."""
        recorded = [f"recorded the host key of {line}" for line in self._host_keys.recorded]
        return (*self._ssh_config.warnings, *self._said, *recorded)

    def host_key_warnings(self) -> tuple[str, ...]:
        """The lines of known_hosts files that could not be used."""
        return self._host_keys.warnings()

    def ask(
        self,
        attempt: Attempt,
        argv: Sequence[str],
        *,
        cap_bytes: int,
        stdin: bytes = b"",
        line: Line | None = None,
        consume: Consume | None = None,
    ) -> Answer:
        """What `argv` prints on the attempt's host when it reads `stdin`. Raises HostFailure for everything else.

        consume: takes stdout while it comes, instead of the answer. Needs `line` to be None, and gives it no stdin.
        The connection stays for `attempt.close()`, which may take its time once the answer is in; a `line` keeps it.
        """
        command = command_line(argv)
        if line and line.connection:
            with contextlib.suppress(*FAILURES):
                return line.ask(attempt, command, cap_bytes=cap_bytes, stdin=stdin)
            attempt.remaining_s()  # the host may have been restarted meanwhile: dial again while there is time
            attempt.stage = "connect"
        target = self._ssh_config.target(attempt.host, attempt)
        self._warn_unchecked(target)
        keys = OfferKeys(target, self._keys, attempt.host.passphrase, attempt.host.password)
        try:
            connection = self._open(attempt, target, keys)
            if consume is not None:
                return StreamRunner(connection).run(command, attempt=attempt, consume=consume)
            answer = AnswerRunner(connection).run(command, attempt=attempt, cap_bytes=cap_bytes, stdin=stdin)
        except FAILURES as exc:
            raise translate(exc, attempt, target, keys.offered, has_password=keys.has_password) from exc
        if line:
            line.keep(attempt, connection)
        return answer

    def _warn_unchecked(self, target: Target) -> None:
        if target.unchecked:
            self._say(
                "StrictHostKeyChecking=no is taken as accept-new: new host keys are recorded, a changed one is refused"
            )

    def _say(self, line: str) -> None:
        with self._lock:
            self._said[line] = None

    def _open(self, attempt: Attempt, target: Target, keys: OfferKeys) -> FleetConnection:
        if target.proxy_command:
            with self._jump_slots_of((target.proxy_command,), attempt):
                return _once_more(attempt, lambda: self._through_proxy(attempt, target, keys))
        if not target.jump:
            return _once_more(attempt, lambda: self._directly(attempt, target, keys))
        way = self._through_proxy if shutil.which("ssh") else self._through_gateway
        with self._jump_slots_of(target.hops, attempt):
            return _once_more(attempt, lambda: way(attempt, target, keys))

    def _directly(self, attempt: Attempt, target: Target, keys: OfferKeys) -> FleetConnection:
        most_s = limit_s(attempt, target)
        connection = dial(attempt, target.address, target.port, family=target.family, limit_s=most_s)
        return shake_hands(attempt, target, keys, connection, self._shared)

    def _through_proxy(self, attempt: Attempt, target: Target, keys: OfferKeys) -> FleetConnection:
        def accepts_new(hop: str) -> bool:
            said = self._ssh_config.hop(hop, target.config_file, attempt)
            self._warn_unchecked(said)
            return self._accept_new or said.accept_new

        proxy = start_proxy(attempt, proxy_argv(target, accepts_new))
        attempt.on_close(proxy.close)
        try:
            connection = shake_hands(attempt, target, keys, proxy.connection, self._shared)
        except FAILURES as exc:
            if attempt.stage == "connect":
                raise _of_proxy(proxy, target, attempt) or exc from exc
            raise
        for line in proxy.recorded():
            self._say(f"jump host: {line}")
        return connection

    def _through_gateway(self, attempt: Attempt, target: Target, keys: OfferKeys) -> FleetConnection:
        """Without OpenSSH on this machine: the jump hosts spoken to by ourselves, as strictly."""

        def of_hop(text: str) -> tuple[Target, OfferKeys]:
            hop = self._ssh_config.hop(text, target.config_file, attempt)
            return hop, OfferKeys(hop, self._keys)

        channel = open_gateway(attempt, target, of_hop, self._shared)
        attempt.stage = "connect"
        return shake_hands(attempt, target, keys, channel, self._shared)

    @contextlib.contextmanager
    def _jump_slots_of(self, hops: Sequence[str], attempt: Attempt) -> Iterator[None]:
        """A place at each of these, taken in the same order by everybody, so that nobody waits for each other."""
        with contextlib.ExitStack() as held:
            for hop in sorted(set(hops)):
                with self._lock:
                    slots = self._jump_slots.setdefault(hop, threading.BoundedSemaphore(_PER_JUMP_HOST))
                if not slots.acquire(timeout=attempt.remaining_s()):
                    raise attempt.timeout()
                held.callback(slots.release)
            yield


def _once_more(attempt: Attempt, way: Callable[[], FleetConnection]) -> FleetConnection:
    """What `way` opens; tried again, a random moment later, when a busy server hung up before it spoke."""
    try:
        return way()
    except ProxyDropped:
        pass
    except (OSError, EOFError, paramiko.SSHException) as exc:
        if attempt.stage != "connect" or not is_refused_banner(exc):
            raise
    time.sleep(min(random.uniform(0.2, 1.0), attempt.remaining_s()))
    return way()


def _of_proxy(proxy: Proxy, target: Target, attempt: Attempt) -> HostFailure | None:
    """The proxy's own words, where it ended by itself; None when it still runs and the target was the trouble."""
    attempt.remaining_s()
    return proxy_failure(proxy, target)
