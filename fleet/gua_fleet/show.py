"""Sentences from elsewhere, made fit for one line of a terminal. Pure."""

from __future__ import annotations

from functools import lru_cache

from gua.text import shown

_WIDTH = 160
# Longer than anything that is kept of a host.
_WHOLE = 1 << 20


def one_line(text: str, width: int = _WIDTH) -> str:
    """`text` on one line, without blanks around it, harmless to a terminal, at most `width` characters."""
    return shown(text.strip(), width)


@lru_cache(maxsize=4096)
def harmless(text: str) -> str:
    """All of `text`, harmless to a terminal that shows the file it is written to."""
    return shown(text, _WHOLE)
