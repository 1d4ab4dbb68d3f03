"""`gua.status/1`: whether a daemon samples here, by the age of what it stored last and not by its process alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from gua import __version__
from gua.clock import Clock
from gua.cloud.heard import read_board
from gua.daemon.presence import Found, Presence, find_daemon
from gua.daemon.record import age_of_ticks_s
from gua.driver_files import SAMPLES_ON, DriverFiles, read_driver_files
from gua.errors import DatabaseForbidden, DatabaseMissing, DatabaseUnusable, GuaError
from gua.host import hostname, procfs_root
from gua.model import State, TickStatus
from gua.report.document import HostInfo
from gua.report.wording import STALE_INTERVALS, reason_text
from gua.store.reader import HostRow, StoreReader, TickRow
from gua.text import shown
from gua.units import format_duration, to_iso

SCHEMA = "gua.status/1"
# A tick may be late by a sampling deadline, and a daemon that begins needs a while for its first.
_LATE_FLOOR_MS = 15_000
_BEGIN_MS = 60_000
_DAY_MS = 86_400_000
# What a daemon may be doing, and still be running as it should
RUNNING = frozenset({"running", "starting", "paused", "waiting"})


@dataclass(frozen=True)
class History:
    """What the database says. last: of a daemon, None before its first tick. cards: UUIDs of those in service.
    states: with the reason where unknown, of each of them that was sampled.

    day: expected, observed and unknown card-seconds of the last day; None where nobody asked.
    """

    last: Optional[TickRow] = None
    cards: tuple[str, ...] = ()
    states: tuple[tuple[State, Optional[str]], ...] = ()
    paused: bool = False
    host: Optional[HostRow] = None
    day: Optional[dict[str, float]] = None
    error: Optional[GuaError] = None


def read_history(database: Path, now_ms: int, *, with_day: bool) -> History:
    """Reads only. A database that is not there, or cannot be read, is in `error`."""
    from gua.store.database import open_reader

    try:
        with open_reader(database) as reader:
            now = reader.now()
            return History(
                last=reader.newest_daemon_tick(),
                cards=tuple(device.uuid for device in reader.devices() if device.retired_at_ms is None),
                states=tuple(
                    (row.verdict.state, row.verdict.reason and row.verdict.reason.value) for row in now.values()
                ),
                paused=bool(reader.pauses((now_ms - 1, now_ms))),
                host=reader.host(),
                day=_last_day(reader, now_ms) if with_day else None,
            )
    except (DatabaseMissing, DatabaseUnusable) as exc:
        return History(error=exc)


def _last_day(reader: StoreReader, now_ms: int) -> dict[str, float]:
    from gua.report.build import build_report  # people who ask whether it runs need no sums

    report = build_report(
        reader,
        since_ms=now_ms - _DAY_MS,
        until_ms=now_ms,
        now_ms=now_ms,
        zone=None,
        zone_name="UTC",
        scheduler=None,
    )
    coverage = report["coverage"]
    return {
        "expected_card_s": coverage["expected_card_s"],
        "observed_card_s": coverage["observed_card_s"],
        "unknown_card_s": report["card_s"]["unknown"],
    }


def judge(found: Found, history: History, *, now_ms: int, age_ms: Optional[int], gpu_less: bool) -> str:
    """What the daemon does, in one word: one of RUNNING, `stuck`, `stopped`, `elsewhere`, `unknown`. Pure.

    age_ms: of the daemon's process, None where that is not known. gpu_less: this host has no card, and never had one.
    """
    fresh = is_fresh(history.last, now_ms)
    if found.presence is Presence.NONE:
        return "stopped"
    if found.presence is Presence.ELSEWHERE:
        return "elsewhere"
    if found.presence is Presence.HIDDEN:
        return "running" if fresh else "unknown"
    if history.paused:
        return "paused"
    if fresh:
        return "running"
    if gpu_less and not history.cards:
        return "waiting"
    if age_ms is not None and age_ms < _BEGIN_MS and not _has_ticked(history.last, now_ms - age_ms):
        return "starting"
    return "unknown" if history.error is not None else "stuck"


def _has_ticked(last: Optional[TickRow], since_ms: int) -> bool:
    return last is not None and last.at_ms >= since_ms


def is_fresh(last: Optional[TickRow], now_ms: int) -> bool:
    """Whether a daemon's newest tick is no older than it may be of one that runs."""
    return last is not None and abs(now_ms - last.at_ms) <= max(STALE_INTERVALS * last.interval_ms, _LATE_FLOOR_MS)


def read_status(
    database: Path, clock: Clock, *, gpu_less: bool, scheduler: Optional[str], enrolment: Path, with_day: bool
) -> dict[str, Any]:
    """The document.

    gpu_less: this host has no card. scheduler: who manages the cards, None for nobody. enrolment: the file of the one
    with a board. with_day: with sums of the last day. Raises DatabaseForbidden to who may not see a thing.
    """
    found = find_daemon(database)
    now_ms = clock.now_ms()
    history = read_history(database, now_ms, with_day=with_day)
    if found.presence is Presence.HIDDEN and isinstance(history.error, DatabaseForbidden):
        raise history.error
    record, last = found.record, history.last
    enrolled, board = read_board(enrolment, database, now_ms)
    state = judge(found, history, now_ms=now_ms, age_ms=_process_age_ms(found), gpu_less=gpu_less)
    return {
        "schema": SCHEMA,
        "generated_at": to_iso(now_ms),
        "running": state in RUNNING,
        "state": state,
        "pid": None if record is None else record.pid,
        "unit": (record.unit or None) if record else None,
        "held_by": record.host if record else None,
        "last_tick_at": None if last is None else to_iso(last.at_ms),
        "last_tick_age_s": None if last is None else (now_ms - last.at_ms) / 1000,
        "last_tick_status": None if last is None else last.status.value,
        "cards": len(history.cards),
        "card_uuids": list(history.cards),
        "card_states": dict(Counter(state.value for state, _ in history.states)),
        "unknown_by_reason": dict(Counter(reason for _, reason in history.states if reason)),
        "interval_s": None if last is None else last.interval_ms / 1000,
        "paused": history.paused,
        "database": str(database),
        "host": _host(history.host, scheduler, paused=history.paused),
        "enrolled": enrolled,
        "board": board,
        "last_day": history.day,
        "driver_mismatch": _driver_mismatch(),
        "error": None if history.error is None else shown(str(history.error), 500),
    }


def _driver_mismatch() -> Optional[dict[str, Any]]:
    files = read_driver_files(procfs_root())
    return {"kernel_module": files.module, "library": files.library} if files.differ else None


def _host(row: Optional[HostRow], scheduler: Optional[str], *, paused: bool) -> HostInfo:
    return {
        "hostname": row.hostname if row else hostname(),
        "store_id": row.store_id if row else "",
        "boot_id": row.boot_id if row else "",
        "machine_id": row.machine_id if row else "",
        "agent_version": __version__,
        "driver_version": row.driver_version if row else None,
        "scheduler": scheduler,
        "paused": paused,
    }


def _process_age_ms(found: Found) -> Optional[int]:
    if found.record is None or found.record.start_ticks is None or found.presence is not Presence.HERE:
        return None
    return round(age_of_ticks_s(found.record.start_ticks) * 1000)


def sentence(status: dict[str, Any]) -> str:
    """The document in one line. Pure."""
    pid = _who(status)
    age = _age(status["last_tick_age_s"])
    state = status["state"]
    if state == "running":
        return f"running{pid}, last tick {_word(status)}{age}, {_cards(status)}{_mismatch(status)}"
    if state == "stuck":
        due = f", and one is due every {status['interval_s']:g} s" if status["interval_s"] else ""
        last = f"last tick {age}" if age else "no tick yet"
        return f"stuck{pid}: {last}{due}; look into its log"
    rest = f", last tick {age}" if age else ""
    return {
        "starting": f"starting{pid}{rest}",
        "paused": f"paused{pid}: nothing is sampled{rest}; `gua resume` ends that",
        "waiting": f"running{pid}: no NVIDIA device on the PCI bus, waiting for one",
        "stopped": f"not running{rest}",
        "elsewhere": f"not running here: the daemon of host {shown(str(status['held_by']))} has this database{rest}",
        "unknown": f"cannot tell whether it runs{pid}{rest}" + (f": {status['error']}" if status["error"] else ""),
    }[str(state)]


def _mismatch(status: dict[str, Any]) -> str:
    found = status["driver_mismatch"]
    if found is None:
        return ""
    files = DriverFiles(found["kernel_module"], found["library"])
    good = status["last_tick_status"] in (TickStatus.OK.value, TickStatus.PARTIAL.value)
    return f"; {files}: it {SAMPLES_ON}" if good else f"; {files}"


def _who(status: dict[str, Any]) -> str:
    if status["pid"] is None:
        return ""
    unit = f", {shown(status['unit'])}" if status["unit"] else ""
    return f" (pid {status['pid']}{unit})"


def _age(age_s: Optional[float]) -> str:
    if age_s is None:
        return ""
    return f"{format_duration(round(abs(age_s) * 1000))} {'ago' if age_s >= -1 else 'ahead of the clock'}"


def _word(status: dict[str, Any]) -> str:
    return "" if status["last_tick_status"] == TickStatus.OK.value else f"{status['last_tick_status']} "


def _cards(status: dict[str, Any]) -> str:
    total, unknown = status["cards"], status["card_states"].get(State.UNKNOWN.value, 0)
    cards = "1 card" if total == 1 else f"{total} cards"
    if not unknown:
        return f"{cards} ok"
    reasons = sorted(status["unknown_by_reason"].items())
    why = ", ".join(f"{number}: {reason_text(reason)}" for reason, number in reasons)
    return f"{cards}: {total - unknown} ok, {unknown} unknown ({why})"
