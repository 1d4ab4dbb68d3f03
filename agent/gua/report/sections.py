"""The sections of a report in their order: what every format for people lays out. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gua.report import figures, presence
from gua.report.cells import clock_time, count, hours
from gua.report.document import Report
from gua.report.presence import LOUD
from gua.report.section import Section
from gua.report.wording import zone_of
from gua.text import shown
from gua.units import parse_time_ms

# Sections that are the host's, also in a report that names one person.
_HOST_WIDE = ("headline", "capacity", "cards", "heat", "sensitivity")
_WHOLE = "whole host"


@dataclass(frozen=True)
class Opening:
    """title: what and where. period: the window in the report's zone. notes: sentences. warnings: louder ones."""

    title: str
    period: str
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


def opening_of(report: Report) -> Opening:
    """What stands above the sections."""
    window, (zone, name) = report["window"], zone_of(report)
    notes = []
    begins = window["history_begins"]
    if begins is not None and parse_time_ms(begins) > parse_time_ms(window["since"]):
        notes.append(f"History begins {clock_time(begins, zone)}; nothing is expected before that.")
    user = report.get("user")
    if user is not None:
        notes.append(_of_one(report, user))
    return Opening(
        title=f"GPU use on {shown(report['host']['hostname'])}",
        period=f"{clock_time(window['since'], zone)} to {clock_time(window['until'], zone)} ({name})",
        notes=tuple(notes),
        warnings=tuple(
            f"{LOUD[one['id']]}: {shown(one['text'], 400)}" for one in report["findings"] if one["id"] in LOUD
        ),
    )


def _of_one(report: Report, user: str) -> str:
    """What one person held, in a sentence: the sections that are not about people are about the whole host."""
    rows = [one for one in report["users"] if one["user"] == user]
    told = f"{shown(user)} held no card in this window, as far as it was seen."
    for one in rows:
        told = (
            f"{shown(user)} held {count(one.get('cards'))} {'card' if one.get('cards') == 1 else 'cards'} for "
            f"{hours(one['card_s'])} GPU-hours: {hours(one['idle_held_card_s'])} of them without work, "
            f"{hours(one['idle_held_long_card_s'])} of those in long stretches."
        )
    return f"{told} Nobody else is named; sections marked ({_WHOLE}) are about everybody's use."


def has_history(report: Report) -> bool:
    return bool(report["cards"]) and report["coverage"]["expected_card_s"] > 0


def nothing_text(report: Report) -> str:
    """Instead of the sections: a table of zeros would read as if the cards had been idle."""
    if report["cards"]:
        return "Nothing was expected in this window: the history of these cards begins later."
    return (
        "No history yet: the database is there and no card was recorded in it. "
        "Is `gua daemon` running? Its first sample comes within one interval."
    )


def sections_of(report: Report, heat: tuple[str, ...] = ("idle-held", "active")) -> list[Section]:
    """The sections in order; findings alone without history. heat: whose hours of the week are drawn."""
    if not has_history(report):
        return [presence.findings(report)]
    sections = [
        figures.headline(report),
        figures.capacity(report),
        figures.cards(report),
        presence.users(report),
        figures.heat_map(report, heat),
        presence.now(report),
        figures.energy(report),
        *([figures.sensitivity(report)] if report.get("sensitivity") else []),
        presence.findings(report),
    ]
    if report.get("user") is None:
        return sections
    return [replace(one, title=f"{one.title} ({_WHOLE})") if one.key in _HOST_WIDE else one for one in sections]
