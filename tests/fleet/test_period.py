"""Whole weeks and months by somebody's clock, whatever the clocks do in between."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from gua.units import parse_time_ms, to_iso
from gua_fleet.period import last_month, last_week

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("now", "since", "until"),
    [
        # a Wednesday; the week before has 168 hours
        ("2026-03-11T12:00:00Z", "2026-03-01T23:00:00Z", "2026-03-08T23:00:00Z"),
        # a Monday, one second after midnight in Berlin
        ("2026-03-08T23:00:01Z", "2026-03-01T23:00:00Z", "2026-03-08T23:00:00Z"),
        # clocks went forward on Sunday the 29th: 167 hours
        ("2026-04-01T12:00:00Z", "2026-03-22T23:00:00Z", "2026-03-29T22:00:00Z"),
        # clocks went back on Sunday 25 October: 169 hours
        ("2026-10-28T12:00:00Z", "2026-10-18T22:00:00Z", "2026-10-25T23:00:00Z"),
    ],
)
def test_last_week_is_monday_to_monday_where_the_reader_is(now: str, since: str, until: str) -> None:
    assert [to_iso(ms) for ms in last_week(parse_time_ms(now), BERLIN)] == [since, until]


@pytest.mark.parametrize(
    ("now", "since", "until"),
    [
        ("2026-01-15T12:00:00Z", "2025-11-30T23:00:00Z", "2025-12-31T23:00:00Z"),
        ("2026-04-30T23:00:00Z", "2026-03-31T22:00:00Z", "2026-04-30T22:00:00Z"),
        ("2026-04-01T12:00:00Z", "2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z"),
    ],
)
def test_last_month_is_the_calendars(now: str, since: str, until: str) -> None:
    assert [to_iso(ms) for ms in last_month(parse_time_ms(now), BERLIN)] == [since, until]
