"""A fleet asked again and again over connections that are kept, for whoever watches it live."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from gua_fleet.model import Host, HostResult
from gua_fleet.probes.probe import Probe
from gua_fleet.ssh.settings import SweepSettings
from gua_fleet.ssh.sweep import Notice, Progress, Sweep
from gua_fleet.ssh.talk import Talk

if TYPE_CHECKING:
    from gua_fleet.ssh.line import Line


class KeptFleet:
    """Asks like `sweep`, over one connection a host that stays open; a lost one is dialled anew at the next question.

        with KeptFleet(hosts, settings) as fleet:
            results = fleet.ask(probe)

    One question at a time. notice: told each line once, however often it asks. Entering raises FleetError as `sweep`.
    """

    def __init__(self, hosts: Sequence[Host], settings: SweepSettings, *, notice: Notice = lambda line: None) -> None:
        self._hosts = tuple(hosts)
        self._settings = settings
        self._notice = notice
        self._told: set[str] = set()
        self._lines: list[Line] = []
        self._talk = Talk(self._hosts, settings)

    def __enter__(self) -> KeptFleet:
        self._talk.refuse_locked_keys()
        if self._talk.uses_ssh:
            from gua_fleet.ssh.line import Line  # the libraries take 0.2 s to load

            self._lines = [Line() for _ in self._hosts]
            self._talk.keep(self._lines)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(self, probe: Probe, *, progress: Progress | None = None) -> tuple[HostResult, ...]:
        """One result per host, in the order given: see `sweep`, also for what Ctrl-C does."""
        results = Sweep(self._hosts, probe, self._settings, self._talk, progress).run()
        for line in self._talk.notes(results):
            if line not in self._told:
                self._told.add(line)
                self._notice(line)
        return results

    def close(self) -> None:
        """Hang up on all hosts. Does not wait for one that does not let go."""
        for line in self._lines:
            line.hang_up()
        closing = [threading.Thread(target=_close, args=(line,), daemon=True) for line in self._lines]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join(1.0)


def _close(line: Line) -> None:
    with contextlib.suppress(Exception):
        line.close()
