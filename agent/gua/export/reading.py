"""An export read back and verified, one chunk at a time; see gua.export.stream."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Optional

from gua.errors import FrameError
from gua.export.columns import Value, unpack_column
from gua.export.records import (
    CHUNK,
    CHUNK_ROWS,
    END,
    HEADER,
    LIMIT_BYTES,
    SCHEMA,
    Record,
    digest,
    is_header,
    nonce_of,
    parse_line,
)

# What login shells may print before an export begins.
_NOISE_BYTES = 1_000_000


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
