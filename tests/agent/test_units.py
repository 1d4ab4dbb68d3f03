"""Durations, times and sizes."""

from __future__ import annotations

from datetime import timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gua.errors import UsageError
from gua.units import bytes_to_mb, format_duration, parse_duration_ms, parse_time_ms, to_iso

MINUTE_MS = 60_000


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("200ms", 200),
        ("30s", 30_000),
        ("1m", MINUTE_MS),
        ("1h", 60 * MINUTE_MS),
        ("7d", 7 * 24 * 60 * MINUTE_MS),
        ("2w", 14 * 24 * 60 * MINUTE_MS),
        ("1.5h", 90 * MINUTE_MS),
        ("1h30m", 90 * MINUTE_MS),
        (" 30S ", 30_000),
    ],
)
def test_parse_duration_accepts_what_the_help_shows(text: str, ms: int) -> None:
    assert parse_duration_ms(text) == ms


@pytest.mark.parametrize("text", ["", "30", "s", "-30s", "0s", "1y", "30 s x", "1h 30", "nan", "1e3s", "--1s"])
def test_parse_duration_refuses_anything_else_and_shows_the_form(text: str) -> None:
    with pytest.raises(UsageError, match=r"30s"):
        parse_duration_ms(text)


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 s"),
        (59_400, "59 s"),
        (12 * MINUTE_MS, "12 min"),
        (185 * MINUTE_MS, "3 h 05 min"),
        (52 * 60 * MINUTE_MS, "2 d 4 h"),
    ],
)
def test_format_duration_shows_two_units_at_most(ms: int, text: str) -> None:
    assert format_duration(ms) == text


@given(st.integers(min_value=-62_000_000_000_000, max_value=250_000_000_000_000))
def test_a_time_survives_being_written_and_read(ms: int) -> None:
    assert parse_time_ms(to_iso(ms)) == ms


def test_a_time_without_offset_is_read_in_the_given_zone() -> None:
    assert parse_time_ms("2026-03-01T02:00", timezone(timedelta(hours=2))) == parse_time_ms("2026-03-01T00:00Z")


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "2026-01-01T25:00"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a time"):
        parse_time_ms(text)


def test_memory_is_shown_in_whole_mib_as_nvidia_smi_does() -> None:
    assert [bytes_to_mb(size) for size in (0, (1 << 20) - 1, 1 << 20, 85_520_809_984)] == [0, 0, 1, 81_559]


@pytest.mark.parametrize("text", ["9" * 400 + "d", "999999999999999999d", "1000000001d"])
def test_parse_duration_beyond_what_can_be_stored_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="longer than"):
        parse_duration_ms(text)
