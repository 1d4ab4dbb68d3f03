"""An export written out, one chunk at a time.

An export that was cut is good up to its last whole chunk: go on with `--since-rev` and
that chunk's until_rev. Rows are put in by their keys, so taking a part in twice changes nothing.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Optional, Protocol

from gua.export.columns import pack_column
from gua.export.records import (
    CHUNK,
    CHUNK_BYTES,
    CHUNK_ROWS,
    END,
    HEADER,
    SCHEMA,
    write_record,
)
from gua.units import to_iso

if TYPE_CHECKING:
    from gua.store.exported import Exported, Table
    from gua.store.reader import StoreReader

CHUNK_SCHEMA = "gua.export-chunk/1"


class Sink(Protocol):
    """Where an export goes to."""

    def write(self, data: bytes) -> object: ...

    def flush(self) -> object: ...


_Rows = list[tuple["Table", list[Any]]]


@dataclass(frozen=True)
class Asked:
    """Revisions after since_rev up to until_rev (None: the newest), without raw ticks when rollups_only."""

    since_rev: int
    until_rev: Optional[int] = None
    rollups_only: bool = False


def write_stream(reader: StoreReader, out: Sink, asked: Asked, *, nonce: str, agent_version: str, now_ms: int) -> None:
    """Write an export of what is there when it begins. Raises DatabaseUnusable, and OSError of `out`."""
    exported = reader.exported(rollups_only=asked.rollups_only)
    header = _header(reader, exported, asked, agent_version, now_ms)
    before = _send(out, "", HEADER, nonce, {}, json.dumps(header, separators=(",", ":")).encode("ascii"))
    chunks = rows = 0
    for revs in _ranges(exported, header["since_rev"], header["until_rev"]):
        for fields, body in _parts(reader, exported, revs):
            chunks, rows = chunks + 1, rows + sum(fields["rows"].values())
            numbered = {"sequence": chunks, **fields}
            before = _send(out, before, CHUNK, nonce, numbered, body)
    _send(out, before, END, nonce, {"chunks": chunks, "rows": rows, "until_rev": header["until_rev"]}, b"")
    out.flush()


def _send(out: Sink, before: str, kind: str, nonce: str, fields: Mapping[str, Any], body: bytes) -> str:
    record, own = write_record(before, kind, nonce, fields, body)
    out.write(record)
    return own


def _header(reader: StoreReader, exported: Exported, asked: Asked, agent_version: str, now_ms: int) -> dict[str, Any]:
    host, head = reader.host(), exported.head()
    raw_since_ms = head.pop("raw_since_ms")
    newest = int(head["newest_rev"])
    until_rev = newest if asked.until_rev is None else min(asked.until_rev, newest)
    return {
        "schema": SCHEMA,
        "generated_at": to_iso(now_ms),
        "agent_version": agent_version,
        "store_id": host.store_id if host else "",
        "hostname": host.hostname if host else "",
        "machine_id": host.machine_id if host else "",
        "boot_id": host.boot_id if host else "",
        "since_rev": asked.since_rev,
        "until_rev": max(until_rev, asked.since_rev),
        "rollups_only": asked.rollups_only,
        "raw_since": None if raw_since_ms is None else to_iso(raw_since_ms),
        **head,
    }


def _ranges(exported: Exported, since_rev: int, until_rev: int) -> list[tuple[int, int]]:
    """Revisions cut so that each range has at most a chunk's rows, unless it is one revision; empty ones left out."""
    ranges: list[tuple[int, int]] = []
    first, rows, newest = since_rev, 0, since_rev
    for rev, count in exported.rows_by_rev(since_rev, until_rev):
        if rows and rows + count > CHUNK_ROWS:
            ranges.append((first, newest))
            first, rows = newest, 0
        rows, newest = rows + count, rev
    return [*ranges, (first, until_rev)] if rows else ranges


def _parts(reader: StoreReader, exported: Exported, revs: tuple[int, int]) -> Iterator[tuple[dict[str, Any], bytes]]:
    """The chunks of a range, each read in a view of its own."""
    place: tuple[int, Optional[Sequence[Any]]] = (0, None)
    limit = CHUNK_ROWS
    whole = False
    while not whole:
        reader.renew()
        tables, after = _read(exported, revs, place, limit)
        text = json.dumps({"schema": CHUNK_SCHEMA, "tables": _packed(tables)}, separators=(",", ":"))
        if len(text) > CHUNK_BYTES and limit > 1:
            limit //= 2
            continue
        whole = after is None
        counts = {table.name: len(rows) for table, rows in tables}
        fields = {"after_rev": revs[0], "until_rev": revs[1], "whole": whole, "rows": counts}
        yield fields, zlib.compress(text.encode("ascii"), 9)
        if after is not None:
            place = after


def _read(
    exported: Exported, revs: tuple[int, int], place: tuple[int, Optional[Sequence[Any]]], limit: int
) -> tuple[_Rows, Optional[tuple[int, Optional[Sequence[Any]]]]]:
    """Up to `limit` rows from a place on (table, key of the last row before), and the place after; None at the end."""
    first, beyond = place
    found: _Rows = []
    for number in range(first, len(exported.tables)):
        table = exported.tables[number]
        rows = exported.rows(table, revs, beyond if number == first else None, limit)
        limit -= len(rows)
        if rows:
            found.append((table, rows if not table.together else _sorted(table, rows)))
        if limit <= 0:
            keys = [table.columns.index(name) for name in table.key]
            return found, (number, tuple(rows[-1][position] for position in keys) if rows else beyond)
    return found, None


def _sorted(table: Table, rows: Sequence[Any]) -> list[Any]:
    return sorted(rows, key=itemgetter(*(table.columns.index(name) for name in table.together)))


def _packed(tables: _Rows) -> dict[str, Any]:
    return {
        table.name: {
            "rows": len(rows),
            "columns": {name: pack_column(column) for name, column in zip(table.columns, zip(*rows))},
        }
        for table, rows in tables
    }
