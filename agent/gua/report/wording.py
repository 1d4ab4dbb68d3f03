"""The sentences of a report that more than one section or format says. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import Any, Optional

from gua.report.cells import hours
from gua.report.document import Report
from gua.report.zones import find_zone
from gua.units import format_duration, parse_time_ms

_REASONS = {
    "util_unavailable": "utilisation could not be read",
    "processes_unavailable": "no process list that could be believed",
    "memory_unavailable": "the memory in use could not be told",
    "card_lost": "the card did not answer",
    "card_missing": "the card was not listed",
    "driver": "the driver could not be used",
    "unresponsive": "the driver did not answer in time",
}
# Data older than this many intervals says nothing about now.
STALE_INTERVALS = 3
# Where only `sync-once` samples, outside any timer, no interval says what is old.
STALE_UNTIMED_MS = 15 * 60_000


def reason_text(reason: str) -> str:
    """Why time is unknown, in words; a reason this version does not know stays as it is."""
    return _REASONS.get(reason, reason.replace("_", " "))


def unknown_text(by_reason: Mapping[str, float]) -> str:
    """`the card did not answer 2.50 h, ...`, longest first; empty for no unknown time."""
    longest = sorted(by_reason.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{reason_text(reason)} {hours(seconds)} h" for reason, seconds in longest if seconds > 0)


def rule_name(rule: Mapping[str, Any]) -> str:
    """The two thresholds that decide most, short: `active from 10 %, held over 100 MB`."""
    return f"active from {rule['active_util_pct']} %, held over {rule['held_mb']} MB"


def rules_in_short(report: Report) -> str:
    """Which rules the states of this document come from, in one sentence."""
    names = list(dict.fromkeys(rule_name(rule) for rule in report["rules"]))
    if not names:
        return ""
    judged = ", judged again for this report" if report.get("rejudged") else ""
    return f"{'Rule' if len(names) == 1 else 'Rules'}: {'; '.join(names)}{judged}."


def stale_after_ms(intervals_s: Iterable[float]) -> int:
    """The age in milliseconds from which the newest tick is old news."""
    return STALE_INTERVALS * round(max(intervals_s, default=0) * 1000) or STALE_UNTIMED_MS


def age_ms(report: Report, at: str) -> int:
    """How long before the report was made that moment was."""
    return parse_time_ms(report["generated_at"]) - parse_time_ms(at)


def is_stale(report: Report, at: str) -> bool:
    """Whether what was seen at that moment is too old to be called now (or is said to come from the future)."""
    return abs(age_ms(report, at)) > stale_after_ms(report["intervals_s"])


def how_long(since: str, until: str) -> str:
    """`3 h 05 min`: from one moment to the other."""
    return format_duration(max(0, parse_time_ms(until) - parse_time_ms(since)))


def joined(sentences: Sequence[str]) -> str:
    return " ".join(sentence for sentence in sentences if sentence)


def zone_of(report: Report) -> tuple[Optional[tzinfo], str]:
    """The zone times are shown in and its name; UTC where this host does not know the one asked for."""
    zone = find_zone(report["tz"])
    return zone, report["tz"] if zone is not None else "UTC"
