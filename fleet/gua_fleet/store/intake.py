"""One host's export taken into the store: one transaction a chunk, with the cursor that says how far it came.

Whatever happens between two transactions, the next pull goes on from the cursor, and a chunk that was taken in already
changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gua.export.reading import PackedChunk
from gua_fleet.store.anchor import Anchor, SlotAnchor, slot_anchor, tick_anchor
from gua_fleet.store.days import day_of, sum_days
from gua_fleet.store.expired import drop_named, drop_nameless
from gua_fleet.store.forgotten import drop_forgotten
from gua_fleet.store.header import Header
from gua_fleet.store.histories import (
    HistoryRow,
    begin_history,
    history_of,
    host_id,
    lock_host,
    make_present,
    present_history,
    read_history,
)
from gua_fleet.store.put import put
from gua_fleet.store.retention import remove_raw
from gua_fleet.store.session import Session
from gua_fleet.store.shape import Incoming, NotBelieved, believed, is_wanted
from gua_fleet.store.superseded import supersede

REPLACED = "another database took its place"
RESTORED = "the database was restored from a copy"


class AskAgain(Exception):
    """The host has to be asked from another revision on: its database is not the one that was expected."""


def _which(history: HistoryRow) -> tuple[str, str, int]:
    return history.name, history.store_id, history.branch


@dataclass
class Taken:
    """What one pull brought. new: its history began with it. restored: because the host's database was put back.

    replaced: because it has another database. pruned: raw ticks were removed there before they could be pulled.
    rev: how far it came; newest_tick_ms: the newest tick that came, by the host's clock; None: none yet.
    rows: those that were put in. came: all that were sent, with those of the last tick's revision, which is asked for
    once more.
    """

    rows: int = 0
    came: int = 0
    chunks: int = 0
    new: bool = False
    restored: bool = False
    replaced: bool = False
    pruned: bool = False
    rev: int | None = None
    newest_tick_ms: int | None = None


class Intake:
    """One host's pull. Every method is one transaction, and may be called again where that failed.

    Used in the order: since_rev, begin, take for each chunk, finish; from since_rev again after AskAgain.
    """

    def __init__(self, session: Session, name: str, *, rollups_only: bool) -> None:
        self._session = session
        self._name = name
        self._rollups_only = rollups_only
        self._now_ms = 0
        self._asked: HistoryRow | None = None  # as it was when the host was asked: others may write meanwhile
        self._asked_rev = 0
        self._slot_anchor: SlotAnchor | None = None
        self._anchor: Anchor | None = None
        self._header: Header | None = None
        self.history: HistoryRow | None = None
        self.taken = Taken()

    def since_rev(self) -> int:
        """The revision from which to ask the host."""
        with self._session.reading():
            if self.history is None:
                self._asked = present_history(self._session, self._name)
            else:
                self._asked = read_history(self._session, self.history.id)
            self._slot_anchor = None if self._asked is None else slot_anchor(self._session, self._asked)
        self._asked_rev = 0 if self._asked is None else self._asked.since_rev(rollups_only=self._rollups_only)
        if self._rollups_only and self._slot_anchor is not None:
            self._asked_rev = min(self._asked_rev, self._slot_anchor.rev - 1)
        return self._asked_rev

    def begin(self, header: Header, now_ms: int) -> None:
        """Settle which history the export belongs to. Raises AskAgain where that one goes on from elsewhere.

        now_ms: this machine's clock when the header came.
        """
        self._now_ms = now_ms
        asked = self._asked
        with self._session.writing():
            host = host_id(self._session, self._name, self._now_ms)
            history = history_of(self._session, host, header.store_id)
            taken = replace(self.taken)
            expected = history is not None and asked is not None and history.id == asked.id
            if history is None or (expected and asked and header.newest_rev < asked.reached_rev):
                history = self._begin_new(host, history, header, taken)
            else:
                make_present(self._session, history, header, REPLACED, self._now_ms)
            self._note_pruned(history, header, taken)
        self.history, self.taken, self._header, self._anchor = history, taken, header, None
        if history.id != (asked.id if asked else None) and (self._asked_rev or history.reached_rev):
            raise AskAgain
        if asked is not None and history.id == asked.id:
            self._anchor = self._expected(asked, header)

    def _expected(self, asked: HistoryRow, header: Header) -> Anchor | None:
        """What must come again in this export; None where nothing must."""
        tick = None if self._rollups_only else tick_anchor(asked, header.raw_since_ms)
        slot = self._slot_anchor
        return tick or (slot if slot is not None and slot.rev > self._asked_rev else None)

    def _begin_new(self, host: int, known: HistoryRow | None, header: Header, taken: Taken) -> HistoryRow:
        before = present_history(self._session, self._name)
        taken.new, taken.restored = True, known is not None
        taken.replaced = known is None and before is not None
        branch = 0 if known is None else known.branch + 1
        history = begin_history(self._session, host, header, branch=branch, now_ms=self._now_ms)
        make_present(self._session, history, header, RESTORED if known else REPLACED, self._now_ms)
        return history

    def _note_pruned(self, history: HistoryRow, header: Header, taken: Taken) -> None:
        """Raw ticks that are gone there and were never here leave a gap, beyond which raw ticks are not whole."""
        if self._rollups_only or header.raw_since_ms is None:
            return
        missed = history.raw_rev > 0 and header.oldest_whole_rev > history.raw_rev + 1
        if history.raw_rev == 0 or (missed and header.raw_since_ms > (history.anchor_ms or 0)):
            taken.pruned = missed
            self._session.execute("UPDATE history SET raw_since_ms = ? WHERE id = ?", (header.raw_since_ms, history.id))

    def take(self, chunk: PackedChunk) -> None:
        """Take in a chunk, all of it or nothing. Raises NotBelieved, and AskAgain for a database put back unseen."""
        incoming = believed(chunk.columns(is_wanted), (chunk.after_rev, chunk.until_rev))
        self._check_anchor(chunk, incoming)
        with self._session.writing():
            history = self._locked()
            if chunk.after_rev > self._reached(history):
                raise NotBelieved("it goes on where nothing was pulled yet: another pull began anew, pull again")
            is_new = chunk.until_rev > self._reached(history)
            if is_new or not chunk.whole:
                self._put(history, incoming)
            if chunk.whole:
                self._advance(history, chunk.until_rev, incoming)
        rows = sum(part.rows for part in incoming)
        self.taken.came += rows
        self.taken.rows += rows if is_new else 0
        self.taken.chunks += 1
        self._note(chunk, incoming)

    def _note(self, chunk: PackedChunk, incoming: Iterable[Incoming]) -> None:
        if chunk.whole:
            self.taken.rev = chunk.until_rev
        for part in incoming:
            if part.table.name == "tick":
                self.taken.newest_tick_ms = max(self.taken.newest_tick_ms or 0, *part.column("ts_ms"))

    def _locked(self) -> HistoryRow:
        assert self.history is not None  # for the type checker: begin came before
        lock_host(self._session, self.history.host)
        history = read_history(self._session, self.history.id)
        # SQLite gives the number of a history that was forgotten to the next one, of any host
        if history is None or history.ended_ms is not None or _which(history) != _which(self.history):
            raise NotBelieved("its history was ended or forgotten while it was pulled: pull again")
        return history

    def _reached(self, history: HistoryRow) -> int:
        return history.rev if self._rollups_only else min(history.rev, history.raw_rev)

    def _put(self, history: HistoryRow, incoming: Iterable[Incoming]) -> None:
        days: set[int] = set()
        timed: set[int] = set()
        for part in incoming:
            if part.table.name == "user_slot":
                drop_named(self._session, history.id, part)
            put(self._session, history.id, part)
            if part.table.name.endswith("_slot"):
                days |= set(map(day_of, set(part.column("slot"))))
            if part.table.name in ("tick_slot", "card_slot"):
                timed |= set(part.column("slot"))
        if any(part.table.name in ("person", "process") for part in incoming):
            drop_forgotten(self._session, history.id, self._name)
        days |= supersede(self._session, history.host, history.id, timed)
        sum_days(self._session, history.id, days)

    def _advance(self, history: HistoryRow, until_rev: int, incoming: Iterable[Incoming]) -> None:
        """Move the cursor, never back: another controller may have been faster."""
        anchor = history.anchor_rev, history.anchor_ms
        for part in incoming:
            if part.table.name == "tick":
                newest = max(zip(part.column("rev"), part.column("ts_ms"), strict=True))
                anchor = max(newest, anchor) if anchor[0] is not None else newest
        raw_rev = history.raw_rev if self._rollups_only else max(history.raw_rev, until_rev)
        self._session.execute(
            "UPDATE history SET rev = ?, raw_rev = ?, anchor_rev = ?, anchor_ms = ?, pulled_ms = ? WHERE id = ?",
            (max(history.rev, until_rev), raw_rev, *anchor, self._now_ms, history.id),
        )

    def _check_anchor(self, chunk: PackedChunk, incoming: Iterable[Incoming]) -> None:
        """Begin a branch before anything of another database gets into this one."""
        came = None if self._anchor is None else self._anchor.came(incoming, whole=chunk.whole)
        if came:
            self._anchor = None
        elif came is False:
            self._put_back()

    def _put_back(self) -> None:
        """Begin another branch, and have the host asked for all of it."""
        assert self.history is not None  # for the type checker: begin came before
        assert self._header is not None
        with self._session.writing():
            known = self._locked()
            taken = replace(self.taken)
            history = self._begin_new(known.host, known, self._header, taken)
        self.history, self.taken, self._anchor = history, taken, None
        raise AskAgain

    def finish(self, *, raw_ms: int | None) -> None:
        """The export came to its end: note that, drop who is named nowhere, and raw ticks older than `raw_ms`.

        raw_ms: how long raw ticks are kept, in milliseconds; None: for ever. Raises AskAgain as `take` does.
        """
        assert self.history is not None  # for the type checker: begin came before
        assert self._header is not None
        if self._anchor is not None:
            self._put_back()
        header = self._header
        with self._session.writing():
            history = self._locked()
            if header.users_since_slot != history.users_since_slot:
                drop_nameless(self._session, history.id)
            self._session.execute(
                "UPDATE history SET users_since_slot = ?, pulled_ms = ? WHERE id = ?",
                (header.users_since_slot, self._now_ms, history.id),
            )
            self._session.execute("UPDATE host SET pulled_ms = ? WHERE id = ?", (self._now_ms, history.host))
            if raw_ms is not None:
                # neither clock can take away what by the other one is new
                remove_raw(self._session, history.host, min(self._now_ms, header.generated_ms) - raw_ms)
