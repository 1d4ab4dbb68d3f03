from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gua.coverage import SLOT_MS, clip, length_ms, pieces, slot_ceil, slot_floor, split_evenly, subtract

spans = st.tuples(st.integers(-50, 150), st.integers(0, 60)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@pytest.mark.parametrize(
    ("taken", "left"),
    [
        ([], ((0, 30),)),
        ([(40, 70)], ((0, 30),)),
        ([(-30, 0)], ((0, 30),)),
        ([(30, 60)], ((0, 30),)),
        ([(-5, 5)], ((5, 30),)),
        ([(20, 50)], ((0, 20),)),
        ([(10, 20)], ((0, 10), (20, 30))),
        ([(0, 30)], ()),
        ([(-100, 100)], ()),
        ([(2, 4), (6, 8), (6, 7)], ((0, 2), (4, 6), (8, 30))),
        ([(10, 10)], ((0, 30),)),
        ([(2_600_000_000, 2_600_000_030)], ((0, 30),)),
    ],
)
def test_subtract_leaves_what_no_span_covers(taken: list, left: tuple) -> None:
    assert subtract((0, 30), taken) == left


@given(spans, st.lists(spans, max_size=6))
def test_subtract_agrees_with_sets_of_moments(span: tuple[int, int], taken: list[tuple[int, int]]) -> None:
    left = subtract(span, taken)
    covered = {moment for start, end in taken for moment in range(start, end)}
    assert [moment for start, end in left for moment in range(start, end)] == sorted(set(range(*span)) - covered)
    assert all(start < end for start, end in left)


def test_an_empty_span_stays_empty() -> None:
    assert subtract((10, 10), [(0, 5)]) == ()
    assert list(pieces([(10, 10), (20, 5)])) == []


def test_pieces_are_cut_at_slot_edges() -> None:
    assert list(pieces([(SLOT_MS - 10, 2 * SLOT_MS + 5)])) == [
        (0, SLOT_MS - 10, SLOT_MS),
        (1, SLOT_MS, 2 * SLOT_MS),
        (2, 2 * SLOT_MS, 2 * SLOT_MS + 5),
    ]


@given(st.integers(-3 * SLOT_MS, 3 * SLOT_MS), st.integers(0, 3 * SLOT_MS))
def test_pieces_of_a_span_are_the_span(start: int, length: int) -> None:
    cut = list(pieces([(start, start + length)]))
    assert sum(end - begin for _, begin, end in cut) == length
    assert all(slot * SLOT_MS <= begin < end <= (slot + 1) * SLOT_MS for slot, begin, end in cut)


def test_clip_gives_the_common_part_or_nothing() -> None:
    assert clip((0, 30), (10, 20)) == (10, 20)
    assert clip((0, 30), (20, 90)) == (20, 30)
    assert length_ms(clip((0, 30), (30, 90))) == 0
    assert length_ms(clip((50, 60), (0, 30))) == 0


@pytest.mark.parametrize(("ms", "floor", "ceil"), [(0, 0, 0), (1, 0, SLOT_MS), (SLOT_MS, SLOT_MS, SLOT_MS)])
def test_slot_edges_around_a_moment(ms: int, floor: int, ceil: int) -> None:
    assert (slot_floor(ms), slot_ceil(ms)) == (floor, ceil)


@given(st.integers(0, 10**9), st.integers(1, 20), st.integers(0, 10**13))
def test_an_even_split_sums_to_the_whole_and_differs_by_one_at_most(total: int, parts: int, turn: int) -> None:
    split = split_evenly(total, parts, turn)
    assert sum(split) == total
    assert len(split) == parts
    assert max(split) - min(split) <= 1


def test_the_odd_millisecond_takes_turns() -> None:
    assert split_evenly(10, 3, turn=0) == (4, 3, 3)
    assert split_evenly(10, 3, turn=1) == (3, 4, 3)
    assert split_evenly(10, 3, turn=5) == (3, 3, 4)
