"""Chance by hash."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gua.demo.chance import between, fraction, pick


def test_fraction_never_changes_between_versions() -> None:
    assert round(fraction("chance", "gpu01", 0), 6) == 0.225288  # printf chance/gpu01/0 | b2sum -l 64, over 2**64


@given(st.lists(st.integers() | st.text(), max_size=4))
def test_fraction_is_from_zero_to_below_one(where: list[object]) -> None:
    assert 0 <= fraction(*where) < 1


def test_fraction_is_spread_evenly() -> None:
    tenths = [int(fraction("spread", number) * 10) for number in range(10_000)]
    assert all(850 < tenths.count(tenth) < 1150 for tenth in range(10))


def test_pick_and_between_stay_within_what_they_were_given() -> None:
    assert {pick("abc", number) for number in range(100)} == set("abc")
    assert all(5 <= between(5, 6, number) <= 6 for number in range(100))
