"""Parts of the evidence in words: stretches, gaps, holds, cards and times. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Optional

from gua.ledger.document import LedgerCard
from gua.ledger.explained import GapInfo, StretchInfo, UserHold
from gua.ledger.render_holds import hold_hints
from gua.ledger.tell import gap_words
from gua.report.cells import UNKNOWN, hours, model, short_uuid
from gua.report.notes import NO_BREAK
from gua.report.wording import reason_text
from gua.text import shown
from gua.units import format_duration, parse_time_ms

OBSERVED = (
    "Observations of this host's samples. They say which process was seen on which card, and not what it was for."
)


def stretch_text(one: StretchInfo, zone: Optional[tzinfo]) -> str:
    """`from 03-02 10:00 to 13:20, 400 ticks: utilisation 0-2 %, 20,480 MB held by python (pid 4711): idle-held`."""
    number = f"{one['ticks']:,} {'tick' if one['ticks'] == 1 else 'ticks'}"
    util = "utilisation not known" if one["util_pct"] is None else f"utilisation {_range(one['util_pct'])}{NO_BREAK}%"
    if one["util_pct"] is not None and one["util_unknown_ticks"]:
        util += f" (not known in {one['util_unknown_ticks']})"
    parts = [util, *_held_parts(one)]
    state = one["state"] if one["reason"] is None else f"{one['state']} ({reason_text(one['reason'])})"
    return f"from {at(one['since'], zone)} to {at(one['until'], zone)}, {number}: {', '.join(parts)}: {state}"


def _held_parts(one: StretchInfo) -> list[str]:
    if one["holders"] is None:
        return ["processes not readable"]
    holding = [held for held in one["holders"] if held["type"] != "graphics"]
    if not holding:
        used = one["memory_used_mb"]
        return ["no compute process listed"] + ([f"{_range(used)} MB used"] if used else [])
    return [
        f"{known(held['memory_mb'], 'MB')} held by {shown(held['process'])} (pid {held['pid']})"
        if held["memory_mb"] is not None
        else f"an amount not known held by {shown(held['process'])} (pid {held['pid']})"
        for held in holding
    ]


def _range(values: Sequence[int]) -> str:
    low, high = values
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


def gap_text(gap: GapInfo, zone: Optional[tzinfo]) -> str:
    """When nothing was seen, and why."""
    ended, following = (None if moment is None else at(moment, zone) for moment in (gap["ended"], gap["next"]))
    return f"from {at(gap['since'], zone)} to {at(gap['until'], zone)}: {gap_words(gap['why'], ended, following)}"


def hold_text(one: UserHold, zone: Optional[tzinfo], where: str = "") -> str:
    end = "not over" if one["until"] is None else f"to {at(one['until'], zone)}"
    text = f"{shown(one['process'])} (pid {one['pid']}), from {at(one['since'], zone)} {end}"
    text += f", {hours(one['card_s'])} h seen{where}"
    hints = ", ".join([f"named by {one['source_text']}", *hold_hints(one)])
    return f"{text}; {hints}"


def known(value: Optional[int], unit: str) -> str:
    return "not known" if value is None else f"{value:,}{NO_BREAK}{unit}"


def card_title(card: LedgerCard) -> str:
    """`0 GPU-1a2b3c4d (H100)`."""
    index = "x" if card["retired_at"] is not None else UNKNOWN if card["index"] is None else str(card["index"])
    name = model(shown(card["name"]))
    return f"{index} {short_uuid(shown(card['uuid']))}" + (f" ({name})" if name else "")


def minutes(seconds: float) -> str:
    return format_duration(round(seconds * 1000))


def at(iso: str, zone: Optional[tzinfo]) -> str:
    """`2026-03-02 09:30:05`."""
    return _moment(iso, zone, "%Y-%m-%d %H:%M:%S")


def clock(iso: str, zone: Optional[tzinfo]) -> str:
    return _moment(iso, zone, "%H:%M:%S")


def _moment(iso: str, zone: Optional[tzinfo], form: str) -> str:
    moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=parse_time_ms(iso))
    return moment.astimezone(zone or timezone.utc).strftime(form)
