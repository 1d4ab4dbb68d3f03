from gua.clock import SystemClock
from gua.daemon.clocks import ClockWatch
from tests.agent.fakes import FakeClock


def test_time_that_passes_is_neither_a_suspension_nor_a_set_clock() -> None:
    clock = FakeClock()
    watch = ClockWatch(clock)
    clock.sleep_s(86_400)
    assert (watch.suspended_s(), watch.set_by_ms()) == (0.0, 0)


def test_a_suspension_is_told_once_and_is_no_set_clock() -> None:
    clock = FakeClock()
    watch = ClockWatch(clock)
    clock.suspend(3600)
    assert (watch.suspended_s(), watch.set_by_ms()) == (3600.0, 0)
    assert (watch.suspended_s(), watch.set_by_ms()) == (0.0, 0)


def test_a_set_clock_is_told_once_in_both_directions() -> None:
    clock = FakeClock()
    watch = ClockWatch(clock)
    for by_ms in (3_600_000, -7_200_000):
        clock.set(by_ms)
        clock.sleep_s(30)
        assert (watch.suspended_s(), watch.set_by_ms()) == (0.0, by_ms)
        assert watch.set_by_ms() == 0


def test_a_clock_that_is_slowly_put_right_is_not_set() -> None:
    clock = FakeClock()
    watch = ClockWatch(clock)
    for _ in range(100):
        clock.set(15)
        clock.sleep_s(30)
        assert watch.set_by_ms() == 0


def test_this_machine_counts_its_suspensions() -> None:
    clock = SystemClock()
    first = clock.suspended_s()
    assert first > -1.0  # two clocks, read one after the other
    assert abs(clock.suspended_s() - first) < 60
