"""Exports of a host's database taken into a store, without a connection between; and what the store then holds."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, Optional

from gua.errors import FrameError
from gua.export.reading import first_line, open_export
from gua_fleet.store.header import believed_header
from gua_fleet.store.histories import HistoryRow, histories
from gua_fleet.store.intake import AskAgain, Intake
from gua_fleet.store.session import Session
from gua_fleet.store.shape import TABLES
from tests.agent.export.exporting import NONCE, export
from tests.agent.store.ticks import MONDAY

NOW_MS = MONDAY


def take_in(intake: Intake, data: bytes, asked_rev: int, now_ms: int = NOW_MS) -> bool:
    """Take in one export as it came. False when it was cut; raises as the intake does."""
    file = io.BytesIO(data)
    try:
        header, chunks = open_export(file, first_line(file, NONCE), NONCE)
        intake.begin(believed_header(header, asked_rev), now_ms)
        for chunk in chunks:
            intake.take(chunk)
    except FrameError:
        return False
    return True


def pull(
    session: Session,
    path: Path,
    name: str = "gpu01",
    *,
    rollups_only: bool = False,
    raw_ms: Optional[int] = None,
    cut: Optional[int] = None,
    now_ms: int = NOW_MS,
) -> Intake:
    """Pull a host's database as the command does. cut: give up after so many bytes of the first answer."""
    intake = Intake(session, name, rollups_only=rollups_only)
    for _ in range(3):
        asked_rev = intake.since_rev()
        data = export(path, asked_rev, rollups_only=rollups_only)
        try:
            if take_in(intake, data if cut is None else data[:cut], asked_rev, now_ms):
                intake.finish(raw_ms=raw_ms)
            return intake
        except AskAgain:
            continue
    raise AssertionError("it is asked again and again")


def present(session: Session, name: str = "gpu01") -> HistoryRow:
    """The history of a host that goes on."""
    (found,) = (one for one in histories(session) if one.name == name and one.ended_ms is None)
    return found


def kept_rows(session: Session, history: int) -> dict[str, dict[Any, Any]]:
    """What is stored of a history, as `stored_rows` has what is in a host's database: by the export's names."""
    found: dict[str, dict[Any, Any]] = {}
    for table in TABLES:
        names = [table.exported_column(column) for column in table.columns]
        rows = session.rows(f"SELECT {', '.join(table.columns)} FROM {table.name} WHERE history = ?", (history,))
        if rows:
            places = [table.columns.index(column) for column in table.key]
            found[table.exported] = {tuple(row[place] for place in places): dict(zip(names, row)) for row in rows}
    return found


def as_kept(rows: dict[str, dict[Any, Any]]) -> dict[str, dict[Any, Any]]:
    """`stored_rows` of a host with the store's key of a sample: a tick and a card in place of one number."""
    samples = {
        (key[0] >> 16, key[0] & 0xFFFF): {**row, "id": key[0] >> 16} for key, row in rows.get("sample", {}).items()
    }
    return {**rows, "sample": samples} if samples else rows


DAYS = ("card_day", "user_day", "tick_day", "slot_day")


def day_rows(session: Session, history: int) -> dict[str, set[Any]]:
    """The sums of days of a history."""
    found = {}
    for table in DAYS:
        rows = session.rows(f"SELECT * FROM {table} WHERE history = ?", (history,))
        found[table] = {tuple(bytes(one) if isinstance(one, memoryview) else one for one in row[1:]) for row in rows}
    return found
