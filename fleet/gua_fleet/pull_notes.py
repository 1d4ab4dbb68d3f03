"""What there is to say of one host's pull, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass, field

from gua.units import to_iso
from gua_fleet.model import Document
from gua_fleet.show import one_line
from gua_fleet.store.histories import HistoryRow, read_history, same_cards, with_same_store
from gua_fleet.store.intake import Intake
from gua_fleet.store.session import Session

# Clocks differ by seconds, and an answer takes some.
_CLOCK_MS = 120_000


@dataclass
class Facts:
    """bytes: on the wire, before SSH. since_rev and rev: where it began and how far it came. rows, came: of `Taken`."""

    store_id: str | None = None
    since_rev: int | None = None
    rev: int | None = None
    rows: int = 0
    came: int = 0
    chunks: int = 0
    bytes: int = 0
    newest_tick_ms: int | None = None
    notes: tuple[str, ...] = field(default=())

    def begun(self, intake: Intake) -> None:
        history = intake.history
        if history is not None:
            self.store_id = history.store_id
            self.since_rev = history.reached_rev
            self.rev = history.reached_rev

    def took(self, intake: Intake) -> None:
        taken = intake.taken
        self.rows, self.came, self.chunks = taken.rows, taken.came, taken.chunks
        self.rev = taken.rev if taken.rev is not None else self.rev
        self.newest_tick_ms = taken.newest_tick_ms

    def document(self) -> Document:
        """A host's part of `gua.fleet-pull/1`."""
        return {
            "store_id": self.store_id,
            "since_rev": self.since_rev,
            "rev": self.rev,
            "rows": self.rows,
            "chunks": self.chunks,
            "bytes": self.bytes,
            "newest_tick_at": None if self.newest_tick_ms is None else to_iso(self.newest_tick_ms),
            "notes": list(self.notes),
        }


def notes_of(session: Session, intake: Intake) -> tuple[str, ...]:
    """What a reader should know of this host's history; one line each."""
    assert intake.history is not None  # for the type checker: it was pulled
    with session.reading():
        history = read_history(session, intake.history.id)
        if history is None:
            return ()
        return tuple(
            one_line(note, width=400)
            for note in (
                _clock(history),
                _beginning(session, history, intake),
                _pruned(history, intake),
                *_twins(session, history),
            )
            if note
        )


def _clock(history: HistoryRow) -> str | None:
    ahead_ms = history.clock_ahead_ms
    if abs(ahead_ms) < _CLOCK_MS:
        return None
    return f"its clock is {_span(abs(ahead_ms))} {'ahead of' if ahead_ms > 0 else 'behind'} this machine's"


def _span(ms: int) -> str:
    hours = ms / 3_600_000
    if hours < 2:
        return f"{ms / 60_000:.0f} min"
    return f"{hours:.0f} h" if hours < 48 else f"{hours / 24:.0f} days"


def _beginning(session: Session, history: HistoryRow, intake: Intake) -> str | None:
    taken = intake.taken
    if taken.restored:
        return "its database was restored from an older copy: pulled anew, what was here before is kept"
    if not taken.replaced:
        return None
    found = same_cards(session, history)
    if found is None:
        return None
    former, known, cards = found
    what = "re-imaged" if former.machine_id != history.machine_id else "its database was replaced"
    if not known:
        return f"{what}, with other cards than before: what was here before is kept"
    same = "the same cards" if known == cards else f"{known} of its {cards} cards as before"
    return f"{what}, {same}: what was here before is kept"


def _pruned(history: HistoryRow, intake: Intake) -> str | None:
    if not intake.taken.pruned or history.raw_since_ms is None:
        return None
    return (
        f"raw ticks of before {to_iso(history.raw_since_ms)} were removed there before they were pulled: sums are whole"
    )


def _twins(session: Session, history: HistoryRow) -> list[str]:
    twins = with_same_store(session, history)
    same = [twin.name for twin in twins if twin.boot_id == history.boot_id]
    cloned = [twin.name for twin in twins if twin.boot_id != history.boot_id]
    notes = []
    if same:
        notes.append(f"the same machine as {', '.join(same)}: its time is here twice")
    if cloned:
        notes.append(f"has the database of {', '.join(cloned)}, too: renamed, or a cloned image; kept apart by host")
    return notes
