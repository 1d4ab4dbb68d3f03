"""The fleet's tables of sums as data: headers and rows of ready cells, from a `gua.fleet-report/1` document. Pure.

Unknown prints "-", zero prints "0". Names that come from workloads or hosts are escaped here.
`columns` is the width that there is for the table; None: names are never cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gua.model import State
from gua.report.cells import UNKNOWN, count, equivalent_cards, hours, model, percent
from gua.shares import format_share, share
from gua.text import shown
from gua_fleet.merge_parts import MODEL_NOT_KNOWN
from gua_fleet.model import Document
from gua_fleet.name_columns import beside, beside_short
from gua_fleet.rows_stored import outcome_cell

KNOWN_STATES = (State.ACTIVE, State.IDLE_HELD, State.TRULY_IDLE)
WIDE = 100
_TOP_USERS = 20
_J_PER_KWH = 3_600_000
# Sums of many rounded amounts: what is known for so much of the time is known.
_ALL_OF_IT = 0.999

Amounts = Mapping[str, float]
"""Card-seconds by state, and `unobserved`: one bar."""


@dataclass(frozen=True)
class Table:
    """headers and rows have one cell per letter of `align` (l or r). more: how many rows were left out.

    bars: one for each row, for places that can draw; None where nothing is known. Empty: nothing to draw.
    spare: headers of the columns that go first, in this order, where the table is wider than its place.
    """

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    align: str
    more: int = 0
    bars: tuple[Amounts | None, ...] = ()
    spare: tuple[str, ...] = ()

    def without(self, header: str) -> Table:
        """The table without that column."""
        gone = self.headers.index(header)
        return replace(
            self,
            headers=self.headers[:gone] + self.headers[gone + 1 :],
            rows=tuple(row[:gone] + row[gone + 1 :] for row in self.rows),
            align=self.align[:gone] + self.align[gone + 1 :],
        )


def split(states: Mapping[str, float], expected: float) -> Amounts:
    """A bar's amounts: the states, and what of the expected time was not seen."""
    return {**states, "unobserved": max(0.0, expected - sum(states.values()))}


def headline_tables(document: Document) -> list[Table]:
    """The fleet's time by state, unknown and not seen included; MIG slices apart, since no slice is a card."""
    whole, slices = (_sum(row for row in document["models"] if row["mig"] is mig) for mig in (False, True))
    tables = []
    if whole[1] or not slices[1]:
        seen = sum(host["cards"] or 0 for host in document["hosts"] if host["card_s"] is not None)
        tables.append(_headline_table("Where the card time went", whole, seen - document["sliced_cards"]))
    if slices[1]:
        tables.append(_headline_table("MIG slices, apart", slices, None))
    return tables


def headline_time(document: Document) -> tuple[dict[str, float], float]:
    """States and expected card-seconds of whole cards; of MIG slices where the fleet has nothing else."""
    whole, slices = (_sum(row for row in document["models"] if row["mig"] is mig) for mig in (False, True))
    return whole if whole[1] else slices


def headline_unit(document: Document) -> str:
    """What the hours of `headline_time` are."""
    return "slice-hours" if kinds_of_time(document) == {True} else "GPU-hours"


def kinds_of_time(document: Document) -> set[bool]:
    """Whether the expected time is that of whole cards (False), of MIG slices (True), or of both."""
    return {row["mig"] for row in document["models"] if row["expected_card_s"]}


def _sum(rows: Iterable[Mapping[str, Any]]) -> tuple[dict[str, float], float]:
    states, expected = dict.fromkeys((state.value for state in State), 0.0), 0.0
    for row in rows:
        states = {name: amount + row["card_s"][name] for name, amount in states.items()}
        expected += row["expected_card_s"]
    return states, expected


def _headline_table(title: str, sums: tuple[dict[str, float], float], seen_cards: int | None) -> Table:
    """seen_cards: what the shares are equivalent to; None where the time is not that of whole cards."""
    states, expected = sums
    known_s = sum(states[state.value] for state in KNOWN_STATES)
    unseen = split(states, expected)["unobserved"]
    rows = [
        (
            state.value,
            format_share(share(states, state, expected)),
            hours(states[state.value]),
            equivalent_cards(states[state.value], known_s, seen_cards or 0),
        )
        for state in KNOWN_STATES
    ]
    for name, amount in (("unknown", states["unknown"]), ("not seen", unseen)):
        rows.append((name, f"{percent(amount, expected)} of expected", hours(amount), UNKNOWN))
    headers: tuple[str, ...] = ("state", "share (bounds)", "GPU-hours", "equivalent cards")
    if seen_cards is None:
        return Table(title, (*headers[:2], "slice-hours"), tuple(row[:3] for row in rows), "llr")
    return Table(title, headers, tuple(rows), "llrr", spare=("equivalent cards",))


def model_table(document: Document, columns: int | None = WIDE) -> Table:
    """One row per model, and under it its MIG slices, which are no whole cards and in no other row."""
    ordered = _models_in_order(document)
    headers = ("model", "cards", *_STATE_HEADERS)
    figures = [(count(row["cards"]), *_state_cells(row["card_s"], row["expected_card_s"])) for row in ordered]
    rows = beside([_kind(row) for row in ordered], headers, figures, columns)
    return Table("By model", headers, rows, "lr" + _STATE_ALIGN, bars=_bars(ordered), spare=_STATE_SPARE)


def energy_table(document: Document, columns: int | None = WIDE) -> Table:
    """Energy by model, split by what the cards did; no row where nothing of it is known."""
    known = [row for row in _models_in_order(document) if row["energy_j"] is not None]
    headers = ("model", "kWh", *(f"{state.value} kWh" for state in KNOWN_STATES), "known of the time")
    figures = [
        (
            energy_cell(sum(row["energy_j"].values()), row["energy_known_s"], sum(row["card_s"].values())),
            *(kwh(row["energy_j"][state.value]) for state in KNOWN_STATES),
            percent(row["energy_known_s"], sum(row["card_s"].values())),
        )
        for row in known
    ]
    rows = beside([_kind(row) for row in known], headers, figures, columns)
    return Table("Energy", headers, rows, "lrrrrr", spare=(headers[-1], f"{State.TRULY_IDLE.value} kWh"))


def host_table(document: Document, columns: int | None = WIDE) -> Table:
    """Every host of the inventory, in its order, whether it answered or not."""
    headers = ("host", "outcome", "cards", *_STATE_HEADERS[:5])
    figures, bars = [], list[Amounts | None]()
    for host in document["hosts"]:
        states, coverage = host["card_s"], host["coverage"]
        cells = (UNKNOWN,) * 5 if states is None else _state_cells(states, coverage["expected_card_s"])[:5]
        figures.append((outcome_cell(host), count(host["cards"]), *cells))
        bars.append(None if states is None else split(states, coverage["expected_card_s"]))
    rows = beside_short([host["name"] for host in document["hosts"]], headers, figures, columns)
    return Table("By host", headers, rows, "llr" + _STATE_ALIGN[:5], bars=tuple(bars), spare=_STATE_SPARE)


def user_table(document: Document, columns: int | None = WIDE, top: int | None = _TOP_USERS) -> Table:
    """Users by what they held without working, most first. Energy has a column where any of it is known."""
    users = sorted(document["users"], key=lambda user: (-user["idle_held_card_s"], -user["card_s"], user["user"]))
    energy = any(user["energy_j"] is not None for user in users)
    kwh_header = ("kWh",) if energy else ()
    headers = ("user", "GPU-hours", "share hours", "idle-held h", "long h", *kwh_header, "hosts")
    figures = [
        (
            hours(user["card_s"]),
            hours(user["share_s"]),
            hours(user["idle_held_card_s"]),
            hours(user["idle_held_long_card_s"]),
            *([energy_cell(user["energy_j"], user["energy_known_s"], user["share_s"])] if energy else []),
            count(len(user["hosts"])),
        )
        for user in users[:top]
    ]
    rows = beside([shown(user["user"]) for user in users[:top]], headers, figures, columns)
    more = len(users) - len(rows)
    return Table("By user", headers, rows, "l" + "r" * (len(headers) - 1), more=more, spare=("kWh", "share hours"))


def group_table(document: Document, columns: int | None = WIDE) -> Table:
    """Sums of the inventory's groups; a host in two groups is in both."""
    headers = ("group", "hosts", "cards", *_STATE_HEADERS)
    figures = [
        (count(row["hosts"]), count(row["cards"]), *_state_cells(row["card_s"], row["expected_card_s"]))
        for row in document["groups"]
    ]
    rows = beside_short([row["name"] for row in document["groups"]], headers, figures, columns)
    return Table("By group", headers, rows, "lrr" + _STATE_ALIGN, bars=_bars(document["groups"]), spare=_STATE_SPARE)


def energy_cell(joules: float | None, known_s: float, of_s: float) -> str:
    """kWh; `>` before it where it is known for a part of the time only; `-` where for none."""
    if joules is None:
        return UNKNOWN
    return f"{'' if known_s >= of_s * _ALL_OF_IT else '>'}{kwh(joules)}"


def kwh(joules: float) -> str:
    """`1,234`, `12.3`, `0.45`, `<0.01` for less than shows."""
    value = joules / _J_PER_KWH
    if value <= 0:
        return "0"
    return "<0.01" if value < 0.005 else f"{value:.2f}" if value < 9.995 else f"{value:,.1f}"


_STATE_HEADERS = ("active", "idle-held", "truly-idle", "unknown", "seen", "GPU-h")
_STATE_ALIGN = "rlrrrr"
# What follows from the others goes before what tells how far they can be believed.
_STATE_SPARE = ("truly-idle", "GPU-h", "unknown")


def _state_cells(states: Mapping[str, float], expected: float) -> tuple[str, ...]:
    known = sum(states[state.value] for state in KNOWN_STATES)
    observed = known + states["unknown"]
    return (
        percent(states["active"], known),
        format_share(share(states, State.IDLE_HELD, expected)),
        percent(states["truly-idle"], known),
        percent(states["unknown"], expected),
        percent(observed, expected),
        hours(observed) if expected else UNKNOWN,
    )


def _bars(rows: Iterable[Mapping[str, Any]]) -> tuple[Amounts | None, ...]:
    return tuple(split(row["card_s"], row["expected_card_s"]) if row["expected_card_s"] else None for row in rows)


def _models_in_order(document: Document) -> list[Mapping[str, Any]]:
    """Models by expected time, most first, each with its slices after it; last what only a number is known of."""
    expected = {row["name"]: row["expected_card_s"] for row in document["models"] if not row["mig"]}

    def place(row: Mapping[str, Any]) -> tuple[bool, float, str, bool, str]:
        whole = row["name"].rpartition(" ")[0] if row["mig"] else row["name"]
        return whole == MODEL_NOT_KNOWN, -expected.get(whole, 0.0), whole, row["mig"], row["name"]

    return sorted(document["models"], key=place)


def _kind(row: Mapping[str, Any]) -> str:
    return f"- MIG {shown(row['name'].rpartition(' ')[2])}" if row["mig"] else model(shown(row["name"]))
