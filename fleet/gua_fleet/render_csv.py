"""The fleet report for spreadsheets: one flat table of raw amounts. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from gua_fleet.model import Document
from gua_fleet.show import harmless
from gua_fleet.sums import STATE_NAMES

HEADERS = (
    "section",
    "name",
    "mig",
    "outcome",
    "hosts",
    "cards",
    "expected_card_s",
    "active_card_s",
    "idle_held_card_s",
    "truly_idle_card_s",
    "unknown_card_s",
    "unobserved_card_s",
    "card_s",
    "share_s",
    "idle_held_long_card_s",
    "energy_j",
    "energy_known_s",
    "store_age_s",
)

# A spreadsheet takes a cell that begins so for a formula, and a user may be called `=cmd|...`.
_FORMULA = ("=", "+", "-", "@")


def render_csv(document: Document, by: Collection[str] = ()) -> str:
    """One header, then a row for the fleet and for each model, host, user and group. Empty: unknown; 0: none.

    store_age_s: how old figures are that the store has of a host that gave none; empty where it gave them itself.

    by: which sections besides `fleet`; empty: all. Amounts are sums in card-seconds and joules.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, HEADERS, lineterminator="\n", restval="")
    writer.writeheader()
    for row in _rows(document):
        if row["section"] == "fleet" or not by or row["section"] in by:
            writer.writerow({key: csv_cell(value) for key, value in row.items()})
    return out.getvalue()


def _rows(document: Document) -> Iterator[dict[str, Any]]:
    coverage, total = document["coverage"], {"cards": document["cards"], "hosts": len(document["hosts"])}
    yield {"section": "fleet", **total, **_amounts(document["card_s"], coverage["expected_card_s"])}
    for row in document["models"]:
        yield {"section": "model", "mig": int(row["mig"]), **_kind(row)}
    for host in document["hosts"]:
        amounts = {} if host["card_s"] is None else _amounts(host["card_s"], host["coverage"]["expected_card_s"])
        age = {"store_age_s": host["from_store"]["age_s"]} if host["from_store"] else {}
        yield {"section": "host", **{key: host[key] for key in ("name", "outcome", "cards")}, **amounts, **age}
    for user in document["users"]:
        named = {key: user[key] for key in HEADERS if key in user and key != "hosts"}
        yield {"section": "user", "name": user["user"], **named, "hosts": len(user["hosts"]), **_states(user["states"])}
    for row in document["groups"]:
        yield {"section": "group", "hosts": row["hosts"], **_kind(row)}


def _kind(row: Mapping[str, Any]) -> dict[str, Any]:
    energy = None if row["energy_j"] is None else sum(row["energy_j"].values())
    return {
        "name": row["name"],
        "cards": row["cards"],
        **_amounts(row["card_s"], row["expected_card_s"]),
        "energy_j": energy,
        "energy_known_s": row["energy_known_s"],
    }


def _amounts(states: Mapping[str, float], expected: float) -> dict[str, float]:
    unseen = max(0.0, expected - sum(states.values()))
    return {"expected_card_s": expected, **_states(states), "unobserved_card_s": round(unseen, 3)}


def _states(states: Mapping[str, float]) -> dict[str, float]:
    return {f"{name.replace('-', '_')}_card_s": states[name] for name in STATE_NAMES}


def csv_cell(value: Any) -> Any:
    """A value as a spreadsheet or a terminal may have it: empty where unknown, no yes or no a word, and no text a
    formula or a control sequence.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, str):
        return value
    text = harmless(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
