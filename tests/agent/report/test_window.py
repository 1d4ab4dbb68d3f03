from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gua.coverage import SLOT_MS
from gua.errors import UsageError
from gua.report.window import RAGGED_UP_TO_MS, settle_window
from tests.agent.store.ticks import HOUR, MINUTE, MONDAY

LATER = MONDAY + 1_000 * HOUR
LONG = RAGGED_UP_TO_MS


def test_a_short_window_is_answered_as_asked_with_raw_ticks_at_its_ends() -> None:
    window = settle_window(MONDAY + 7 * MINUTE, MONDAY + HOUR + 1, now_ms=LATER, raw_since_ms=None)
    assert window.span == (MONDAY + 7 * MINUTE, MONDAY + HOUR + 1)
    assert window.slots == (MONDAY // SLOT_MS + 1, MONDAY // SLOT_MS + 4)
    assert window.ragged == ((MONDAY + 7 * MINUTE, MONDAY + 15 * MINUTE), (MONDAY + HOUR, MONDAY + HOUR + 1))


def test_a_window_within_one_slot_is_raw_alone() -> None:
    window = settle_window(MONDAY + 1, MONDAY + 2, now_ms=LATER, raw_since_ms=None)
    assert window.slots[0] >= window.slots[1]
    assert window.ragged == ((MONDAY + 1, MONDAY + 2),)


def test_a_window_on_slot_edges_needs_no_raw_tick() -> None:
    assert settle_window(MONDAY, MONDAY + HOUR, now_ms=LATER, raw_since_ms=None).ragged == ()


def test_a_long_window_widens_to_slot_edges() -> None:
    window = settle_window(MONDAY + 1, MONDAY + LONG + 2, now_ms=LATER, raw_since_ms=None)
    assert window.span == (MONDAY, MONDAY + LONG + 15 * MINUTE)
    assert window.ragged == ()


def test_a_long_window_that_ends_now_is_not_widened_into_the_future() -> None:
    now_ms = MONDAY + LONG + 7 * MINUTE
    window = settle_window(MONDAY - 1, now_ms, now_ms=now_ms, raw_since_ms=None)
    assert window.span == (MONDAY - 15 * MINUTE, now_ms)
    assert window.ragged == ((MONDAY + LONG, now_ms),)


def test_a_window_beyond_the_raw_ticks_widens_where_they_are_gone() -> None:
    gone = MONDAY + 30 * MINUTE
    window = settle_window(MONDAY + 1, MONDAY + HOUR + 1, now_ms=LATER, raw_since_ms=gone)
    assert window.span == (MONDAY, MONDAY + HOUR + 1)


def test_what_is_still_to_come_is_not_part_of_a_window() -> None:
    now_ms = MONDAY + 20 * MINUTE
    assert settle_window(MONDAY, MONDAY + HOUR, now_ms=now_ms, raw_since_ms=None).until_ms == now_ms


@pytest.mark.parametrize("until_ms", [MONDAY, MONDAY - 1])
def test_an_empty_window_is_refused(until_ms: int) -> None:
    with pytest.raises(UsageError, match="window is empty"):
        settle_window(MONDAY, until_ms, now_ms=LATER, raw_since_ms=None)


def test_a_window_wholly_in_the_future_is_refused() -> None:
    with pytest.raises(UsageError, match="window is empty"):
        settle_window(MONDAY + HOUR, MONDAY + 2 * HOUR, now_ms=MONDAY, raw_since_ms=None)


moments = st.integers(0, 6 * 24 * HOUR)


@given(moments, moments, moments, st.none() | moments)
def test_slots_and_ragged_ends_make_the_window_without_gap_or_overlap(
    since: int, until: int, now: int, raw_since: int | None
) -> None:
    if since >= min(until, now):
        return
    window = settle_window(since, until, now_ms=now, raw_since_ms=raw_since)
    assert window.since_ms <= since
    assert min(until, now) <= window.until_ms <= now
    slots = [(slot * SLOT_MS, (slot + 1) * SLOT_MS) for slot in range(*window.slots)]
    parts = sorted([*slots, *window.ragged])
    assert parts[0][0] == window.since_ms
    assert parts[-1][1] == window.until_ms
    assert all(before[1] == after[0] for before, after in zip(parts, parts[1:]))
