"""What of a report is from the store and not from an answer, and how old it is: in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gua.report.cells import clock_time
from gua.report.zones import find_zone
from gua.text import shown
from gua.units import MS_PER_SECOND, format_duration
from gua_fleet.model import Document, Outcome

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def reported(host: Mapping[str, Any]) -> bool:
    """Whether the host itself gave its figures now."""
    return bool(host["outcome"] == Outcome.OK.value)


def filled_in(document: Document) -> list[Mapping[str, Any]]:
    """Hosts that were asked and gave no report, whose figures are the store's."""
    return [host for host in document["hosts"] if host["from_store"] and host["outcome"] != Outcome.STORED.value]


def stored_text(document: Document) -> str | None:
    """Above a report of the store, where nobody was asked; None above any other."""
    hosts = [host for host in document["hosts"] if host["outcome"] == Outcome.STORED.value]
    if not hosts:
        return None
    oldest = max(hosts, key=lambda host: host["from_store"]["age_s"])
    text = f"From the store, nobody was asked: history of {len(hosts)} of {len(document['hosts'])} hosts, pulled "
    newest = min(hosts, key=lambda host: host["from_store"]["age_s"])
    return f"{text}{' to '.join(dict.fromkeys([_ago(newest), _ago(oldest)]))} ago."


def filled_text(document: Document) -> str:
    """Which hosts without an answer have figures all the same; empty where none has."""
    named = [f"{shown(host['name'])} (pulled {_ago(host)} ago)" for host in filled_in(document)]
    return f" From the store: {', '.join(named)}." if named else ""


def stored_note(host: Mapping[str, Any], document: Document) -> str:
    """Behind the line of a host without a report; empty where the store has nothing of it."""
    told = host["from_store"]
    if not told:
        return ""
    at = clock_time(told["pulled_at"], find_zone(document["tz"]))
    return f"; its figures are from the store, pulled {at}, {_ago(host)} ago: nothing later was seen"


def outcome_cell(host: Mapping[str, Any]) -> str:
    """`ok`, `unreachable`, and `unreachable (5 h old)` where the figures beside it are the store's."""
    told = host["from_store"]
    return f"{shown(host['outcome'])} ({_short(told['age_s'])} old)" if told else shown(host["outcome"])


def _ago(host: Mapping[str, Any]) -> str:
    return format_duration(round(host["from_store"]["age_s"] * MS_PER_SECOND))


def _short(seconds: float) -> str:
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), _UNITS[-1])
    return f"{seconds // size:.0f} {unit}"
