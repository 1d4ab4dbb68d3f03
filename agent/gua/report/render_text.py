"""The agent's report for people: five numbered sections and the findings. Pure; text in, nothing written.

Every section says what it is computed from, because these figures will be disputed.
"""

from __future__ import annotations

from datetime import tzinfo
from typing import Optional

from gua.model import State
from gua.report.cells import (
    Look,
    bar,
    bar_legend,
    clock_time,
    count,
    equivalent_cards,
    fit,
    hours,
    model,
    percent,
    short_uuid,
)
from gua.report.document import Card, Report, User
from gua.report.heat import heat_legend, heat_lines
from gua.report.notes import rule_lines, wrapped
from gua.report.render_rows import table_lines
from gua.report.zones import find_zone
from gua.shares import format_share, share
from gua.text import shown
from gua.units import parse_time_ms

# Below this the tables of figures would have to lose columns.
MIN_WIDTH = 72
_TOP_USERS = 15
# This finding changes how everything below is read, so it stands at the top and not among the others.
_STALE = "stale"


def render_report(report: Report, *, width: int = 80, unicode: bool = True, colour: bool = False) -> str:
    """The whole report as text, a newline at its end.

    width: columns to use, taken as at least 72. unicode: block characters, else ASCII. colour: terminal sequences.
    """
    look = Look(unicode=unicode, colour=colour)
    columns = max(width, MIN_WIDTH)
    parts = [_title, *(_SECTIONS if _has_history(report) else [_nothing]), _findings]
    sections = [part(report, columns, look) for part in parts]
    text = "\n\n".join("\n".join(section) for section in sections if section) + "\n"
    return text if unicode else text.encode("ascii", "replace").decode("ascii")


def _has_history(report: Report) -> bool:
    return bool(report["cards"]) and report["coverage"]["expected_card_s"] > 0


def _nothing(report: Report, columns: int, look: Look) -> list[str]:
    """Instead of the sections: a table of zeros would read as if the cards had been idle."""
    if not report["cards"]:
        return wrapped(
            "No history yet: the database is there and no card was recorded in it. "
            "Is `gua daemon --foreground` running? Its first sample comes within one interval.",
            columns,
        )
    return wrapped("Nothing was expected in this window: the history of these cards begins later.", columns)


def _zone(report: Report) -> Optional[tzinfo]:
    return find_zone(report["tz"])


def _title(report: Report, columns: int, look: Look) -> list[str]:
    window, zone = report["window"], _zone(report)
    since, until = clock_time(window["since"], zone), clock_time(window["until"], zone)
    name = report["tz"] if zone is not None else "UTC"
    lines = [look.bold(f"GPU use on {shown(report['host']['hostname'])}"), f"{since} to {until} ({name})"]
    begins_at = window["history_begins"]
    if begins_at is not None and parse_time_ms(begins_at) > parse_time_ms(window["since"]):
        begins = clock_time(begins_at, zone)
        lines += wrapped(f"History begins {begins}; nothing is expected before that.", columns)
    for finding in report["findings"]:
        if finding["id"] == _STALE:
            lines += [look.warn(line) for line in wrapped(f"STALE: {shown(finding['text'], 400)}", columns)]
    return lines


def _headline(report: Report, columns: int, look: Look) -> list[str]:
    states, coverage = report["card_s"], report["coverage"]
    expected = coverage["expected_card_s"]
    known = (State.ACTIVE, State.IDLE_HELD, State.TRULY_IDLE)
    rows = [[state.value, format_share(share(states, state, expected)), hours(states[state.value])] for state in known]
    rows.append(["unknown", f"{percent(states['unknown'], expected)} of expected", hours(states["unknown"])])
    unseen = coverage["unobserved_card_s"]
    rows.append(["not seen", f"{percent(unseen, expected)} of expected", hours(unseen)])
    return [
        look.bold("1. Where the card time went"),
        *table_lines(["state", "share (bounds)", "GPU-hours"], rows, "llr"),
        *wrapped(_coverage_text(report), columns),
        *rule_lines(report["rules"], columns),
    ]


def _coverage_text(report: Report) -> str:
    coverage = report["coverage"]
    expected, observed = coverage["expected_card_s"], coverage["observed_card_s"]
    text = f"Seen: {hours(observed)} of {hours(expected)} expected GPU-hours ({percent(observed, expected)})."
    reasons = [f"{reason} {hours(seconds)}" for reason, seconds in sorted(coverage["unknown_by_reason"].items())]
    if reasons:
        text += f" Unknown, in hours: {', '.join(reasons)}."
    ticks = coverage["ticks"]
    counts = {"partial": ticks["partial"], "error": ticks["error"], "unresponsive": ticks["unresponsive"]}
    bad = [f"{number} {status}" for status, number in counts.items() if number]
    if bad:
        text += f" Ticks that were not ok: {', '.join(bad)}."
    return text + " Shares are of the known time; bounds count everything unknown or not seen for or against a state."


def _capacity(report: Report, columns: int, look: Look) -> list[str]:
    states = report["card_s"]
    seen = sum(card["samples"] > 0 for card in report["cards"])
    known_s = states["active"] + states["idle-held"] + states["truly-idle"]
    amounts = [("held without work", states["idle-held"]), ("free", states["truly-idle"])]
    rows = [[name, hours(seconds), equivalent_cards(seconds, known_s, seen)] for name, seconds in amounts]
    return [
        look.bold("2. Idle capacity"),
        *table_lines(["kind", "GPU-hours", "equivalent cards"], rows, "lrr"),
        *wrapped(f"Equivalent cards: share of the known time, times the {seen} cards seen in the window.", columns),
    ]


def _cards(report: Report, columns: int, look: Look) -> list[str]:
    lines = [look.bold("3. Cards")]
    bar_width = max(8, min(24, columns - 68))
    name_width = columns - 48 - bar_width
    headers = ["#", "card", "uuid", "split", "act", "held", "idle", "hours"]
    rows = [_card_row(card, name_width, bar_width, look) for card in report["cards"]]
    basis = "Percent of the card's known time; hours: observed. " + bar_legend(look)
    if any(card["retired_at"] is not None for card in report["cards"]):
        basis += "  x: retired"
    return [*lines, *table_lines(headers, rows, "rlllrrrr"), *wrapped(basis, columns)]


def _card_row(card: Card, name_width: int, bar_width: int, look: Look) -> list[str]:
    states = card["card_s"]
    known = states["active"] + states["idle-held"] + states["truly-idle"]
    name = (f"{shown(card['mig']['profile'])} of " if card["mig"] else "") + model(shown(card["name"]))
    split = {**states, "unobserved": card["unobserved_card_s"]}
    return [
        count(card["index"]) if card["retired_at"] is None else "x",
        fit(name, name_width),
        short_uuid(shown(card["uuid"])),
        bar(split, bar_width, look),  # type: ignore[arg-type]
        *(percent(amount, known).replace(" ", "") for amount in _known_amounts(card)),
        hours(known + states["unknown"]),
    ]


def _known_amounts(card: Card) -> list[float]:
    states = card["card_s"]
    return [states["active"], states["idle-held"], states["truly-idle"]]


def _users(report: Report, columns: int, look: Look) -> list[str]:
    users = sorted(report["users"], key=lambda user: (-user["idle_held_card_s"], -user["card_s"], user["user"]))
    lines = [look.bold("4. Who held the cards")]
    if not users:
        return [*lines, "Nobody held a card in this window, as far as it was seen."]
    headers = ["user", "GPU-hours", "share hours", "idle-held", "of it long", "samples"]
    rows = [_user_row(user, columns - 56) for user in users[:_TOP_USERS]]
    lines += table_lines(headers, rows, "lrrrrr")
    if len(users) > _TOP_USERS:
        lines.append(f"and {len(users) - _TOP_USERS} more; the JSON document has all of them.")
    return lines + wrapped(_users_basis(report), columns)


def _user_row(user: User, name_width: int) -> list[str]:
    return [
        fit(shown(user["user"]), name_width),
        hours(user["card_s"]),
        hours(user["share_s"]),
        hours(user["idle_held_card_s"]),
        hours(user["idle_held_long_card_s"]),
        count(user["samples"]),
    ]


def _users_basis(report: Report) -> str:
    minutes = sorted({rule["long_idle_s"] // 60 for rule in report["rules"]}) or [30]
    return (
        "GPU-hours count the whole card for each of its users, so they can add up to more than card time; share "
        "hours divide it among them. Long: idle-held without a break for "
        f"{' or '.join(str(number) for number in minutes)} minutes or more."
    )


def _heat_map(report: Report, columns: int, look: Look) -> list[str]:
    lines = [look.bold("5. Hours of the week")]
    if not report["hours_of_week"]:
        return [*lines, "Not known in this window."]
    basis = f"Share of the known card time in each hour, {report['tz']}. {heat_legend(look)}"
    return [*lines, *heat_lines(report["hours_of_week"], ["idle-held", "active"], look), *wrapped(basis, columns)]


def _findings(report: Report, columns: int, look: Look) -> list[str]:
    lines = []
    for finding in report["findings"]:
        if finding["id"] != _STALE:
            text = f"{shown(finding['severity'])}: {shown(finding['text'], 400)}"
            lines += wrapped(text, columns, hanging="  ")
    return [look.bold("Findings"), *lines] if lines else []


_SECTIONS = (_headline, _capacity, _cards, _users, _heat_map)
