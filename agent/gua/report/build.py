"""One host's report: the sums of a window made into the document of `gua.report.document`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, tzinfo
from typing import Optional, cast

from gua import __version__
from gua.coverage import SLOT_MS, clip, length_ms
from gua.model import State, TickStatus
from gua.report.document import (
    SCHEMA,
    Card,
    Coverage,
    Hold,
    HolderNow,
    HostInfo,
    HourOfWeek,
    Now,
    Report,
    RuleInfo,
    States,
    TickCounts,
    User,
    empty_states,
)
from gua.report.findings import find
from gua.report.window import ReportWindow, settle_window
from gua.store.codes import STATE_OF_VERDICT, STATES, STATUSES, VERDICTS
from gua.store.credit import (
    CARD,
    COVERED,
    ENERGY,
    ENERGY_MS,
    LONG_IDLE,
    SAMPLES,
    SHARE,
    SHARED,
    USER_ENERGY,
    USER_ENERGY_MS,
    USER_SAMPLES,
)
from gua.store.devices import DeviceRow
from gua.store.reader import HoldRow, HostRow, NowRow, StoreReader, UserRow
from gua.store.sums import WindowSums
from gua.units import to_iso

# Enough for every process on a large host; the rest is counted in a finding.
HOLDS_SHOWN = 500


@dataclass(frozen=True)
class _CardTime:
    expected_ms: int
    unobserved_ms: int


def build_report(
    reader: StoreReader,
    *,
    since_ms: int,
    until_ms: int,
    now_ms: int,
    zone: Optional[tzinfo],
    zone_name: str,
    scheduler: Optional[str],
) -> Report:
    """The report over [since_ms, until_ms), which may be widened to slot edges; `window` says what it became.

    zone: for the hours of the week; None when this host does not know `zone_name`, then there are none and a
    finding says so. scheduler: who manages the cards, None for nobody. Raises UsageError when the window is empty.
    """
    window = settle_window(since_ms, until_ms, now_ms=now_ms, raw_since_ms=reader.raw_since_ms())
    sums = reader.sums(window.slots, window.ragged)
    host = reader.host()
    begins_ms = reader.history_begins_ms()
    cards = _cards(reader, window, sums)
    holds, holds_in_all = reader.holds(window.span, HOLDS_SHOWN)
    uuids = {device.id: device.uuid for device in reader.devices()}
    intervals = sorted({cover_ms for _, cover_ms in sums.ticks if cover_ms} or _last_interval(host))
    report: Report = {
        "schema": SCHEMA,
        "generated_at": to_iso(now_ms),
        "host": _host(host, scheduler),
        "window": {
            "since": to_iso(window.since_ms),
            "until": to_iso(window.until_ms),
            "history_begins": None if begins_ms is None or begins_ms <= window.since_ms else to_iso(begins_ms),
        },
        "rules": _rules(reader, sums, host),
        "intervals_s": [ms / 1000 for ms in intervals],
        "coverage": _coverage(cards, sums),
        "card_s": _total_states(card["card_s"] for card in cards),
        "samples": sum(card["samples"] for card in cards),
        "cards": cards,
        "users": _users(reader.users(), sums),
        "tz": zone_name,
        "hours_of_week": _hours_of_week(sums, zone),
        "holds": [_hold(hold, uuids) for hold in holds],
        "findings": [],
    }
    report["findings"] = find(
        report,
        now_ms=now_ms,
        newest_tick_ms=reader.newest_tick_ms(),
        zone_known=zone is not None,
        holds_left_out=holds_in_all - len(holds),
    )
    return report


def _last_interval(host: Optional[HostRow]) -> set[int]:
    return {host.interval_ms} if host and host.interval_ms else set()


def _host(host: Optional[HostRow], scheduler: Optional[str]) -> HostInfo:
    return {
        "hostname": host.hostname if host else "",
        "store_id": host.store_id if host else "",
        "boot_id": host.boot_id if host else "",
        "machine_id": host.machine_id if host else "",
        "agent_version": __version__,
        "driver_version": host.driver_version if host else None,
        "scheduler": scheduler,
    }


def _rules(reader: StoreReader, sums: WindowSums, host: Optional[HostRow]) -> list[RuleInfo]:
    """The rules in force in the window, all of them; the newest one when nothing was seen in it."""
    last = {host.rule} if host and host.rule is not None else set()
    return [cast(RuleInfo, asdict(rule)) for rule in reader.rules(sums.rules or last)]


def _cards(reader: StoreReader, window: ReportWindow, sums: WindowSums) -> list[Card]:
    by_device: defaultdict[int, dict[int, list[int]]] = defaultdict(dict)
    for (device, verdict), amounts in sums.cards.items():
        by_device[device][verdict] = amounts
    now = reader.now()
    return [
        _card(row, by_device[row.id], window, now.get(row.id))
        for row in reader.devices()
        if row.id in by_device or _lives_in(row, window)
    ]


def _lives_in(row: DeviceRow, window: ReportWindow) -> bool:
    retired_ms = row.retired_at_ms
    return row.first_seen_ms <= window.until_ms and (retired_ms is None or retired_ms > window.since_ms)


def _card(row: DeviceRow, verdicts: Mapping[int, list[int]], window: ReportWindow, now: Optional[NowRow]) -> Card:
    observed_ms = sum(amounts[COVERED] for amounts in verdicts.values())
    known_ms = sum(amounts[ENERGY_MS] for amounts in verdicts.values())
    life = (row.first_seen_ms, window.until_ms if row.retired_at_ms is None else row.retired_at_ms)
    # A clock set back can leave time that was seen before the card was met or after it was retired.
    expected_ms = max(observed_ms, length_ms(clip(life, window.span)))
    return {
        "uuid": row.uuid,
        "index": row.index,
        "name": row.name or "unknown",
        "memory_total_mb": row.memory_total_mb,
        "mig": {"parent_uuid": row.mig.parent_uuid, "profile": row.mig.profile} if row.mig else None,
        "retired_at": None if row.retired_at_ms is None else to_iso(row.retired_at_ms),
        "card_s": _verdict_states(verdicts, COVERED),
        "samples": sum(amounts[SAMPLES] for amounts in verdicts.values()),
        "energy_j": _verdict_states(verdicts, ENERGY) if known_ms else None,
        "energy_known_s": known_ms / 1000,
        "expected_card_s": expected_ms / 1000,
        "unobserved_card_s": (expected_ms - observed_ms) / 1000,
        "now": _now(now) if now else None,
    }


def _verdict_states(verdicts: Mapping[int, list[int]], position: int) -> States:
    totals = [0] * len(STATES)
    for verdict, amounts in verdicts.items():
        totals[STATE_OF_VERDICT[verdict]] += amounts[position]
    return _states(totals)


def _states(thousandths: Iterable[int]) -> States:
    """A state map of amounts given in thousandths, in the order of codes.STATES."""
    return cast(States, {state.value: amount / 1000 for state, amount in zip(STATES, thousandths)})


def _total_states(parts: Iterable[States]) -> States:
    totals = empty_states()
    for part in parts:
        for state in State:
            # milliseconds are summed as whole numbers, so that no float dust is printed
            name = state.value
            totals[name] = (round(totals[name] * 1000) + round(part[name] * 1000)) / 1000  # type: ignore[literal-required]
    return totals


def _now(now: NowRow) -> Now:
    return {
        "at": to_iso(now.at_ms),
        "state": now.verdict.state.value,
        "reason": now.verdict.reason.value if now.verdict.reason else None,
        "util_pct": now.util_pct,
        "memory_used_mb": now.memory_used_mb,
        "since": to_iso(now.since_ms),
        "holders": [
            cast(HolderNow, {**asdict(holder), "type": "graphics" if holder.type.value == "graphics" else "compute"})
            for holder in now.holders
        ],
    }


def _coverage(cards: list[Card], sums: WindowSums) -> Coverage:
    reasons: defaultdict[str, int] = defaultdict(int)
    observed_ms = 0
    for (_, verdict), amounts in sums.cards.items():
        observed_ms += amounts[COVERED]
        reason = VERDICTS[verdict].reason
        if reason is not None and amounts[COVERED]:
            reasons[reason.value] += amounts[COVERED]
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


def _users(known: Mapping[int, UserRow], sums: WindowSums) -> list[User]:
    by_user: defaultdict[int, dict[int, list[int]]] = defaultdict(dict)
    for (user, state), amounts in sums.users.items():
        by_user[user][state] = amounts
    rows = [_user(known[user], states) for user, states in by_user.items()]
    return sorted(rows, key=lambda row: (-row["card_s"], row["user"]))


def _user(user: UserRow, states: Mapping[int, list[int]]) -> User:
    def total(position: int) -> int:
        return sum(amounts[position] for amounts in states.values())

    by_state = _states(states[code][CARD] if code in states else 0 for code in range(len(STATES)))
    return {
        "user": user.name,
        "uid": user.uid,
        "user_source": user.source.value,
        "card_s": total(CARD) / 1000,
        "share_s": total(SHARE) / 1000,
        "shared_card_s": total(SHARED) / 1000,
        "states": by_state,
        "idle_held_card_s": by_state["idle-held"],
        "idle_held_long_card_s": total(LONG_IDLE) / 1000,
        "energy_j": total(USER_ENERGY) / 1000 if total(USER_ENERGY_MS) else None,
        "energy_known_s": total(USER_ENERGY_MS) / 1000,
        "samples": total(USER_SAMPLES),
    }


def _hours_of_week(sums: WindowSums, zone: Optional[tzinfo]) -> list[HourOfWeek]:
    """Card time by local weekday and hour. A slot lies in one hour, as every zone's offset is a multiple of it."""
    if zone is None:
        return []
    hours: defaultdict[tuple[int, int], list[int]] = defaultdict(lambda: [0] * len(STATES))
    for (slot, state), covered_ms in sums.slots.items():
        local = datetime.fromtimestamp(slot * SLOT_MS // 1000, zone)
        hours[local.weekday(), local.hour][state] += covered_ms
    return [
        {"weekday": weekday, "hour": hour, "card_s": _states(amounts)}
        for (weekday, hour), amounts in sorted(hours.items())
        if any(amounts)
    ]


def _hold(hold: HoldRow, uuids: Mapping[int, str]) -> Hold:
    return {
        "user": hold.user,
        "process": hold.process,
        "pid": hold.pid,
        "card": uuids[hold.device],
        "since": to_iso(hold.since_ms),
        "until": None if hold.until_ms is None else to_iso(hold.until_ms),
        "memory_mb": hold.memory_mb,
        "states": _states(hold.state_ms[state] for state in STATES),
        "idle_held_long_card_s": hold.long_idle_ms / 1000,
    }
