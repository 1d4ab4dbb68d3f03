"""One sampling of this host for whoever asks now: collected, stored where that is allowed, and answered."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional, Union

from gua import __version__
from gua.clock import Clock
from gua.collect import TickSource
from gua.config import Settings
from gua.driver_files import HAS_ONE, MISMATCH, REMOVED, SAMPLES_ON
from gua.errors import DatabaseMissing, DatabaseUnusable, GuaError, NotEnrolled
from gua.host import hostname, procfs_root, read_boot_id, read_machine_id
from gua.model import FIRST_SAMPLE, READING_UTIL, CardTick, KnownDevice, Reason, Tick, TickStatus
from gua.observation import SCHEMA, Observation, Push, to_cards, to_errors
from gua.pci import is_gpu_less, read_nvidia_devices, sysfs_root
from gua.recording import open_recording
from gua.report.document import HostInfo
from gua.units import to_iso

# Sends a tick to the board, told whether nothing was collected; raises GuaError when it could not.
SendTick = Callable[[Tick, bool], None]

# The counters of MIG instances need a tenth of a second between two looks; a card's own point reading covers as much.
_SECOND_LOOK_S = 0.2


@dataclass(frozen=True)
class Asked:
    """What was asked for. cover_ms: how much time the tick stands for, 0 outside a timer. push: never, auto, always."""

    database: Path
    cover_ms: int
    push: str
    fake: bool


@dataclass(frozen=True)
class _Stored:
    """What became of a tick. reason: why it was not stored. since_ms: when the states of now began, by UUID."""

    reason: Optional[str]
    failed: bool = False
    store_id: str = ""
    since_ms: Optional[dict[str, int]] = None


@dataclass(frozen=True)
class Observed:
    """The document, and a line for people for each thing that failed: collecting or storing, pushing."""

    document: Observation
    failures: tuple[str, ...]


def observe(
    source: TickSource, clock: Clock, settings: Settings, asked: Asked, send: Union[SendTick, GuaError, None] = None
) -> Observed:
    """Collect one tick and store it, then push it.

    Where this user may not write, the observation is answered unstored and says so. A tick without NVML is not stored.
    send: how to push; None: nowhere; an error: an enrolment is there, and this is why it cannot be used.
    """
    known, unread = _known_devices(asked.database)
    tick = _collect(source, clock, asked.cover_ms, known)
    status = _status(tick, known, history_read=unread is None)
    errors = _errors(tick, status, unread) + _samples_on(tick, asked.database, clock)
    stored = _store(tick, clock, settings, asked) if status in ("ok", "partial") else _Stored(_why_not(status))
    push, unpushed = _push(tick, asked.push, send, broken=status == "error")
    document: Observation = {
        "schema": SCHEMA,
        "observed_at": to_iso(tick.ts_ms),
        "status": status,
        "stored": stored.reason is None,
        "stored_reason": stored.reason,
        "store_failed": stored.failed,
        "push": push,
        "host": _host(tick, settings, stored.store_id),
        "cards": to_cards(tick, stored.since_ms or {}) if status in ("ok", "partial") else [],
        "errors": errors,
    }
    failure = errors[0] if status == "error" else stored.reason if stored.failed else None
    return Observed(document, tuple(text for text in (failure, unpushed) if text is not None))


def _push(tick: Tick, mode: str, send: Union[SendTick, GuaError, None], *, broken: bool) -> tuple[Push, Optional[str]]:
    """What became of the push, and the line for people when it failed. Comes after the storing, whatever that gave."""
    if mode == "never" or send is None:
        return {"mode": mode, "result": "not-asked" if mode == "never" else "not-enrolled", "reason": None}, None
    try:
        if isinstance(send, GuaError):
            raise send
        send(tick, broken)
    except NotEnrolled as exc:
        return {"mode": mode, "result": "not-enrolled", "reason": str(exc)}, None
    except GuaError as exc:
        return {"mode": mode, "result": "failed", "reason": str(exc)}, f"not pushed: {exc}"
    return {"mode": mode, "result": "pushed", "reason": None}, None


def _collect(source: TickSource, clock: Clock, cover_ms: int, known: Sequence[KnownDevice]) -> Tick:
    """One tick; a second one where the first could only begin to measure what a held MIG instance does."""
    tick = source.collect(ts_ms=clock.now_ms(), cover_ms=cover_ms, known=known)
    if any(_only_begun(card) for card in tick.cards):
        clock.sleep_s(_SECOND_LOOK_S)
        tick = source.collect(ts_ms=clock.now_ms(), cover_ms=cover_ms, known=known)
    return tick


def _only_begun(card: CardTick) -> bool:
    fault = card.reading.faults.get(READING_UTIL)
    return card.verdict.reason is Reason.UTIL_UNAVAILABLE and fault is not None and fault.error == FIRST_SAMPLE


def _status(tick: Tick, known: Sequence[KnownDevice], *, history_read: bool) -> str:
    """`no-gpu` needs every witness: no card in NVML, none ever known here, none on the bus."""
    unusable = tick.status in (TickStatus.ERROR, TickStatus.UNRESPONSIVE)
    if not tick.cards and not known and not tick.mig_parents and tick.status is not TickStatus.UNRESPONSIVE:
        sysfs = sysfs_root()
        gpu_less = history_read and is_gpu_less(read_nvidia_devices(sysfs), sysfs, procfs_root())
        return "no-gpu" if gpu_less else "error"
    return "error" if unusable else tick.status.value


def _errors(tick: Tick, status: str, unread: Optional[str]) -> list[str]:
    """unread: why the history could not be read, None when it was, or is not there."""
    if status == "no-gpu":
        return []
    errors = to_errors(tick)
    if status == "error" and not errors:
        errors = ["no_card: NVML answers, but lists no card of those on the PCI bus"]
    return errors if unread is None else [*errors, f"history_unavailable: cards that are gone are not told: {unread}"]


def _samples_on(tick: Tick, database: Path, clock: Clock) -> list[str]:
    """That a daemon has the driver all the same, where the library was replaced or removed beneath it."""
    if tick.fault is None or tick.fault.error not in (MISMATCH, REMOVED):
        return []
    from gua.daemon.presence import Presence, find_daemon
    from gua.daemon.status import is_fresh, read_history

    if find_daemon(database).presence is Presence.NONE:
        return []

    now_ms = clock.now_ms()
    last = read_history(database, now_ms, with_day=False).last
    if last is None or last.status not in (TickStatus.OK, TickStatus.PARTIAL) or not is_fresh(last, now_ms):
        return []
    on = SAMPLES_ON if tick.fault.error == MISMATCH else HAS_ONE
    return [f"daemon_samples_on: the daemon, whose last tick is {last.status.value}, {on}"]


def _why_not(status: str) -> str:
    return "no NVIDIA device on the PCI bus" if status == "no-gpu" else "nothing was measured"


def _known_devices(database: Path) -> tuple[tuple[KnownDevice, ...], Optional[str]]:
    """The cards expected here, and why that could not be read: the present can be told without the past."""
    from gua.store.database import read_stored

    try:
        devices = read_stored(database, lambda reader: reader.devices())
        return tuple(row.known(None) for row in devices if row.retired_at_ms is None), None
    except DatabaseMissing:
        return (), None
    except DatabaseUnusable as exc:
        return (), str(exc)


def _store(tick: Tick, clock: Clock, settings: Settings, asked: Asked) -> _Stored:
    if not may_write(asked.database):
        return _Stored(f"no permission to write {asked.database}")
    try:
        with open_recording(asked.database, clock, fake=asked.fake, alone=False) as writer:
            writer.begin_run("sync-once", asked.cover_ms, settings.rule, __version__)
            writer.write_tick(tick)
    except DatabaseUnusable as exc:
        return _Stored(str(exc), failed=True)
    return _read_back(asked.database)


def may_write(database: Path) -> bool:
    """Whether this user may write the database and the side files next to it."""
    if os.path.exists(database) and not os.access(database, os.W_OK):
        return False
    directory = next(parent for parent in database.absolute().parents if os.path.exists(parent))
    return os.access(directory, os.W_OK | os.X_OK)


def _read_back(database: Path) -> _Stored:
    from gua.store.database import open_reader

    with open_reader(database) as reader:
        uuids = {row.id: row.uuid for row in reader.devices()}
        host = reader.host()
        since_ms = {uuids[device]: now.since_ms for device, now in reader.now().items()}
        return _Stored(None, store_id="" if host is None else host.store_id, since_ms=since_ms)


def _host(tick: Tick, settings: Settings, store_id: str) -> HostInfo:
    return {
        "hostname": hostname(),
        "store_id": store_id,
        "boot_id": read_boot_id(procfs_root()),
        "machine_id": read_machine_id(),
        "agent_version": __version__,
        "driver_version": tick.driver_version,
        "scheduler": settings.scheduler,
    }
