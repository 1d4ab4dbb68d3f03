"""The window that all hosts are asked for alike."""

from __future__ import annotations

import pytest

from gua.errors import UsageError
from gua.units import parse_time_ms, to_iso
from gua_fleet.period import fleet_window

NOW = "2026-03-11T12:07:03Z"


@pytest.mark.parametrize(
    ("since", "until", "asked"),
    [
        # 48 hours at most: as they are, but never beyond now
        ("2026-03-11T11:01:01Z", "2026-03-11T12:00:01Z", ("2026-03-11T11:01:01Z", "2026-03-11T12:00:01Z")),
        ("2026-03-10T11:01:01Z", "2026-03-12T00:00:00Z", ("2026-03-10T11:01:01Z", NOW)),
        # longer: to the edges of the quarters, the last one that is over
        ("2026-03-01T11:01:01Z", "2026-03-09T12:00:01Z", ("2026-03-01T11:00:00Z", "2026-03-09T12:15:00Z")),
        ("2026-03-01T11:01:01Z", "2026-03-12T00:00:00Z", ("2026-03-01T11:00:00Z", "2026-03-11T12:00:00Z")),
    ],
)
def test_window_is_one_that_every_host_can_answer_for(since: str, until: str, asked: tuple[str, str]) -> None:
    window = fleet_window(parse_time_ms(since), parse_time_ms(until), parse_time_ms(NOW))
    assert tuple(map(to_iso, window)) == asked


def test_window_that_has_not_begun_is_refused() -> None:
    with pytest.raises(UsageError, match="the window has not begun: it begins 2026-03-12"):
        fleet_window(parse_time_ms("2026-03-12T00:00:00Z"), parse_time_ms("2026-03-13T00:00:00Z"), parse_time_ms(NOW))
