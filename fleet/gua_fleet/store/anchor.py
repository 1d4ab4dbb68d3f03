"""What must come again of what was pulled before, or the host's database is another than it was: one row is asked for
once more, so that a restored copy is told though it has recorded on beyond the cursor by now.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gua_fleet.store.histories import HistoryRow
from gua_fleet.store.session import Session
from gua_fleet.store.shape import Incoming


@dataclass(frozen=True)
class TickAnchor:
    """The newest single tick. A tick never changes, so it comes with the first revision that was asked for."""

    rev: int
    ts_ms: int

    def came(self, incoming: Iterable[Incoming], *, whole: bool) -> bool | None:
        """Whether it is in a chunk; False: it will not come any more. None: not yet. whole: of the chunk."""
        ticks = _table(incoming, "tick")
        if ticks is not None and (self.rev, self.ts_ms) in zip(ticks.column("rev"), ticks.column("ts_ms"), strict=True):
            return True
        return False if whole else None


@dataclass(frozen=True)
class SlotAnchor:
    """The quarter-hour that was written last. It was still being written, so it comes with this or a later revision,
    but before any quarter-hour after it. What a restored copy records in later ones leaves it at an earlier revision.
    """

    rev: int
    slot: int

    def came(self, incoming: Iterable[Incoming], *, whole: bool) -> bool | None:
        """As TickAnchor has it."""
        slots = _table(incoming, "tick_slot")
        if slots is None:
            return None
        if any(
            slot == self.slot and rev >= self.rev
            for slot, rev in zip(slots.column("slot"), slots.column("rev"), strict=True)
        ):
            return True
        return False if max(slots.column("slot")) > self.slot else None


Anchor = TickAnchor | SlotAnchor


def tick_anchor(history: HistoryRow, raw_since_ms: int | None) -> TickAnchor | None:
    """None where no tick was pulled, or it may be gone from the host by now. raw_since_ms: of the export's header."""
    if not history.raw_rev or history.anchor_rev is None:
        return None
    at_ms = history.anchor_ms or 0
    return TickAnchor(history.anchor_rev, at_ms) if raw_since_ms is None or raw_since_ms <= at_ms else None


def slot_anchor(session: Session, history: HistoryRow) -> SlotAnchor | None:
    """None where no tick was ever counted."""
    found = session.rows(
        "SELECT rev, slot FROM tick_slot WHERE history = ? ORDER BY rev DESC, slot DESC LIMIT 1", (history.id,)
    )
    return SlotAnchor(int(found[0][0]), int(found[0][1])) if found else None


def _table(incoming: Iterable[Incoming], name: str) -> Incoming | None:
    return next((part for part in incoming if part.table.name == name), None)
