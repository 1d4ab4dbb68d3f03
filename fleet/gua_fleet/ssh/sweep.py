"""Asks all hosts at once and gives one outcome per host, always, whatever a host or a library call does."""

from __future__ import annotations

import contextlib
import gc
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from gua_fleet.errors import HostFailure
from gua_fleet.model import Host, HostResult, Outcome, Stage
from gua_fleet.probes.probe import Probe
from gua_fleet.ssh.attempt import Attempt
from gua_fleet.ssh.settings import SweepSettings
from gua_fleet.ssh.stop import stop_signals
from gua_fleet.ssh.talk import Talk, failed

# How long an interrupted sweep waits for its threads to end their hosts' commands and their own `ssh`.
_GOODBYE_S = 3.0
_OBJECTS_BETWEEN_COLLECTIONS = 50_000
# A signal that comes on the way into a wait does not end it: its handler, which is Python, runs after it.
_LONGEST_WAIT_S = 0.25


@dataclass(frozen=True)
class Standing:
    """How far a sweep is. done, failed, total: hosts. running: those being asked, with seconds, the slowest first.
    latest: the result that has just come.
    """

    done: int
    failed: int
    total: int
    running: tuple[tuple[str, float], ...]
    latest: HostResult


Progress = Callable[[Standing], object]
"""Called whenever a host is done."""

Notice = Callable[[str], object]
"""Called with one line for the reader."""


def sweep(
    hosts: Sequence[Host],
    probe: Probe,
    settings: SweepSettings,
    *,
    progress: Progress | None = None,
    notice: Notice = lambda line: None,
) -> tuple[HostResult, ...]:
    """One result per host, in the order given. Ends within the deadlines even if a library call never returns.

    Ctrl-C, SIGTERM and SIGHUP end the sweep early: what came so far is kept, the rest is a time-out that says so.
    notice: told, line by line, which host keys were recorded and what in known_hosts or ssh_config was left out.
    Raises FleetError before anybody is asked where every key needs a passphrase that nobody can give.
    """
    talk = Talk(hosts, settings)
    talk.refuse_locked_keys()
    results = Sweep(hosts, probe, settings, talk, progress).run()
    for line in talk.notes(results):
        notice(line)
    return results


class Sweep:
    """A thread per host, at most `forks` that still count. All are daemons and none is ever joined: a thread stuck
    in a library call is abandoned with its host's outcome recorded, and must not keep the program from ending.
    """

    def __init__(
        self, hosts: Sequence[Host], probe: Probe, settings: SweepSettings, talk: Talk, progress: Progress | None
    ) -> None:
        self._hosts = hosts
        self._probe = probe
        self._settings = settings
        self._talk = talk
        self._progress = progress
        self._results: dict[int, HostResult] = {}
        self._running: dict[int, Attempt] = {}
        self._done: queue.SimpleQueue[tuple[int, HostResult]] = queue.SimpleQueue()
        self._failed = 0

    def run(self) -> tuple[HostResult, ...]:
        """One result per host; see `sweep`."""
        waiting = iter(range(len(self._hosts)))
        try:
            with stop_signals(), _rare_collections():
                self._start(waiting)
                while self._running:
                    self._collect()
                    self._expire()
                    self._start(waiting)
        except KeyboardInterrupt:
            self._interrupt()
        return tuple(self._results[index] for index in range(len(self._hosts)))

    def _start(self, waiting: Iterable[int]) -> None:
        while len(self._running) < self._settings.forks:
            index = next(iter(waiting), None)
            if index is None:
                return
            host = self._hosts[index]
            result = left_out(host)
            if result:
                self._record(index, result)
                continue
            attempt = Attempt(host, self._settings.timeout_s)
            try:
                threading.Thread(target=self._work, args=(index, attempt), name=f"ask {host.name}", daemon=True).start()
            except RuntimeError as exc:  # this machine has no thread left to give
                self._record(index, failed(attempt, HostFailure(Outcome.UNREACHABLE, f"{exc}: give fewer --forks")))
                continue
            self._running[index] = attempt

    def _work(self, index: int, attempt: Attempt) -> None:
        self._done.put((index, self._talk.ask(index, attempt, self._probe)))
        with contextlib.suppress(Exception):  # the answer is in: trouble with hanging up is nobody's
            attempt.close()
        attempt.closed.set()

    def _collect(self) -> None:
        """Wait a while for an answer, at most until the next deadline."""
        left_s = min(attempt.deadline_s for attempt in self._running.values()) - time.monotonic()
        try:
            index, result = self._done.get(timeout=min(max(0.0, left_s), _LONGEST_WAIT_S))
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
                attempt.cancel()
                self._record(index, failed(attempt, attempt.timeout()))

    def _interrupt(self) -> None:
        for index, attempt in self._running.items():
            attempt.give_up()
            self._results[index] = _interrupted(attempt.host, attempt.stage)
        for index, host in enumerate(self._hosts):
            if index not in self._results:
                self._results[index] = left_out(host) or _interrupted(host, "connect")
        end_s = time.monotonic() + _GOODBYE_S
        for attempt in self._running.values():
            # politely where a command runs, which looks at the clock by itself; else there is nothing to be polite to
            if attempt.stage != "output" or not attempt.closed.wait(max(0.0, end_s - time.monotonic())):
                attempt.cancel()
        for attempt in self._running.values():
            attempt.closed.wait(max(0.0, end_s - time.monotonic()))

    def _record(self, index: int, result: HostResult) -> None:
        self._results[index] = result
        self._failed += result.failed
        if self._progress:
            running = sorted(((a.host.name, a.elapsed_s()) for a in self._running.values()), key=lambda pair: -pair[1])
            done, total = len(self._results), len(self._hosts)
            self._progress(Standing(done, self._failed, total, tuple(running), result))


@contextlib.contextmanager
def _rare_collections() -> Iterator[None]:
    """Python looks for dead cycles whenever many objects have been made. Documents are nothing but many objects, and
    these looks find nothing in them: 6 % of a sweep's CPU time.
    """
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def left_out(host: Host) -> HostResult | None:
    """The result of a host that is not asked; None for one that is."""
    if host.maintenance:
        return HostResult(host, Outcome.MAINTENANCE, host.maintenance)
    if host.skip_reason:
        return HostResult(host, Outcome.SKIPPED, host.skip_reason)
    return None


def _interrupted(host: Host, stage: Stage) -> HostResult:
    return HostResult(host, Outcome.TIMEOUT, "interrupted before it answered", stage=stage)
