"""The ledger of holds as text, Markdown and CSV. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import tzinfo
from typing import Any, Optional

from gua.ledger.document import Holds, LedgerHold
from gua.ledger.page import Page
from gua.report.cells import UNKNOWN, clock_time, count, gigabytes, hours, model, percent, short_uuid
from gua.report.notes import rules_text
from gua.report.render_csv import safe
from gua.report.section import Section, Table
from gua.report.zones import find_zone
from gua.text import shown
from gua.units import format_duration

# Fields of a hold in the order of the CSV's columns; `states` becomes one column for each state.
_CSV_FIELDS = (
    *("user", "user_source", "process", "pid", "type", "card", "index", "since", "until", "listed_now", "last_seen"),
    *("figures", "card_s", "active_s", "idle_held_s", "truly_idle_s", "unknown_s", "idle_held_share"),
    *("idle_held_long_card_s", "longest_idle_s", "card_util_pct", "sm_util_pct", "memory_mb", "memory_peak_mb"),
    *("owner_uid", "login_uid", "container_id", "slurm_job", "mounts", "process_key", "id"),
)
_HEADERS = (
    *("user", "process", "pid", "#", "from", "to", "GPU-h", "idle", "long h"),
    *("longest", "util", "SM", "GB", "peak"),
)
_BASIS = (
    "GPU-h: time of the whole card while held, in the window. idle: idle-held part of the known time. long h: of "
    "idle-held, what went on without a break for {long} or more. longest: the longest unbroken idle-held stretch. "
    "util: the card's mean utilisation while held; SM: the process's own, over its life. GB: held now, or last; peak: "
    "most in the window. -: not known."
)


def holds_page(document: Holds) -> Page:
    """The ledger as a page."""
    zone, rows = find_zone(document["tz"]), document["holds"]
    return Page(
        title=f"Who held the cards of {shown(document['host']['hostname'])}",
        notes=tuple(_notes(document, zone)),
        warnings=tuple(_warnings(document, zone)),
        sections=(_table(document, zone),) if rows else (Section("holds", "", lines=(_nothing(document),)),),
    )


def render_csv(document: Holds) -> str:
    """One row per hold, in the ledger's order; empty where a figure is not known."""
    out = io.StringIO()
    columns = ("host", "window_since", "window_until", *_CSV_FIELDS)
    writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    writer.writeheader()
    window = document["window"]
    same = {
        "host": safe(document["host"]["hostname"]),
        "window_since": window["since"],
        "window_until": window["until"],
    }
    for hold in document["holds"]:
        by_state = {f"{name.replace('-', '_')}_s": seconds for name, seconds in hold["states"].items()}
        flat: dict[str, Any] = {**hold, **by_state}
        writer.writerow({**same, **{field: _csv_cell(flat[field]) for field in _CSV_FIELDS}})
    return out.getvalue()


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    return safe(value) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def window_note(document: Any, zone: Optional[tzinfo]) -> str:
    """`2026-03-02 09:00 to 2026-03-02 10:00 (UTC)`, of any document with a window and a tz."""
    window, name = document["window"], document["tz"] if zone is not None else "UTC"
    return f"{clock_time(window['since'], zone)} to {clock_time(window['until'], zone)} ({name})"


def _notes(document: Holds, zone: Optional[tzinfo]) -> Iterator[str]:
    yield window_note(document, zone)
    window, asked = document["window"], document["asked"]
    if window["history_begins"] is not None:
        yield f"History begins {clock_time(window['history_begins'], zone)}."
    words = [f"user {shown(asked['user'])}"] if asked["user"] is not None else []
    words += [f"card {short_uuid(shown(asked['card']))}"] if asked["card"] is not None else []
    words += [f"held for {format_duration(round(asked['min_s'] * 1000))} or more"] if asked["min_s"] else []
    words += ["not over yet"] if asked["now"] else []
    if words:
        yield f"Only holds: {', '.join(words)}."
    if not asked["graphics"]:
        yield "Processes that only draw hold no card and are left out; --all shows them."


def _warnings(document: Holds, zone: Optional[tzinfo]) -> Iterator[str]:
    newest = document["newest_tick_at"]
    if document["stale"]:
        when = "there is none" if newest is None else f"it is of {clock_time(newest, zone)}"
        yield f"STALE: the newest sample says nothing about now ({when}); who held a card then may be gone."
    if any(hold["figures"] == "life" for hold in document["holds"]):
        begins = document["window"]["raw_begins"]
        yield (
            f"Single samples before {UNKNOWN if begins is None else clock_time(begins, zone)} are gone: rows marked * "
            "give the hold's whole life, not its part of the window, and no mean or longest stretch."
        )


def _nothing(document: Holds) -> str:
    return "No such hold was seen in this window." if document["newest_tick_at"] else "No sample was taken yet."


def _table(document: Holds, zone: Optional[tzinfo]) -> Section:
    rows = tuple(_row(hold, document["stale"], zone) for hold in document["holds"])
    table = Table(_HEADERS, "llrrllrrrrrrrr", rows, elastic=(0, 1), spare=(11, 13, 2, 12, 10, 4, 9))
    return Section("holds", "", (table,), tuple(_hints(document)), _basis(document))


def _row(hold: LedgerHold, stale: bool, zone: Optional[tzinfo]) -> tuple[str, ...]:
    states, longest_s = hold["states"], hold["longest_idle_s"]
    known_s = states["active"] + states["idle-held"] + states["truly-idle"]
    return (
        shown(hold["user"]) + (" (draws)" if hold["type"] == "graphics" else ""),
        shown(hold["process"]),
        str(hold["pid"]),
        count(hold["index"]),
        _short(hold["since"], zone),
        _end(hold, stale, zone),
        hours(hold["card_s"]) + ("*" if hold["figures"] == "life" else ""),
        percent(states["idle-held"], known_s).replace(" ", ""),
        hours(hold["idle_held_long_card_s"]),
        UNKNOWN if longest_s is None else format_duration(round(longest_s * 1000)) if longest_s else "0",
        pct(hold["card_util_pct"]),
        pct(hold["sm_util_pct"]),
        gigabytes(hold["memory_mb"]),
        gigabytes(hold["memory_peak_mb"]),
    )


def _end(hold: LedgerHold, stale: bool, zone: Optional[tzinfo]) -> str:
    """A hold that is not over is only said to hold still where a fresh tick listed it."""
    if hold["until"] is not None:
        return _short(hold["until"], zone)
    return "still holds" if hold["listed_now"] and not stale else f"? {_short(hold['last_seen'], zone)}"


def pct(value: Optional[float]) -> str:
    """`3%`, `<1%`, `0%`; `-` where unknown."""
    return UNKNOWN if value is None else percent(value, 100).replace(" ", "")


def _short(iso: str, zone: Optional[tzinfo]) -> str:
    return clock_time(iso, zone)[5:]


def _hints(document: Holds) -> Iterator[str]:
    cards = [
        f"{count(one['index']) if one['retired_at'] is None else 'x'} {short_uuid(shown(one['uuid']))} "
        f"{model(shown(one['name']))}".rstrip()
        for one in document["cards"]
    ]
    yield f"Cards: {'; '.join(cards)}."
    for hold in document["holds"]:
        words = hold_hints(hold)
        if words:
            yield f"{shown(hold['process'])} (pid {hold['pid']}) of {shown(hold['user'])}: {', '.join(words)}."


def hold_hints(hold: Any) -> list[str]:
    """Where a process ran, as far as it is known. hold: anything with these fields of a LedgerHold."""
    words = [f"container {shown(hold['container_id'])[:12]}"] if hold["container_id"] else []
    words += [f"Slurm job {shown(hold['slurm_job'])}"] if hold["slurm_job"] else []
    return words + ([f"mounts {shown(hold['mounts'])} (a hint, no charge)"] if hold["mounts"] else [])


def _basis(document: Holds) -> str:
    long_s = sorted({rule["long_idle_s"] for rule in document["rules"]}) or [1800]
    basis = _BASIS.format(long=" or ".join(format_duration(seconds * 1000) for seconds in long_s))
    if any(hold["until"] is None and (document["stale"] or not hold["listed_now"]) for hold in document["holds"]):
        basis += " ?: not over as far as is known, last seen then."
    return f"{basis} {rules_text(document['rules'])}"
