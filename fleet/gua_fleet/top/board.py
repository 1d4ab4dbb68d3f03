"""What is known of each host while it is watched: the newest answer, and the last one that had cards."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gua_fleet.model import Host, HostResult, Outcome
from gua_fleet.present import Knowledge, fleet_now
from gua_fleet.top.frame import Row


@dataclass
class _Heard:
    newest: HostResult | None = None
    answer: HostResult | None = None
    answer_at_s: float = 0.0


class Board:
    """Written by the thread that asks, read by the one that shows. monotonic_s: seconds that only grow."""

    def __init__(
        self,
        hosts: Sequence[Host],
        known: Knowledge,
        *,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._hosts = hosts
        self._known = known
        self._change: Callable[[], object] | None = None
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._heard = {host.name: _Heard() for host in hosts}
        self.notice = ""
        self.failure: BaseException | None = None

    def on_change(self, call: Callable[[], object] | None) -> None:
        """Call this after each change; None: nothing any more."""
        self._change = call

    def _changed(self) -> None:
        call = self._change
        if call is not None:
            call()

    def note(self, result: HostResult) -> None:
        """Take in what became of one host's newest question."""
        with self._lock:
            heard = self._heard[result.host.name]
            heard.newest = result
            if result.document is not None:
                heard.answer, heard.answer_at_s = result, self._monotonic_s()
            elif not result.failed:  # it has no cards, or is not asked for them
                heard.answer = None
        self._changed()

    def say(self, line: str) -> None:
        """A line for the reader."""
        self.notice = line
        self._changed()

    def fail(self, error: BaseException) -> None:
        """The asking ended: whoever shows has to end, too."""
        self.failure = error
        self._changed()

    def results(self) -> tuple[HostResult, ...]:
        """The newest result of every host that was asked."""
        with self._lock:
            return tuple(heard.newest for heard in self._heard.values() if heard.newest is not None)

    def rows(self) -> list[Row]:
        """Every host in inventory order, whether it was heard of or not."""
        with self._lock:
            heard = [self._heard[host.name] for host in self._hosts]
            now_s = self._monotonic_s()
            shown = [
                one.answer or one.newest or HostResult(host, Outcome.SKIPPED, "not asked yet")
                for one, host in zip(heard, self._hosts, strict=True)
            ]
            hosts = fleet_now(shown, self._known)
            return [
                Row(
                    host,
                    None if one.answer is None else now_s - one.answer_at_s,
                    _trouble(one.newest),
                    one.newest is not None,
                )
                for one, host in zip(heard, hosts, strict=True)
            ]


def _trouble(result: HostResult | None) -> str | None:
    if result is None or not result.failed:
        return None
    return f"{result.outcome_text}: {result.detail}" if result.detail else result.outcome_text
