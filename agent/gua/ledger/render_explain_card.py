"""What one card did at a moment, as a page. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo
from typing import Optional, Union

from gua.ledger.evidence_words import OBSERVED, at, card_title, clock, gap_text, hold_text, known, minutes, stretch_text
from gua.ledger.explained import CardAnswer, Explained, GapInfo, RolledUp, SeenHolder, StretchInfo, TickInfo
from gua.ledger.page import Page
from gua.ledger.render_holds import hold_hints
from gua.model import State, UtilSource
from gua.report.cells import UNKNOWN, count
from gua.report.notes import rules_text
from gua.report.section import Section, Table
from gua.report.wording import reason_text
from gua.text import shown
from gua.units import parse_time_ms

_UTIL_SOURCES = {
    UtilSource.POINT.value: "one reading of that moment",
    UtilSource.SAMPLES.value: "the mean of the driver's readings since the sample before",
    UtilSource.GPM.value: "the mean by the card's own counters",
}


def card_page(document: Explained, answer: CardAnswer, zone: Optional[tzinfo]) -> Page:
    """The page of `--card`."""
    sections = [_answer_section(answer, zone, parse_time_ms(document["generated_at"])), *_around_section(answer, zone)]
    basis = rules_text([answer["tick"]["rule"]] if answer["tick"] else document["rules"])
    where, when = shown(document["host"]["hostname"]), f"{at(answer['at'], zone)} ({document['tz'] if zone else 'UTC'})"
    return Page(
        title=f"Card {card_title(answer['card'])} of {where} at {when}",
        notes=(OBSERVED,),
        warnings=(),
        sections=(*sections, Section("rule", "", basis=basis)),
    )


def _answer_section(answer: CardAnswer, zone: Optional[tzinfo], made_ms: int) -> Section:
    tick = answer["tick"]
    lines: list[str] = []
    if tick is not None:
        lines += _tick_lines(tick, zone)
        if answer["stretch"] is not None:
            lines += [
                f"Unchanged {stretch_text(answer['stretch'], zone)}.",
                *_horizon(answer, answer["stretch"], made_ms),
            ]
    elif answer["gap"] is not None:
        lines += [f"Not seen: {gap_text(answer['gap'], zone)}.", *_horizon(answer, answer["gap"], made_ms)]
    elif answer["rolled_up"] is not None:
        lines += _rolled_lines(answer["rolled_up"], zone)
    else:
        begins = answer["rollups_begin"]
        left = "there are none of this card" if begins is None else f"they begin {at(begins, zone)}"
        lines.append(f"Nothing is kept of this moment: single samples are gone, and of sums, {left}.")
    if tick is None:
        lines += [f"Known to hold the card then: {hold_text(one, zone)}." for one in answer["holds"]]
    return Section("tick", "What was seen", lines=tuple(lines))


def _horizon(answer: CardAnswer, span: Union[StretchInfo, GapInfo], made_ms: int) -> Iterator[str]:
    """Says where a stretch or a gap may be longer than what was looked at; after made_ms there was nothing yet."""
    since, until = answer["looked"]
    cut_after = span["until"] == until and parse_time_ms(until) <= made_ms
    sides = [side for side, ends in (("before", span["since"] == since), ("after", cut_after)) if ends]
    if sides:
        yield f"It may go on {' and '.join(sides)}: only a day on each side was looked at."


def _tick_lines(tick: TickInfo, zone: Optional[tzinfo]) -> Iterator[str]:
    covers = ", ".join(f"{clock(start, zone)} to {clock(end, zone)}" for start, end in tick["covers"])
    yield f"Sample of {at(tick['at'], zone)}, status {tick['status']}, standing for {covers or 'no time'}."
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
    util = f"utilisation {known(tick['util_pct'], '%')}"
    util += f" (highest {tick['util_max_pct']} %)" if tick["util_max_pct"] is not None else ""
    util += f", {_UTIL_SOURCES[tick['util_source']]}" if tick["util_source"] is not None else ""
    parts = [
        util,
        f"memory used {known(tick['memory_used_mb'], 'MB')}",
        f"held by compute processes {known(tick['held_mb'], 'MB')}",
        f"accounted for by nobody {known(tick['unattributed_mb'], 'MB')}",
        f"temperature {known(tick['temperature_c'], 'degrees')}",
    ]
    return ", ".join([*parts, f"power {UNKNOWN if tick['power_w'] is None else format(tick['power_w'], '.0f')} W"])


def _holder_text(one: SeenHolder) -> str:
    holds = f"held {known(one['memory_mb'], 'MB')}" if one["type"] != "graphics" else "only draws, holds no card"
    text = f"Process {shown(one['process'])} (pid {one['pid']}) {holds}; user {shown(one['user'])}, named by "
    text += one["source_text"]
    uids = [f"owner uid {one['owner_uid']}"] if one["owner_uid"] is not None else []
    uids += [f"login uid {one['login_uid']}"] if one["login_uid"] is not None else []
    hints = [*uids, *hold_hints(one)]
    return f"{text} ({', '.join(hints)})." if hints else f"{text}."


def _rolled_lines(rolled: RolledUp, zone: Optional[tzinfo]) -> Iterator[str]:
    span = f"{at(rolled['since'], zone)} to {clock(rolled['until'], zone)}"
    parts = [f"{state.value} {minutes(rolled['card_s'][state.value])}" for state in State]
    yield f"Single samples of this time are gone. Kept of the quarter-hour {span}: {', '.join(parts)}."
    for holder in rolled["holders"]:
        yield f"Held by {shown(holder['user'])} for {minutes(holder['card_s'])} of it."


def _around_section(answer: CardAnswer, zone: Optional[tzinfo]) -> list[Section]:
    if not answer["around"]:
        return []
    headers = ("at", "status", "state", "util", "used MB", "held MB", "processes")
    day = at(answer["at"], zone)[:10]
    rows = tuple(_around_row(tick, answer["tick"], zone, day) for tick in answer["around"])
    table = Table(headers, "lllrrrl", rows, elastic=(6,), spare=(1, 4, 5))
    return [Section("around", "Samples around it", (table,))]


def _around_row(tick: TickInfo, chosen: Optional[TickInfo], zone: Optional[tzinfo], day: str) -> tuple[str, ...]:
    """One tick. day: that of the moment asked for, which is not repeated."""
    mark = " <" if chosen is not None and tick["at"] == chosen["at"] else ""
    holders = [f"{shown(one['process'])} {one['pid']} ({shown(one['user'])})" for one in tick["holders"] or []]
    return (
        at(tick["at"], zone).removeprefix(f"{day} ") + mark,
        tick["status"],
        tick["state"] if tick["reason"] is None else f"{tick['state']}: {reason_text(tick['reason'])}",
        UNKNOWN if tick["util_pct"] is None else f"{tick['util_pct']} %",
        count(tick["memory_used_mb"]),
        count(tick["held_mb"]),
        "not readable" if tick["holders"] is None else ", ".join(holders) or "none",
    )
