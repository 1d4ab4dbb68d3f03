"""Rows of the report: one per card. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Optional

from gua.coverage import Span, clip, length_ms
from gua.model import ProcessType, Reason, Rule, State
from gua.report.amounts import verdict_states
from gua.report.document import Card, CardMore, HolderNow, Now, rule_info
from gua.report.window import ReportWindow
from gua.store.codes import STATES, VERDICTS
from gua.store.credit import COVERED, ENERGY, ENERGY_MS, SAMPLES
from gua.store.devices import DeviceRow, expected_spans
from gua.store.reader import HolderRow, NowRow
from gua.store.sums import WindowSums
from gua.units import to_iso


def cards_of(
    devices: Sequence[DeviceRow],
    now: Mapping[int, NowRow],
    window: ReportWindow,
    sums: WindowSums,
    own_rules: Mapping[int, Rule],
) -> list[Card]:
    """The cards that lived in the window or were credited in it, in the order of `devices`.

    now, own_rules: by device id.
    """
    by_device: defaultdict[int, dict[int, list[int]]] = defaultdict(dict)
    for (device, verdict), amounts in sums.cards.items():
        by_device[device][verdict] = amounts
    return [
        _card(
            row,
            expected_spans(row, devices, window.until_ms),
            by_device[row.id],
            _held(row.id, sums),
            window,
            now.get(row.id),
            own_rules.get(row.id),
        )
        for row in devices
        if row.id in by_device or _lives_in(row, window)
    ]


def _lives_in(row: DeviceRow, window: ReportWindow) -> bool:
    retired_ms = row.retired_at_ms
    return row.first_seen_ms <= window.until_ms and (retired_ms is None or retired_ms > window.since_ms)


def _card(
    row: DeviceRow,
    expected: Sequence[Span],
    verdicts: Mapping[int, list[int]],
    held_ms: Mapping[State, int],
    window: ReportWindow,
    now: Optional[NowRow],
    own_rule: Optional[Rule],
) -> Card:
    observed_ms = sum(amounts[COVERED] for amounts in verdicts.values())
    known_ms = sum(amounts[ENERGY_MS] for amounts in verdicts.values())
    # A clock set back can leave time that was seen before the card was met or after it was retired.
    expected_ms = max(observed_ms, sum(length_ms(clip(span, window.span)) for span in expected))
    return {
        "uuid": row.uuid,
        "index": row.index,
        "name": row.name or "unknown",
        "memory_total_mb": row.memory_total_mb,
        "mig": {"parent_uuid": row.mig.parent_uuid, "profile": row.mig.profile} if row.mig else None,
        "retired_at": None if row.retired_at_ms is None else to_iso(row.retired_at_ms),
        "card_s": verdict_states(verdicts, COVERED),
        "samples": sum(amounts[SAMPLES] for amounts in verdicts.values()),
        "energy_j": verdict_states(verdicts, ENERGY) if known_ms else None,
        "energy_known_s": known_ms / 1000,
        "expected_card_s": expected_ms / 1000,
        "unobserved_card_s": (expected_ms - observed_ms) / 1000,
        "now": _now(now) if now else None,
        "own_rule": rule_info(own_rule) if own_rule else None,
        **_more(verdicts, held_ms),
    }


def _held(device: int, sums: WindowSums) -> dict[State, int]:
    """Milliseconds in which anybody held this card, by state."""
    return {state: sums.held.get((device, code), 0) for code, state in enumerate(STATES)}


def _more(verdicts: Mapping[int, list[int]], held_ms: Mapping[State, int]) -> CardMore:
    by_reason = {
        reason.value: amounts[COVERED]
        for reason, amounts in ((VERDICTS[code].reason, amounts) for code, amounts in verdicts.items())
        if reason is not None and amounts[COVERED]
    }
    active_ms = sum(amounts[COVERED] for code, amounts in verdicts.items() if VERDICTS[code].state is State.ACTIVE)
    unmeasured_ms = min(by_reason.get(Reason.UTIL_UNAVAILABLE.value, 0), held_ms[State.UNKNOWN])
    return {
        "unknown_by_reason": {reason: ms / 1000 for reason, ms in sorted(by_reason.items())},
        "held_unmeasured_s": unmeasured_ms / 1000,
        "active_unheld_s": (active_ms - held_ms[State.ACTIVE]) / 1000,
    }


def _now(now: NowRow) -> Now:
    return {
        "at": to_iso(now.at_ms),
        "state": now.verdict.state.value,
        "reason": now.verdict.reason.value if now.verdict.reason else None,
        "util_pct": now.util_pct,
        "memory_used_mb": now.memory_used_mb,
        "since": to_iso(now.since_ms),
        "holders": [_holder(holder) for holder in now.holders],
        "util_max_pct": now.util_max_pct,
        "util_source": now.util_source.value if now.util_source else None,
    }


def _holder(holder: HolderRow) -> HolderNow:
    return {
        "user": holder.user,
        "process": holder.process,
        "pid": holder.pid,
        "memory_mb": holder.memory_mb,
        "type": "graphics" if holder.type is ProcessType.GRAPHICS else "compute",
        "since": to_iso(holder.since_ms),
        "user_source": holder.source.value,
        "mounts": holder.mounts,
        "sm_util_pct": _rounded(holder.sm_util_pct),
    }


def _rounded(pct: Optional[float]) -> Optional[float]:
    return None if pct is None else round(pct, 1)
