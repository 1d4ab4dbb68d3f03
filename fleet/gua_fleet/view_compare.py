"""What `gua-fleet report --compare` shows: GPU-hours reclaimed and lost, as far as they are certain. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from gua.report.cells import UNKNOWN, clock_time, hours, percent
from gua.report.zones import find_zone
from gua.text import shown
from gua_fleet.compare import SIDES, STATES
from gua_fleet.model import Document, Outcome
from gua_fleet.sums import STATE_NAMES
from gua_fleet.view import Section, View

SECTIONS = ("host", "user")
# Behind a difference that lies within what was not seen.
DOUBT = "?"
_TOP_USERS = 20
_HEADERS = ("active", "change", "idle-held", "before", "reclaimed")
COLUMNS = (
    *("section", "name", "scale"),
    *(f"{side}_{name.replace('-', '_')}_card_s" for side in SIDES for name in (*STATE_NAMES, "unseen")),
    *(
        f"{state.replace('-', '_')}_{part}"
        for state in STATES
        for part in ("change_card_s", "change_at_least_card_s", "change_at_most_card_s", "change_told")
    ),
    "reclaimed_card_s",
)


def compare_view(document: Document, by: Collection[str] = (), top: int | None = _TOP_USERS) -> View:
    """Everything to be shown of a `gua.fleet-compare/1`. by: which of SECTIONS; empty: both. top: users shown."""
    users = sorted(document["users"], key=_by_size)
    sections = {
        "host": Section(
            "By host",
            ("host", *_HEADERS, "seen", "before"),
            [_host_row(row) for row in document["hosts"]],
            "lrrrrrrr",
            host_column=0,
        ),
        "user": Section("By user", ("user", *_HEADERS), [_user_row(row) for row in users[:top]], "lrrrrr"),
    }
    more = max(0, len(users) - (len(users) if top is None else top))
    return View(
        document,
        lines=[*_lines(document)],
        sections=[sections[name] for name in SECTIONS if not by or name in by],
        notes=[
            *([f"and {more} more users; --format json, csv and html have all of them."] if more else ()),
            *_notes(document),
        ],
        columns=COLUMNS,
        flat=[row for row in _flat(document) if row["section"] == "fleet" or not by or row["section"] in by],
    )


def windows_text(document: Document) -> str:
    """`2026-03-02 00:00 to 2026-03-09 00:00, against 2026-02-23 00:00 to 2026-03-02 00:00 (Europe/Berlin)`."""
    zone = find_zone(document["tz"])
    this, before = (
        f"{clock_time(window['since'], zone)} to {clock_time(window['until'], zone)}"
        for window in (document["windows"][side] for side in SIDES)
    )
    return f"{this}, against {before} ({document['tz'] if zone is not None else 'UTC'})"


def _lines(document: Document) -> Iterable[str]:
    yield f"GPU use of the fleet, {windows_text(document)}"
    yield _headline(document["fleet"])
    for side, when in (("this", "now"), ("before", "before")):
        amounts = document["fleet"][side]
        seen, expected = sum(amounts["card_s"].values()), amounts["expected_card_s"]
        yield f"Seen {when}: {hours(seen)} of {hours(expected)} expected GPU-hours ({percent(seen, expected)})."
    if document["scale"] != 1:
        yield (
            f"The windows differ in length: what was before is counted {document['scale']:.4g} times, as if it had "
            "been as long as this one."
        )
    yield from _missing(document)


def _headline(fleet: Mapping[str, Any]) -> str:
    change = fleet["change"]["idle-held"]
    least, most = -change["at_most_card_s"], -change["at_least_card_s"]
    held = f"Held without work: {hours(fleet['this']['card_s']['idle-held'])} GPU-hours, {_gained(-change['card_s'])}"
    if change["told"] == "not-told":
        return f"{held} by what was seen; that lies within what was not seen (it may be {_span(least, most)})."
    return f"{held}{'' if least == most else f' ({_span(least, most)})'}."


def _gained(amount_s: float) -> str:
    if amount_s == 0:
        return "as before"
    return f"{hours(abs(amount_s))} {'reclaimed' if amount_s > 0 else 'lost'}"


def _span(least_s: float, most_s: float) -> str:
    """`12.3 lost to 45.6 reclaimed`, `12.3 to 45.6 lost`, in hours."""
    if least_s < 0 < most_s:
        return f"{_gained(least_s)} to {_gained(most_s)}"
    first, last = sorted((abs(least_s), abs(most_s)))
    return f"{hours(first)} to {hours(last)} {'reclaimed' if most_s > 0 else 'lost'}"


def _missing(document: Document) -> Iterable[str]:
    """Hosts that are in the sums of neither window, or of one, each with what became of it."""
    neither = [row for row in document["hosts"] if row["this"] is None and row["before"] is None]
    if neither:
        named = ", ".join(f"{shown(row['name'])} ({_outcome(row, 'this')})" for row in neither)
        yield f"Without figures in either window, so in nothing here: {named}."
    for side, when in (("this", "now"), ("before", "before")):
        out = [
            f"{shown(row['name'])} ({_outcome(row, side)})"
            for row in document["hosts"]
            if row[side] is None and row not in neither
        ]
        if out:
            yield f"Without figures {when}: {', '.join(out)}."
        stored = [
            shown(row["name"])
            for row in document["hosts"]
            if row[side] is not None and _stands_in(row["sources"][side])
        ]
        if stored:
            yield f"Did not answer, {when} as the store has it: {', '.join(stored)}."


def _outcome(row: Mapping[str, Any], side: str) -> str:
    source = row["sources"][side]
    return "not asked" if source is None else shown(source["outcome"])


def _stands_in(source: Mapping[str, Any] | None) -> bool:
    return source is not None and source["from_store"] is not None and source["outcome"] != Outcome.STORED.value


def _notes(document: Document) -> Iterable[str]:
    yield (
        "In GPU-hours; one of a MIG slice counts as one. Reclaimed: how much less time cards were held without work "
        "than before; below 0: lost. "
        f"{DOUBT} behind a difference: it lies within what was not seen, so it may be none, or the other way round."
    )
    if document["users"]:
        yield "A user's hours count each card whole. Anybody may have held a card that was not seen."
    for finding in document["findings"]:
        yield f"{finding['severity']}: {shown(finding['text'], 400)}"


def _by_size(row: Mapping[str, Any]) -> tuple[float, str]:
    return (-abs(row["reclaimed_card_s"]), row["user"])


def _host_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    seen = [_seen(row[side]) for side in SIDES]
    return (shown(row["name"]), *_cells(row), *seen)


def _seen(amounts: Mapping[str, Any] | None) -> str:
    if amounts is None:
        return UNKNOWN
    return percent(sum(amounts["card_s"].values()), amounts["expected_card_s"])


def _user_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (shown(row["user"]), *_cells(row))


def _cells(row: Mapping[str, Any]) -> Sequence[str]:
    active, held, before = (
        UNKNOWN if row[side] is None else hours(row[side]["card_s"][state])
        for side, state in (("this", "active"), ("this", "idle-held"), ("before", "idle-held"))
    )
    change = row["change"]
    if change is None:
        return active, UNKNOWN, held, before, UNKNOWN
    return (
        active,
        _signed(change["active"]["card_s"], change["active"]["told"]),
        held,
        before,
        _signed(row["reclaimed_card_s"], change["idle-held"]["told"]),
    )


def _signed(amount_s: float, told: str) -> str:
    sign = "" if amount_s == 0 else "+" if amount_s > 0 else "-"
    return f"{sign}{hours(abs(amount_s))}{DOUBT if told == 'not-told' else ''}"


def _flat(document: Document) -> Iterable[dict[str, Any]]:
    rows = [
        ("fleet", "", document["fleet"]),
        *(("host", row["name"], row) for row in document["hosts"]),
        *(("user", row["user"], row) for row in document["users"]),
    ]
    for section, name, row in rows:
        flat: dict[str, Any] = {"section": section, "name": name, "scale": document["scale"]}
        for side in SIDES:
            amounts = row[side]
            if amounts is not None:
                flat |= {f"{side}_{key.replace('-', '_')}_card_s": amount for key, amount in amounts["card_s"].items()}
                flat[f"{side}_unseen_card_s"] = amounts["unseen_card_s"]
        for state, change in (row["change"] or {}).items():
            word = state.replace("-", "_")
            flat[f"{word}_change_card_s"] = change["card_s"]
            flat[f"{word}_change_at_least_card_s"] = change["at_least_card_s"]
            flat[f"{word}_change_at_most_card_s"] = change["at_most_card_s"]
            flat[f"{word}_change_told"] = change["told"]
        yield flat | {"reclaimed_card_s": row["reclaimed_card_s"]}
