"""Sentences from elsewhere, made fit for one line of a terminal. Pure."""

from __future__ import annotations

from gua.text import shown

_WIDTH = 160


def one_line(text: str, width: int = _WIDTH) -> str:
    """`text` on one line, without blanks around it, harmless to a terminal, at most `width` characters."""
    return shown(text.strip(), width)
