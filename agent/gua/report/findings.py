"""What a reader of the report should know before believing or using it. Pure. Ids are a contract, texts are not."""

from __future__ import annotations

from typing import Optional

from gua.coverage import Span, length_ms
from gua.report.document import Card, Finding, Report
from gua.report.ghosts import Ghost
from gua.report.material import Material
from gua.report.wording import reason_text, stale_after_ms
from gua.units import format_duration, to_iso

# Above these parts of the time, a table of shares misleads unless it says so.
UNKNOWN_HIGH = 0.05
UNOBSERVED_HIGH = 0.10

_ABSENT_TEXT = {
    "card_lost": "fell off the bus or does not answer; it usually needs a reset or a reboot",
    "card_missing": "is not listed any more; unless it was taken out, look at the kernel log (`dmesg`)",
}
_DRIVER_TEXT = {
    "driver": "the driver cannot be used: `gua doctor` on the host says why",
    "unresponsive": "NVML does not answer: a call is stuck in the driver",
}


def find(report: Report, made: Material, *, now_ms: int, zone_known: bool) -> list[Finding]:
    """Findings of a report that is complete but for them, worst first."""
    findings = [
        *_about_cards(report["cards"]),
        *_about_ghosts(report["cards"], made.ghosts),
        *_about_age(report, now_ms, made.newest_tick_ms),
        *_about_coverage(report),
        *_about_pauses(report, made),
        *_about_clock(made.set_back),
        *_about_the_window(report, zone_known),
    ]
    holds_left_out = made.holds_in_all - len(made.holds)
    if holds_left_out > 0:
        findings.append(_finding("holds_left_out", "info", f"{holds_left_out} further holds are not listed"))
    return sorted(findings, key=lambda one: ("fail", "warn", "info").index(one["severity"]))


def _finding(name: str, severity: str, text: str, card: Optional[str] = None) -> Finding:
    return {"id": name, "severity": severity, "card": card, "text": text}


def _about_cards(cards: list[Card]) -> list[Finding]:
    findings = []
    reasons = set()
    for card in cards:
        now = card["now"]
        reason = now["reason"] if now else None
        if now is not None and reason in _ABSENT_TEXT:
            text = f"{_card_name(card)} {_ABSENT_TEXT[reason]}; since {now['since']}"
            findings.append(_finding(reason, "fail", text, card["uuid"]))
        elif reason in _DRIVER_TEXT and reason not in reasons:
            reasons.add(reason)
            findings.append(_finding(reason, "fail", _DRIVER_TEXT[reason]))
    return findings


def _about_ghosts(cards: list[Card], ghosts: tuple[Ghost, ...]) -> list[Finding]:
    names = {card["uuid"]: _card_name(card) for card in cards}
    return [
        _finding(
            "ghost",
            "warn",
            f"{names.get(ghost.uuid, ghost.uuid)} read up to {ghost.util_pct} % utilisation for "
            f"{format_duration(ghost.until_ms - ghost.since_ms)} from {to_iso(ghost.since_ms)} with no process listed "
            "and no memory used: the time counts as active and is credited to nobody",
            ghost.uuid,
        )
        for ghost in ghosts
    ]


def _card_name(card: Card) -> str:
    where = f"card {card['index']}" if card["index"] is not None else "a card"
    return f"{where} ({card['name']}, {card['uuid']})"


def _about_pauses(report: Report, made: Material) -> list[Finding]:
    if made.paused:
        return [_finding("paused", "warn", "sampling is paused: nothing is seen until `gua resume`, or its time is up")]
    paused_ms = sum(map(length_ms, made.pauses))
    if not paused_ms:
        return []
    text = f"sampling was paused on purpose for {format_duration(paused_ms)} in this window; that time was not seen"
    return [_finding("was_paused", "info", text)]


def _about_clock(set_back: tuple[Span, ...]) -> list[Finding]:
    if not set_back:
        return []
    most_ms = max(before - after for before, after in set_back)
    times = "once" if len(set_back) == 1 else f"{len(set_back)} times"
    text = f"the host's clock was set back {times} in this window, by up to {format_duration(most_ms)}"
    return [_finding("clock_set_back", "warn", f"{text}; no second is counted twice, but times near it may be off")]


def _about_the_window(report: Report, zone_known: bool) -> list[Finding]:
    findings = []
    if not zone_known:
        text = f"this host does not know the time zone {report['tz']}: no hours of the week"
        findings.append(_finding("tz_unknown", "info", text))
    if len(report["rules"]) > 1:
        text = "more than one rule was in force: the settings changed in this window, or card models have their own"
        findings.append(_finding("rules_differ", "info", text))
    for card in report["cards"]:
        if card["retired_at"] is not None:
            text = f"{_card_name(card)} was retired {card['retired_at']} and is not expected after that"
            findings.append(_finding("retired", "info", text, card["uuid"]))
    return findings


def _about_age(report: Report, now_ms: int, newest_tick_ms: Optional[int]) -> list[Finding]:
    if newest_tick_ms is None:
        return [_finding("no_history", "warn", "nothing was recorded yet: run `gua daemon`")]
    age_ms = now_ms - newest_tick_ms
    limit_ms = stale_after_ms(report["intervals_s"])
    if age_ms > limit_ms:
        return [_finding("stale", "warn", f"the newest tick is {format_duration(age_ms)} old: is the daemon running?")]
    if -age_ms > limit_ms:
        return [
            _finding("clock", "warn", f"the newest tick is {format_duration(-age_ms)} in the future: check the clock")
        ]
    return []


def _about_coverage(report: Report) -> list[Finding]:
    coverage, findings = report["coverage"], []
    expected_s, unknown_s = coverage["expected_card_s"], report["card_s"]["unknown"]
    if expected_s and unknown_s > UNKNOWN_HIGH * expected_s:
        reason = max(coverage["unknown_by_reason"], key=lambda name: coverage["unknown_by_reason"][name])
        part = f"{100 * unknown_s / expected_s:.0f} %"
        text = f"{part} of the expected time was looked at and could not be told, mostly because: {reason_text(reason)}"
        findings.append(_finding("unknown_high", "warn", text))
    if expected_s and coverage["unobserved_card_s"] > UNOBSERVED_HIGH * expected_s:
        text = f"{100 * coverage['unobserved_card_s'] / expected_s:.0f} % of the expected time was not looked at"
        findings.append(_finding("unobserved_high", "warn", text))
    return findings
