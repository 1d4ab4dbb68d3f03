"""What the place that results are written to can show."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

# Columns of text that goes to a file or a pipe, and the most that tables of figures make use of.
_PIPE_COLUMNS = 80
_MAX_COLUMNS = 120

_BLOCKS = "█▒░▁▇·"


@dataclass(frozen=True)
class Screen:
    """width: columns. unicode: block characters can be written. colour: it is a terminal that wants colours."""

    width: int
    unicode: bool
    colour: bool


def read_screen(
    stream: TextIO = sys.stdout, environ: Mapping[str, str] = os.environ, *, pipe_columns: int = _PIPE_COLUMNS
) -> Screen:
    """What `stream` is. `NO_COLOR` (not empty) turns colours off, as no-color.org asks."""
    terminal = stream.isatty()
    width = min(shutil.get_terminal_size((pipe_columns, 24)).columns, _MAX_COLUMNS) if terminal else pipe_columns
    return Screen(
        width=width,
        unicode=_can_write(stream, _BLOCKS),
        colour=terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb",
    )


def _can_write(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
