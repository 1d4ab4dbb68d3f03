"""The report as one tidy table for pandas, R or a spreadsheet: one value a row, named by its keys. Pure.

Columns: host, since, until, section, card, index, user, weekday, hour, state, measure, unit, value. A key that a row
does not have is empty; so is a value that is not known (never 0).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any, Optional

from gua.report.document import Report
from gua.report.wording import rule_name
from gua.text import shown

COLUMNS = (
    *("host", "since", "until", "section", "card", "index", "user", "weekday", "hour", "state"),
    *("measure", "unit", "value"),
)
# What a spreadsheet would take for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

_Measures = tuple[tuple[str, str, str], ...]
"""(field of the document, measure, unit) each"""

_USER_MEASURES = (
    ("card_s", "card_time", "s"),
    ("share_s", "share_time", "s"),
    ("shared_card_s", "card_time_shared", "s"),
    ("idle_held_card_s", "idle_held_time", "s"),
    ("idle_held_long_card_s", "long_idle_held_time", "s"),
    ("energy_j", "energy", "J"),
    ("energy_known_s", "energy_known_time", "s"),
    ("held_mb", "memory_held_mean", "MiB"),
    ("cards", "cards_held", "1"),
    ("samples", "samples", "1"),
)
_CARD_MEASURES = (
    ("expected_card_s", "expected_time", "s"),
    ("unobserved_card_s", "unobserved_time", "s"),
    ("held_unmeasured_s", "held_unmeasured_time", "s"),
    ("energy_known_s", "energy_known_time", "s"),
    ("memory_total_mb", "memory_total", "MiB"),
    ("samples", "samples", "1"),
)
_Row = dict[str, Any]


def render_csv(report: Report) -> str:
    """The table with its heading, lines ending in a line feed."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    window = report["window"]
    same = {"host": safe(report["host"]["hostname"]), "since": window["since"], "until": window["until"]}
    writer.writerows({**same, **row} for row in rows(report))
    return out.getvalue()


def rows(report: Report) -> Iterator[_Row]:
    """Every value with its keys."""
    yield from _host(report)
    for card in report["cards"]:
        keys = {"section": "cards", "card": safe(card["uuid"]), "index": _cell(card["index"])}
        yield from _states(keys, card["card_s"], "card_time", "s")
        yield from _states(keys, card["energy_j"], "energy", "J")
        yield from _measures(keys, card, _CARD_MEASURES)
        for reason, seconds in card.get("unknown_by_reason", {}).items():
            yield {**keys, "state": "unknown", **_value(f"unknown_time_{reason}", "s", seconds)}
    for user in report["users"]:
        keys = {"section": "users", "user": safe(user["user"])}
        yield from _states(keys, user["states"], "card_time_by_state", "s")
        yield from _measures(keys, user, _USER_MEASURES)
    for one in report["hours_of_week"]:
        keys = {"section": "hours_of_week", "weekday": str(one["weekday"]), "hour": str(one["hour"])}
        yield from _states(keys, one["card_s"], "card_time", "s")
    yield from _now(report)
    for other in report.get("sensitivity", []):
        yield from _states({"section": "sensitivity"}, other["card_s"], f"card_time ({rule_name(other['rule'])})", "s")


def _host(report: Report) -> Iterator[_Row]:
    keys, coverage = {"section": "host"}, report["coverage"]
    yield from _states(keys, report["card_s"], "card_time", "s")
    for name in ("expected", "observed", "unobserved"):
        yield {**keys, **_value(f"{name}_time", "s", coverage[f"{name}_card_s"])}  # type: ignore[literal-required]
    for reason, seconds in coverage["unknown_by_reason"].items():
        yield {**keys, "state": "unknown", **_value(f"unknown_time_{reason}", "s", seconds)}
    for status, number in coverage["ticks"].items():
        yield {**keys, **_value(f"ticks_{status}", "1", number)}
    yield {**keys, **_value("samples", "1", report["samples"])}
    for number, rule in enumerate(report["rules"], 1):
        for field, threshold in rule.items():
            unit = {"pct": "%", "mb": "MiB", "s": "s"}[field.rpartition("_")[2]]
            yield {**keys, **_value(f"rule_{number}_{field}", unit, threshold)}


def _now(report: Report) -> Iterator[_Row]:
    """The present: one row per card, and one per process that holds it."""
    for card in report["cards"]:
        seen = card["now"]
        if seen is None:
            continue
        keys = {
            "section": "now",
            "card": safe(card["uuid"]),
            "index": _cell(card["index"]),
            "state": seen["state"],
        }
        yield {**keys, **_value("utilisation", "%", seen["util_pct"])}
        yield {**keys, **_value("memory_used", "MiB", seen["memory_used_mb"])}
        for holder in seen["holders"]:
            if holder["type"] != "graphics":
                yield {**keys, "user": safe(holder["user"]), **_value("memory_held", "MiB", holder["memory_mb"])}


def _states(keys: Mapping[str, Any], states: Optional[Mapping[str, Any]], measure: str, unit: str) -> Iterator[_Row]:
    for state, amount in (states or {}).items():
        yield {**keys, "state": state, **_value(measure, unit, amount)}


def _measures(
    keys: Mapping[str, Any], source: Mapping[str, Any], measures: tuple[tuple[str, str, str], ...]
) -> Iterator[_Row]:
    for field, measure, unit in measures:
        yield {**keys, **_value(measure, unit, source.get(field))}


def _value(measure: str, unit: str, value: Any) -> dict[str, str]:
    return {"measure": measure, "unit": unit, "value": _cell(value)}


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def safe(text: str) -> str:
    """A name without control characters, and none that a spreadsheet would run."""
    clean = shown(text, 200)
    return f"'{clean}" if clean.startswith(_FORMULA) else clean
