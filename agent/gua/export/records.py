"""The records of an export: a line that says what comes, then that many bytes. Pure.

    gua-export-header NONCE {"bytes": N, "sha256": H, ...}
    {"schema": "gua.export/1", ...}
    gua-export-chunk NONCE {"sequence": 1, "after_rev": A, "until_rev": B, "whole": true, "rows": {}, "bytes": N}
    N bytes of zlib
    gua-export-end NONCE {"chunks": C, "rows": R, "until_rev": B, "bytes": 0, "sha256": H}

Each SHA-256 is over the record before it, its own line and its body, so that none can be cut, altered, left out or
put elsewhere unseen.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gua.errors import FrameError

HEADER, CHUNK, END = "header", "chunk", "end"

# A chunk's JSON before it is compressed, and whatever a record may hold when it is read.
CHUNK_BYTES = 2_000_000
LIMIT_BYTES = 4 * CHUNK_BYTES

_MARK = b"gua-export-"


@dataclass(frozen=True)
class Record:
    """kind: HEADER, CHUNK or END. fields: of its line, with bytes and sha256."""

    kind: str
    fields: Mapping[str, Any]
    body: bytes


def digest(before: str, kind: str, fields: Mapping[str, Any], body: bytes) -> str:
    """SHA-256 of a record. before: that of the record before it; empty for the header."""
    own = {name: value for name, value in fields.items() if name != "sha256"}
    line = json.dumps([before, kind, own], separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(line.encode("ascii") + body).hexdigest()


def write_record(before: str, kind: str, nonce: str, fields: Mapping[str, Any], body: bytes) -> tuple[bytes, str]:
    """The bytes of a record, and its digest."""
    told = {**fields, "bytes": len(body)}
    own = digest(before, kind, told, body)
    line = json.dumps({**told, "sha256": own}, separators=(",", ":"))
    return f"gua-export-{kind} {nonce} {line}\n".encode("ascii") + body + b"\n", own


def parse_line(line: bytes, nonce: str) -> tuple[str, dict[str, Any]]:
    """(kind, fields) of a record's line. Raises FrameError."""
    words = line.rstrip(b"\r\n").split(b" ", 2)
    try:
        if len(words) != 3 or not line.endswith(b"\n") or not words[0].startswith(_MARK) or words[1].decode() != nonce:
            raise FrameError("the export was cut or altered: a record's line is missing")
        fields = json.loads(words[2])
        size = fields["bytes"]
        if not isinstance(size, int) or not 0 <= size <= LIMIT_BYTES or not isinstance(fields["sha256"], str):
            raise FrameError("the export was altered: a record's size cannot be")
    except (ValueError, KeyError, TypeError) as exc:
        raise FrameError("the export was altered: a record's line cannot be read") from exc
    return words[0][len(_MARK) :].decode("ascii"), fields


def is_header(line: bytes, nonce: str) -> bool:
    """Whether an export begins with this line; empty nonce: with any."""
    return line.startswith(_MARK + HEADER.encode() + b" " + nonce.encode())


def nonce_of(line: bytes) -> str:
    """The nonce of a record's line."""
    words = line.split(b" ", 2)
    return words[1].decode("ascii", "replace") if len(words) == 3 else ""
