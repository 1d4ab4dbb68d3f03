"""Exports in this process, and a keeper that puts their rows in by key, like a fleet's store."""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Optional

from gua.errors import FrameError
from gua.export.stream import Asked, Chunk, read_chunks, write_stream
from gua.store.database import open_reader
from gua.store.exported import TABLES
from tests.agent.store.ticks import MONDAY

NONCE = "0123456789abcdef" * 2
KEYS = {table.name: table.key for table in TABLES}


def export(path: Path, since_rev: int = 0, until_rev: Optional[int] = None, *, rollups_only: bool = False) -> bytes:
    out = io.BytesIO()
    asked = Asked(since_rev, until_rev, rollups_only)
    with open_reader(path) as reader:
        write_stream(reader, out, asked, nonce=NONCE, agent_version="0.1.0", now_ms=MONDAY)
    return out.getvalue()


def chunks_of(data: bytes) -> list[Chunk]:
    return list(read_chunks(io.BytesIO(data), NONCE))


class Keeper:
    """rows: by table and key, as the newest chunk has them. cursor: revision up to which all has come."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[Any, Any]] = {}
        self.cursor = 0

    def take(self, chunks: Iterable[Chunk]) -> bool:
        """Take in what is good; False when it was cut."""
        try:
            for chunk in chunks:
                self._put(chunk)
        except FrameError:
            return False
        return True

    def _put(self, chunk: Chunk) -> None:
        for name, table in chunk.tables.items():
            places = [table.columns.index(column) for column in KEYS[name]]
            kept = self.rows.setdefault(name, {})
            for row in table.rows:
                kept[tuple(row[place] for place in places)] = dict(zip(table.columns, row))
        if chunk.whole:
            self.cursor = chunk.until_rev


def stored_rows(path: Path) -> dict[str, dict[Any, Any]]:
    """What an export of everything must have, read by hand."""
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    found: dict[str, dict[Any, Any]] = {}
    for table in TABLES:
        source = "gpu_sample JOIN sample USING (id)" if table.name == "sample" else table.name
        where = " WHERE is_long" if table.name == "idle_stretch" else ""
        energy = {"energy_j": "sample.energy_j"} if table.name == "sample" else {}
        columns = ", ".join(energy.get(name, name) for name in table.columns)
        rows = [dict(zip(table.columns, row)) for row in connection.execute(f"SELECT {columns} FROM {source}{where}")]
        if rows:
            found[table.name] = {tuple(row[name] for name in table.key): row for row in rows}
    connection.close()
    return found
