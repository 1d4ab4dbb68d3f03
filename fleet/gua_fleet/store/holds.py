"""The ledger of holds as reports list it, read for many histories at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gua.coverage import Span
from gua.report.amounts import states_of
from gua.report.material import HOLDS_SHOWN
from gua.store.codes import GRAPHICS, USER_SOURCES
from gua.units import to_iso
from gua_fleet.model import Document
from gua_fleet.store.forgotten import shown_user
from gua_fleet.store.ids import numbers
from gua_fleet.store.session import Session


@dataclass(frozen=True)
class Holds:
    """Those of one history that touch a window. rows: as read, at most HOLDS_SHOWN; in_all: how many there are."""

    rows: Sequence[Sequence[Any]] = field(default=())
    in_all: int = 0

    @property
    def devices(self) -> set[int]:
        return {row[1] for row in self.rows}


# Those still open first, then by long idle-held time, then the newest: in a long window most are left out.
_CHOSEN = (
    "SELECT history, id, process, device, since_ms, until_ms, memory_mb, active_ms, idle_held_ms, truly_idle_ms,"
    " unknown_ms, long_idle_ms, sm_util_ms, sm_util_pct_ms, count(*) OVER (PARTITION BY history) AS in_all,"
    " row_number() OVER (PARTITION BY history ORDER BY is_open DESC, long_idle_ms DESC, id DESC) AS place"
    " FROM hold WHERE history IN ({ids}) AND until_ms > ? AND since_ms < ? AND type <> ?"
)
_ROWS = (
    "SELECT hold.history, in_all, hold.id, device, since_ms, until_ms, memory_mb, active_ms, idle_held_ms,"
    " truly_idle_ms, unknown_ms, long_idle_ms, sm_util_ms, sm_util_pct_ms, person.name, process.name, pid,"
    " start_ticks, process.source, mount_hint, boot_id FROM ({chosen}) AS hold"
    " JOIN process ON process.history = hold.history AND process.id = hold.process"
    " JOIN person ON person.history = hold.history AND person.id = process.person"
    " LEFT JOIN boot ON boot.history = hold.history AND boot.id = process.boot"
    " WHERE place <= ? ORDER BY hold.history, place"
)


def read_holds(session: Session, ids: Sequence[int], window: Span) -> dict[int, Holds]:
    """Holds of compute and MPS processes that touch the window, by history."""
    rows: dict[int, list[Sequence[Any]]] = {one: [] for one in ids}
    in_all = dict.fromkeys(ids, 0)
    statement = _ROWS.format(chosen=_CHOSEN.format(ids=numbers(ids)))
    for history, count, *row in session.rows(statement, (*window, GRAPHICS, HOLDS_SHOWN)):
        rows[history].append(row)
        in_all[history] = count
    return {one: Holds(rows[one], in_all[one]) for one in ids}


def document_of(row: Sequence[Any], uuids: Mapping[int, str]) -> Document:
    """The hold as a report has it, but that it has an end: until when it was seen. Nobody saw whether it goes on.

    uuids: by device id.
    """
    hold, device, since_ms, until_ms, memory_mb, *state_ms = row[:9]
    long_idle_ms, sm_ms, sm_pct_ms, user, process, pid, start_ticks, source, mounts, boot_id = row[9:]
    return {
        "user": shown_user(user),
        "process": process,
        "pid": pid,
        "card": uuids[device],
        "since": to_iso(since_ms),
        "until": to_iso(until_ms),
        "memory_mb": memory_mb,
        "states": states_of(state_ms),
        "idle_held_long_card_s": long_idle_ms / 1000,
        "id": hold,
        "process_key": f"{boot_id}:{pid}:{'' if start_ticks is None else start_ticks}",
        "user_source": USER_SOURCES[source].value,
        "mounts": mounts,
        "sm_util_pct": round(sm_pct_ms / sm_ms, 1) if sm_ms > 0 else None,
    }
