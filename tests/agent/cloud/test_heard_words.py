"""What is said of a board, and when it counts as silent. Pure."""

from __future__ import annotations

import pytest

from gua.cloud.heard import Heard, accepted_words, board_line, is_silent, to_board
from tests.agent.store.ticks import MONDAY

MINUTE_MS = 60_000


def test_no_age_is_negative_in_words() -> None:
    assert accepted_words(None) == "last accepted not known"
    assert accepted_words(None, "2026-03-02T00:00:00Z") == "none accepted since 2026-03-02T00:00:00Z"
    assert accepted_words(40.4) == "last accepted 40 s ago"
    assert accepted_words(-0.2) == "last accepted 0 s ago"
    assert accepted_words(-7200.0) == "last accepted 2 h 00 min ahead of the clock"
    assert board_line(None) == ""


@pytest.mark.parametrize(
    ("accepted_min", "failing_min", "last_tick_min", "interval_s", "silent"),
    [
        (0, None, 15, 30, False),
        (0, None, 16, 30, True),
        (0, 15, 16, 30, True),
        (0, None, 16, 600, False),  # ten intervals are longer
        (0, None, 101, 600, True),
        (None, None, 0, 30, True),
        (None, 0, 15, 30, False),
        (None, 0, 16, 30, True),
        (None, None, None, 30, False),
        (60, None, 0, 30, False),  # no tick since: a pause
        (600, 0, 16, 30, True),  # the clock was ahead when it was taken
    ],
)
def test_silent_is_a_board_that_took_none_of_many_ticks(
    accepted_min: int | None, failing_min: int | None, last_tick_min: int | None, interval_s: int, silent: bool
) -> None:
    def at_ms(minutes: int | None) -> int | None:
        return None if minutes is None else MONDAY + minutes * MINUTE_MS

    told = to_board(Heard("https://board.invalid", "host-1", at_ms(accepted_min), at_ms(failing_min)), MONDAY)
    assert is_silent(told, at_ms(last_tick_min), interval_s * 1000) is silent


def test_a_host_that_was_enrolled_just_now_is_given_time() -> None:
    never = to_board(Heard("https://board.invalid", "host-1"), MONDAY)
    assert not is_silent(never, MONDAY + 15 * MINUTE_MS, 30_000, MONDAY)
    assert is_silent(never, MONDAY + 16 * MINUTE_MS, 30_000, MONDAY)
    noted = to_board(Heard("https://board.invalid", "host-1", none_ms=MONDAY), MONDAY)
    assert not is_silent(noted, MONDAY + 15 * MINUTE_MS, 30_000)
    assert is_silent(noted, MONDAY + 16 * MINUTE_MS, 30_000)
