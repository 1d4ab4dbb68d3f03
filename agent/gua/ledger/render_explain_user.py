"""How the figure of one user comes about, as a page. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import tzinfo
from typing import Optional

from gua.ledger.evidence_words import OBSERVED, at, card_title, gap_text, hold_text, stretch_text
from gua.ledger.explained import Explained, GapInfo, UserAnswer, UserCard, UserFigure
from gua.ledger.page import Page
from gua.ledger.render_holds import window_note
from gua.report.cells import count, hours
from gua.report.notes import rules_text
from gua.report.section import Section, Table
from gua.text import shown
from gua.units import format_duration, parse_time_ms

# More lines than this about one card are read by nobody; the JSON document has all of them.
_STRETCHES_SHOWN = 20


def user_page(document: Explained, answer: UserAnswer, zone: Optional[tzinfo]) -> Page:
    """The page of `--user`."""
    user = shown(answer["user"])
    notes = [window_note(document, zone), OBSERVED]
    begins = document["window"]["history_begins"]
    notes += [f"History begins {at(begins, zone)}."] if begins is not None else []
    raw = document["window"]["raw_begins"]
    if raw is not None and any(card["rolled_up"] for card in answer["cards"]):
        notes.append(
            f"Single samples before {at(raw, zone)} are gone; for that time only sums by quarter-hour are left."
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
    rows = [_figure_row(card_title(card["card"]), card["total"]) for card in answer["cards"]]
    rows.append(_figure_row("all, as in the report", answer["report"]))
    headers = ("card", "GPU-h", "share h", "shared h", "idle-held h", "long h", "samples")
    return Section(
        key="figure",
        title="The figure, card by card",
        tables=(Table(headers, "lrrrrrr", tuple(rows), elastic=(0,), spare=(6,)),),
        basis="GPU-h: whole card time while a process of this user was listed on it. share h: that time divided by the "
        "number of users at each moment. shared h: of GPU-h, time with others.",
    )


def _figure_row(name: str, figure: UserFigure) -> tuple[str, ...]:
    amounts = (figure["card_s"], figure["share_s"], figure["shared_card_s"], figure["idle_held_card_s"])
    return (name, *map(hours, (*amounts, figure["idle_held_long_card_s"])), count(figure["samples"]))


def _card_section(card: UserCard, zone: Optional[tzinfo]) -> Section:
    lines = list(_arithmetic(card))
    lines += [f"Hold: {hold_text(one, zone, ' in this window')}." for one in card["holds"]]
    stretches = sorted(card["stretches"], key=lambda one: -one["card_s"])[:_STRETCHES_SHOWN]
    shown_ones = sorted(stretches, key=lambda one: one["since"])
    lines += [f"Seen {stretch_text(one, zone)}." for one in shown_ones]
    rest = len(card["stretches"]) - len(shown_ones)
    if rest:
        left_s = sum(one["card_s"] for one in card["stretches"]) - sum(one["card_s"] for one in shown_ones)
        lines.append(f"And {rest} shorter stretches, {hours(left_s)} h together; --json has all of them.")
    lines += _gap_lines(card["gaps"], zone)
    if card["late_s"] >= 1:
        late = format_duration(round(card["late_s"]) * 1000)
        lines.append(f"Not seen between samples, less than a second each time: {late} together. It is in no figure.")
    return Section("card", f"Card {card_title(card['card'])}", lines=tuple(lines))


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
