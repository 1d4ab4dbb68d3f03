"""The evidence behind a figure, in words. It says what was observed, and charges nobody. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Optional

from gua.ledger.explained import (
    CardAnswer,
    Explained,
    GapInfo,
    RolledUp,
    SeenHolder,
    StretchInfo,
    TickInfo,
    UserAnswer,
    UserCard,
    UserFigure,
    UserHold,
)
from gua.ledger.page import Page
from gua.ledger.render_holds import hold_hints, window_note
from gua.model import State
from gua.report.cells import UNKNOWN, count, hours, model, short_uuid
from gua.report.notes import NO_BREAK, rules_text
from gua.report.section import Section, Table
from gua.report.wording import reason_text
from gua.report.zones import find_zone
from gua.text import shown
from gua.units import format_duration, parse_time_ms

# More lines than this about one card are read by nobody; the JSON document has all of them.
_STRETCHES_SHOWN = 20
_OBSERVED = (
    "Observations of this host's samples. They say which process was seen on which card, and not what it was for."
)


def explain_page(document: Explained) -> Page:
    """The document as a page."""
    zone = find_zone(document["tz"])
    name = document["tz"] if zone is not None else "UTC"
    if document["user"] is not None:
        return _user_page(document, document["user"], zone)
    answer = document["card"]
    assert answer is not None
    sections = [_answer_section(answer, zone), *_around_section(answer, zone)]
    basis = rules_text([answer["tick"]["rule"]] if answer["tick"] else document["rules"])
    where, when = shown(document["host"]["hostname"]), f"{_at(answer['at'], zone)} ({name})"
    return Page(
        title=f"Card {_card(answer['card'])} of {where} at {when}",
        notes=(_OBSERVED,),
        warnings=(),
        sections=(*sections, Section("rule", "", basis=basis)),
    )


def _answer_section(answer: CardAnswer, zone: Optional[tzinfo]) -> Section:
    tick = answer["tick"]
    lines: list[str] = []
    if tick is not None:
        lines += _tick_lines(tick, zone)
        if answer["stretch"] is not None:
            lines.append(f"Unchanged {stretch_text(answer['stretch'], zone)}.")
    elif answer["gap"] is not None:
        lines.append(f"Not seen: {gap_text(answer['gap'], zone)}.")
    elif answer["rolled_up"] is not None:
        lines += _rolled_lines(answer["rolled_up"], zone)
    else:
        begins = answer["rollups_begin"]
        left = "there are none of this card" if begins is None else f"they begin {_at(begins, zone)}"
        lines.append(f"Nothing is kept of this moment: single samples are gone, and of sums, {left}.")
    if tick is None:
        lines += [f"Known to hold the card then: {_hold_text(one, zone)}." for one in answer["holds"]]
    return Section("tick", "What was seen", lines=tuple(lines))


def _tick_lines(tick: TickInfo, zone: Optional[tzinfo]) -> Iterator[str]:
    covers = ", ".join(f"{_clock(start, zone)} to {_clock(end, zone)}" for start, end in tick["covers"])
    yield f"Sample of {_at(tick['at'], zone)}, status {tick['status']}, standing for {covers or 'no time'}."
    if tick["fault"] is not None:
        yield f"The driver could not be used: {shown(tick['fault'], 200)}."
    yield f"State: {tick['decision']['text']}."
    yield f"Readings: {_readings(tick)}."
    if tick["holders"] is None:
        yield "Processes: the lists could not be read, so nobody is named or charged."
    elif not tick["holders"]:
        yield "Processes: none was listed on the card."
    for holder in tick["holders"] or []:
        yield _holder_text(holder)
    if tick["unknown"]:
        yield f"Not known: {', '.join(tick['unknown'])}."


def _readings(tick: TickInfo) -> str:
    util = f"utilisation {_known(tick['util_pct'], '%')}"
    util += f" (highest {tick['util_max_pct']} %)" if tick["util_max_pct"] is not None else ""
    util += f" by {tick['util_source']}" if tick["util_source"] is not None else ""
    parts = [
        util,
        f"memory used {_known(tick['memory_used_mb'], 'MB')}",
        f"held by compute processes {_known(tick['held_mb'], 'MB')}",
        f"accounted for by nobody {_known(tick['unattributed_mb'], 'MB')}",
        f"temperature {_known(tick['temperature_c'], 'degrees')}",
    ]
    return ", ".join([*parts, f"power {UNKNOWN if tick['power_w'] is None else format(tick['power_w'], '.0f')} W"])


def _known(value: Optional[int], unit: str) -> str:
    return "not known" if value is None else f"{value:,}{NO_BREAK}{unit}"


def _holder_text(one: SeenHolder) -> str:
    holds = f"held {_known(one['memory_mb'], 'MB')}" if one["type"] != "graphics" else "only draws, holds no card"
    text = f"Process {shown(one['process'])} (pid {one['pid']}) {holds}; user {shown(one['user'])}, named by "
    text += one["source_text"]
    uids = [f"owner uid {one['owner_uid']}"] if one["owner_uid"] is not None else []
    uids += [f"login uid {one['login_uid']}"] if one["login_uid"] is not None else []
    hints = [*uids, *hold_hints(one)]
    return f"{text} ({', '.join(hints)})." if hints else f"{text}."


def _rolled_lines(rolled: RolledUp, zone: Optional[tzinfo]) -> Iterator[str]:
    span = f"{_at(rolled['since'], zone)} to {_clock(rolled['until'], zone)}"
    parts = [f"{state.value} {_minutes(rolled['card_s'][state.value])}" for state in State]
    yield f"Single samples of this time are gone. Kept of the quarter-hour {span}: {', '.join(parts)}."
    for holder in rolled["holders"]:
        yield f"Held by {shown(holder['user'])} for {_minutes(holder['card_s'])} of it."


def _around_section(answer: CardAnswer, zone: Optional[tzinfo]) -> list[Section]:
    if not answer["around"]:
        return []
    headers = ("at", "status", "state", "util", "used MB", "held MB", "processes")
    rows = tuple(_around_row(tick, answer["tick"], zone) for tick in answer["around"])
    table = Table(headers, "lllrrrl", rows, elastic=(6,), spare=(1, 4, 5))
    return [Section("around", "Samples around it", (table,))]


def _around_row(tick: TickInfo, chosen: Optional[TickInfo], zone: Optional[tzinfo]) -> tuple[str, ...]:
    mark = " <" if chosen is not None and tick["at"] == chosen["at"] else ""
    holders = [f"{shown(one['process'])} {one['pid']} ({shown(one['user'])})" for one in tick["holders"] or []]
    return (
        _at(tick["at"], zone) + mark,
        tick["status"],
        tick["state"] if tick["reason"] is None else f"{tick['state']}: {reason_text(tick['reason'])}",
        UNKNOWN if tick["util_pct"] is None else f"{tick['util_pct']} %",
        count(tick["memory_used_mb"]),
        count(tick["held_mb"]),
        "not readable" if tick["holders"] is None else ", ".join(holders) or "none",
    )


def stretch_text(one: StretchInfo, zone: Optional[tzinfo]) -> str:
    """`from 03-02 10:00 to 13:20, 400 ticks: utilisation 0-2 %, 20,480 MB held by python (pid 4711): idle-held`."""
    number = f"{one['ticks']:,} {'tick' if one['ticks'] == 1 else 'ticks'}"
    util = "utilisation not known" if one["util_pct"] is None else f"utilisation {_range(one['util_pct'])}{NO_BREAK}%"
    if one["util_pct"] is not None and one["util_unknown_ticks"]:
        util += f" (not known in {one['util_unknown_ticks']})"
    parts = [util, *_held_parts(one)]
    state = one["state"] if one["reason"] is None else f"{one['state']} ({reason_text(one['reason'])})"
    return f"from {_at(one['since'], zone)} to {_at(one['until'], zone)}, {number}: {', '.join(parts)}: {state}"


def _held_parts(one: StretchInfo) -> list[str]:
    if one["holders"] is None:
        return ["processes not readable"]
    holding = [held for held in one["holders"] if held["type"] != "graphics"]
    if not holding:
        used = one["memory_used_mb"]
        return ["no compute process listed"] + ([f"{_range(used)} MB used"] if used else [])
    return [
        f"{_known(held['memory_mb'], 'MB')} held by {shown(held['process'])} (pid {held['pid']})"
        if held["memory_mb"] is not None
        else f"an amount not known held by {shown(held['process'])} (pid {held['pid']})"
        for held in holding
    ]


def _range(values: Sequence[int]) -> str:
    low, high = values
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


def gap_text(gap: GapInfo, zone: Optional[tzinfo]) -> str:
    """When nothing was seen, and why."""
    return f"from {_at(gap['since'], zone)} to {_at(gap['until'], zone)}: {gap['text']}"


def _hold_text(one: UserHold, zone: Optional[tzinfo], where: str = "") -> str:
    end = "not over" if one["until"] is None else f"to {_at(one['until'], zone)}"
    text = f"{shown(one['process'])} (pid {one['pid']}), from {_at(one['since'], zone)} {end}"
    text += f", {hours(one['card_s'])} h seen{where}"
    hints = ", ".join([f"named by {one['source_text']}", *hold_hints(one)])
    return f"{text}; {hints}"


def _user_page(document: Explained, answer: UserAnswer, zone: Optional[tzinfo]) -> Page:
    user = shown(answer["user"])
    notes = [window_note(document, zone), _OBSERVED]
    begins = document["window"]["history_begins"]
    notes += [f"History begins {_at(begins, zone)}."] if begins is not None else []
    raw = document["window"]["raw_begins"]
    if raw is not None and any(card["rolled_up"] for card in answer["cards"]):
        notes.append(
            f"Single samples before {_at(raw, zone)} are gone; for that time only sums by quarter-hour are left."
        )
    differs = answer["report"] != answer["total"]
    warning = "These sums differ from the report's, so samples came in between; ask again." if differs else ""
    return Page(
        title=f"How the figure of {user} on {shown(document['host']['hostname'])} comes about",
        notes=tuple(notes),
        warnings=(warning,) if warning else (),
        sections=(_figure_section(answer), *(_card_section(card, zone) for card in answer["cards"]), _rule(document)),
    )


def _rule(document: Explained) -> Section:
    return Section("rule", "", basis=rules_text(document["rules"]))


def _figure_section(answer: UserAnswer) -> Section:
    if not answer["cards"]:
        return Section(
            "figure", "", lines=(f"{shown(answer['user'])} held no card in this window, as far as it was seen.",)
        )
    rows = [_figure_row(_card(card["card"]), card["total"]) for card in answer["cards"]]
    rows.append(_figure_row("all, as in the report", answer["report"]))
    headers = ("card", "GPU-h", "share h", "shared", "idle-held", "long", "samples")
    return Section(
        key="figure",
        title="The figure, card by card",
        tables=(Table(headers, "lrrrrrr", tuple(rows), elastic=(0,)),),
        basis="GPU-h: whole card time while a process of this user was listed on it. share h: that time divided by the "
        "number of users at each moment. shared: of GPU-h, time with others.",
    )


def _figure_row(name: str, figure: UserFigure) -> tuple[str, ...]:
    amounts = (figure["card_s"], figure["share_s"], figure["shared_card_s"], figure["idle_held_card_s"])
    return (name, *map(hours, (*amounts, figure["idle_held_long_card_s"])), count(figure["samples"]))


def _card_section(card: UserCard, zone: Optional[tzinfo]) -> Section:
    lines = list(_arithmetic(card))
    lines += [f"Hold: {_hold_text(one, zone, ' in this window')}." for one in card["holds"]]
    stretches = sorted(card["stretches"], key=lambda one: -one["card_s"])[:_STRETCHES_SHOWN]
    shown_ones = sorted(stretches, key=lambda one: one["since"])
    lines += [f"Seen {stretch_text(one, zone)}." for one in shown_ones]
    rest = len(card["stretches"]) - len(shown_ones)
    if rest:
        left_s = sum(one["card_s"] for one in card["stretches"]) - sum(one["card_s"] for one in shown_ones)
        lines.append(f"And {rest} shorter stretches, {hours(left_s)} h together; --json has all of them.")
    lines += _gap_lines(card["gaps"], zone)
    return Section("card", f"Card {_card(card['card'])}", lines=tuple(lines))


def _gap_lines(gaps: Sequence[GapInfo], zone: Optional[tzinfo]) -> Iterator[str]:
    longest = sorted(gaps, key=lambda gap: parse_time_ms(gap["since"]) - parse_time_ms(gap["until"]))[:_STRETCHES_SHOWN]
    for gap in sorted(longest, key=lambda gap: gap["since"]):
        yield f"Not seen {gap_text(gap, zone)}. It is in no figure."
    if len(gaps) > len(longest):
        yield f"And {len(gaps) - len(longest)} shorter gaps; --json has all of them."


def _arithmetic(card: UserCard) -> Iterator[str]:
    """Where each hour of the figure comes from."""
    for one in card["sharing"]:
        if one["users"] == 1:
            yield f"{hours(one['card_s'])} h as the only user: counts as {hours(one['share_s'])} share hours."
        else:
            others = one["users"] - 1
            yield (
                f"{hours(one['card_s'])} h together with {others} other {'user' if others == 1 else 'users'}, divided "
                f"by {one['users']}: {hours(one['share_s'])} share hours."
            )
    if card["rolled_up"] is not None:
        figure = card["rolled_up"]
        yield f"{hours(figure['card_s'])} h ({hours(figure['share_s'])} share hours) from sums by quarter-hour."
    if card["counted_once_s"]:
        yield f"{hours(card['counted_once_s'])} h of several processes at once count once: the holds add up to more."
    if card["unlisted_s"]:
        yield f"{hours(card['unlisted_s'])} h in which the lists could not be read are charged to nobody."


def _card(card: object) -> str:
    """`0 GPU-1a2b3c4d (H100)`."""
    info: dict[str, object] = dict(card)  # type: ignore[call-overload]
    index = "x" if info["retired_at"] is not None else UNKNOWN if info["index"] is None else str(info["index"])
    name = model(shown(str(info["name"])))
    return f"{index} {short_uuid(shown(str(info['uuid'])))}" + (f" ({name})" if name else "")


def _minutes(seconds: float) -> str:
    return format_duration(round(seconds * 1000))


def _at(iso: str, zone: Optional[tzinfo]) -> str:
    """`2026-03-02 09:30:05`."""
    return _moment(iso, zone, "%Y-%m-%d %H:%M:%S")


def _clock(iso: str, zone: Optional[tzinfo]) -> str:
    return _moment(iso, zone, "%H:%M:%S")


def _moment(iso: str, zone: Optional[tzinfo], form: str) -> str:
    moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=parse_time_ms(iso))
    return moment.astimezone(zone or timezone.utc).strftime(form)
