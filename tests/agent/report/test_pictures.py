"""Drawings: their parts fill what they stand for."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gua.report.pictures import KINDS, heat_map, split_bar, timeline_bar
from tests.documents import states

amounts = st.lists(st.integers(0, 900).map(float), min_size=5, max_size=5)


@given(amounts)
def test_split_bar_is_filled_to_its_end(seconds: list[float]) -> None:
    drawing = split_bar(dict(zip(KINDS, seconds)), 200)
    widths = [float(width) for width in re.findall(r'width="([\d.]+)"', drawing)]
    assert sum(widths) == pytest.approx(200 if sum(seconds) else 0, abs=0.05)
    assert len(widths) == sum(second > 0 for second in seconds)


@given(st.lists(amounts, min_size=1, max_size=30))
def test_timeline_fills_every_step_in_which_anything_was_expected(steps: list[list[float]]) -> None:
    filled = [0] * len(steps)
    for first, _, width, height in re.findall(r"M(\d+) (\d+)h(\d+)v(\d+)h-\d+z", timeline_bar(steps, 900)):
        for number in range(int(first), int(first) + int(width)):
            filled[number] += int(height)
    assert filled == [100 if sum(step) else 0 for step in steps]


def test_timeline_of_a_quiet_card_is_one_box() -> None:
    drawing = timeline_bar([[0.0, 900.0, 0.0, 0.0, 0.0]] * 200, 900)
    assert drawing.count("<path") == 1
    assert 'class="idle-held" d="M0 0h200v100h-200z"' in drawing


def test_heat_map_has_every_hour_and_tells_nothing_known_from_none() -> None:
    hours = [{"weekday": 6, "hour": 23, "card_s": states(held=1)}, {"weekday": 0, "hour": 0, "card_s": states(1)}]
    drawing = heat_map(hours, "idle-held")
    assert drawing.count("<title>") == 7 * 24
    assert drawing.count("nothing known") == 7 * 24 - 2
    assert 'fill-opacity="1.00" x="398" y="111" width="15" height="15"><title>Sun 23:00: 100 %' in drawing
    assert 'fill-opacity="0.00" x="30" y="15" width="15" height="15"><title>Mon 00:00: 0 %' in drawing
