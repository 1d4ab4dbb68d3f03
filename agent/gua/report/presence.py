"""Sections that name people and the present: who held the cards, who holds them now, which are free; findings. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from gua.report.cells import UNKNOWN, clock_time, count, gigabytes, hours
from gua.report.document import Card, HolderNow, Now, Report, User
from gua.report.figures import card_name
from gua.report.section import Cell, Section, Table
from gua.report.wording import how_long, is_stale, joined, reason_text, rules_in_short, zone_of
from gua.text import shown

# These findings change how everything is read, so they stand above the sections. Id -> the word before it.
LOUD = {"stale": "STALE", "paused": "PAUSED", "clock": "CLOCK"}
_TOP_USERS = 15


def users(report: Report) -> Section:
    """Longest idle-held first: that is what the table is read for."""
    rows = sorted(report["users"], key=lambda user: (-user["idle_held_card_s"], -user["card_s"], user["user"]))
    title = "Who held the cards"
    if not rows:
        who = "Nobody held a" if report.get("user") is None else f"{shown(report['user'] or '')} held no"
        return Section("users", title, lines=(f"{who} card in this window, as far as it was seen.",))
    headers = ("user", "GPU-h", "share h", "idle-held h", "long h", "GB", "cards", "samples")
    table = Table(headers, "lrrrrrrr", tuple(map(_user_row, rows[:_TOP_USERS])), elastic=(0,), spare=(7, 5, 6))
    more = len(rows) - _TOP_USERS
    return Section(
        key="users",
        title=title,
        tables=(table,),
        lines=(f"and {more} more; the JSON document has all of them.",) if more > 0 else (),
        basis=joined([_users_basis(report), rules_in_short(report)]),
    )


def _user_row(user: User) -> tuple[str, ...]:
    return (
        shown(user["user"]),
        hours(user["card_s"]),
        hours(user["share_s"]),
        hours(user["idle_held_card_s"]),
        hours(user["idle_held_long_card_s"]),
        gigabytes(user.get("held_mb")),
        count(user.get("cards")),
        count(user["samples"]),
    )


def _users_basis(report: Report) -> str:
    minutes = sorted({rule["long_idle_s"] // 60 for rule in report["rules"]}) or [30]
    return (
        "GPU-h counts the whole card for each of its users, so the sum can exceed card time; share h divides it among "
        "them. long h: of idle-held, what went on without a break for "
        f"{' or '.join(str(number) for number in minutes)} minutes or more. GB: held on each card, on average while it "
        "was held. cards: how many were held."
    )


def now(report: Report) -> Section:
    """Who holds what, since when, and which cards are free, by each card's newest tick."""
    current = [card for card in report["cards"] if card["now"] is not None]
    title = "Now"
    if not current:
        return Section("now", title, lines=("No card was sampled yet.",))
    headers = ("#", "user", "process", "pid", "GB", "held for", "state", "for")
    rows = tuple(_holder_rows(report, current))
    table = Table(headers, "rllrrrlr", rows, elastic=(1, 2), spare=(3, 7))
    at = max(card["now"]["at"] for card in current if card["now"])
    zone, name = zone_of(report)
    basis = f"Each card's newest tick, the last at {clock_time(at, zone)} ({name}), whatever the window."
    return Section(
        key="now",
        title=title,
        tables=(table,) if rows else (),
        lines=tuple(_now_lines(report, current, bool(rows))),
        basis=joined([basis, rules_in_short(report)]),
    )


def _holder_rows(report: Report, current: list[Card]) -> Iterator[tuple[Cell, ...]]:
    for card in current:
        seen = card["now"]
        for holder in seen["holders"] if seen else []:
            if holder["type"] != "graphics" and seen is not None:
                yield _holder_row(report, card, seen, holder)


def _holder_row(report: Report, card: Card, seen: Now, holder: HolderNow) -> tuple[Cell, ...]:
    user = shown(holder["user"])
    mounts, began = holder.get("mounts"), holder.get("since")
    return (
        count(card["index"]),
        f"{user} (mounts {shown(mounts)}'s)" if mounts else user,
        shown(holder["process"]),
        str(holder["pid"]),
        gigabytes(holder["memory_mb"]),
        UNKNOWN if began is None else how_long(began, seen["at"]),
        "stale" if is_stale(report, seen["at"]) else seen["state"],
        how_long(seen["since"], seen["at"]),
    )


def _now_lines(report: Report, current: list[Card], listed: bool) -> Iterator[str]:
    narrowed = report.get("user") is not None
    if not listed:
        yield f"No process of {shown(report['user'] or '') if narrowed else 'anybody'} is listed on a card."
    fresh = [card for card in current if card["now"] and not is_stale(report, card["now"]["at"])]
    idle = [card for card in fresh if card["now"] and card["now"]["state"] == "truly-idle"]
    names = ", ".join(_free_name(card) for card in idle)
    scheduler = report["host"]["scheduler"]
    if scheduler and idle:
        yield f"Idle, but given out by {shown(scheduler)}, so not called free: {names}."
    elif fresh:
        yield f"Free: {names or 'none'}."
    if len(fresh) < len(current):
        yield f"{len(current) - len(fresh)} of {len(current)} cards were not sampled lately: free or not, nobody knows."
    for card in fresh:
        if card["now"] and card["now"]["state"] == "unknown":
            yield f"Unknown: card {count(card['index'])}, {reason_text(card['now']['reason'] or 'unknown')}."
        elif card["now"] and card["now"]["state"] == "idle-held" and not narrowed and not _has_holder(card["now"]):
            yield f"Card {count(card['index'])} is held by memory that no listed process accounts for."


def _has_holder(seen: Now) -> bool:
    return any(holder["type"] != "graphics" for holder in seen["holders"])


def _free_name(card: Card) -> str:
    memory = f", {gigabytes(card['memory_total_mb'])} GB" if card["memory_total_mb"] else ""
    since = how_long(card["now"]["since"], card["now"]["at"]) if card["now"] else UNKNOWN
    return f"card {count(card['index'])} ({card_name(card)}{memory}, for {since})"


def findings(report: Report) -> Section:
    """Everything that was found but what stands above the sections already."""
    told = [one for one in report["findings"] if one["id"] not in LOUD]
    lines = tuple(f"{shown(one['severity'])}: {shown(one['text'], 600)}" for one in told)
    nothing = "Nothing else stands out." if report["findings"] else "Nothing stands out."
    return Section("findings", "Findings", lines=lines or (nothing,))
