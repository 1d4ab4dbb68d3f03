"""The rule that `--rules` names: thresholds as they were typed. Pure."""

from __future__ import annotations

from dataclasses import replace

from gua.errors import UsageError
from gua.model import Rule
from gua.units import parse_duration_ms

# word -> field of Rule. The settings file's own names are understood too.
_WORDS = {
    "active": "active_util_pct",
    "held": "held_mb",
    "unattributed": "unattributed_mb",
    "unattributed_v1": "unattributed_v1_mb",
    "long": "long_idle_s",
}
_FORM = "write active=5,held=500 (percent, MB), also unattributed=, unattributed_v1= (MB) and long=30m"
_MOST = 10**9


def parse_rule(text: str, base: Rule) -> Rule:
    """The rule with the thresholds in `text` (`active=5,held=500,long=1h`), the others as in `base`.

    Raises UsageError naming the part that cannot be understood.
    """
    changed: dict[str, int] = {}
    for part in text.split(","):
        word, equals, value = (piece.strip() for piece in part.partition("="))
        field = _WORDS.get(word, word)
        if not equals or field not in _WORDS.values():
            raise UsageError(f"--rules: {part.strip()!r} is no threshold: {_FORM}")
        if field in changed:
            raise UsageError(f"--rules: {word} is there twice: {_FORM}")
        changed[field] = _seconds(value) if field == "long_idle_s" else _number(word, value)
    if not 1 <= changed.get("active_util_pct", 1) <= 100:
        raise UsageError(f"--rules: active is a percentage from 1 to 100: {_FORM}")
    return replace(base, **changed)


def _number(word: str, value: str) -> int:
    if not (value.isascii() and value.isdecimal()) or int(value) > _MOST:
        raise UsageError(f"--rules: {word}={value!r} is no whole number: {_FORM}")
    return int(value)


def _seconds(value: str) -> int:
    seconds = parse_duration_ms(value) // 1000
    if seconds < 1:
        raise UsageError(f"--rules: long={value!r} is less than a second: {_FORM}")
    return seconds
