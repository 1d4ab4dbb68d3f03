"""One window of the fleet against another: what was reclaimed and what was lost, and what of it is not certain. Pure.

Both windows are merged reports. Where they differ in length, what the other window had is scaled to this one's length.
Time that was not seen may have been anything, so each difference has bounds; one that they cannot tell from none is
said to lie within what was not seen. Hosts without figures in either window are in no amount and no bound: of them
nothing is compared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from gua.units import MS_PER_SECOND, parse_time_ms, to_iso
from gua_fleet.model import Document, Outcome
from gua_fleet.sums import STATE_NAMES, from_micro, to_micro

SCHEMA = "gua.fleet-compare/1"
# Of `unknown` no more or less is told: it is what bounds are made of.
STATES = STATE_NAMES[:3]
SIDES = ("this", "before")
# Amounts are rounded to milliseconds one by one.
_NOTHING = to_micro(0.001)

Row = dict[str, Any]


def compare_reports(this: Document, before: Document, *, generated_at_ms: int) -> Document:
    """The `gua.fleet-compare/1` of two `gua.fleet-report/1` of the same inventory, with names of people in both.

    A host has amounts on a side on which it is in the sums, else null there, and no change is told of it.
    """
    scale = _length_ms(this) / _length_ms(before)
    pair, out = {"this": this, "before": before}, _in_neither(this, before)
    return {
        "schema": SCHEMA,
        "generated_at": to_iso(generated_at_ms),
        "tz": this["tz"],
        "names": this["names"] and before["names"],
        "windows": {side: pair[side]["window"] for side in SIDES},
        "scale": scale,
        "rules": {side: {key: pair[side][key] for key in ("rules", "model_rules")} for side in SIDES},
        "coverage": {side: pair[side]["coverage"] for side in SIDES},
        "fleet": _compared({side: _fleet_amounts(pair[side], out) for side in SIDES}, scale),
        "hosts": _hosts(this, before, scale),
        "users": _users(this, before, scale, out),
        "findings": [*_findings(this, before)],
    }


def told(least: int, most: int) -> str:
    """What bounds of a difference say: `more`, `less`, `same` or `not-told`: it lies within what was not seen."""
    if least > _NOTHING:
        return "more"
    if most < -_NOTHING:
        return "less"
    return "same" if most - least <= 2 * _NOTHING else "not-told"


def _length_ms(document: Document) -> int:
    window = document["window"]
    return parse_time_ms(window["until"]) - parse_time_ms(window["since"])


def _in_neither(this: Document, before: Document) -> set[str]:
    """Hosts that have figures in neither window."""
    rows = [row for document in (this, before) for row in document["hosts"]]
    return {row["name"] for row in rows} - {row["name"] for row in rows if row["card_s"] is not None}


def _fleet_amounts(document: Document, out: Collection[str]) -> Row:
    """out: hosts that are not compared; what was expected of them is in the document and not here."""
    window_s = _length_ms(document) / MS_PER_SECOND
    apart = {row["host"]: row["coverage"]["expected_card_s"] for row in document["apart"]}
    unused = sum(
        apart.get(row["name"], (row["cards"] or 0) * window_s)
        for row in document["hosts"]
        if row["name"] in out and row["outcome"] != Outcome.NO_GPU.value
    )
    return _amounts(document["card_s"], document["coverage"]["expected_card_s"] - unused)


def _amounts(states: Mapping[str, float], expected_s: float) -> Row:
    known = sum(to_micro(states[name]) for name in STATES)
    unseen = max(0, to_micro(expected_s) - known)
    return {
        "card_s": {name: states[name] for name in STATE_NAMES},
        "expected_card_s": expected_s,
        "unseen_card_s": from_micro(unseen),
    }


def _hosts(this: Document, before: Document, scale: float) -> list[Row]:
    """Every host of the inventory in its order."""
    rows = {side: {host["name"]: host for host in document["hosts"]} for side, document in _sides(this, before)}
    names = dict.fromkeys(host["name"] for _, document in _sides(this, before) for host in document["hosts"])
    return [
        {
            "name": name,
            "sources": {side: _source(rows[side].get(name)) for side in SIDES},
            **_compared({side: _host_amounts(rows[side].get(name)) for side in SIDES}, scale),
        }
        for name in names
    ]


def _sides(this: Document, before: Document) -> tuple[tuple[str, Document], ...]:
    return ("this", this), ("before", before)


def _source(host: Mapping[str, Any] | None) -> Row | None:
    return None if host is None else {key: host[key] for key in ("outcome", "detail", "from_store")}


def _host_amounts(host: Mapping[str, Any] | None) -> Row | None:
    if host is None or host["card_s"] is None:
        return None
    return _amounts(host["card_s"], host["coverage"]["expected_card_s"])


def _users(this: Document, before: Document, scale: float, out: Collection[str]) -> list[Row]:
    """Everybody who held a card in one of the windows, by name. Whoever is missing on a side was not seen there.

    Anybody may have held any card that was not seen: what was not seen of the hosts compared is in everybody's bounds.
    """
    rows = {side: {user["user"]: user for user in document["users"]} for side, document in _sides(this, before)}
    unseen = {side: _fleet_amounts(document, out)["unseen_card_s"] for side, document in _sides(this, before)}
    return [
        {
            "user": name,
            "user_source": "+".join(sorted(_sources_of(name, rows.values()))),
            **_compared({side: _user_amounts(rows[side].get(name), unseen[side]) for side in SIDES}, scale),
        }
        for name in sorted({*rows["this"], *rows["before"]})
    ]


def _sources_of(name: str, rows: Iterable[Mapping[str, Mapping[str, Any]]]) -> set[str]:
    return {part for users in rows if name in users for part in users[name]["user_source"].split("+")}


def _user_amounts(user: Mapping[str, Any] | None, unseen_s: float) -> Row:
    states = dict.fromkeys(STATE_NAMES, 0.0) if user is None else user["states"]
    return {
        "card_s": {name: states[name] for name in STATE_NAMES},
        "idle_held_long_card_s": 0.0 if user is None else user["idle_held_long_card_s"],
        "unseen_card_s": unseen_s,
    }


def _compared(amounts: Mapping[str, Row | None], scale: float) -> Row:
    """{"this", "before": amounts or null, "change": {state: change} or null, "reclaimed_card_s"}.

    reclaimed_card_s: how much less time cards were held without work; below 0: how much more.
    """
    this, before = amounts["this"], amounts["before"]
    if this is None or before is None:
        return {**amounts, "change": None, "reclaimed_card_s": None}
    change = {state: _change(this, before, state, scale) for state in STATES}
    less = -change["idle-held"]["card_s"]
    return {**amounts, "change": change, "reclaimed_card_s": less or 0.0}


def _change(this: Row, before: Row, state: str, scale: float) -> Row:
    now, unseen_now = to_micro(this["card_s"][state]), to_micro(this["unseen_card_s"])
    then = round(to_micro(before["card_s"][state]) * scale)
    unseen_then = round(to_micro(before["unseen_card_s"]) * scale)
    least, most = now - then - unseen_then, now - then + unseen_now
    return {
        "card_s": from_micro(now - then),
        "at_least_card_s": from_micro(least),
        "at_most_card_s": from_micro(most),
        "told": told(least, most),
    }


def _findings(this: Document, before: Document) -> Iterable[Row]:
    if (this["rules"], this["model_rules"]) != (before["rules"], before["model_rules"]) and before["rules"]:
        yield _finding(
            "rules_differ",
            "warn",
            "the two windows were judged by different rules, so a difference may be theirs: give --rules",
        )
    for side, name in (("this", "this window"), ("before", "the window before")):
        document = this if side == "this" else before
        out = [host["name"] for host in document["hosts"] if host["card_s"] is None and host["cards"] is None]
        out = [name for name in out if _counts_elsewhere(name, this, before)]
        if out:
            text = f"nothing is known of {', '.join(out)} in {name}, not even how many cards: no bound covers that"
            yield _finding("host_not_known", "warn", text)
    begins = before["window"]["history_begins"]
    if begins is not None:
        yield _finding(
            "history_begins",
            "info",
            f"some history begins {begins}, within the window before: nothing is expected of it",
        )


def _counts_elsewhere(name: str, this: Document, before: Document) -> bool:
    """Whether the host has amounts in one of the windows, so that its silence in the other makes a difference."""
    return any(host["name"] == name and host["card_s"] is not None for host in (*this["hosts"], *before["hosts"]))


def _finding(finding_id: str, severity: str, text: str) -> Row:
    return {"id": finding_id, "severity": severity, "text": text}
