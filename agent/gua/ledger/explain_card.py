"""What one card did at a moment: the tick that covers it, its neighbours, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from gua.coverage import SLOT_MS, Span, clip, length_ms
from gua.errors import UsageError
from gua.ledger.explained import SCHEMA, CardAnswer, Explained, GapInfo, RolledUp, StretchInfo
from gua.ledger.gaps import Background, gaps_of
from gua.ledger.holds import ledger_card, ledger_host, ledger_window, rules_of
from gua.ledger.stretches import Stretches
from gua.ledger.tell import gap_info, hold_info, stretch_info, tick_info
from gua.ledger.which_card import find_device
from gua.report.amounts import states_of
from gua.store.codes import STATES
from gua.store.devices import DeviceRow, other_form_spans
from gua.store.evidence_rows import CardTickRow
from gua.store.ledger import LedgerReader
from gua.store.reader import StoreReader
from gua.units import to_iso

# How far to both sides an unchanged stretch or a gap is followed.
_AROUND_MS = 86_400_000
_NEIGHBOURS = 3


def explain_card(reader: StoreReader, wanted: str, *, at_ms: int, now_ms: int, zone_name: str) -> Explained:
    """The evidence of the card that `wanted` names at `at_ms`.

    Raises UsageError for a card that is not there or not clear, and for a moment still to come.
    """
    if at_ms > now_ms:
        raise UsageError(f"--at {to_iso(at_ms)} is still to come: name a moment that is past")
    device, window = find_device(reader.devices(), wanted), (at_ms - _AROUND_MS, min(at_ms + _AROUND_MS, now_ms + 1))
    return {
        "schema": SCHEMA,
        "generated_at": to_iso(now_ms),
        "host": ledger_host(reader.host()),
        "window": ledger_window(reader, (at_ms, min(at_ms + 1, now_ms + 1))),
        "rules": rules_of(reader, (at_ms, at_ms + 1), None),
        "tz": zone_name,
        "card": _answer(reader, device, at_ms, window, now_ms),
        "user": None,
    }


def _answer(reader: StoreReader, device: DeviceRow, at_ms: int, window: Span, now_ms: int) -> CardAnswer:
    ledger, raw_since_ms = reader.ledger(), reader.raw_since_ms()
    rows = list(reader.card_ticks(device.id, window))
    place = next((n for n, row in enumerate(rows) if _covers(row, at_ms)), None)
    near = _near(rows, at_ms)
    who = ledger.holds_by_id(held.hold for row in near for held in row.holds)
    faults = ledger.faults([row.tick_id for row in near])
    infos = {row.tick_id: tick_info(row, faults.get(row.tick_id), who) for row in near}
    gone = place is None and raw_since_ms is not None and at_ms < raw_since_ms
    begins_ms = ledger.rollup_begins_ms(device.id)
    charged = [row for row in ledger.holds((at_ms, at_ms + 1)) if row.device == device.id]
    return {
        "card": ledger_card(device),
        "at": to_iso(at_ms),
        "looked": [to_iso(window[0]), to_iso(window[1])],
        "tick": None if place is None else infos[rows[place].tick_id],
        "stretch": None if place is None else _stretch(rows, at_ms, window),
        "gap": None if place is not None or gone else _gap(reader, device, at_ms, rows, window, now_ms),
        "rolled_up": _rolled_up(ledger, device.id, at_ms) if gone else None,
        "rollups_begin": None if begins_ms is None else to_iso(begins_ms),
        "around": list(infos.values()),
        "holds": [hold_info(row, sum(row.state_ms)) for row in charged],
    }


def _covers(row: CardTickRow, at_ms: int) -> bool:
    return any(start <= at_ms < end for start, end in row.spans)


def _near(rows: Sequence[CardTickRow], at_ms: int) -> list[CardTickRow]:
    """The ticks next to the moment, the one that covers it among them, in time order."""
    nearest = sorted(rows, key=lambda row: (not _covers(row, at_ms), abs(row.at_ms - at_ms), row.tick_id))
    return sorted(nearest[: 2 * _NEIGHBOURS + 1], key=lambda row: (row.at_ms, row.tick_id))


def _stretch(rows: Sequence[CardTickRow], at_ms: int, window: Span) -> Optional[StretchInfo]:
    stretches = Stretches()
    for row in rows:
        stretches.add(row, _within(row, window))
    found = [one for one in stretches.found if one.since_ms <= at_ms < one.until_ms]
    return stretch_info(found[0]) if found else None


def _within(row: CardTickRow, window: Span) -> tuple[Span, ...]:
    return tuple(part for part in (clip(span, window) for span in row.spans) if length_ms(part))


def _gap(
    reader: StoreReader, device: DeviceRow, at_ms: int, rows: Sequence[CardTickRow], window: Span, now_ms: int
) -> Optional[GapInfo]:
    covered = [span for row in rows for span in row.spans]
    gaps = gaps_of(window, covered, background_of(reader, device, window, now_ms))
    found = [gap for gap in gaps if gap.since_ms <= at_ms < gap.until_ms]
    return gap_info(found[0]) if found else None


def background_of(reader: StoreReader, device: DeviceRow, window: Span, now_ms: int) -> Background:
    """What explains a card's gaps within the window."""
    others = other_form_spans(device, reader.devices(), now_ms)
    return Background(
        known_from_ms=device.first_seen_ms,
        retired_ms=device.retired_at_ms,
        now_ms=now_ms,
        pauses=reader.pauses(window),
        cut=others if device.mig is None else (),
        whole=others if device.mig is not None else (),
        lives=reader.ledger().lives(window),
    )


def _rolled_up(ledger: LedgerReader, device: int, at_ms: int) -> Optional[RolledUp]:
    """The quarter-hour of a moment whose single ticks are gone; None where there is nothing of it either."""
    slot = at_ms // SLOT_MS
    sums = ledger.card_slots(device, slot, slot + 1)
    if not sums:
        return None
    by_state = [sum(one.card_ms for one in sums if one.state is state) for state in STATES]
    return {
        "since": to_iso(slot * SLOT_MS),
        "until": to_iso((slot + 1) * SLOT_MS),
        "card_s": states_of(by_state),
        "samples": sum(one.samples for one in sums),
        "holders": [{"user": user, "card_s": card_ms / 1000} for user, card_ms in ledger.slot_holders(device, slot)],
    }
