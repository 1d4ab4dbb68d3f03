"""Text that other people's programs chose, made fit to be stored and shown. Pure.

A process may call itself anything: terminal sequences, line breaks, letters that turn the reading direction.
Bytes become text once, where they are read (`decode_bytes`); text becomes harmless where it is shown (`shown`).
"""

from __future__ import annotations

import unicodedata

# Long enough for any account name Linux accepts (32) and what directories add to it; short enough for a table.
SHOWN_LIMIT = 64

# Control, format (bidi overrides, zero-width), lone surrogate, line separator, paragraph separator.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def decode_bytes(raw: bytes) -> str:
    r"""UTF-8 text of raw bytes; a byte that is no UTF-8 becomes `\xNN`, so two different names stay different.

    The result always encodes to UTF-8 again, so SQLite and JSON take it.
    """
    return raw.decode("utf-8", "backslashreplace")


def storable(text: str) -> str:
    """The same for text that Python decoded with `surrogateescape` (names from `pwd`, file names)."""
    return decode_bytes(text.encode("utf-8", "surrogateescape"))


def shown(text: str, limit: int = SHOWN_LIMIT) -> str:
    r"""Text safe for a terminal, a table or a log line, at most `limit` characters (then it ends in `...`).

    Control and invisible characters become `\x1b`, `\u202e`. A backslash stays one: `EXAMPLE\alice` is a name.
    limit: at least 4.
    """
    if len(text) <= limit and text.isprintable():  # then nothing in it is of an unsafe category
        return text
    safe = "".join(_escaped(character) for character in text[: limit + 1])
    return safe if len(safe) <= limit else safe[: limit - 3] + "..."


def _escaped(character: str) -> str:
    if unicodedata.category(character) not in _UNSAFE:
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a raw byte smuggled through by surrogateescape
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
