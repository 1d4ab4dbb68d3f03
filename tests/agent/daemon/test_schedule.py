import pytest
from hypothesis import given
from hypothesis import strategies as st

from gua.daemon.schedule import Schedule


def test_deadlines_stay_on_the_grid_however_long_the_work_took() -> None:
    schedule = Schedule(100.0, 30.0)
    assert [schedule.advance(now_s) for now_s in (100.4, 130.9, 160.0)] == [130.0, 160.0, 190.0]
    assert schedule.skipped == 0


def test_deadlines_that_passed_are_skipped_and_never_caught_up_on() -> None:
    schedule = Schedule(0.0, 10.0)
    assert schedule.advance(37.0) == 40.0
    assert schedule.skipped == 3
    assert schedule.advance(41.0) == 50.0


def test_a_wait_that_ends_a_hair_early_does_not_give_the_deadline_again() -> None:
    schedule = Schedule(0.0, 10.0)
    assert schedule.advance(0.5) == 10.0
    assert schedule.advance(9.9999) == 20.0


@given(st.lists(st.floats(0.0, 1000.0), min_size=1, max_size=50), st.sampled_from([0.2, 1.0, 30.0]))
def test_deadlines_only_grow_and_lie_ahead_by_at_most_one_interval_of_idle(steps: list[float], interval: float) -> None:
    schedule, now_s, before = Schedule(50.0, interval), 50.0, 50.0
    for step in steps:
        now_s = max(now_s, before) + step
        deadline = schedule.advance(now_s)
        assert deadline > before
        assert now_s - 1e-6 <= deadline <= now_s + interval + 1e-6
        before = deadline


@given(st.floats(0, 1e6), st.floats(0.1, 1e5), st.floats(0.1, 1e5), st.floats(0, 1))
def test_another_interval_makes_no_tick_later_than_it_was_due_and_none_earlier_than_now(
    start_s: float, interval_s: float, other_s: float, part: float
) -> None:
    schedule = Schedule(start_s, interval_s)
    due_s = schedule.advance(start_s)
    now_s = start_s + part * (due_s - start_s)
    changed = schedule.changed(now_s, other_s)
    assert min(now_s, due_s) <= changed.deadline_s <= due_s
    following_s = changed.deadline_s
    assert changed.advance(following_s) == pytest.approx(following_s + other_s)
