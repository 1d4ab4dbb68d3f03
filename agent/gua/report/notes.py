"""Sentences under the tables: wrapped lines, and the rule in force in words. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

NO_BREAK = "\N{NO-BREAK SPACE}"


def wrapped(text: str, columns: int, hanging: str = "") -> list[str]:
    """`text` in lines of at most `columns` characters, those after the first indented by `hanging`.

    A line never breaks at a no-break space, which comes out as an ordinary one.
    """
    lines = textwrap.wrap(text, columns, subsequent_indent=hanging, break_on_hyphens=False)
    return [line.replace(NO_BREAK, " ") for line in lines]


def no_room_text(headers: Sequence[str]) -> str:
    """Which columns a narrow place left out of the table above it; empty for none."""
    return f"No room here for {', '.join(headers)}." if headers else ""


def rule_text(rule: Mapping[str, Any]) -> str:
    """One rule in words; thresholds as the rule compares them."""
    return (
        f"active from {rule['active_util_pct']} % utilisation; below it idle-held if processes hold over "
        f"{rule['held_mb']} MB, or over {rule['unattributed_mb']} MB ({rule['unattributed_v1_mb']} MB by the old "
        "memory reading) is used that no listed process accounts for; else truly-idle"
    )


def rules_text(rules: Sequence[Mapping[str, Any]]) -> str:
    """The rules in force in words, empty for none; several when the settings changed or card models have their own."""
    if not rules:
        return ""
    title = "Rule" if len(rules) == 1 else "Rules (changed within the window, or between hosts or card models)"
    return f"{title}: {'. Also: '.join(rule_text(rule) for rule in rules)}."
