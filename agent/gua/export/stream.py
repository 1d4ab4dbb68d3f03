"""An export written out, and one read back and verified.

Both hold one chunk at a time. An export that was cut is good up to its last whole chunk: go on with `--since-rev` and
that chunk's until_rev. Rows are put in by their keys, so taking a part in twice changes nothing.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Optional, Protocol

from gua.errors import FrameError
from gua.export.columns import Value, pack_column, unpack_column
from gua.export.records import (
    CHUNK,
    CHUNK_BYTES,
    END,
    HEADER,
    LIMIT_BYTES,
    Record,
    digest,
    is_header,
    nonce_of,
    parse_line,
    write_record,
)
from gua.units import to_iso

if TYPE_CHECKING:
    from gua.store.exported import Exported, Table
    from gua.store.reader import StoreReader

SCHEMA = "gua.export/1"
CHUNK_SCHEMA = "gua.export-chunk/1"

# Rows in a chunk; a revision with more goes on in the next.
CHUNK_ROWS = 24_000

# What login shells may print before an export begins.
_NOISE_BYTES = 1_000_000


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


@dataclass(frozen=True)
class Rows:
    """A table's part of a chunk. rows: tuples in the order of columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True)
class Chunk:
    """Verified rows of the revisions after after_rev up to until_rev.

    whole: with it, all rows of these revisions have come; a further export may begin at until_rev. Not whole: more
    chunks of the same revisions follow. header: of the export it came in.
    """

    sequence: int
    after_rev: int
    until_rev: int
    whole: bool
    tables: Mapping[str, Rows]
    header: Mapping[str, Any] = field(repr=False)


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
    places = [table.columns.index(name) for name in table.together]
    return sorted(rows, key=lambda row: [row[place] for place in places])


def _packed(tables: _Rows) -> dict[str, Any]:
    return {
        table.name: {
            "rows": len(rows),
            "columns": {name: pack_column(column) for name, column in zip(table.columns, zip(*rows))},
        }
        for table, rows in tables
    }


def read_chunks(file: BinaryIO, nonce: Optional[str] = None) -> Iterator[Chunk]:
    """The verified chunks of an export, one at a time; the last one is not the end before this is exhausted.

    file: anything with readline(limit) and read(size). nonce: what was asked with; None: any. Raises FrameError as soon
    as something was cut, altered, put elsewhere or left out, and for another major schema; chunks before stay good.
    """
    line = _first_line(file, nonce or "")
    nonce = nonce_of(line) if nonce is None else nonce
    record = _read_record(file, line, nonce, "")
    if record.kind != HEADER:
        raise FrameError("the export has no header")
    header = _parse_header(record.body)
    yield from _read_chunks(file, nonce, record, header)


def _read_chunks(file: BinaryIO, nonce: str, record: Record, header: Mapping[str, Any]) -> Iterator[Chunk]:
    reached, sequence, rows = int(header["since_rev"]), 0, 0
    open_range: Optional[tuple[int, int]] = None
    while True:
        record = _read_record(file, file.readline(_NOISE_BYTES), nonce, str(record.fields["sha256"]))
        if record.kind == END:
            _check_end(record, sequence, rows, complete=open_range is None)
            return
        chunk = _parse_chunk(record, header)
        revs = (chunk.after_rev, chunk.until_rev)
        sequence += 1
        if chunk.sequence != sequence or (chunk.after_rev != reached if open_range is None else revs != open_range):
            raise FrameError("the export was altered: its chunks do not follow each other")
        open_range = None if chunk.whole else revs
        reached = chunk.until_rev if chunk.whole else reached
        rows += sum(len(table.rows) for table in chunk.tables.values())
        yield chunk


def _check_end(record: Record, chunks: int, rows: int, *, complete: bool) -> None:
    if record.fields.get("chunks") != chunks or record.fields.get("rows") != rows or not complete:
        raise FrameError("the export was altered: its end does not fit its chunks")


def _first_line(file: BinaryIO, nonce: str) -> bytes:
    left = _NOISE_BYTES
    while left > 0:
        line = file.readline(left)
        if not line:
            break
        if is_header(line, nonce):
            return line
        left -= len(line)
    raise FrameError("the answer holds no export")


def _read_record(file: BinaryIO, line: bytes, nonce: str, before: str) -> Record:
    kind, fields = parse_line(line, nonce)
    size = int(fields["bytes"])
    body = _read_exactly(file, size + 1)
    if len(body) != size + 1 or body[size:] != b"\n":
        raise FrameError("the export was cut within a record")
    if digest(before, kind, fields, body[:size]) != fields["sha256"]:
        raise FrameError("the export was altered: a checksum does not fit")
    return Record(kind, fields, body[:size])


def _read_exactly(file: BinaryIO, size: int) -> bytes:
    parts = []
    while size:
        part = file.read(size)
        if not part:
            break
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _parse_header(body: bytes) -> dict[str, Any]:
    header = json.loads(body)
    if not isinstance(header, dict) or not str(header.get("schema")).startswith("gua.export/"):
        raise FrameError("the export's header is none")
    if header["schema"] != SCHEMA:
        raise FrameError(f"the export is {header['schema']}, and this program reads {SCHEMA}: update the older one")
    return header


def _parse_chunk(record: Record, header: Mapping[str, Any]) -> Chunk:
    if record.kind != CHUNK:
        raise FrameError("the export was altered: a record of an unknown kind")
    try:
        inflate = zlib.decompressobj()
        text = inflate.decompress(record.body, LIMIT_BYTES)
        if not inflate.eof:
            raise FrameError("a chunk of the export is larger than any may be")
        document, fields = json.loads(text), record.fields
        tables = {name: _unpacked(table) for name, table in document["tables"].items()}
        if {name: len(table.rows) for name, table in tables.items()} != fields["rows"]:
            raise FrameError("the export was altered: rows are not as many as it says")
        numbers = (int(fields["sequence"]), int(fields["after_rev"]), int(fields["until_rev"]), bool(fields["whole"]))
        return Chunk(*numbers, tables, header)
    except (zlib.error, ValueError, KeyError, TypeError, AttributeError) as exc:
        raise FrameError(f"a chunk of the export cannot be read: {exc}") from exc


def _unpacked(table: Mapping[str, Any]) -> Rows:
    count, columns = int(table["rows"]), table["columns"]
    if not 0 <= count <= CHUNK_ROWS or not columns:
        raise ValueError("a table has more rows than a chunk")
    return Rows(tuple(columns), tuple(zip(*(unpack_column(column, count) for column in columns.values()))))
