"""What a report is made of: everything the database is asked for one report, in one place. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Optional

from gua.coverage import Span
from gua.model import DEFAULT_RULE, Rule
from gua.report.ghosts import Ghost
from gua.report.window import ReportWindow, exact_window, settle_window
from gua.store.devices import DeviceRow
from gua.store.reader import HoldRow, HostRow, NowRow, StoreReader, UserRow
from gua.store.sums import WindowSums

if TYPE_CHECKING:
    from gua.store.steps import StepSums

# Enough for every process on a large host; the rest is counted in a finding.
HOLDS_SHOWN = 500
# The clock's leaps are looked for in this much raw history, the window's last: more would cost more than the report.
LEAPS_MS = 7 * 86_400_000

# Thresholds that people argue about: percent utilisation, and MB held.
_ACTIVE_PCT = (5, 10, 20)
_HELD_MB = (0, 100, 500)


@dataclass(frozen=True)
class Material:
    """rules: those in force, oldest first. now: by device id. pauses: within the window; paused: now. steps: None: not
    asked for. sensitivity: rule -> covered ms by verdict. set_back: see StoreReader.clock_set_back. rejudged: states
    are not the stored ones. own_rules: device id -> the rule of its model, for cards not judged by the run's.
    """

    window: ReportWindow
    sums: WindowSums
    rules: tuple[Rule, ...]
    host: Optional[HostRow]
    devices: tuple[DeviceRow, ...]
    now: Mapping[int, NowRow]
    users: Mapping[int, UserRow]
    memory_mb: Mapping[int, Optional[float]]
    holds: tuple[HoldRow, ...]
    holds_in_all: int
    begins_ms: Optional[int]
    newest_tick_ms: Optional[int]
    pauses: tuple[Span, ...]
    paused: bool
    set_back: tuple[Span, ...]
    ghosts: tuple[Ghost, ...] = ()
    steps: Optional[StepSums] = None
    sensitivity: tuple[tuple[Rule, Mapping[int, int]], ...] = ()
    rejudged: bool = False
    own_rules: Mapping[int, Rule] = field(default_factory=dict)


def read_material(
    reader: StoreReader,
    *,
    since_ms: int,
    until_ms: int,
    now_ms: int,
    rule: Optional[Rule] = None,
    sensitivity: bool = False,
    timeline: bool = False,
) -> Material:
    """Everything for the report over [since_ms, until_ms). rule: judge raw ticks again by it.

    Raises UsageError for an empty window, and where raw ticks that must be judged again are gone.
    """
    raw_since_ms = reader.raw_since_ms()
    window = settle_window(since_ms, until_ms, now_ms=now_ms, raw_since_ms=raw_since_ms)
    if rule is not None:
        window = exact_window(since_ms, min(until_ms, now_ms))
    material = _as_stored(reader, window, now_ms)
    if rule is not None or sensitivity:
        from gua.report.rejudged import refuse_beyond_raw  # few reports ask for another rule

        refuse_beyond_raw(window.since_ms, raw_since_ms, "--sensitivity" if rule is None else "--rules")
    if sensitivity:
        material = replace(material, sensitivity=_sensitivity(reader, material, rule))
    if rule is not None:
        return _under(reader, material, rule)
    return replace(material, steps=_steps(reader, window.span)) if timeline else material


def _as_stored(reader: StoreReader, window: ReportWindow, now_ms: int) -> Material:
    from gua.report.ghosts import find_ghosts

    sums, host = reader.sums(window.slots, window.ragged), reader.host()
    holds, holds_in_all = reader.holds(window.span, HOLDS_SHOWN)
    last = {host.rule} if host and host.rule is not None else set()
    late = (max(window.since_ms, window.until_ms - LEAPS_MS), window.until_ms)
    devices = reader.devices()
    return Material(
        window=window,
        sums=sums,
        rules=reader.rules(sums.rules or last),
        host=host,
        devices=devices,
        now=reader.now(),
        users=reader.users(),
        memory_mb=reader.memory_held(window.span),
        holds=holds,
        holds_in_all=holds_in_all,
        begins_ms=reader.history_begins_ms(),
        newest_tick_ms=reader.newest_tick_ms(),
        pauses=tuple(reader.pauses(window.span)),
        paused=bool(reader.pauses((now_ms - 1, now_ms))),
        set_back=tuple(reader.clock_set_back(late)),
        ghosts=find_ghosts(reader, devices, window.span, sums),
        own_rules=_own_rules(reader, sums),
    )


def _own_rules(reader: StoreReader, sums: WindowSums) -> dict[int, Rule]:
    """By device id. A card whose model's rule changed within the window has none to name."""
    by_device: dict[int, set[int]] = {}
    for device, rule in sums.card_rules:
        by_device.setdefault(device, set()).add(rule)
    run_rules = reader.run_rules()
    own = {device: ids for device, ids in by_device.items() if len(ids) == 1 and not ids & run_rules}
    return {device: reader.rules(ids)[0] for device, ids in own.items()}


def _steps(reader: StoreReader, window: Span) -> StepSums:
    from gua.report.timeline import steps_of

    return steps_of(reader, window)


def _sensitivity(
    reader: StoreReader, material: Material, rule: Optional[Rule]
) -> tuple[tuple[Rule, Mapping[int, int]], ...]:
    """Each pair of thresholds, the others as in `rule` or in the newest rule of the window."""
    base = rule or (material.rules[-1] if material.rules else DEFAULT_RULE)
    rules = [replace(base, active_util_pct=pct, held_mb=held_mb) for pct in _ACTIVE_PCT for held_mb in _HELD_MB]
    return tuple(zip(rules, reader.verdict_ms(material.window.span, rules)))


def _under(reader: StoreReader, stored: Material, rule: Rule) -> Material:
    from gua.report.rejudged import hold_under, now_under

    present = reader.present_under(rule)  # of the view that `stored` was read from; judging again may renew it
    found = reader.rejudge(stored.window.span, rule)
    return replace(
        stored,
        sums=replace(found.sums, ticks=stored.sums.ticks),
        rules=(rule,),
        now={device: now_under(now, *present[device]) for device, now in stored.now.items() if device in present},
        holds=tuple(hold_under(hold, found.holds[hold.id]) for hold in stored.holds),
        steps=found.steps,
        rejudged=True,
        own_rules={},
    )
