"""What stands above and under the tables, in sentences: who answered, what was seen, the headline. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from gua.model import State
from gua.report.cells import clock_time, hours, model, percent
from gua.report.notes import rule_text, rules_text
from gua.report.zones import find_zone
from gua.shares import format_share, share
from gua.text import shown
from gua_fleet.model import Document, Outcome
from gua_fleet.rows import headline_time, headline_unit, kinds_of_time
from gua_fleet.rows_stored import filled_text, stored_note, stored_text

TEXT_LIMIT = 400

SHARES_BASIS = "Shares are of the known time; bounds count everything unknown or not seen for or against a state."
CARDS_BASIS = "Equivalent cards: the share times the cards whose time this is."
STATES_BASIS = f"{SHARES_BASIS} {CARDS_BASIS}"
FREE_BASIS = "Truly-idle by each host's newest sample, not older than three intervals, and not a scheduler's."
_PART = "> before a figure: known for a part of the time only, so it was more."
ENERGY_BASIS = f"In kWh, by what the cards did; {_PART}"


def headline_text(document: Document) -> str:
    """One line for a subject: `31 % (29-38 %) active, 42 % (40-50 %) held without work, 27 % (25-33 %) free`."""
    states, expected = headline_time(document)
    words = {State.ACTIVE: "active", State.IDLE_HELD: "held without work", State.TRULY_IDLE: "free"}
    if not sum(states[state.value] for state in words):
        return "nothing was seen"
    return ", ".join(f"{format_share(share(states, state, expected))} {word}" for state, word in words.items())


def period_text(document: Document) -> str:
    """`2026-03-02 08:00 to 2026-03-02 12:00 (Europe/Berlin)`."""
    window, zone = document["window"], find_zone(document["tz"])
    since, until = clock_time(window["since"], zone), clock_time(window["until"], zone)
    return f"{since} to {until} ({document['tz'] if zone is not None else 'UTC'})"


def rule_texts(document: Document) -> list[str]:
    """The rule that judged every card, several where each host's own counts; then those of single card models."""
    whole = [rules_text(document["rules"])] if document["rules"] else []
    return whole + [f"{model(shown(row['model']))}: {rule_text(row['rule'])}." for row in document["model_rules"]]


def users_basis(document: Document) -> str:
    """How the figures of users are to be read."""
    rules = [*document["rules"], *(row["rule"] for row in document["model_rules"])]
    minutes = " or ".join(map(str, sorted({rule["long_idle_s"] // 60 for rule in rules}))) or "30"
    return (
        "GPU-hours count the whole card for each of its users, so they can add up to more than card time; share "
        f"hours divide it among them. Long: of idle-held, what went on without a break for {minutes} minutes or more."
        + (" A name with @HOST means something on that host only." if document["names"] else "")
        + (f" kWh follow share hours; {_PART}" if any(user["energy_j"] for user in document["users"]) else "")
    )


def silent_hosts(document: Document) -> list[Mapping[str, Any]]:
    """The rows of hosts that have no report, in inventory order. Where the store alone was read, it has theirs."""
    reports = (Outcome.OK.value, Outcome.STORED.value)
    return [host for host in document["hosts"] if host["outcome"] not in reports]


def silent_lines(document: Document) -> list[str]:
    """Each host without a report: outcome, reason, and when it last answered where that is known."""
    zone = find_zone(document["tz"])
    lines = []
    for host in silent_hosts(document):
        reason = f": {shown(host['detail'], TEXT_LIMIT)}" if host["detail"] else ""
        seen = f" (last seen {clock_time(host['last_seen_at'], zone)})" if host["last_seen_at"] else ""
        lines.append(f"{shown(host['name'])}: {shown(host['outcome'])}{reason}{seen}{stored_note(host, document)}")
    return lines


def apart_lines(document: Document) -> list[str]:
    """Hosts that judged by another rule: what they say for themselves, in no sum."""
    lines = []
    for row in document["apart"]:
        states, expected = row["card_s"], row["coverage"]["expected_card_s"]
        shares = [f"{state.value} {format_share(share(states, state, expected))}" for state in State]
        lines.append(f"{shown(row['host'])}: {', '.join(shares[:3])} by its own rule, in no sum")
    return lines


def finding_lines(document: Document) -> list[str]:
    """The findings, worst first."""
    return [
        f"{shown(finding['severity'])}:{_where(finding)} {shown(finding['text'], TEXT_LIMIT)}"
        for finding in document["findings"]
    ]


def _where(finding: Mapping[str, Any]) -> str:
    return f" {shown(finding['host'])}:" if finding["host"] else ""


def answered_text(document: Document) -> str:
    """How many hosts reported, and by name those that failed, that were not asked, and that had nothing to report.

    It says what is from the store, and how old that is.
    """
    total, silent = len(document["hosts"]), silent_hosts(document)
    text = stored_text(document) or f"{total - len(silent)} of {total} hosts reported."
    for title in ("No answer", "Not asked", "Nothing to report"):
        alike: dict[tuple[str, int | None], list[str]] = defaultdict(list)
        for host in silent:
            if _silence(host) == title:
                alike[host["outcome"], host["cards"]].append(shown(host["name"]))
        named = [f"{', '.join(names)} ({_why(*kind, len(names))})" for kind, names in alike.items()]
        text += f" {title}: {'; '.join(named)}." if named else ""
    text += filled_text(document)
    apart = [shown(row["host"]) for row in document["apart"]]
    return text + (f" Judged by another rule, in no sum: {', '.join(apart)}." if apart else "")


def _silence(host: Mapping[str, Any]) -> str:
    if host["failed"]:
        return "No answer"
    not_asked = (Outcome.SKIPPED.value, Outcome.MAINTENANCE.value)
    return "Not asked" if host["outcome"] in not_asked else "Nothing to report"


def _why(outcome: str, cards: int | None, hosts: int) -> str:
    """The outcome, and how many cards that leaves unseen on each host."""
    if outcome == Outcome.NO_GPU.value:
        return outcome
    if cards is None:
        return f"{shown(outcome)}, {'its' if hosts == 1 else 'their'} cards are not known"
    return f"{shown(outcome)}, {cards} card{'' if cards == 1 else 's'}{'' if hosts == 1 else ' each'}"


def coverage_text(document: Document) -> str:
    """What part of the expected time was seen, and why the rest of it is unknown."""
    coverage = document["coverage"]
    expected, observed = coverage["expected_card_s"], coverage["observed_card_s"]
    both = len(kinds_of_time(document)) > 1
    unit = "GPU-hours and hours of MIG slices" if both else headline_unit(document)
    text = f"Seen: {hours(observed)} of {hours(expected)} expected {unit} ({percent(observed, expected)})."
    reasons = [f"{shown(reason)} {hours(amount)}" for reason, amount in coverage["unknown_by_reason"].items()]
    held = document["held_unmeasured_s"]
    reasons += [f"of it held, activity not measurable {hours(held)}"] if held else []
    return text + (f" Unknown, in hours: {', '.join(reasons)}." if reasons else "")
