"""The ledger of holds: what the database knows of each, made into the document of `gua.ledger.document`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Optional, cast

from gua import __version__
from gua.coverage import SLOT_MS, Span, clip, length_ms
from gua.errors import UsageError
from gua.ledger.document import SCHEMA, Holds, LedgerCard, LedgerHold, LedgerHost, LedgerWindow
from gua.ledger.figures import HoldFigures, measure
from gua.ledger.which_card import find_device
from gua.model import ProcessType, Rule
from gua.report.amounts import states_of
from gua.report.document import RuleInfo
from gua.report.rejudged import refuse_beyond_raw
from gua.report.wording import stale_after_ms
from gua.store.codes import STATES
from gua.store.devices import DeviceRow
from gua.store.judge_again import judge_again
from gua.store.ledger import HoldTick, LedgerRow
from gua.store.reader import HostRow, StoreReader
from gua.units import to_iso

_SLICE_MS = 2 * 86_400_000


@dataclass(frozen=True)
class Wanted:
    """Which holds. user: exact name. card: see find_device. min_ms: least card time. now: only those not over.
    graphics: also processes that only draw. rule: judge raw ticks again by it.
    """

    user: Optional[str] = None
    card: Optional[str] = None
    min_ms: int = 0
    now: bool = False
    graphics: bool = False
    rule: Optional[Rule] = None


History = Callable[[], AbstractContextManager[StoreReader]]
"""Opens the history anew: no reader may stay for long, and a window may be."""


def build_holds(
    history: History, wanted: Wanted, *, since_ms: int, until_ms: int, now_ms: int, zone_name: str
) -> Holds:
    """The ledger over [since_ms, until_ms), which never reaches beyond `now_ms`, worst first.

    Worst: most long idle-held time, then most idle-held, then most card time.
    Raises UsageError for an empty window, a card that is not there, and raw ticks to judge again that are gone.
    """
    window = settled_window(since_ms, until_ms, now_ms)
    with history() as reader:
        raw_since_ms = reader.raw_since_ms()
        if wanted.rule is not None:
            refuse_beyond_raw(window[0], raw_since_ms, "--rules")
        devices = {one.id: one for one in reader.devices()}
        card = find_device(tuple(devices.values()), wanted.card) if wanted.card is not None else None
        rows = [row for row in reader.ledger().holds(window) if _is_wanted(row, wanted, card)]
        document = _empty(reader, wanted, card, window, now_ms, zone_name)
        seen = reader.ledger().now_ticks()
    figures = measure(rows, _ticks(history, window, rows, wanted.rule))
    whole = {row.id: _is_whole(row, window, raw_since_ms) for row in rows}
    holds = [_hold(row, devices[row.device], figures[row.id], seen, whole[row.id]) for row in rows]
    kept = sorted((one for one in holds if one["card_s"] * 1000 >= wanted.min_ms), key=_worst_first)
    shown_cards = {one["card"] for one in kept}
    cards = [ledger_card(one) for one in devices.values() if one.uuid in shown_cards]
    return {**document, "cards": cards, "holds": kept}


def _empty(
    reader: StoreReader, wanted: Wanted, card: Optional[DeviceRow], window: Span, now_ms: int, zone_name: str
) -> Holds:
    host, newest_ms = reader.host(), reader.newest_tick_ms()
    return {
        "schema": SCHEMA,
        "generated_at": to_iso(now_ms),
        "host": ledger_host(host),
        "window": ledger_window(reader, window),
        "rules": rules_of(reader, window, wanted.rule),
        "rejudged": wanted.rule is not None,
        "newest_tick_at": None if newest_ms is None else to_iso(newest_ms),
        "stale": is_stale(host, newest_ms, now_ms),
        "tz": zone_name,
        "asked": {
            "user": wanted.user,
            "card": None if card is None else card.uuid,
            "min_s": wanted.min_ms / 1000 if wanted.min_ms else None,
            "now": wanted.now,
            "graphics": wanted.graphics,
        },
        "cards": [],
        "holds": [],
    }


def ledger_host(host: Optional[HostRow]) -> LedgerHost:
    return {
        "hostname": host.hostname if host else "",
        "store_id": host.store_id if host else "",
        "agent_version": __version__,
    }


def ledger_window(reader: StoreReader, window: Span) -> LedgerWindow:
    begins_ms, raw_since_ms = reader.history_begins_ms(), reader.raw_since_ms()
    return {
        "since": to_iso(window[0]),
        "until": to_iso(window[1]),
        "history_begins": None if begins_ms is None or begins_ms <= window[0] else to_iso(begins_ms),
        "raw_begins": None if raw_since_ms is None else to_iso(raw_since_ms),
    }


def ledger_card(device: DeviceRow) -> LedgerCard:
    return {
        "uuid": device.uuid,
        "index": device.index,
        "name": device.name or "",
        "memory_total_mb": device.memory_total_mb,
        "retired_at": None if device.retired_at_ms is None else to_iso(device.retired_at_ms),
    }


def rules_of(reader: StoreReader, window: Span, again: Optional[Rule]) -> list[RuleInfo]:
    """The rules behind the states of a window: `again` alone where everything was judged again by it."""
    if again is not None:
        return [cast(RuleInfo, asdict(again))]
    ids = reader.ledger().rules(window[0] // SLOT_MS, -(-window[1] // SLOT_MS))
    host = reader.host()
    last = [host.rule] if host and host.rule is not None else []
    return [cast(RuleInfo, asdict(rule)) for rule in reader.rules(ids or last)]


def is_stale(host: Optional[HostRow], newest_ms: Optional[int], now_ms: int) -> bool:
    """Whether the newest tick says nothing about now."""
    interval_ms = host.interval_ms if host else None
    return newest_ms is None or abs(now_ms - newest_ms) > stale_after_ms([(interval_ms or 0) / 1000])


def settled_window(since_ms: int, until_ms: int, now_ms: int) -> Span:
    """The window as far as it is past. Raises UsageError when nothing is left of it."""
    window = (since_ms, min(until_ms, now_ms))
    if window[0] >= window[1]:
        raise UsageError(f"the window is empty: {to_iso(since_ms)} is not before {to_iso(window[1])}")
    return window


def _is_wanted(row: LedgerRow, wanted: Wanted, card: Optional[DeviceRow]) -> bool:
    return (
        (wanted.user is None or row.user == wanted.user)
        and (card is None or row.device == card.id)
        and (not wanted.now or row.is_open)
        and (wanted.graphics or row.type is not ProcessType.GRAPHICS)
    )


def _is_whole(row: LedgerRow, window: Span, raw_since_ms: Optional[int]) -> bool:
    """Whether single ticks tell all of the hold's part of the window."""
    return raw_since_ms is None or max(row.since_ms, window[0]) >= raw_since_ms


def slices(window: Span) -> Iterator[Span]:
    """The window in parts that one reader gets through in time."""
    for start in range(window[0], window[1], _SLICE_MS):
        yield start, min(start + _SLICE_MS, window[1])


def _ticks(history: History, window: Span, rows: Sequence[LedgerRow], rule: Optional[Rule]) -> Iterator[HoldTick]:
    for part in slices(window):
        devices = {row.device for row in rows if row.since_ms < part[1] and row.until_ms > part[0]}
        if not devices:
            continue
        with history() as reader:
            if rule is None:
                yield from reader.ledger().hold_ticks(part, devices)
            else:
                for device in sorted(devices):
                    yield from _judged_again(reader, part, device, rule)


def _judged_again(reader: StoreReader, window: Span, device: int, rule: Rule) -> Iterator[HoldTick]:
    around_ms = rule.long_idle_s * 1000  # so that a stretch is known to be long at the window's ends
    rows = reader.card_ticks(device, (window[0] - around_ms, window[1] + around_ms))
    for one in judge_again(rows, rule):
        spans = [part for part in (clip(span, window) for span in one.row.spans) if part[0] < part[1]]
        if spans:
            yield HoldTick(
                device=device,
                tick=one.row.tick_id,
                state=STATES.index(one.verdict.state),
                util_pct=one.row.util_pct,
                listed=one.row.evidence.holders is not None,
                long_idle=one.long_idle,
                start_ms=spans[0][0],
                end_ms=spans[-1][1],
                covered_ms=sum(map(length_ms, spans)),
                reach_ms=one.row.spans[-1][1] - one.row.spans[0][0],
            )


def _hold(row: LedgerRow, device: DeviceRow, found: HoldFigures, seen: Mapping[int, int], whole: bool) -> LedgerHold:
    state_ms: Sequence[int] = found.state_ms if whole else row.state_ms
    states = states_of(state_ms)
    known_s = states["active"] + states["idle-held"] + states["truly-idle"]
    return {
        "id": row.id,
        "process_key": row.process_key,
        "user": row.user,
        "user_source": row.source.value,
        "process": row.process,
        "pid": row.pid,
        "type": row.type.value,
        "card": device.uuid,
        "index": device.index,
        "since": to_iso(row.since_ms),
        "until": None if row.is_open else to_iso(row.until_ms),
        "listed_now": row.is_open and seen.get(row.device) == row.last_tick,
        "last_seen": to_iso(row.until_ms),
        "figures": "window" if whole else "life",
        "card_s": sum(state_ms) / 1000,
        "states": states,
        "idle_held_share": states["idle-held"] / known_s if known_s else None,
        "idle_held_long_card_s": (found.long_idle_ms if whole else row.long_idle_ms) / 1000,
        "longest_idle_s": found.longest_idle_ms / 1000 if whole else None,
        "card_util_pct": _rounded(found.util_pct) if whole else None,
        "sm_util_pct": _rounded(row.sm_util_pct),
        "memory_mb": row.memory_mb,
        "memory_peak_mb": row.peak_mb,
        "owner_uid": row.owner_uid,
        "login_uid": row.login_uid,
        "container_id": row.container_id,
        "slurm_job": row.slurm_job,
        "mounts": row.mounts,
    }


def _rounded(pct: Optional[float]) -> Optional[float]:
    return None if pct is None else round(pct, 1)


def _worst_first(hold: LedgerHold) -> tuple[float, float, float, int]:
    return -hold["idle_held_long_card_s"], -hold["states"]["idle-held"], -hold["card_s"], hold["id"]
