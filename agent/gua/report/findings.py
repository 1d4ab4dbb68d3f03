"""What a reader of the report should know before believing or using it. Pure. Ids are a contract, texts are not."""

from __future__ import annotations

from typing import Optional

from gua.report.document import Card, Finding, Report
from gua.units import format_duration

# Above these parts of the time, a table of shares misleads unless it says so.
UNKNOWN_HIGH = 0.05
UNOBSERVED_HIGH = 0.10

_STALE_INTERVALS = 3
# Where only `sync-once` samples, outside any timer, no interval says what is old.
_STALE_UNTIMED_MS = 15 * 60_000

_ABSENT_TEXT = {
    "card_lost": "fell off the bus or does not answer; it usually needs a reset or a reboot",
    "card_missing": "is not listed any more; unless it was taken out, look at the kernel log (`dmesg`)",
}
_DRIVER_TEXT = {
    "driver": "the driver cannot be used: `gua doctor` on the host says why",
    "unresponsive": "NVML does not answer: a call is stuck in the driver",
}


def find(
    report: Report, *, now_ms: int, newest_tick_ms: Optional[int], zone_known: bool, holds_left_out: int
) -> list[Finding]:
    """Findings of a report that is complete but for them, worst first."""
    findings = [
        *_about_cards(report["cards"]),
        *_about_age(report, now_ms, newest_tick_ms),
        *_about_coverage(report),
    ]
    if not zone_known:
        findings.append(
            _finding(
                "tz_unknown", "info", f"this host does not know the time zone {report['tz']}: no hours of the week"
            )
        )
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
            where = f"card {card['index']}" if card["index"] is not None else "a card"
            text = f"{where} ({card['name']}, {card['uuid']}) {_ABSENT_TEXT[reason]}; since {now['since']}"
            findings.append(_finding(reason, "fail", text, card["uuid"]))
        elif reason in _DRIVER_TEXT and reason not in reasons:
            reasons.add(reason)
            findings.append(_finding(reason, "fail", _DRIVER_TEXT[reason]))
    return findings


def _about_age(report: Report, now_ms: int, newest_tick_ms: Optional[int]) -> list[Finding]:
    if newest_tick_ms is None:
        return [_finding("no_history", "warn", "nothing was recorded yet: run `gua daemon --foreground`")]
    age_ms = now_ms - newest_tick_ms
    limit_ms = _STALE_INTERVALS * round(max(report["intervals_s"], default=0) * 1000) or _STALE_UNTIMED_MS
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
        text = f"{part} of the expected time was looked at and could not be told, mostly {reason}"
        findings.append(_finding("unknown_high", "warn", text))
    if expected_s and coverage["unobserved_card_s"] > UNOBSERVED_HIGH * expected_s:
        text = f"{100 * coverage['unobserved_card_s'] / expected_s:.0f} % of the expected time was not looked at"
        findings.append(_finding("unobserved_high", "warn", text))
    return findings
