"""Facts of the processes seen at the last look, read in full again only where they may have changed.

A glance is one file of a process, where all its facts are five: a tick costs a third of what it would.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Optional

from gua.identity.proc import Glance, ProcessFacts, ProcFs

# What no glance shows: another uid without a new program, a login uid set late, a move to another cgroup. Who starts
# jobs does that in their first moments, so a process is read in full at its first two looks, then at every tenth:
# every five minutes at the usual interval.
_LOOKS = 10


@dataclass(frozen=True)
class _Known:
    glance: Glance
    facts: ProcessFacts
    looks_left: int


class ProcessMemory:
    """Not for use by several threads."""

    def __init__(self, procfs: ProcFs) -> None:
        self._procfs = procfs
        self._known: dict[int, _Known] = {}

    def look(self, pids: Iterable[int]) -> Mapping[int, Optional[ProcessFacts]]:
        """The facts of each process; None where it is gone or hidden. Those not asked for are forgotten."""
        found = {pid: self._look(pid) for pid in pids}
        self._known = {pid: known for pid, known in found.items() if known is not None}
        return {pid: None if known is None else known.facts for pid, known in found.items()}

    def _look(self, pid: int) -> Optional[_Known]:
        glance = self._procfs.glance(pid)
        if glance is None:
            return None
        before = self._known.get(pid)
        if before is not None and before.glance != glance:
            before = None
        if before is not None and before.looks_left > 0:
            return _Known(glance, before.facts, before.looks_left - 1)
        facts = self._procfs.read_process(pid)
        return None if facts is None else _Known(glance, facts, 0 if before is None else _LOOKS - 1)
