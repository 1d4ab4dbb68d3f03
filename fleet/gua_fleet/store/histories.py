"""Which history a host's export goes on with: its present one, one of before, or a new one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gua_fleet.store.header import Header
from gua_fleet.store.session import Session

_NAMES = (
    "history.id, host, host.name, store_id, branch, machine_id, boot_id, hostname, agent_version, rev, raw_rev,"
    " anchor_rev, anchor_ms, raw_since_ms, users_since_slot, clock_ahead_ms, began_ms, history.pulled_ms, ended_ms,"
    " ended_why"
)
_FROM = " FROM history JOIN host ON host.id = history.host"


@dataclass(frozen=True)
class HistoryRow:
    """One database of one host; see the models for each column. name: the host's in the inventory."""

    id: int
    host: int
    name: str
    store_id: str
    branch: int
    machine_id: str
    boot_id: str
    hostname: str
    agent_version: str
    rev: int
    raw_rev: int
    anchor_rev: int | None
    anchor_ms: int | None
    raw_since_ms: int | None
    users_since_slot: int
    clock_ahead_ms: int
    began_ms: int
    pulled_ms: int
    ended_ms: int | None
    ended_why: str | None

    @property
    def reached_rev(self) -> int:
        """The newest revision of which anything is here."""
        return max(self.rev, self.raw_rev)

    def since_rev(self, *, rollups_only: bool) -> int:
        """From where to ask: the newest pulled tick once more, by which a restored copy is told; see `anchor`."""
        if rollups_only:
            return self.rev
        if self.anchor_rev is None:
            return self.raw_rev
        return min(self.raw_rev, max(0, self.anchor_rev - 1))


def histories(session: Session) -> tuple[HistoryRow, ...]:
    """Every history of every host, the oldest of each host first."""
    return _select(session, " ORDER BY host.name, history.id", ())


def present_history(session: Session, host: str) -> HistoryRow | None:
    """The history that the host's next pull goes on with, unless its database is another one by then."""
    found = _select(session, " WHERE host.name = ? AND ended_ms IS NULL ORDER BY history.id DESC LIMIT 1", (host,))
    return found[0] if found else None


def history_of(session: Session, host: int, store_id: str) -> HistoryRow | None:
    """The newest branch of this database of the host (an id); None where it is new."""
    found = _select(session, " WHERE host = ? AND store_id = ? ORDER BY branch DESC LIMIT 1", (host, store_id))
    return found[0] if found else None


def with_same_store(session: Session, history: HistoryRow) -> tuple[HistoryRow, ...]:
    """Present histories of other hosts that claim the same database."""
    where = " WHERE store_id = ? AND host <> ? AND ended_ms IS NULL ORDER BY host.name"
    return _select(session, where, (history.store_id, history.host))


def same_cards(session: Session, history: HistoryRow) -> tuple[HistoryRow, int, int] | None:
    """(the host's former history, how many of this one's cards it knew, how many cards this one has)."""
    former = _select(
        session, " WHERE host = ? AND history.id < ? ORDER BY history.id DESC LIMIT 1", (history.host, history.id)
    )
    if not former:
        return None
    uuids = [
        {row[0] for row in session.rows("SELECT uuid FROM device WHERE history = ?", (one,))}
        for one in (history.id, former[0].id)
    ]
    return former[0], len(uuids[0] & uuids[1]), len(uuids[0])


def host_id(session: Session, name: str, now_ms: int) -> int:
    """The id of a host, made if need be; it is locked for the rest of the transaction."""
    lock = "" if session.is_sqlite else " FOR UPDATE"
    found = session.value(f"SELECT id FROM host WHERE name = ?{lock}", (name,))
    if found is None:
        session.execute(
            "INSERT INTO host (name, asked_ms, outcome) VALUES (?, ?, '') ON CONFLICT (name) DO NOTHING", (name, now_ms)
        )
        found = session.value(f"SELECT id FROM host WHERE name = ?{lock}", (name,))
    return int(found)


def lock_host(session: Session, host: int) -> None:
    """Let no other pull of this host (an id) write before the transaction is over. SQLite has one writer anyway."""
    if not session.is_sqlite:
        session.execute("SELECT id FROM host WHERE id = ? FOR UPDATE", (host,))


def read_history(session: Session, history: int) -> HistoryRow | None:
    found = _select(session, " WHERE history.id = ?", (history,))
    return found[0] if found else None


def begin_history(session: Session, host: int, header: Header, *, branch: int, now_ms: int) -> HistoryRow:
    """A new history of this host, empty."""
    created = session.insert(
        "history",
        host=host,
        store_id=header.store_id,
        branch=branch,
        rev=0,
        raw_rev=0,
        users_since_slot=0,
        began_ms=now_ms,
        **_about(header, now_ms),
    )
    return _select(session, " WHERE history.id = ?", (created,))[0]


def make_present(session: Session, history: HistoryRow, header: Header, why: str, now_ms: int) -> None:
    """Go on with this history; the host's others have ended, for the reason `why`."""
    session.execute(
        "UPDATE history SET ended_ms = ?, ended_why = ? WHERE host = ? AND id <> ? AND ended_ms IS NULL",
        (now_ms, why, history.host, history.id),
    )
    about = _about(header, now_ms)
    sets = ", ".join(f"{name} = ?" for name in about)
    session.execute(
        f"UPDATE history SET {sets}, ended_ms = NULL, ended_why = NULL WHERE id = ?", (*about.values(), history.id)
    )


def _about(header: Header, now_ms: int) -> dict[str, Any]:
    return {
        "machine_id": header.machine_id,
        "boot_id": header.boot_id,
        "hostname": header.hostname,
        "agent_version": header.agent_version,
        "clock_ahead_ms": header.generated_ms - now_ms,
        "pulled_ms": now_ms,
    }


def _select(session: Session, where: str, values: tuple[Any, ...]) -> tuple[HistoryRow, ...]:
    return tuple(HistoryRow(*row) for row in session.rows(f"SELECT {_NAMES}{_FROM}{where}", values))
