"""One host's report: the sums of a window made into the document of `gua.report.document`."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from datetime import datetime, tzinfo
from typing import Optional, cast

from gua import __version__
from gua.coverage import SLOT_MS
from gua.model import TickStatus
from gua.report.amounts import states_of, verdict_states
from gua.report.cards import cards_of
from gua.report.document import SCHEMA, Card, Coverage, HostInfo, HourOfWeek, Report, RuleInfo, TickCounts, Window
from gua.report.findings import find
from gua.report.narrow import narrowed
from gua.report.people import hold_of, users_of
from gua.report.timeline import timeline_of
from gua.report.window import ReportWindow, settle_window
from gua.store.codes import STATES, STATUSES, VERDICTS
from gua.store.credit import COVERED
from gua.store.reader import HostRow, StoreReader
from gua.store.sums import WindowSums
from gua.units import to_iso

# Enough for every process on a large host; the rest is counted in a finding.
HOLDS_SHOWN = 500


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
    timeline: bool = False,
) -> Report:
    """The report over [since_ms, until_ms), which may be widened to slot edges; `window` says what it became.

    zone: for the hours of the week; None when this host does not know `zone_name`, then there are none and a
    finding says so. scheduler: who manages the cards, None for nobody. user: name this one only, in users, holds and
    holders. timeline: add it. Raises UsageError when the window is empty.
    """
    window = settle_window(since_ms, until_ms, now_ms=now_ms, raw_since_ms=reader.raw_since_ms())
    sums = reader.sums(window.slots, window.ragged)
    host = reader.host()
    cards = cards_of(reader, window, sums)
    holds, holds_in_all = reader.holds(window.span, HOLDS_SHOWN)
    devices = reader.devices()
    uuids = {device.id: device.uuid for device in devices}
    report: Report = {
        "schema": SCHEMA,
        "generated_at": to_iso(now_ms),
        "host": _host(host, scheduler, paused=bool(reader.pauses((now_ms - 1, now_ms)))),
        "window": _window(window, reader.history_begins_ms()),
        "rules": _rules(reader, sums, host),
        "intervals_s": _intervals_s(sums, host),
        "coverage": _coverage(cards, sums),
        "card_s": verdict_states(sums.by_verdict(), COVERED),
        "samples": sum(card["samples"] for card in cards),
        "cards": cards,
        "users": users_of(reader.users(), sums, reader.memory_held(window.span)),
        "tz": zone_name,
        "hours_of_week": _hours_of_week(sums, zone),
        "holds": [hold_of(hold, uuids) for hold in holds],
        "findings": [],
        "rejudged": False,
        "user": user,
    }
    if timeline:
        shown = {card["uuid"] for card in cards}
        report["timeline"] = timeline_of(reader, window, [one for one in devices if one.uuid in shown], now_ms)
    report["findings"] = find(
        report,
        now_ms=now_ms,
        newest_tick_ms=reader.newest_tick_ms(),
        zone_known=zone is not None,
        holds_left_out=holds_in_all - len(holds),
    )
    return report if user is None else narrowed(report, user)


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


def _rules(reader: StoreReader, sums: WindowSums, host: Optional[HostRow]) -> list[RuleInfo]:
    """The rules in force in the window, all of them; the newest one when nothing was seen in it."""
    last = {host.rule} if host and host.rule is not None else set()
    return [cast(RuleInfo, asdict(rule)) for rule in reader.rules(sums.rules or last)]


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


def _hours_of_week(sums: WindowSums, zone: Optional[tzinfo]) -> list[HourOfWeek]:
    """Card time by local weekday and hour. A slot lies in one hour, as every zone's offset is a multiple of it."""
    if zone is None:
        return []
    hours: defaultdict[tuple[int, int], list[int]] = defaultdict(lambda: [0] * len(STATES))
    for (slot, state), covered_ms in sums.slots.items():
        local = datetime.fromtimestamp(slot * SLOT_MS // 1000, zone)
        hours[local.weekday(), local.hour][state] += covered_ms
    return [
        {"weekday": weekday, "hour": hour, "card_s": states_of(amounts)}
        for (weekday, hour), amounts in sorted(hours.items())
        if any(amounts)
    ]
