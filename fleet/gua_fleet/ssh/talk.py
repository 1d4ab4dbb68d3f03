"""One question to one host, over SSH or on this machine, told as one result whatever happens."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gua_fleet.errors import HostFailure
from gua_fleet.model import Host, HostResult, Outcome
from gua_fleet.probes.answer import Answer
from gua_fleet.probes.probe import Probe
from gua_fleet.probes.remote_command import agent_argv
from gua_fleet.secrets import Secret
from gua_fleet.show import one_line
from gua_fleet.ssh.attempt import Attempt
from gua_fleet.ssh.local import ask_local
from gua_fleet.ssh.settings import SweepSettings
from gua_fleet.ssh.stream import Consume, stream_local

if TYPE_CHECKING:
    from gua_fleet.ssh.connect import Connector
    from gua_fleet.ssh.line import Line


class Talk:
    """What the questions of a sweep share."""

    def __init__(self, hosts: Sequence[Host], settings: SweepSettings) -> None:
        self._settings = settings
        self._asked = [host for host in hosts if not (host.maintenance or host.skip_reason)]
        self._connector = self._make_connector()
        self._lines: Sequence[Line] = ()

    @property
    def uses_ssh(self) -> bool:
        return self._connector is not None

    def keep(self, lines: Sequence[Line]) -> None:
        """Keep connections from now on, in `lines`: one per host and in their order."""
        self._lines = lines

    def _make_connector(self) -> Connector | None:
        """What SSH connections share; None when no host needs one, because the libraries take 0.2 s to load."""
        if not any(host.connection == "ssh" for host in self._asked):
            return None
        from gua_fleet.ssh.connect import Connector  # only now: see above

        return Connector(accept_new=self._settings.accept_new)

    def refuse_locked_keys(self) -> None:
        """As `Connector.refuse_locked_keys`, where no host can be asked without a key."""
        if self._connector is not None and all(host.connection == "ssh" for host in self._asked):
            self._connector.refuse_locked_keys(self._asked)

    def notes(self, results: Sequence[HostResult]) -> tuple[str, ...]:
        """Lines for the reader. An odd line of known_hosts is only told when a host's key was not found there."""
        if self._connector is None:
            return ()
        missed = any(result.outcome is Outcome.HOST_KEY_UNKNOWN for result in results)
        return (*self._connector.notes(), *(self._connector.host_key_warnings() if missed else ()))

    def ask(self, index: int, attempt: Attempt, probe: Probe) -> HostResult:
        """The host's result; never raises, because a thread that dies would lose its host. index: of its line."""
        try:
            return self._converse(attempt, probe, self._lines[index] if self._lines else None)
        except HostFailure as failure:
            return failed(attempt, failure)
        except Exception as exc:  # noqa: BLE001 - the guard of one host: a defect there must not cost the others
            detail = f"unexpected {type(exc).__name__}: {exc} (a defect of gua-fleet; please report it)"
            return failed(attempt, HostFailure(Outcome.UNREACHABLE, detail))

    def _converse(self, attempt: Attempt, probe: Probe, line: Line | None) -> HostResult:
        host, nonce = attempt.host, secrets.token_hex(16)
        as_agent_user = probe.writes and host.become
        password = host.become_password if as_agent_user else None
        argv = agent_argv(
            host,
            probe.argv(nonce),
            limit_s=attempt.timeout_s,
            as_agent_user=as_agent_user,
            sudo_reads=password is not None,
        )
        reading = probe.interpret(host, self._answer(attempt, argv, password, line), nonce)
        stage = attempt.stage if reading.outcome is Outcome.TIMEOUT else None
        elapsed_s, answered_at_ms = attempt.elapsed_s(), round(time.time() * 1000)
        return HostResult(
            host, reading.outcome, reading.detail, reading.document, stage, elapsed_s, answered_at_ms,
            other_major=reading.other_major,
        )  # fmt: skip

    def _answer(self, attempt: Attempt, argv: Sequence[str], password: Secret | None, line: Line | None) -> Answer:
        stdin = b"" if password is None else f"{password.reveal}\n".encode()
        cap_bytes = self._settings.cap_bytes
        if self._connector is None or attempt.host.connection == "local":
            return ask_local(attempt, argv, cap_bytes=cap_bytes, stdin=stdin)
        return self._connector.ask(attempt, argv, cap_bytes=cap_bytes, stdin=stdin, line=line)

    def stream(self, attempt: Attempt, argv: Sequence[str], consume: Consume) -> Answer:
        """Run `argv` there, its output consumed while it comes; the answer has its exit status and stderr."""
        if self._connector is None or attempt.host.connection == "local":
            return stream_local(attempt, argv, consume)
        return self._connector.ask(attempt, argv, cap_bytes=0, consume=consume)


def failed(attempt: Attempt, failure: HostFailure) -> HostResult:
    """The result of an attempt that ended in `failure`."""
    detail = one_line(failure.detail, width=400)
    return HostResult(attempt.host, failure.outcome, detail, None, failure.stage, attempt.elapsed_s())
