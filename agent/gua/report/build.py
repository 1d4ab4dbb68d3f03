"""One host's report: the sums of a window made into the document of `gua.report.document`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import Optional, cast

from gua import __version__
from gua.model import Rule, TickStatus
from gua.report.amounts import verdict_states
from gua.report.cards import cards_of
from gua.report.document import (
    SCHEMA,
    Card,
    Coverage,
    HostInfo,
    Report,
    Sensitivity,
    TickCounts,
    Window,
    rule_info,
)
from gua.report.findings import find
from gua.report.hours import hours_of_week
from gua.report.material import Material, read_material
from gua.report.narrow import narrowed
from gua.report.people import hold_of, users_of
from gua.report.window import ReportWindow
from gua.store.codes import STATUSES, VERDICTS
from gua.store.credit import COVERED
from gua.store.reader import HostRow, StoreReader
from gua.store.sums import WindowSums
from gua.units import to_iso


def build_report(
    reader: StoreReader,
    *,
    since_ms: int,
    until_ms: int,
    now_ms: int,
    zone: Optional[tzinfo],
    zone_name: str,
    scheduler: Optional[str],
    user: Optional[str] = None,
    rule: Optional[Rule] = None,
    sensitivity: bool = False,
    timeline: bool = False,
) -> Report:
    """The report over [since_ms, until_ms), which may be widened to slot edges; `window` says what it became.

    zone: for the hours of the week; None when this host does not know `zone_name`, then there are none and a
    finding says so. scheduler: who manages the cards, None for nobody. user: name this one only, in users, holds and
    holders. rule: judge raw ticks again by it. sensitivity, timeline: add them.
    Raises UsageError when the window is empty, and when raw ticks to judge again are gone.
    """
    asked = {"since_ms": since_ms, "until_ms": until_ms, "now_ms": now_ms}
    made = read_material(reader, **asked, zone=zone, rule=rule, sensitivity=sensitivity, timeline=timeline)
    report = report_of(made, now_ms=now_ms, zone=zone, zone_name=zone_name, scheduler=scheduler)
    report["user"] = user
    if sensitivity:
        report["sensitivity"] = [_sensitivity(one, ms) for one, ms in made.sensitivity]
    if timeline and made.steps is not None:
        from gua.report.timeline import timeline_of  # only pictures need it

        shown = {card["uuid"] for card in report["cards"]}
        report["timeline"] = timeline_of(made.steps, made.devices, shown, now_ms)
    return report if user is None else narrowed(report, user)


def report_of(
    made: Material, *, now_ms: int, zone: Optional[tzinfo], zone_name: str, scheduler: Optional[str]
) -> Report:
    """The report of what was read, wherever that was: this host's database, or a store of many hosts' history."""
    report = _document(made, now_ms, zone, zone_name, scheduler)
    report["findings"] = find(report, made, now_ms=now_ms, zone_known=zone is not None)
    return report


def _document(made: Material, now_ms: int, zone: Optional[tzinfo], zone_name: str, scheduler: Optional[str]) -> Report:
    sums, cards = made.sums, cards_of(made.devices, made.now, made.window, made.sums, made.own_rules)
    uuids = {device.id: device.uuid for device in made.devices}
    return {
        "schema": SCHEMA,
        "generated_at": to_iso(now_ms),
        "host": _host(made.host, scheduler, paused=made.paused),
        "window": _window(made.window, made.begins_ms),
        "rules": [rule_info(rule) for rule in made.rules],
        "intervals_s": _intervals_s(sums, made.host),
        "coverage": _coverage(cards, sums),
        "card_s": verdict_states(sums.by_verdict(), COVERED),
        "samples": sum(card["samples"] for card in cards),
        "cards": cards,
        "users": users_of(made.users, sums, made.memory_mb),
        "tz": zone_name,
        "hours_of_week": hours_of_week(sums.slots, zone),
        "holds": [hold_of(hold, uuids) for hold in made.holds],
        "findings": [],
        "rejudged": made.rejudged,
        "user": None,
    }


def _sensitivity(rule: Rule, covered_ms: Mapping[int, int]) -> Sensitivity:
    return {"rule": rule_info(rule), "card_s": verdict_states({verdict: [ms] for verdict, ms in covered_ms.items()}, 0)}


def _window(window: ReportWindow, begins_ms: Optional[int]) -> Window:
    return {
        "since": to_iso(window.since_ms),
        "until": to_iso(window.until_ms),
        "history_begins": None if begins_ms is None or begins_ms <= window.since_ms else to_iso(begins_ms),
    }


def _intervals_s(sums: WindowSums, host: Optional[HostRow]) -> list[float]:
    """The intervals of the window's ticks; the newest run's when there are none."""
    last = {host.interval_ms} if host and host.interval_ms else set()
    return [ms / 1000 for ms in sorted({cover_ms for _, cover_ms in sums.ticks if cover_ms} or last)]


def _host(host: Optional[HostRow], scheduler: Optional[str], *, paused: bool) -> HostInfo:
    return {
        "hostname": host.hostname if host else "",
        "store_id": host.store_id if host else "",
        "boot_id": host.boot_id if host else "",
        "machine_id": host.machine_id if host else "",
        "agent_version": __version__,
        "driver_version": host.driver_version if host else None,
        "scheduler": scheduler,
        "paused": paused,
    }


def _coverage(cards: list[Card], sums: WindowSums) -> Coverage:
    reasons: dict[str, int] = {}
    observed_ms = 0
    for verdict, amounts in sums.by_verdict().items():
        observed_ms += amounts[COVERED]
        reason = VERDICTS[verdict].reason
        if reason is not None and amounts[COVERED]:
            reasons[reason.value] = amounts[COVERED]
    expected_ms = sum(round(card["expected_card_s"] * 1000) for card in cards)
    return {
        "expected_card_s": expected_ms / 1000,
        "observed_card_s": observed_ms / 1000,
        "unobserved_card_s": (expected_ms - observed_ms) / 1000,
        "unknown_by_reason": {reason: ms / 1000 for reason, ms in sorted(reasons.items())},
        "ticks": _tick_counts(sums),
    }


def _tick_counts(sums: WindowSums) -> TickCounts:
    counts = {status.value: 0 for status in TickStatus}
    for (status, _), ticks in sums.ticks.items():
        counts[STATUSES[status].value] += ticks
    return cast(TickCounts, counts)
