"""An export read back and verified, one chunk at a time; see gua.export.stream."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Optional, Protocol

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


# More than a chunk of all its tables' columns has by far.
_MOST_VALUES = 64 * CHUNK_ROWS

Values = list[Value]


class Readable(Protocol):
    """What an export is read from: a file, or a connection."""

    def readline(self, limit: int, /) -> bytes: ...

    def read(self, size: int, /) -> bytes: ...


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


@dataclass(frozen=True)
class PackedChunk:
    """A chunk that was verified and not taken apart yet: as small as it travelled. rows: how many, by table."""

    sequence: int
    after_rev: int
    until_rev: int
    whole: bool
    rows: Mapping[str, int]
    header: Mapping[str, Any] = field(repr=False)
    body: bytes = field(repr=False)

    def columns(self, wanted: Callable[[str, str], bool] = lambda table, column: True) -> dict[str, dict[str, Values]]:
        """The values of each table's columns. wanted: is asked with the names of a table and a column.

        Raises FrameError for what cannot be read, or is more than a chunk may hold.
        """
        try:
            return self._columns(wanted)
        except (zlib.error, ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
            raise FrameError(f"a chunk of the export cannot be read: {exc}") from exc

    def _columns(self, wanted: Callable[[str, str], bool]) -> dict[str, dict[str, Values]]:
        inflate = zlib.decompressobj()
        text = inflate.decompress(self.body, LIMIT_BYTES)
        if not inflate.eof:
            raise FrameError("a chunk of the export is larger than any may be")
        tables = json.loads(text)["tables"]
        if {name: table["rows"] for name, table in tables.items()} != self.rows:
            raise FrameError("the export was altered: rows are not as many as it says")
        packed = {
            name: {column: values for column, values in table["columns"].items() if wanted(name, column)}
            for name, table in tables.items()
        }
        if sum(self.rows[name] * len(table) for name, table in packed.items()) > _MOST_VALUES:
            raise FrameError("a chunk of the export has more values than any may have")
        return {
            name: {column: unpack_column(values, self.rows[name]) for column, values in table.items()}
            for name, table in packed.items()
        }

    def unpack(self) -> Chunk:
        """The chunk as rows. Raises FrameError."""
        tables = {name: Rows(tuple(table), tuple(zip(*table.values()))) for name, table in self.columns().items()}
        return Chunk(self.sequence, self.after_rev, self.until_rev, self.whole, tables, self.header)


def read_chunks(file: Readable, nonce: Optional[str] = None) -> Iterator[Chunk]:
    """The verified chunks of an export, one at a time; the last one is not the end before this is exhausted.

    nonce: what was asked with; None: any. Raises FrameError as soon as something was cut, altered, put elsewhere or
    left out, and for another major schema; chunks before stay good.
    """
    for packed in read_packed(file, nonce):
        yield packed.unpack()


def read_packed(file: Readable, nonce: Optional[str] = None) -> Iterator[PackedChunk]:
    """As `read_chunks`, and each is taken apart only when it is asked to be. An empty export has none."""
    line = first_line(file, nonce or "")
    yield from open_export(file, line, nonce_of(line) if nonce is None else nonce)[1]


def open_export(file: Readable, line: bytes, nonce: str) -> tuple[dict[str, Any], Iterator[PackedChunk]]:
    """The header of an export whose first line was read already, and its chunks. Raises FrameError, as they do."""
    record = _read_record(file, line, nonce, "")
    if record.kind != HEADER:
        raise FrameError("the export has no header")
    header = _parse_header(record.body)
    return header, _read_packed(file, nonce, record, header)


def _read_packed(file: Readable, nonce: str, record: Record, header: Mapping[str, Any]) -> Iterator[PackedChunk]:
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
        rows += sum(chunk.rows.values())
        yield chunk


def _check_end(record: Record, chunks: int, rows: int, *, complete: bool) -> None:
    if record.fields.get("chunks") != chunks or record.fields.get("rows") != rows or not complete:
        raise FrameError("the export was altered: its end does not fit its chunks")


def first_line(file: Readable, nonce: str) -> bytes:
    """The line that an export begins with; what stands before it is passed over. Raises FrameError without one."""
    left = _NOISE_BYTES
    while left > 0:
        line = file.readline(left)
        if not line:
            break
        if is_header(line, nonce):
            return line
        left -= len(line)
    raise FrameError("the answer holds no export")


def _read_record(file: Readable, line: bytes, nonce: str, before: str) -> Record:
    kind, fields = parse_line(line, nonce)
    size = int(fields["bytes"])
    body = _read_exactly(file, size + 1)
    if len(body) != size + 1 or body[size:] != b"\n":
        raise FrameError("the export was cut within a record")
    if digest(before, kind, fields, body[:size]) != fields["sha256"]:
        raise FrameError("the export was altered: a checksum does not fit")
    return Record(kind, fields, body[:size])


def _read_exactly(file: Readable, size: int) -> bytes:
    parts = []
    while size:
        part = file.read(size)
        if not part:
            break
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _parse_header(body: bytes) -> dict[str, Any]:
    try:
        header = json.loads(body)
    except (ValueError, RecursionError) as exc:
        raise FrameError("the export's header cannot be read") from exc
    if not isinstance(header, dict) or not str(header.get("schema")).startswith("gua.export/"):
        raise FrameError("the export's header is none")
    if header["schema"] != SCHEMA:
        raise FrameError(f"the export is {header['schema']}, and this program reads {SCHEMA}: update the older one")
    return header


def _parse_chunk(record: Record, header: Mapping[str, Any]) -> PackedChunk:
    if record.kind != CHUNK:
        raise FrameError("the export was altered: a record of an unknown kind")
    fields = record.fields
    try:
        rows = {str(name): _count(number) for name, number in fields["rows"].items()}
        numbers = (int(fields["sequence"]), int(fields["after_rev"]), int(fields["until_rev"]), bool(fields["whole"]))
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise FrameError(f"a chunk of the export cannot be read: {exc}") from exc
    if sum(rows.values()) > CHUNK_ROWS:
        raise FrameError("a chunk of the export has more rows than any may have")
    return PackedChunk(*numbers, rows, header, record.body)


def _count(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise ValueError("a number of rows is none")
    return number
