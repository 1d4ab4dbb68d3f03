"""Reads known_hosts files line by line, so that one odd line never costs the others, and judges a host's key.

Same rules as OpenSSH: hashed names, wildcards, negation, `[host]:port`, `@revoked`. Host certificates
(`@cert-authority`) are not supported, and said so. Two rules are stricter: nothing is ever accepted because a file
could not be read, and a key of another type than those on file counts as changed.
"""

from __future__ import annotations

import base64
import binascii
import enum
import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


class Trust(enum.Enum):
    KNOWN = "known"
    UNKNOWN = "unknown"
    CHANGED = "changed"
    REVOKED = "revoked"


@dataclass(frozen=True)
class Judgement:
    """entry: the line that decided; None when no line names the host."""

    trust: Trust
    entry: KnownKey | None = None


@dataclass(frozen=True)
class KnownKey:
    """One usable line. names: as written, hashed or a list of patterns. blob: the public key in SSH's wire form."""

    file: Path
    line: int
    names: str
    key_type: str
    blob: bytes
    revoked: bool = False

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"

    def matches(self, name: str) -> bool:
        """Whether the line speaks of `name` (`host` or `[host]:port`)."""
        if self.names.startswith("|1|"):
            return _hash_matches(self.names, name)
        return _patterns_match(self.names, name.lower())


class KnownHosts:
    """keys: every usable line of all files, in order. warnings: one line for each line or file left out."""

    def __init__(self, keys: Sequence[KnownKey], warnings: Sequence[str] = ()) -> None:
        self.keys = tuple(keys)
        self.warnings = tuple(warnings)
        # Most lines hold plain names and are found by name; hashes and patterns have to be tried one by one.
        self._by_name: dict[str, list[KnownKey]] = {}
        self._others: list[KnownKey] = []
        for key in keys:
            self._file(key)

    def judge(self, host: str, port: int, blob: bytes) -> Judgement:
        """Whether the key `blob` is the host's. host: the name or address connected to, or its HostKeyAlias."""
        for entry in (*self._named(host_key_name(host, port)), *self._named(host)):
            if entry.revoked and entry.blob == blob:
                return Judgement(Trust.REVOKED, entry)
        valid = self._valid(host_key_name(host, port))
        for entry in valid or self._valid(host):
            if entry.blob == blob:
                return Judgement(Trust.KNOWN, entry)
        if not valid:  # as in ssh, a line without a port vouches for its own key at every port, but denies no other
            return Judgement(Trust.UNKNOWN)
        same_type = [entry for entry in valid if entry.key_type == key_type_of(blob)]
        return Judgement(Trust.CHANGED, (same_type or valid)[0])

    def key_types(self, host: str, port: int) -> tuple[str, ...]:
        """Key types on file for the host, for asking it for a key that can be compared."""
        valid = self._valid(host_key_name(host, port)) or self._valid(host)
        return tuple(dict.fromkeys(entry.key_type for entry in valid))

    def _file(self, key: KnownKey) -> None:
        if re.search(r"[*?!|]", key.names):
            self._others.append(key)
            return
        for name in set(key.names.lower().split(",")):
            self._by_name.setdefault(name, []).append(key)

    def _valid(self, name: str) -> list[KnownKey]:
        return [entry for entry in self._named(name) if not entry.revoked]

    def _named(self, name: str) -> list[KnownKey]:
        return [*self._by_name.get(name.lower(), ()), *(key for key in self._others if key.matches(name))]


def host_key_name(host: str, port: int) -> str:
    """The name a host's key is filed under."""
    return host if port == 22 else f"[{host}]:{port}"


def hashed_name(name: str) -> str:
    """The same name as HashKnownHosts writes it, under a salt of its own: it can be found again, but not read."""
    salt = secrets.token_bytes(hashlib.sha1().digest_size)
    digest = hmac.digest(salt, name.lower().encode(), "sha1")
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


def read_known_hosts(files: Iterable[Path]) -> KnownHosts:
    """The usable lines of all files. A missing file is no news; everything else left out is a warning."""
    keys: list[KnownKey] = []
    warnings: list[str] = []
    for file in files:
        try:
            content = file.read_bytes()
        except FileNotFoundError:
            continue
        except OSError as exc:
            warnings.append(f"{file} cannot be read ({exc.strerror}): the host keys in it are not known")
            continue
        for number, line in enumerate(content.splitlines(), start=1):
            parsed = _parse_line(file, number, line)
            if isinstance(parsed, KnownKey):
                keys.append(parsed)
            elif parsed:
                warnings.append(f"{file}:{number}: {parsed}; line skipped")
    return KnownHosts(tuple(keys), tuple(warnings))


def _parse_line(file: Path, number: int, line: bytes) -> KnownKey | str | None:
    """A key, the reason why there is none, or None for a line that is none on purpose."""
    # Names and keys are ASCII; a comment may be in any encoding and is never looked at.
    fields = line.decode("ascii", "surrogateescape").split(None, 4)
    if not fields or fields[0].startswith("#"):
        return None
    marker = fields.pop(0) if fields[0].startswith("@") else ""
    if marker == "@cert-authority":
        return "host certificates are not supported"
    if marker not in ("", "@revoked"):
        return f"unknown marker {marker!a}"
    if len(fields) < 3:
        return "not a host key"
    names, key_type, encoded = fields[:3]
    try:
        blob = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return "the key is damaged"
    if key_type_of(blob) != key_type:
        return f"the key is damaged or no {key_type!a} key"
    return KnownKey(file, number, names, key_type, blob, revoked=marker == "@revoked")


def key_type_of(blob: bytes) -> str:
    """The type a public key names itself, empty when it is cut."""
    length = int.from_bytes(blob[:4], "big")
    name = blob[4 : 4 + length]
    return name.decode("ascii", "replace") if 0 < length == len(name) and len(blob) > 4 + length else ""


def fingerprint(blob: bytes) -> str:
    """SHA256:... as ssh-keygen -l prints it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def _hash_matches(names: str, name: str) -> bool:
    parts = names.split("|")
    try:
        salt, digest = base64.b64decode(parts[2]), base64.b64decode(parts[3])
    except (IndexError, ValueError):
        return False
    return hmac.digest(salt, name.lower().encode(), "sha1") == digest


def _patterns_match(names: str, name: str) -> bool:
    patterns: Sequence[str] = names.lower().split(",")
    if any(_matches(pattern[1:], name) for pattern in patterns if pattern.startswith("!")):
        return False
    return any(_matches(pattern, name) for pattern in patterns if not pattern.startswith("!"))


def _matches(pattern: str, name: str) -> bool:
    """ssh's patterns know `*` and `?` only; brackets stand for themselves, as in `[host]:port`."""
    if "*" not in pattern and "?" not in pattern:
        return pattern == name
    expression = "".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in pattern)
    return re.fullmatch(expression, name, re.DOTALL) is not None
