"""Hosts' reports from the store: for the same window the same figures as the hosts would give themselves.

What was read of each host becomes the agent's own `Material`, and the agent's own code makes the document of it. What
cards do now is not in it: the newest sample of the store is none of now.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from gua.coverage import SLOT_MS, Span, clip, slot_ceil
from gua.model import Rule
from gua.report.build import report_of
from gua.report.material import Material
from gua.report.window import ReportWindow, settle_window
from gua.store.reader import HostRow
from gua.units import format_duration
from gua_fleet.model import Document, Stored
from gua_fleet.store.facts import name_missing, read_facts
from gua_fleet.store.histories import HistoryRow, histories
from gua_fleet.store.holds import Holds, document_of, read_holds
from gua_fleet.store.host_parts import Part, Whole, whole_of
from gua_fleet.store.question import Question
from gua_fleet.store.reading import window_sums
from gua_fleet.store.session import Session

# Statements name the histories they are about, and a statement has an end.
_AT_ONCE = 500
# A host's clock may be off by so much, with the time its answer took.
_CLOCK_MS = 60_000
_CUT: Sequence[Document] = (
    {
        "id": "pull_cut",
        "severity": "warn",
        "card": None,
        "text": "its pull was cut: there is time of cards that are not described yet: run `gua-fleet pull`",
    },
)


def stored_reports(session: Session, hosts: Iterable[str], question: Question) -> dict[str, Stored]:
    """What the store has of these hosts, by name; nothing for a host of which it has nothing.

    Raises UsageError for an empty window.
    """
    wanted = set(hosts)
    by_host: defaultdict[str, list[HistoryRow]] = defaultdict(list)
    for history in histories(session):
        if history.name in wanted:
            by_host[history.name].append(history)
    for rows in by_host.values():  # the one that the host goes on with is the newest, whichever began last
        rows.sort(key=lambda row: (row.ended_ms is None, row.ended_ms or 0, row.id))
    found: dict[str, Stored] = {}
    for window, names in _windows(by_host, question).items():
        for start in range(0, len(names), _AT_ONCE):
            some = {name: by_host[name] for name in names[start : start + _AT_ONCE]}
            found |= _reports(session, some, window, question)
    return found


def _windows(by_host: Mapping[str, Sequence[HistoryRow]], question: Question) -> dict[ReportWindow, list[str]]:
    """Hosts by the window they can answer for: a short one is widened where raw ticks are not here."""
    windows: defaultdict[ReportWindow, list[str]] = defaultdict(list)
    for name, rows in by_host.items():
        raw_since_ms = max((row.raw_since_ms for row in rows if row.raw_since_ms is not None), default=None)
        window = settle_window(question.since_ms, question.until_ms, now_ms=question.now_ms, raw_since_ms=raw_since_ms)
        ends = [end for end in map(_raw_until_ms, rows) if end is not None]
        windows[without_raw(window, min(ends), question.now_ms) if ends else window].append(name)
    return windows


def _raw_until_ms(row: HistoryRow) -> int | None:
    """Until when single ticks are here; None: as far as anything is. Pulls of nothing but sums leave them behind."""
    return (row.anchor_ms or 0) if row.raw_rev < row.rev else None


def without_raw(window: ReportWindow, raw_until_ms: int, now_ms: int) -> ReportWindow:
    """The window, its ragged ends widened to slots where no single ticks are here any more from `raw_until_ms` on.

    The slot that is not over yet is taken whole: all that is known of it lies before now.
    """
    missing = [span for span in window.ragged if span[1] > raw_until_ms]
    if not missing:
        return window
    slots = [slot for slot in (window.slots, *map(_slots_of, missing)) if slot[0] < slot[1]]
    first, end = min(slot[0] for slot in slots), max(slot[1] for slot in slots)
    since_ms, until_ms = min(window.since_ms, first * SLOT_MS), max(window.until_ms, min(end * SLOT_MS, now_ms))
    return ReportWindow(since_ms, until_ms, (first, end), tuple(set(window.ragged) - set(missing)))


def _slots_of(span: Span) -> tuple[int, int]:
    return span[0] // SLOT_MS, slot_ceil(span[1]) // SLOT_MS


def _reports(
    session: Session, by_host: Mapping[str, Sequence[HistoryRow]], window: ReportWindow, question: Question
) -> dict[str, Stored]:
    known = {row.id: row for rows in by_host.values() for row in rows}
    ids = list(known)
    sums = window_sums(session, ids, window, question.zone)
    facts = read_facts(session, ids, window.span)
    holds = read_holds(session, ids, window.span) if question.holds else dict.fromkeys(ids, Holds())
    cut = {
        row.name
        for number, row in known.items()
        if name_missing(facts[number], sums[number], holds[number].devices, row.name, window.span)
    }
    parts = {number: Part(row, sums[number], facts[number], holds[number]) for number, row in known.items()}
    return {
        name: _stored([parts[row.id] for row in rows], window, question, _CUT if name in cut else ())
        for name, rows in by_host.items()
    }


def _stored(
    parts: Sequence[Part], window: ReportWindow, question: Question, more_findings: Sequence[Document]
) -> Stored:
    whole, newest = whole_of(parts), parts[-1].history
    made = _material(parts, whole, window, question.now_ms)
    report = report_of(made, now_ms=question.now_ms, zone=question.zone, zone_name=question.tz, scheduler=None)
    document: Document = {
        **report,
        "host": {**report["host"], "agent_version": newest.agent_version},
        "holds": _holds(parts),
        "findings": [*more_findings, *_about_clock(newest), *report["findings"]],
    }
    ticks = [part.history.anchor_ms for part in parts if part.history.anchor_ms is not None]
    return Stored(document, newest.pulled_ms, max(ticks, default=None))


def _about_clock(history: HistoryRow) -> list[Document]:
    """Its history stands where its clock put it."""
    ahead_ms = history.clock_ahead_ms
    if abs(ahead_ms) <= _CLOCK_MS:
        return []
    side = "ahead of" if ahead_ms > 0 else "behind"
    text = f"when it was pulled its clock was {format_duration(abs(ahead_ms))} {side} this machine's: set both by NTP"
    return [{"id": "clock_differs", "severity": "warn", "card": None, "text": text}]


def _material(parts: Sequence[Part], whole: Whole, window: ReportWindow, now_ms: int) -> Material:
    newest, begins = parts[-1], [one.facts.begins_ms for one in parts if one.facts.begins_ms is not None]
    judged, last = whole.sums.rules, newest.facts.rules.get(newest.facts.run_rule or 0)
    return Material(
        window=window,
        sums=whole.sums,
        rules=tuple(rule for number, rule in sorted(whole.rules.items()) if number in judged)
        or ((last,) if last else ()),
        host=_host_row(newest),
        devices=whole.devices,
        now={},
        users=whole.users,
        memory_mb={},
        holds=(),
        holds_in_all=sum(one.holds.in_all - len(one.holds.rows) for one in parts),
        begins_ms=min(begins, default=None),
        # how old it all is stands beside the host, so that a host is not called stale for what the store does not know
        newest_tick_ms=now_ms if begins else None,
        pauses=tuple(_pauses(parts, window.span)),
        paused=False,
        set_back=(),
        own_rules=_own_rules(whole),
    )


def _host_row(part: Part) -> HostRow:
    one = part.history
    return HostRow(
        store_id=one.store_id,
        machine_id=one.machine_id,
        boot_id=one.boot_id,
        hostname=one.hostname,
        driver_version=part.facts.driver_version,
        rule=part.facts.run_rule,
        interval_ms=part.facts.interval_ms,
    )


def _own_rules(whole: Whole) -> dict[int, Rule]:
    """By card: the rule of its model, where that is another than the runs' and one and the same in the window."""
    by_device: defaultdict[int, set[int]] = defaultdict(set)
    for device, rule in whole.sums.card_rules:
        by_device[device].add(rule)
    own = {device: ids for device, ids in by_device.items() if len(ids) == 1 and not ids & whole.run_rules}
    own = {device: ids for device, ids in own.items() if ids <= whole.rules.keys()}
    return {device: whole.rules[next(iter(ids))] for device, ids in own.items()}


def _pauses(parts: Sequence[Part], window: Span) -> Iterable[Span]:
    spans = (
        clip((start, window[1] if end is None else end), window) for part in parts for start, end in part.facts.pauses
    )
    return sorted(span for span in spans if span[0] < span[1])


def _holds(parts: Sequence[Part]) -> list[Document]:
    """Each hold once: a database that went back to an older copy of itself has what it had before, too."""
    found: list[Document] = []
    known: set[tuple[str, str, str]] = set()
    for part in reversed(parts):
        uuids = {row.id: row.uuid for row in part.facts.devices}
        documents = [document_of(row, uuids) for row in part.holds.rows]
        found += [one for one in documents if _identity(one) not in known]
        known |= set(map(_identity, documents))
    return found


def _identity(hold: Document) -> tuple[str, str, str]:
    return hold["process_key"], hold["card"], hold["since"]
