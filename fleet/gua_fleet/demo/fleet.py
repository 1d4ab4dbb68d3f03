"""The made-up fleet on disk: a directory with a database per host and the inventory that names them."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

from gua.clock import SystemClock
from gua.demo.history import history_begins_ms, top_up
from gua.demo.profile import DEMO_HOSTS, HostProfile
from gua.demo.recording import open_demo_writer
from gua.errors import DatabaseUnusable, UsageError
from gua.units import MS_PER_HOUR
from gua_fleet.demo.inventory import HEAD, inventory_text

HOSTS = ("gpu01", "gpu02", "gpu03")

# A little more than the week that is reported, because a window of days widens to quarter hours.
_LENGTH_MS = (7 * 24 + 1) * MS_PER_HOUR
# The lost card goes this long after history begins, and is never repaired.
_LOST_AFTER_MS = (4 * 24 + 3) * MS_PER_HOUR

# A file of its own, so that the settings of this very machine do not reach the made-up host.
_SETTINGS = "# All settings of this made-up host have their defaults.\n"


@dataclass(frozen=True)
class _Recording:
    """One host's history to make: pickled to the process that makes it."""

    path: Path
    profile: HostProfile
    now_ms: int


def make_fleet(directory: Path, *, now_ms: int, utc_offset_ms: int) -> Path:
    """Make or top up the made-up fleet in `directory`; gives the path of its inventory.

    History ends at now_ms (Unix, UTC). utc_offset_ms: how far the people's clocks are ahead of UTC.
    Raises UsageError where it cannot be written, DatabaseUnusable for a history that was left broken.
    """
    recordings = [
        _Recording(database(directory, name), replace(DEMO_HOSTS[name], utc_offset_ms=utc_offset_ms), now_ms)
        for name in HOSTS
    ]
    inventory = _write_files(directory)
    try:
        _record_all(recordings)
    except DatabaseUnusable as exc:
        raise DatabaseUnusable(
            f"{exc}; remove the directory {directory} and begin again, nothing in it is real"
        ) from exc
    return inventory


def _record_all(recordings: Sequence[_Recording]) -> None:
    # spawn, because forking a process that has threads is unsafe and the caller may have some
    with ProcessPoolExecutor(len(recordings), mp_context=get_context("spawn")) as pool:
        with _interrupts_held():  # the new processes inherit it: a Ctrl-C is for this process to answer
            recorded = pool.map(_record, recordings)
        for _ in recorded:
            pass


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _write_files(directory: Path) -> Path:
    """Everything but the histories. Gives the inventory's path.

    Raises UsageError where nothing can be written, or where an inventory lies that is not the demonstration's.
    """
    inventory = directory / "inventory.yml"
    try:
        if inventory.exists() and not inventory.read_text(encoding="utf-8", errors="replace").startswith(HEAD):
            raise UsageError(f"{inventory} is no demonstration's and stays as it is; name another directory with --dir")
        for name in HOSTS:
            (directory / name).mkdir(parents=True, exist_ok=True)
            (directory / name / "agent.toml").write_text(_SETTINGS, encoding="utf-8")
        inventory.write_text(inventory_text(directory, sys.executable), encoding="utf-8")
    except OSError as exc:
        raise UsageError(f"{directory}: cannot be written: {exc.strerror}; name another place with --dir") from exc
    return inventory


def database(directory: Path, name: str) -> Path:
    """Where the made-up host keeps its history."""
    return directory / name / "gua.db"


def _record(recording: _Recording) -> None:
    since_ms = recording.now_ms - _LENGTH_MS
    with open_demo_writer(recording.path, recording.profile, SystemClock()) as writer:
        begins_ms = history_begins_ms(writer)
        lost_from_ms = (since_ms if begins_ms is None else begins_ms) + _LOST_AFTER_MS
        profile = replace(recording.profile, lost_from_ms=lost_from_ms)
        top_up(writer, profile, since_ms=since_ms, until_ms=recording.now_ms)
