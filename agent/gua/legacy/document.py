"""What an import took and what nobody can know any more: `gua.import/1`, and its form for people. Pure."""

from __future__ import annotations

from textwrap import wrap
from typing import Any, Optional

from gua.legacy.take_over import Taken
from gua.text import shown
from gua.units import format_duration, to_iso

Document = dict[str, Any]


def import_document(taken: Taken, columns: str, old: str, database: str, *, dry_run: bool) -> Document:
    """columns: the version whose columns the old database has."""
    return {
        "schema": "gua.import/1",
        "from": old,
        "into": database,
        "dry_run": dry_run,
        "columns_of": columns,
        "ticks": taken.ticks,
        "samples": taken.samples,
        "process_rows": taken.processes,
        "cards": sorted(taken.cards),
        "users": sorted(taken.users),
        "since": _time(taken.from_ms),
        "until": _time(taken.until_ms),
        "intervals_s": [ms / 1000 for ms in sorted(taken.intervals_ms)],
        "inferred_intervals_s": [ms / 1000 for ms in sorted(taken.inferred_ms)],
        "known_before": taken.known,
        "counted_before": taken.counted_before,
        "unreadable_rows": taken.unreadable,
        "retired_cards": sorted(taken.retired),
        "could_not_know": _could_not_know(taken),
    }


def _time(ms: Optional[int]) -> Optional[str]:
    return None if ms is None else to_iso(ms)


def _could_not_know(taken: Taken) -> list[dict[str, str]]:
    if not taken.samples:
        return []
    ungraphed, unlisted, unmeasured = taken.ungraphed, taken.unlisted, taken.unmeasured
    inferred = ", ".join(format_duration(ms) for ms in sorted(taken.inferred_ms))
    notes = {
        "failed_readings": "what it failed to read: it dropped the whole sampling, and that time is unobserved here; "
        "before 1.4 a list of processes that failed stands there as an empty one",
        "util_within_interval": "utilisation between two samples: each figure is of one moment",
        "process_starts": "when processes began: a number counts as one process while one run sees it without a break",
        "energy": "energy counters: energy is power by time",
        "card_memory": unmeasured
        and f"the memory in use on the card, in {unmeasured} samples (before 1.1): listed "
        "processes alone decide, as they did there",
        "graphics_processes": ungraphed
        and f"graphics processes, and those whose memory the driver did not tell, in "
        f"{ungraphed} samples (before 1.4): a card with much memory in nobody's name is unknown, not idle-held",
        "process_lists": unlisted
        and f"who held the card, in {unlisted} samples whose list of processes failed: unknown "
        "where the card was not active",
        "single_samples": taken.points
        and f"how long {taken.points} samples of `sync-once` stand for: they cover no time",
        "intervals": inferred and f"intervals that were not recorded: {inferred}, told from the spacing of samples",
    }
    return [{"id": name, "text": text} for name, text in notes.items() if text]


def render_import(document: Document) -> str:
    """The table for people."""
    what = "would be taken" if document["dry_run"] else "taken"
    users = [shown(name) for name in document["users"]]
    intervals = sorted({*document["intervals_s"], *document["inferred_intervals_s"]})
    rows = [
        ("from", f"{shown(document['from'], 200)} (gpu-usage-audit, columns of {document['columns_of']})"),
        ("into", shown(document["into"], 200)),
        (f"samplings {what}", str(document["ticks"])),
        (f"samples of cards {what}", str(document["samples"])),
        (f"process rows {what}", str(document["process_rows"])),
        ("known before", f"{document['known_before']} samplings"),
        ("cards", f"{len(document['cards'])}: {_some([shown(uuid) for uuid in document['cards']])}"),
        ("users", f"{len(users)}: {_some(users)}"),
        ("time", f"{document['since']} to {document['until']}" if document["since"] else "nothing new"),
        ("interval", ", ".join(f"{seconds:g} s" for seconds in intervals) or "-"),
    ]
    if document["counted_before"]:
        text = f"{document['counted_before']} samplings: their quarter-hours were counted and raw ticks are gone"
        rows.append(("left out", text))
    if document["unreadable_rows"]:
        rows.append(("unreadable", f"{document['unreadable_rows']} rows"))
    if document["retired_cards"]:
        rows.append(("no longer expected", _some([shown(uuid) for uuid in document["retired_cards"]])))
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:{width}}  {text}" for name, text in rows]
    if document["could_not_know"]:
        lines += ["", "What could not be known:"]
        for note in document["could_not_know"]:
            lines += wrap(f"- {note['text']}", 100, subsequent_indent="  ")
    return "\n".join(lines) + "\n"


def _some(names: list[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "") if names else "none"
