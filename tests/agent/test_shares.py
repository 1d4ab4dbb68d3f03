from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gua.model import State
from gua.shares import Share, format_share, share

amounts = st.integers(0, 10_000)


def states(active: float = 0, held: float = 0, idle: float = 0, unknown: float = 0) -> dict[str, float]:
    return {"active": active, "idle-held": held, "truly-idle": idle, "unknown": unknown}


def test_a_share_is_of_the_known_time_and_its_bounds_take_in_all_expected_time() -> None:
    found = share(states(active=30, held=50, idle=20, unknown=10), State.ACTIVE, expected_card_s=200)
    assert found == Share(point=0.3, low=30 / 200, high=(30 + 10 + 90) / 200)


def test_without_known_time_there_is_no_point_but_bounds() -> None:
    assert share(states(unknown=10), State.ACTIVE, 10) == Share(None, 0.0, 1.0)


def test_without_expected_time_there_is_nothing() -> None:
    assert share(states(), State.ACTIVE, 0) == Share(None, None, None)


def test_the_share_of_unknown_is_of_the_expected_time() -> None:
    assert share(states(active=50, unknown=25), State.UNKNOWN, 100) == Share(0.25, 0.25, 0.5)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Share(0.314, 0.29, 0.38), "31 % (29-38 %)"),
        (Share(0.314, 0.2951, 0.3749), "31 % (29-38 %)"),
        (Share(0.5, 0.5, 0.5), "50 %"),
        (Share(0.0, 0.0, 0.0), "0 %"),
        (Share(0.0, 0.0, 0.001), "0 % (0-1 %)"),
        (Share(0.003, 0.003, 0.003), "<1 %"),
        (Share(0.998, 0.99, 0.999), ">99 % (99-100 %)"),
        (Share(1.0, 1.0, 1.0), "100 %"),
        (Share(None, 0.0, 1.0), "-"),
        (Share(None, None, None), "-"),
    ],
)
def test_shares_are_printed_with_bounds_rounded_outward(value: Share, text: str) -> None:
    assert format_share(value) == text


def test_float_dust_prints_no_bounds() -> None:
    amounts_s = states(active=0.1 + 0.2, held=0.7)
    assert format_share(share(amounts_s, State.ACTIVE, 1.0)) == "30 %"


@given(amounts, amounts, amounts, amounts, amounts, st.sampled_from(State))
def test_the_point_lies_within_the_bounds(a: int, h: int, i: int, u: int, unseen: int, state: State) -> None:
    found = share(states(a, h, i, u), state, a + h + i + u + unseen)
    if found.point is not None:
        assert found.low is not None
        assert found.high is not None
        assert 0 <= found.low <= found.point + 1e-12
        assert found.point <= found.high + 1e-12 <= 1 + 2e-12


@given(amounts, amounts, amounts, amounts)
def test_known_shares_sum_to_one(a: int, h: int, i: int, u: int) -> None:
    points = [share(states(a, h, i, u), state, a + h + i + u).point for state in list(State)[:3]]
    assert points == [None] * 3 or sum(p for p in points if p is not None) == pytest.approx(1)
