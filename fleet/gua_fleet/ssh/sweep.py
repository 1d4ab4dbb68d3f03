"""Asks all hosts at once and gives one outcome per host, always, whatever a host or a library call does."""

from __future__ import annotations

import contextlib
import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gua_fleet.errors import HostFailure
from gua_fleet.model import Host, HostResult, Outcome, Stage
from gua_fleet.probes.probe import Probe
from gua_fleet.probes.remote_command import agent_argv
from gua_fleet.show import one_line
from gua_fleet.ssh.attempt import Attempt
from gua_fleet.ssh.local import ask_local

if TYPE_CHECKING:
    from gua_fleet.ssh.connect import Connector

Progress = Callable[[int, int], object]
"""Called with (hosts done, hosts in all) whenever one is done."""

Notice = Callable[[str], object]
"""Called with one line for the reader."""

# A month of a big host's history is a few hundred kilobytes; anything near this is not a report.
OUTPUT_CAP_BYTES = 32 << 20


@dataclass(frozen=True)
class SweepSettings:
    """forks: hosts asked at once. timeout_s: hard deadline per host, from its turn on. accept_new: record the keys
    of hosts never seen before (a changed key is refused all the same).
    """

    forks: int = 32
    timeout_s: float = 20.0
    accept_new: bool = False
    cap_bytes: int = OUTPUT_CAP_BYTES


def sweep(
    hosts: Sequence[Host],
    probe: Probe,
    settings: SweepSettings,
    *,
    progress: Progress | None = None,
    notice: Notice = lambda line: None,
) -> tuple[HostResult, ...]:
    """One result per host, in the order given. Ends within the deadlines even if a library call never returns.

    Ctrl-C ends the sweep early: what came so far is kept, the rest is a time-out that says so.
    notice: told, line by line, which host keys were recorded and what in known_hosts or ssh_config was left out.
    Raises FleetError before anybody is asked where every key needs a passphrase that nobody can give.
    """
    running = _Sweep(hosts, probe, settings, progress)
    results = running.run()
    for line in running.notes(results):
        notice(line)
    return results


class _Sweep:
    """A thread per host, at most `forks` that still count. All are daemons and none is ever joined: a thread stuck
    in a library call is abandoned with its host's outcome recorded, and must not keep the program from ending.
    """

    def __init__(self, hosts: Sequence[Host], probe: Probe, settings: SweepSettings, progress: Progress | None) -> None:
        self._hosts = hosts
        self._probe = probe
        self._settings = settings
        self._progress = progress
        self._connector = _connector(hosts, settings)
        self._results: dict[int, HostResult] = {}
        self._running: dict[int, Attempt] = {}
        self._done: queue.SimpleQueue[tuple[int, HostResult]] = queue.SimpleQueue()

    def run(self) -> tuple[HostResult, ...]:
        asked = [host for host in self._hosts if not _left_out(host)]
        if self._connector is not None and all(host.connection == "ssh" for host in asked):
            self._connector.refuse_locked_keys(asked)
        waiting = iter(range(len(self._hosts)))
        try:
            self._start(waiting)
            while self._running:
                self._collect()
                self._expire()
                self._start(waiting)
        except KeyboardInterrupt:
            self._interrupt()
        return tuple(self._results[index] for index in range(len(self._hosts)))

    def notes(self, results: Sequence[HostResult]) -> tuple[str, ...]:
        """Lines for the reader. An odd line of known_hosts is only told when a host's key was not found there."""
        if self._connector is None:
            return ()
        missed = any(result.outcome is Outcome.HOST_KEY_UNKNOWN for result in results)
        return (*self._connector.notes(), *(self._connector.host_key_warnings() if missed else ()))

    def _start(self, waiting: Iterable[int]) -> None:
        while len(self._running) < self._settings.forks:
            index = next(iter(waiting), None)
            if index is None:
                return
            host = self._hosts[index]
            left_out = _left_out(host)
            if left_out:
                self._record(index, left_out)
                continue
            attempt = Attempt(host, self._settings.timeout_s)
            try:
                threading.Thread(target=self._work, args=(index, attempt), name=f"ask {host.name}", daemon=True).start()
            except RuntimeError as exc:  # this machine has no thread left to give
                self._record(index, _failed(attempt, HostFailure(Outcome.UNREACHABLE, f"{exc}: give fewer --forks")))
                continue
            self._running[index] = attempt

    def _work(self, index: int, attempt: Attempt) -> None:
        self._done.put((index, _ask_host(attempt, self._probe, self._settings, self._connector)))
        with contextlib.suppress(Exception):  # the answer is in: trouble with hanging up is nobody's
            attempt.close()

    def _collect(self) -> None:
        """Wait for an answer or the next deadline; take every answer that is there."""
        next_deadline_s = min(attempt.deadline_s for attempt in self._running.values())
        try:
            index, result = self._done.get(timeout=max(0.0, next_deadline_s - time.monotonic()))
        except queue.Empty:
            return
        if index in self._running:  # else it was given up before: its outcome stands
            del self._running[index]
            self._record(index, result)

    def _expire(self) -> None:
        now_s = time.monotonic()
        for index, attempt in list(self._running.items()):
            if attempt.deadline_s <= now_s:
                del self._running[index]
                self._record(index, _failed(attempt, attempt.timeout()))
                attempt.cancel()

    def _interrupt(self) -> None:
        for index, attempt in self._running.items():
            attempt.cancel()
            self._results[index] = _interrupted(attempt.host, attempt.stage)
        for index, host in enumerate(self._hosts):
            if index not in self._results:
                self._results[index] = _left_out(host) or _interrupted(host, "connect")

    def _record(self, index: int, result: HostResult) -> None:
        self._results[index] = result
        if self._progress:
            self._progress(len(self._results), len(self._hosts))


def _connector(hosts: Sequence[Host], settings: SweepSettings) -> Connector | None:
    """What SSH connections share; None when no host needs one, because the libraries take 0.2 s to load."""
    if not any(host.connection == "ssh" and not _left_out(host) for host in hosts):
        return None
    from gua_fleet.ssh.connect import Connector  # only now: see above

    return Connector(accept_new=settings.accept_new)


def _left_out(host: Host) -> HostResult | None:
    if host.maintenance:
        return HostResult(host, Outcome.MAINTENANCE, host.maintenance)
    if host.skip_reason:
        return HostResult(host, Outcome.SKIPPED, host.skip_reason)
    return None


def _interrupted(host: Host, stage: Stage) -> HostResult:
    return HostResult(host, Outcome.TIMEOUT, "interrupted before it answered", stage=stage)


def _ask_host(attempt: Attempt, probe: Probe, settings: SweepSettings, connector: Connector | None) -> HostResult:
    """The host's result; never raises, because a thread that dies would lose its host."""
    try:
        return _converse(attempt, probe, settings, connector)
    except HostFailure as failure:
        return _failed(attempt, failure)
    except Exception as exc:  # noqa: BLE001 - the guard of one host: a defect there must not cost the others
        detail = f"unexpected {type(exc).__name__}: {exc} (a defect of gua-fleet; please report it)"
        return _failed(attempt, HostFailure(Outcome.UNREACHABLE, detail))


def _converse(attempt: Attempt, probe: Probe, settings: SweepSettings, connector: Connector | None) -> HostResult:
    host, nonce = attempt.host, secrets.token_hex(16)
    as_agent_user = probe.writes and host.become
    argv = agent_argv(host, probe.argv(nonce), limit_s=attempt.timeout_s, as_agent_user=as_agent_user)
    if connector is None or host.connection == "local":
        answer = ask_local(attempt, argv, cap_bytes=settings.cap_bytes)
    else:
        answer = connector.ask(attempt, argv, cap_bytes=settings.cap_bytes)
    reading = probe.interpret(host, answer, nonce)
    stage = attempt.stage if reading.outcome is Outcome.TIMEOUT else None
    elapsed_s, answered_at_ms = attempt.elapsed_s(), round(time.time() * 1000)
    return HostResult(host, reading.outcome, reading.detail, reading.document, stage, elapsed_s, answered_at_ms)


def _failed(attempt: Attempt, failure: HostFailure) -> HostResult:
    detail = one_line(failure.detail, width=400)
    return HostResult(attempt.host, failure.outcome, detail, None, failure.stage, attempt.elapsed_s())
