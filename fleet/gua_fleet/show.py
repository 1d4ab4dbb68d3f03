"""Text from elsewhere, made fit for one line of a terminal. Pure."""

from __future__ import annotations

_WIDTH = 160


def one_line(text: str, width: int = _WIDTH) -> str:
    """`text` on one line: control characters as escapes, at most `width` characters."""
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text.strip())
    return shown if len(shown) <= width else shown[: width - 1] + "…"
