from hypothesis import given, settings
from hypothesis import strategies as st

from gua.cloud.backoff import LONGEST_S, backoff_s

CHANCES = st.floats(0.0, 1.0)


@settings(deadline=None)
@given(st.integers(1, 10**6), st.floats(0.05, 86_400.0), CHANCES)
def test_it_never_waits_longer_than_five_minutes_nor_not_at_all(failures: int, first_s: float, chance: float) -> None:
    assert 0 < backoff_s(failures, first_s, chance) <= LONGEST_S
    assert backoff_s(failures, first_s, chance) >= min(first_s, LONGEST_S) / 2


def test_it_doubles() -> None:
    assert [backoff_s(failures, 30.0, 0.0) for failures in range(1, 7)] == [30.0, 60.0, 120.0, 240.0, 300.0, 300.0]


def test_chance_spreads_hosts_over_half_of_the_time() -> None:
    assert (backoff_s(3, 30.0, 0.0), backoff_s(3, 30.0, 0.5), backoff_s(3, 30.0, 1.0)) == (120.0, 90.0, 60.0)
