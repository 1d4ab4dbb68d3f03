"""How the values of settings are written, and what they mean. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Optional

from gua.errors import UsageError
from gua.units import parse_duration_ms

_WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


class Kind(Enum):
    """What a key holds. The value says how to write it."""

    DURATION = 'a duration such as "30s", "10m", "90d"'
    PERCENT = "a whole number from 1 to 100"
    MEMORY_MB = "a whole number of MiB, 0 or more"
    FLAG = "true or false"
    TEXT = "a text"
    PATTERN = 'a pattern of card names such as "*T4*"'
    PATH = "an absolute path or one that begins with ~/"


def typed(kind: Kind, text: str) -> Any:
    """A value that comes as text (flag, environment), as it would stand in the file, where numbers have no quotes."""
    value = text.strip()
    if kind is Kind.FLAG:
        return _WORDS.get(value.lower(), value)
    if kind in (Kind.PERCENT, Kind.MEMORY_MB) and value.isascii() and value.isdigit():
        return int(value)
    return value


def parse_value(kind: Kind, value: Any) -> Any:
    """What a value as written in the file means (durations in milliseconds); None when it is not of its kind."""
    return _parsers[kind](value)


def _parse_duration(value: Any) -> Optional[int]:
    try:
        return parse_duration_ms(value) if isinstance(value, str) else None
    except UsageError:
        return None


def _parse_percent(value: Any) -> Optional[int]:
    return value if type(value) is int and 1 <= value <= 100 else None


def _parse_memory(value: Any) -> Optional[int]:
    return value if type(value) is int and 0 <= value < 1 << 31 else None


def _parse_path(value: Any) -> Optional[Path]:
    if not isinstance(value, str) or not value.startswith(("/", "~/")):
        return None
    try:
        return Path(value).expanduser()
    except RuntimeError:  # this user has no home directory
        return None


_parsers: Mapping[Kind, Callable[[Any], Any]] = {
    Kind.DURATION: _parse_duration,
    Kind.PERCENT: _parse_percent,
    Kind.MEMORY_MB: _parse_memory,
    Kind.FLAG: lambda value: value if isinstance(value, bool) else None,
    Kind.TEXT: lambda value: value if isinstance(value, str) and value else None,
    Kind.PATTERN: lambda value: value if isinstance(value, str) and value.strip() else None,
    Kind.PATH: _parse_path,
}
