"""Checks of the database: there and readable, its rights, its file system, and whether a daemon fills it."""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from gua.clock import Clock
from gua.daemon.lock import is_locked
from gua.doctor.check import FAIL, OK, SKIP, WARN, Check
from gua.doctor.readings import Zeroes, read_zeroes
from gua.errors import DatabaseDamaged, DatabaseForbidden, DatabaseMissing, DatabaseUnusable
from gua.filesystem import is_network_type, read_filesystem_type
from gua.location import Location
from gua.model import KnownDevice, TickStatus
from gua.text import shown
from gua.units import format_duration, to_iso

if TYPE_CHECKING:
    from gua.store.reader import StoreReader, TickRow

# A day of a busy eight-card host is a few MB; below this the next weeks are at risk.
_LOW_SPACE_BYTES = 200 << 20
# A tick may be late by a sampling deadline; one that is three intervals old is not coming.
_STALE_INTERVALS = 3
_STALE_FLOOR_MS = 15_000
# How long all of it may be looked at for damage; 100 MB take half a second from memory.
_INTEGRITY_S = 2.0
_START = "start it: `systemctl start gua-agent`, or `gua daemon`"
_RESTART = "look into its log (`journalctl -u gua-agent`), and start it anew: `systemctl restart gua-agent`"
_DAMAGE_CURE = "start the daemon anew: it moves the damaged file aside and begins a new one"


@dataclass(frozen=True)
class History:
    """What reading the database gave: why it cannot be read, or what is in it.

    last: the newest tick of a daemon, None before the first. newest_ms: the newest tick of anybody.
    known: the cards that are expected here. paused_ms: since when sampling is paused, None when it is not.
    damage: what is broken in it, None when nothing is. whole_read: False when it was too large to look at all of it.
    zeroes: holds of cards that read nothing but 0 %; None where nothing was read.
    read_ms: when it was read, which the age of its ticks is told by; None when it was not.
    """

    error: Optional[Exception] = None
    read_ms: Optional[int] = None
    last: Optional[TickRow] = None
    newest_ms: Optional[int] = None
    known: tuple[KnownDevice, ...] = ()
    paused_ms: Optional[int] = None
    damage: Optional[str] = None
    whole_read: bool = True
    zeroes: Optional[Zeroes] = None


@dataclass(frozen=True)
class Storage:
    """All that was found out at the database's place. running: whether a daemon has its lock, None: cannot be told."""

    history: History
    rights: Check
    filesystem: Check
    running: Optional[bool]


def look(path: Path, clock: Clock) -> Storage:
    """Look at the database and where it lies. May take long where that place does not answer."""
    return Storage(
        read_history(path, clock), check_database_rights(path), check_database_filesystem(path), is_locked(path)
    )


def no_answer(path: Path) -> Storage:
    """What to say of a place that did not answer in time."""
    late = DatabaseUnusable(f"{path} did not answer in time")
    unseen = "its place did not answer in time"
    cure = "look whether the server of that file system is there; put the database on a local disk ([store] path)"
    return Storage(
        History(error=late),
        Check("database_rights", SKIP, unseen),
        Check("database_filesystem", FAIL, unseen, cure),
        running=None,
    )


def read_history(path: Path, clock: Clock) -> History:
    """Open the database as any reader does, and look at its newest tick and whether it is whole."""
    from gua.store.database import read_stored

    try:
        return read_stored(path, lambda reader: _history(reader, clock))
    except (DatabaseMissing, DatabaseUnusable) as exc:
        return History(error=exc)


def _history(reader: StoreReader, clock: Clock) -> History:
    now_ms = clock.now_ms()
    paused = [since for since, until in reader.pauses((0, now_ms + 1)) if until > now_ms]
    history = History(
        last=reader.newest_daemon_tick(),
        newest_ms=reader.newest_tick_ms(),
        known=tuple(row.known(None) for row in reader.devices() if row.retired_at_ms is None),
        paused_ms=min(paused, default=None),
        zeroes=read_zeroes(reader, clock),
        read_ms=clock.now_ms(),  # not before: a tick stored meanwhile is not of the future
    )
    return _with_damage(history, reader)


def _with_damage(history: History, reader: StoreReader) -> History:
    from gua.store.integrity import TooLarge

    try:
        return replace(history, damage=reader.find_damage(_INTEGRITY_S))
    except TooLarge:
        return replace(history, whole_read=False)


def check_database(location: Location, history: History) -> Check:
    """Whether the chosen database is there and can be read by this user."""
    details = {"path": str(location.path), "why": location.why}
    if isinstance(history.error, DatabaseMissing):
        return Check("database", WARN, f"no database at {location}", "run `gua daemon`, which makes it", details)
    if history.error is not None:
        return Check("database", FAIL, shown(str(history.error), 300), _database_cure(history.error), details)
    return Check("database", OK, str(location), None, details)


def _database_cure(error: Exception) -> str:
    if isinstance(error, DatabaseForbidden):
        return "become a member of the database's group, and log in anew"
    if isinstance(error, DatabaseDamaged):
        return _DAMAGE_CURE
    return "name another database with --db, or update gua, as the message says"


def check_database_integrity(history: History) -> Check:
    """Whether any page of it is broken."""
    if history.error is not None:
        return Check("database_integrity", SKIP, "no database that could be read")
    if history.damage is not None:
        return Check("database_integrity", FAIL, f"damaged: {shown(history.damage, 200)}", _DAMAGE_CURE)
    if not history.whole_read:
        summary = f"too large to look at all of it in {_INTEGRITY_S:g} s, and nothing broken was met"
        return Check("database_integrity", SKIP, summary)
    return Check("database_integrity", OK, "whole")


def check_database_rights(path: Path) -> Check:
    """That only its owner writes beside the database: a reader who may leaves files there that stop the daemon."""
    files = [p for p in (path, Path(f"{path}-wal"), Path(f"{path}-shm")) if os.path.exists(p)]
    if not files:
        return Check("database_rights", SKIP, "no database that this user can see")
    directory, owner = os.stat(path.parent), os.stat(files[0])
    details = {"owner_uid": owner.st_uid, "group_gid": owner.st_gid, "mode": f"{stat.S_IMODE(owner.st_mode):04o}"}
    strangers = [str(p) for p in files if os.stat(p).st_uid != owner.st_uid]
    if strangers:
        summary = f"{', '.join(strangers)} belong to another user than the database"
        return Check("database_rights", FAIL, summary, f"give them to uid {owner.st_uid} (chown)", details)
    if directory.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        summary = f"others than its owner may write into {path.parent}"
        return Check("database_rights", WARN, summary, f"chmod go-w {path.parent}", details)
    return Check("database_rights", OK, "only its owner may write", None, details)


def check_database_filesystem(path: Path) -> Check:
    """That the database lies on local storage with room left."""
    kind = read_filesystem_type(path)
    free = _free_bytes(path)
    details = {"type": kind, "free_bytes": free}
    if kind is not None and is_network_type(kind):
        summary = f"the database lies on {kind}: no other host may use the same file"
        return Check("database_filesystem", WARN, summary, "put it on a local disk ([store] path)", details)
    if free is not None and free < _LOW_SPACE_BYTES:
        summary = f"only {free >> 20} MB are left on the file system of the database"
        return Check("database_filesystem", WARN, summary, "make room, or ticks will be lost", details)
    return Check("database_filesystem", OK, f"{kind or 'unknown type'}, room enough", None, details)


def _free_bytes(path: Path) -> Optional[int]:
    place = next((parent for parent in path.absolute().parents if os.path.exists(parent)), None)
    return None if place is None else shutil.disk_usage(place).free


def good_tick(running: Optional[bool], history: History, *, now_ms: int) -> Optional[str]:
    """How the newest tick of a daemon went that samples well now, in words; None where none does, or nobody can say."""
    last = history.last
    if running is False or history.paused_ms is not None or last is None:
        return None
    age_ms = now_ms - last.at_ms
    if last.status not in (TickStatus.OK, TickStatus.PARTIAL) or _is_stale(last, age_ms):
        return None
    return _tick_text(last, age_ms)


def _is_stale(last: TickRow, age_ms: int) -> bool:
    return age_ms > max(_STALE_INTERVALS * last.interval_ms, _STALE_FLOOR_MS)


def _tick_text(last: TickRow, age_ms: int) -> str:
    return f"last tick {last.status.value}, {format_duration(max(0, age_ms))} old"


def check_daemon(running: Optional[bool], history: History, *, now_ms: int, gpu_less: bool) -> Check:
    """Whether somebody samples into this database, and how the newest tick went.

    running: see Storage. A host without a card waits for one, and has no ticks to be late.
    """
    last, paused_ms = history.last, history.paused_ms
    age_ms = None if last is None else now_ms - last.at_ms
    details = {
        "running": running,
        "paused_since": None if paused_ms is None else to_iso(paused_ms),
        "last_tick_at": None if last is None else to_iso(last.at_ms),
        "last_tick_age_s": None if age_ms is None else age_ms / 1000,
        "last_tick_status": None if last is None else last.status.value,
    }
    if running is False:
        told = "" if age_ms is None else f"; the last tick is {format_duration(max(0, age_ms))} old"
        return Check("daemon", WARN, f"no daemon samples into this database{told}", _START, details)
    if paused_ms is not None:
        summary = f"paused for {format_duration(max(0, now_ms - paused_ms))}: nothing is sampled"
        return Check("daemon", WARN, summary, "`gua resume`", details)
    if last is None or age_ms is None:
        waiting = "waiting for a card" if gpu_less else "no tick yet"
        return Check("daemon", OK if running else SKIP, waiting if running else "cannot tell", None, details)
    summary = _tick_text(last, age_ms)
    if _is_stale(last, age_ms) and not gpu_less:
        return Check(
            "daemon", FAIL if running else WARN, f"stuck: {summary}" if running else summary, _RESTART, details
        )
    bad = last.status in (TickStatus.ERROR, TickStatus.UNRESPONSIVE)
    return Check("daemon", WARN if bad else OK, summary, "see the check of NVML" if bad else None, details)
