"""Fills a database with a made-up host's history, and tops it up when it is there already."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Optional, Protocol

from gua import __version__
from gua.demo.cluster import demo_tick
from gua.demo.profile import HostProfile
from gua.model import DEFAULT_RULE, KnownDevice, Rule, Tick

# Coarser than a daemon, so that a week of a small fleet is made in a second or two.
INTERVAL_MS = 10 * 60_000


class HistoryWriter(Protocol):
    """What filling needs of the store's writer."""

    def known_devices(self) -> tuple[KnownDevice, ...]: ...

    def begin_run(self, kind: str, interval_ms: int, rule: Rule, agent_version: str) -> None: ...

    def write_ticks(self, ticks: Iterable[Tick]) -> None: ...

    def end_run(self) -> None: ...


def fill(
    writer: HistoryWriter, profile: HostProfile, *, since_ms: int, until_ms: int, interval_ms: int = INTERVAL_MS
) -> int:
    """Write the host's ticks from the one that covers since_ms to the last before until_ms. Returns how many.

    Ticks are on whole multiples of the interval.
    """
    first_ms = since_ms // interval_ms * interval_ms
    times = range(first_ms, until_ms, interval_ms)
    if times:
        writer.begin_run("demo", interval_ms, DEFAULT_RULE, __version__)
        writer.write_ticks(demo_tick(profile, ts_ms, interval_ms) for ts_ms in times)
        writer.end_run()
    return len(times)


def top_up(writer: HistoryWriter, profile: HostProfile, *, since_ms: int, until_ms: int) -> int:
    """As `fill`, but begins after the newest tick that is stored, so that a second run has little to do."""
    stored = [device.last_seen_ms for device in writer.known_devices() if device.last_seen_ms is not None]
    next_ms = max(stored) + INTERVAL_MS if stored else since_ms
    return fill(writer, profile, since_ms=max(since_ms, next_ms), until_ms=until_ms)


def history_begins_ms(writer: HistoryWriter) -> Optional[int]:
    """Time of the first stored tick of any card still in service; None when nothing is stored."""
    return min((device.first_seen_ms for device in writer.known_devices()), default=None)
