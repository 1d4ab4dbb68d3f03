"""What `gua-fleet report` asks for, and what it refuses before it asks anybody."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gua.errors import UsageError
from gua.report.window import settle_window
from gua_fleet.cli.report import fleet_window
from tests.fleet.cli.test_commands import _inventory, _run

HOUR_MS = 3_600_000
NOW_MS = 1_772_452_810_123


@given(
    st.integers(1, 40 * 24 * HOUR_MS),
    st.integers(-2 * HOUR_MS, 30 * 24 * HOUR_MS),
    st.integers(0, 3 * HOUR_MS),
    st.integers(0, 900_000),
)
def test_window_is_the_same_on_every_host_whose_clock_is_not_behind(
    length_ms: int, ago_ms: int, ahead_ms: int, shift_ms: int
) -> None:
    now_ms = NOW_MS + shift_ms
    until_ms = now_ms - ago_ms
    since_ms = min(until_ms, now_ms) - length_ms
    asked = fleet_window(since_ms, until_ms, now_ms)
    assert settle_window(*asked, now_ms=now_ms + ahead_ms, raw_since_ms=None).span == asked
    assert asked[0] <= since_ms
    assert min(until_ms, now_ms) - 900_000 < asked[1] <= now_ms


def test_window_that_has_not_begun_is_refused() -> None:
    with pytest.raises(UsageError, match="has not begun: it begins 2026-03-02T12:00:10"):
        fleet_window(NOW_MS, NOW_MS + 1, NOW_MS)


@pytest.mark.parametrize(
    ("output", "words"), [("", "is a directory"), ("nowhere/report.txt", "there is no directory nowhere")]
)
def test_report_output_that_cannot_be_written_is_refused_before_anybody_is_asked(
    tmp_path: Path, output: str, words: str
) -> None:
    asked = tmp_path / "asked"
    hosts = _inventory(tmp_path, {"a": f"open({str(asked)!r}, 'w').close()"})
    done = _run(tmp_path, "report", "--hosts", str(hosts), "-o", output or str(tmp_path))
    assert (done.returncode, done.stdout, asked.exists()) == (2, "", False)
    assert words in done.stderr
