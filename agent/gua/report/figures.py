"""Sections that tell time by state: headline, idle capacity, cards, hours of the week, energy, other rules. Pure."""

from __future__ import annotations

from gua.model import State
from gua.report.cells import count, equivalent_cards, hours, kwh, model, percent, short_uuid
from gua.report.document import Card, Report, States
from gua.report.notes import rules_text
from gua.report.section import Bar, Cell, Section, Table
from gua.report.wording import joined, rule_name, rules_in_short, unknown_text
from gua.shares import format_share, share
from gua.text import shown

_KNOWN = (State.ACTIVE, State.IDLE_HELD, State.TRULY_IDLE)
_BAD_TICKS = ("partial", "error", "unresponsive")
_TOP_ENERGY = 10
_SHARES = "Shares are of the known time; bounds count everything unknown or not seen for or against a state."
_JUDGED_AGAIN = "Every state here was judged again by that rule from the raw ticks; the daemon's own may differ."


def known_s(states: States) -> float:
    """Card-seconds whose state could be told."""
    return states["active"] + states["idle-held"] + states["truly-idle"]


def headline(report: Report) -> Section:
    states, coverage = report["card_s"], report["coverage"]
    expected, unseen = coverage["expected_card_s"], coverage["unobserved_card_s"]
    rows = [(state.value, format_share(share(states, state, expected)), hours(states[state.value])) for state in _KNOWN]
    rows.append(("unknown", f"{percent(states['unknown'], expected)} of expected", hours(states["unknown"])))
    rows.append(("not seen", f"{percent(unseen, expected)} of expected", hours(unseen)))
    again = _JUDGED_AGAIN if report.get("rejudged") else ""
    return Section(
        key="headline",
        title="Where the card time went",
        tables=(Table(("state", "share (bounds)", "GPU-hours"), "llr", tuple(rows)),),
        lines=(_seen(report),),
        basis=joined([_SHARES, _slices_text(report), rules_text(report["rules"]), again]),
    )


def _slices_text(report: Report) -> str:
    sliced = any(card["mig"] and card["expected_card_s"] for card in report["cards"])
    return "Hours of MIG slices are among the GPU-hours." if sliced else ""


def _seen(report: Report) -> str:
    coverage, states = report["coverage"], report["card_s"]
    expected, observed = coverage["expected_card_s"], coverage["observed_card_s"]
    text = f"Seen: {hours(observed)} of {hours(expected)} expected GPU-hours ({percent(observed, expected)})."
    if states["unknown"] > 0:
        text += f" Unknown, because: {unknown_text(coverage['unknown_by_reason'])}."
    if coverage["unobserved_card_s"] > 0:
        text += " Not seen: nothing sampled then (daemon down, host off or paused)."
    counts = {status: coverage["ticks"][status] for status in _BAD_TICKS}  # type: ignore[literal-required]
    bad = [f"{number} {status}" for status, number in counts.items() if number]
    return text + (f" Ticks that were not ok: {', '.join(bad)}." if bad else "")


def capacity(report: Report) -> Section:
    states = report["card_s"]
    seen = sum(card["samples"] > 0 for card in report["cards"])
    amounts = [("held without work", states["idle-held"]), ("free", states["truly-idle"])]
    rows = [(name, hours(seconds), equivalent_cards(seconds, known_s(states), seen)) for name, seconds in amounts]
    return Section(
        key="capacity",
        title="Idle capacity",
        tables=(Table(("kind", "GPU-hours", "equivalent cards"), "lrr", tuple(rows)),),
        basis=joined(
            [
                f"Equivalent cards: share of the known time, times the {seen} cards seen in the window.",
                rules_in_short(report),
            ]
        ),
    )


def cards(report: Report) -> Section:
    """One row per card. Columns of what never happened are left out."""
    held = any(card.get("held_unmeasured_s", 0.0) > 0 for card in report["cards"])
    other = any(_other_unknown_s(card) > 0 for card in report["cards"])
    headers = ["#", "card", "uuid", "split", "act", "held", "idle"]
    headers += ["held?"] * held + ["unk"] * other + ["hours"]
    rows = tuple(_card_row(card, held, other) for card in report["cards"])
    basis = ["act, held, idle: percent of the card's known time; hours: observed."]
    if held:
        basis.append("held?: held, its activity not measurable, as percent of the observed time.")
    if other:
        basis.append("unk: other unknown, as percent of the observed time.")
    if any(card["retired_at"] is not None for card in report["cards"]):
        basis.append("x: retired.")
    return Section(
        key="cards",
        title="Cards",
        tables=(Table(tuple(headers), "rlll" + "r" * (len(headers) - 4), rows, elastic=(1,), spare=(3, 2)),),
        basis=joined([*basis, rules_in_short(report)]),
    )


def _card_row(card: Card, held: bool, other: bool) -> tuple[Cell, ...]:
    states = card["card_s"]
    known, observed = known_s(states), known_s(states) + states["unknown"]
    amounts: list[float] = [states["active"], states["idle-held"], states["truly-idle"]]
    cells: list[Cell] = [
        count(card["index"]) if card["retired_at"] is None else "x",
        card_name(card),
        short_uuid(shown(card["uuid"])),
        Bar(split_of(card)),
        *(_narrow_percent(amount, known) for amount in amounts),
    ]
    cells += [_narrow_percent(card.get("held_unmeasured_s", 0.0), observed)] * held
    cells += [_narrow_percent(_other_unknown_s(card), observed)] * other
    return (*cells, hours(observed))


def split_of(card: Card) -> dict[str, float]:
    """A card's seconds by state, and `unobserved`."""
    states = card["card_s"]
    return {
        "active": states["active"],
        "idle-held": states["idle-held"],
        "truly-idle": states["truly-idle"],
        "unknown": states["unknown"],
        "unobserved": card["unobserved_card_s"],
    }


def _other_unknown_s(card: Card) -> float:
    return max(0.0, card["card_s"]["unknown"] - card.get("held_unmeasured_s", 0.0))


def _narrow_percent(part: float, whole: float) -> str:
    return percent(part, whole).replace(" ", "")


def card_name(card: Card) -> str:
    """A card's model for people, a MIG instance's with its profile."""
    return (f"{shown(card['mig']['profile'])} of " if card["mig"] else "") + model(shown(card["name"]))


def heat_map(report: Report, states: tuple[str, ...]) -> Section:
    title = "Hours of the week"
    if not report["hours_of_week"]:
        return Section("heat", title, lines=("Not known in this window.",))
    basis = f"Share of the known card time in each hour, {report['tz']}."
    return Section("heat", title, basis=joined([basis, rules_in_short(report)]), heat=states)


def energy(report: Report) -> Section:
    """Energy by state and user; nothing but a sentence where no card says its power."""
    known = sum(card["energy_known_s"] for card in report["cards"])
    title, observed = "Energy", report["coverage"]["observed_card_s"]
    if known <= 0:
        return Section("energy", title, lines=("No power reading in this window, so no energy is known.",))
    maps = [card["energy_j"] for card in report["cards"] if card["energy_j"] is not None]
    by_state = {state.value: sum(one[state.value] for one in maps) for state in State}
    total = sum(by_state.values())
    rows = [
        (name, kwh(joules), percent(joules, total)) for name, joules in by_state.items() if joules or name != "unknown"
    ]
    states = "state" if report.get("user") is None else "state (whole host)"
    tables = [Table((states, "kWh", "of all"), "lrr", (*rows, ("all", kwh(total), percent(total, total))))]
    users = sorted((user for user in report["users"] if user["energy_j"]), key=lambda user: -(user["energy_j"] or 0))
    if users:
        named = tuple((shown(user["user"]), kwh(user["energy_j"])) for user in users[:_TOP_ENERGY])
        tables.append(Table(("user", "kWh"), "lr", named, elastic=(0,)))
    basis = (
        f"Power is known for {percent(known, observed)} of the observed card time; the rest is in no figure here. A "
        "card's energy is divided among those who hold it at the time; what nobody held is in no user's."
    )
    return Section("energy", title, tuple(tables), basis=joined([basis, rules_in_short(report)]))


def sensitivity(report: Report) -> Section:
    """The headline under other thresholds."""
    rows = []
    for one in report["sensitivity"]:
        known = known_s(one["card_s"])
        amounts: list[float] = [one["card_s"]["active"], one["card_s"]["idle-held"], one["card_s"]["truly-idle"]]
        rows.append((rule_name(one["rule"]), *(percent(amount, known) for amount in amounts)))
    return Section(
        key="sensitivity",
        title="What other rules would say",
        tables=(Table(("rule", "active", "idle-held", "truly-idle"), "lrrr", tuple(rows)),),
        basis="The same raw ticks judged under each rule; shares are of the time known under it.",
    )
