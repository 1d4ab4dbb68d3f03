"""How the figure of one user comes about: card by card, hold by hold, and what each share was divided by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Optional

from gua.coverage import SLOT_MS, Span, clip, length_ms, slot_ceil, slot_floor
from gua.errors import UsageError
from gua.ledger.explain_card import background_of
from gua.ledger.explained import SCHEMA, Explained, UserCard
from gua.ledger.gaps import Background, gaps_of
from gua.ledger.holds import History, ledger_card, ledger_host, ledger_window, rules_of, slices
from gua.ledger.shares import Amounts, Sharing, users_at
from gua.ledger.stretches import Stretches
from gua.ledger.tell import figure_of, gap_info, hold_info, sharing_of, stretch_info
from gua.model import USER_UNATTRIBUTED, ProcessType
from gua.report.window import ReportWindow, settle_window
from gua.store.codes import IDLE_HELD, STATES, VERDICT_CODE
from gua.store.credit import CARD, LONG_IDLE, SHARE, SHARED, USER_SAMPLES
from gua.store.devices import DeviceRow
from gua.store.evidence_rows import CardTickRow
from gua.store.ledger import LedgerRow, SlotRow, Stretch
from gua.store.reader import StoreReader
from gua.store.timeline import Timeline
from gua.text import shown
from gua.units import to_iso


@dataclass
class _Card:
    """What is gathered of one card."""

    device: DeviceRow
    background: Background
    sharing: Sharing
    holds: Sequence[LedgerRow]
    rolled: Amounts = field(default_factory=Amounts)
    hold_ms: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    covered: list[Span] = field(default_factory=list)
    stretches: Stretches = field(default_factory=Stretches)
    once_ms: int = 0
    unlisted_ms: int = 0


def explain_user(
    history: History, user: str, *, since_ms: int, until_ms: int, now_ms: int, zone_name: str
) -> Explained:
    """The evidence behind what `gua report --user` shows for the same window, which may widen in the same way.

    Raises UsageError for an empty window and for a user whom this history never named.
    """
    with history() as reader:
        ids = _ids(reader)
        if user not in ids:
            raise UsageError(f"--user {shown(user)}: this history never named such a user; `gua report` lists them")
        raw_since_ms = reader.raw_since_ms()
        window = settle_window(since_ms, until_ms, now_ms=now_ms, raw_since_ms=raw_since_ms)
        report = _of_report(reader, window, ids[user])
        rolled, raw = _split(window, raw_since_ms)
        cards = _cards(reader, user, ids[user], window, rolled, now_ms)
        document = _empty(reader, window, now_ms, zone_name)
    for part in slices(raw):
        with history() as reader:
            for card in cards:
                _gather(reader, card, part, _ids(reader), user)
    answers = [_user_card(card, raw, user) for card in cards]
    total = Amounts()
    for card in cards:
        total.add(_total(card))
    held = [one for one in answers if one["total"]["card_s"] or one["total"]["samples"] or one["holds"]]
    answer = {"user": user, "report": figure_of(report), "total": figure_of(total), "cards": held}
    return {**document, "user": answer}  # type: ignore[typeddict-item]


def _empty(reader: StoreReader, window: ReportWindow, now_ms: int, zone_name: str) -> Explained:
    return {
        "schema": SCHEMA,
        "generated_at": to_iso(now_ms),
        "host": ledger_host(reader.host()),
        "window": ledger_window(reader, window.span),
        "rules": rules_of(reader, window.span, None),
        "tz": zone_name,
        "card": None,
        "user": None,
    }


def _ids(reader: StoreReader) -> dict[str, int]:
    """Ids of users by name."""
    return {row.name: number for number, row in reader.users().items()}


def _of_report(reader: StoreReader, window: ReportWindow, user: int) -> Amounts:
    """The user's figure as the report reckons it: from roll-ups, and raw ticks at the ends."""
    total = Amounts()
    for (one, state), sums in reader.sums(window.slots, window.ragged).users.items():
        if one == user:
            found = Amounts(sums[CARD], sums[SHARE], sums[SHARED], sums[LONG_IDLE], sums[USER_SAMPLES])
            found.state_ms[state] = sums[CARD]
            total.add(found)
    return total


def _split(window: ReportWindow, raw_since_ms: Optional[int]) -> tuple[tuple[int, int], Span]:
    """Slots (first, end) whose single ticks are gone, and the time that single ticks still tell."""
    since_ms, until_ms = window.span
    if raw_since_ms is None or raw_since_ms <= since_ms:
        return (0, 0), window.span
    cut_ms = min(slot_ceil(raw_since_ms), max(since_ms, slot_floor(until_ms)))
    if slot_ceil(raw_since_ms) >= until_ms:  # nothing but roll-ups
        return (since_ms // SLOT_MS, slot_ceil(until_ms) // SLOT_MS), (until_ms, until_ms)
    return (since_ms // SLOT_MS, cut_ms // SLOT_MS), (cut_ms, until_ms)


def _cards(
    reader: StoreReader, user: str, number: int, window: ReportWindow, rolled: tuple[int, int], now_ms: int
) -> list[_Card]:
    """Every card that the user may have held in the window."""
    ledger = reader.ledger()
    holds = [row for row in ledger.holds(window.span) if row.user == user and row.type is not ProcessType.GRAPHICS]
    slots = ledger.user_slots(user, *rolled)
    first, end = window.since_ms // SLOT_MS, slot_ceil(window.until_ms) // SLOT_MS
    devices = {row.device for row in holds} | {row.device for row in ledger.user_slots(user, first, end)}
    return [
        _Card(
            device=device,
            background=background_of(reader, device, window.span, now_ms),
            sharing=Sharing(number, device.id),
            holds=[row for row in holds if row.device == device.id],
            rolled=_amounts(row for row in slots if row.device == device.id),
        )
        for device in reader.devices()
        if device.id in devices
    ]


def _amounts(rows: Iterable[SlotRow]) -> Amounts:
    total = Amounts()
    for row in rows:
        one = Amounts(row.card_ms, row.share_ms, row.shared_ms, row.long_idle_ms, row.samples)
        one.state_ms[STATES.index(row.state)] = row.card_ms
        total.add(one)
    return total


def _gather(reader: StoreReader, card: _Card, part: Span, ids: Mapping[str, int], user: str) -> None:
    """One part of the window's ticks of one card."""
    long = reader.ledger().long_stretches().get(card.device.id)
    lives = Timeline(card.holds)
    for row in reader.card_ticks(card.device.id, part):
        spans = tuple(piece for piece in (clip(span, part) for span in row.spans) if length_ms(piece))
        card.covered += spans
        covered_ms = sum(map(length_ms, spans))
        if row.evidence.holders is None and lives.at(row.tick_id):
            card.unlisted_ms += covered_ms
        users = users_at(row, ids, ids[USER_UNATTRIBUTED])
        if ids[user] in users:
            card.stretches.add(row, spans, counted=part[0] <= row.at_ms < part[1])
            card.sharing.add(row, users, spans, part, long=_is_long(row, long))
            mine = [held.hold for held in row.holds if held.user == user and held.type is not ProcessType.GRAPHICS]
            for hold in mine:
                card.hold_ms[hold] += covered_ms
            card.once_ms += covered_ms * max(0, len(mine) - 1)


def _is_long(row: CardTickRow, long: Optional[Timeline[Stretch]]) -> bool:
    return long is not None and VERDICT_CODE[row.verdict] == IDLE_HELD and bool(long.at(row.tick_id))


def _total(card: _Card) -> Amounts:
    total = Amounts()
    total.add(card.rolled)
    for amounts in card.sharing.by_users().values():
        total.add(amounts)
    return total


def _user_card(card: _Card, raw: Span, user: str) -> UserCard:
    rolled = card.rolled.card_ms > 0 or card.rolled.samples > 0
    gaps = gaps_of(raw, card.covered, card.background) if raw[0] < raw[1] else []
    return {
        "card": ledger_card(card.device),
        "total": figure_of(_total(card)),
        "sharing": [sharing_of(users, amounts) for users, amounts in card.sharing.by_users().items()],
        "rolled_up": figure_of(card.rolled) if rolled else None,
        "counted_once_s": card.once_ms / 1000,
        "unlisted_s": card.unlisted_ms / 1000,
        "holds": [hold_info(row, card.hold_ms[row.id]) for row in card.holds],
        "stretches": [stretch_info(one, user) for one in card.stretches.found],
        "gaps": [gap_info(gap) for gap in gaps],
    }
