import itertools
import logging
from typing import Optional, Union

import pytest

from gua.daemon.loop import run_loop
from gua.daemon.notify import Notifier
from gua.errors import DatabaseUnusable
from gua.model import Tick, TickStatus
from tests.agent.fakes import FakeBus, FakeClock, FakeGate, FakeStop, ListWriter, ScriptedSource

OK, ERROR = TickStatus.OK, TickStatus.ERROR


class Recorder(Notifier):
    """A notifier that keeps what it was told."""

    def __init__(self, clock: FakeClock, watchdog_s: float) -> None:
        super().__init__(None, watchdog_s)
        self._clock = clock
        self.told: list[tuple[float, str]] = []

    def alive(self, status: str) -> None:
        self.told.append((self._clock.elapsed_s, status))


def run(
    clock: FakeClock,
    source: ScriptedSource,
    writer: ListWriter,
    *,
    seconds: float,
    notify: Optional[Notifier] = None,
    no_gpu: bool = False,
    gate: Optional[FakeGate] = None,
) -> None:
    stop = FakeStop(clock, seconds)
    run_loop(
        source, writer, clock, 30_000, stop, notify or Notifier(None), gate or FakeGate(clock), FakeBus(no_gpu=no_gpu)
    )


def test_ticks_come_every_interval_without_drift() -> None:
    clock, writer = FakeClock(), ListWriter()
    source = ScriptedSource(clock, itertools.repeat(OK), work_s=7.0)
    run(clock, source, writer, seconds=3600)
    assert source.begun_s == [30.0 * n for n in range(120)]
    assert {tick.cover_ms for tick in writer.ticks} == {30_000}
    assert writer.ticks[1].ts_ms - writer.ticks[0].ts_ms == 30_000


def test_ticks_missed_in_a_long_sample_are_told_and_not_made_up_for(caplog: pytest.LogCaptureFixture) -> None:
    clock, writer = FakeClock(), ListWriter()
    source = ScriptedSource(clock, itertools.repeat(OK), work_s=100.0)
    run(clock, source, writer, seconds=500)
    assert source.begun_s == [0.0, 120.0, 240.0, 360.0, 480.0]
    told = [record.message for record in caplog.records]
    assert told == ["a tick took longer than the interval (100.0 s): 3 ticks left out"]


def test_after_standing_still_it_ticks_at_once_and_once_with_the_time_of_now(caplog: pytest.LogCaptureFixture) -> None:
    clock, writer = FakeClock(), ListWriter()
    source = ScriptedSource(clock, itertools.repeat(OK))

    class Stopped(FakeStop):
        """The process is stopped for ten minutes in the middle of its first wait, as by SIGSTOP."""

        def wait(self, seconds: float) -> bool:
            if clock.elapsed_s < 600:
                seconds = 605.0
            return super().wait(seconds)

    run_loop(source, writer, clock, 30_000, Stopped(clock, 700), Notifier(None), FakeGate(clock), FakeBus())
    assert source.begun_s == [0.0, 605.0, 630.0, 660.0, 690.0]
    assert [tick.ts_ms - writer.ticks[0].ts_ms for tick in writer.ticks] == [0, 605_000, 630_000, 660_000, 690_000]
    assert [record.message for record in caplog.records] == ["the daemon did not run (575.0 s): 19 ticks left out"]


def test_a_pause_lets_go_of_the_driver_and_is_kept_in_the_store(caplog: pytest.LogCaptureFixture) -> None:
    clock, writer = FakeClock(), ListWriter()
    source = ScriptedSource(clock, itertools.repeat(OK))
    gate = FakeGate(clock, (100.0, 1000.0))
    with caplog.at_level(logging.INFO):
        run(clock, source, writer, seconds=500, gate=gate)
        assert (gate.held, source.closed) == (False, True)
        run(clock, source, writer, seconds=1090, gate=gate)
    assert source.begun_s[:4] == [0.0, 30.0, 60.0, 90.0]
    assert 1000.0 <= source.begun_s[4] < 1001.0
    assert len(source.begun_s) == 4 + 3
    kinds = [kind for kind, _ in writer.pauses]
    assert kinds == ["end", "begin", "begin", "end"]  # each daemon first ends, or begins again, what was left
    assert 100_000 <= writer.pauses[1][1] - writer.ticks[0].ts_ms < 101_000
    lines = [record.message for record in caplog.records]
    paused = "paused until `gua resume`, asked for by alice: the driver is let go of"
    assert lines == [paused, paused, "the pause is over: sampling goes on"]


def test_the_watchdog_is_fed_in_a_pause_without_end() -> None:
    clock = FakeClock()
    notify = Recorder(clock, watchdog_s=10.0)
    source = ScriptedSource(clock, [])  # it must not even try
    run(clock, source, ListWriter(), seconds=3600, notify=notify, gate=FakeGate(clock, (0.0, 1e9)))
    times = [at_s for at_s, _ in notify.told]
    assert max(later - earlier for earlier, later in zip(times, times[1:])) <= 5.0
    assert notify.told[-1][1] == "paused until `gua resume`, asked for by alice"


def test_a_pause_that_cannot_be_stored_is_one_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()

    class Full(ListWriter):
        def begin_pause(self, now_ms: int, until_ms: Optional[int]) -> None:
            if clock.elapsed_s < 60:
                raise DatabaseUnusable("disk full")
            super().begin_pause(now_ms, until_ms)

    writer = Full()
    run(clock, ScriptedSource(clock, []), writer, seconds=300, gate=FakeGate(clock, (0.0, 1e9)))
    assert [kind for kind, _ in writer.pauses] == ["begin"]
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_a_driver_that_does_not_let_go_keeps_the_lock(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    gate = FakeGate(clock, (10.0, 1e9))
    source = ScriptedSource(clock, itertools.repeat(OK))
    source.lets_go = False
    run(clock, source, ListWriter(), seconds=100, gate=gate)
    assert gate.held
    source.lets_go = True
    run(clock, source, ListWriter(), seconds=200, gate=gate)
    assert not gate.held


@pytest.mark.parametrize("failure", [DatabaseUnusable("disk full"), ValueError("a defect"), OSError(5, "I/O")])
def test_a_failed_tick_is_lost_counted_and_told_once(failure: Exception, caplog: pytest.LogCaptureFixture) -> None:
    clock, writer = FakeClock(), ListWriter(failures=[failure] * 5)
    with caplog.at_level(logging.INFO):
        run(clock, ScriptedSource(clock, itertools.repeat(OK)), writer, seconds=290)
    assert len(writer.ticks) == 5
    lines = [record.message for record in caplog.records]
    assert [line for line in lines if line.startswith("tick lost")] == [lines[0]]
    assert type(failure).__name__ in lines[0]
    assert lines[1:] == ["recovered: 5 ticks lost"]


def test_a_source_that_raises_costs_that_tick_only() -> None:
    clock, writer = FakeClock(), ListWriter()
    script: list[Union[TickStatus, Exception]] = [OK, RuntimeError("x"), OK]
    run(clock, ScriptedSource(clock, script), writer, seconds=75)
    assert [tick.status for tick in writer.ticks] == [OK, OK]


def test_a_driver_that_comes_late_is_picked_up() -> None:
    clock, writer = FakeClock(), ListWriter()
    run(clock, ScriptedSource(clock, [ERROR, ERROR, OK]), writer, seconds=75)
    assert [tick.status for tick in writer.ticks] == [ERROR, ERROR, OK]


def test_a_host_without_gpu_says_so_once_and_writes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    clock, writer = FakeClock(), ListWriter()
    with caplog.at_level(logging.INFO):
        run(clock, ScriptedSource(clock, itertools.repeat(ERROR)), writer, seconds=290, no_gpu=True)
    assert writer.ticks == []
    assert [record.message for record in caplog.records] == ["no NVIDIA device on the PCI bus: waiting for one"]


def test_the_watchdog_is_fed_by_the_loop_also_in_long_waits() -> None:
    clock = FakeClock()
    notify = Recorder(clock, watchdog_s=10.0)
    run(clock, ScriptedSource(clock, itertools.repeat(OK)), ListWriter(), seconds=120, notify=notify)
    times = [at_s for at_s, _ in notify.told]
    assert max(later - earlier for earlier, later in zip(times, times[1:])) <= 5.0
    assert notify.told[0][1] == "last tick ok, 0 cards"


def test_a_lost_tick_still_feeds_the_watchdog() -> None:
    clock = FakeClock()
    notify = Recorder(clock, watchdog_s=60.0)
    run(clock, ScriptedSource(clock, [OSError("x")] * 3), ListWriter(), seconds=75, notify=notify)
    assert {status for _, status in notify.told} == {"the last tick was lost"}


def test_a_suspended_machine_ticks_at_once_when_it_wakes_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    clock, writer = FakeClock(), ListWriter()
    source = ScriptedSource(clock, itertools.repeat(OK))

    class Sleepy(FakeStop):
        """The lid is closed for an hour in the middle of the second wait."""

        def wait(self, seconds: float) -> bool:
            if clock.elapsed_s >= 40 and not clock.asleep_s:
                clock.suspend(3600)
            return super().wait(seconds)

    with caplog.at_level(logging.INFO):
        run_loop(source, writer, clock, 30_000, Sleepy(clock, 110), Notifier(None), FakeGate(clock), FakeBus())
    assert source.begun_s == [0.0, 30.0, 41.0, 71.0, 101.0]
    assert [tick.ts_ms - writer.ticks[0].ts_ms for tick in writer.ticks[:3]] == [0, 30_000, 3_641_000]
    assert [record.message for record in caplog.records] == [
        "the machine was suspended for 1 h 00 min: that time is not observed"
    ]


def test_a_machine_suspended_in_a_pause_takes_one_tick_after_it(caplog: pytest.LogCaptureFixture) -> None:
    clock, writer = FakeClock(), ListWriter()
    source = ScriptedSource(clock, itertools.repeat(OK))

    class Sleepy(FakeStop):
        def wait(self, seconds: float) -> bool:
            if clock.elapsed_s >= 50 and not clock.asleep_s:
                clock.suspend(3600)
            return super().wait(seconds)

    gate = FakeGate(clock, (10.0, 100.0))
    with caplog.at_level(logging.INFO):
        run_loop(source, writer, clock, 30_000, Sleepy(clock, 140), Notifier(None), gate, FakeBus())
    assert source.begun_s == [0.0, 100.0, 130.0]
    assert [record.message for record in caplog.records][1:] == [
        "the pause is over: sampling goes on",
        "the machine was suspended for 1 h 00 min: that time is not observed",
    ]


@pytest.mark.parametrize(("by_ms", "way"), [(30 * 86_400_000, "ahead by 30 d 0 h"), (-3_600_000, "back by 1 h 00 min")])
def test_a_set_clock_changes_no_interval_and_is_told_once(
    by_ms: int, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    clock, writer = FakeClock(), ListWriter()

    class Setting(ScriptedSource):
        def collect(self, **asked: object) -> Tick:
            if len(self.begun_s) == 2:
                clock.set(by_ms)
            return super().collect(**asked)  # type: ignore[arg-type]

    source = Setting(clock, itertools.repeat(OK))
    run(clock, source, writer, seconds=200)
    assert source.begun_s == [30.0 * n for n in range(7)]
    assert [record.message for record in caplog.records] == [f"the clock was set {way}: ticks go on at their intervals"]


class Asked:
    """Reloads asked for at these seconds of a fake clock, each to another interval."""

    def __init__(self, clock: FakeClock, *orders: tuple[float, int]) -> None:
        self._clock, self._orders = clock, list(orders)
        self.taken_s: list[float] = []

    @property
    def requested(self) -> bool:
        return bool(self._orders) and self._clock.elapsed_s >= self._orders[0][0]

    def take(self) -> int:
        self.taken_s.append(self._clock.elapsed_s)
        return self._orders.pop(0)[1]


def test_another_interval_costs_no_tick_and_no_time() -> None:
    clock, writer = FakeClock(), ListWriter()
    source = ScriptedSource(clock, itertools.repeat(OK))
    reload = Asked(clock, (35.0, 10_000), (55.0, 30_000), (56.0, 30_000))
    stop, gate = FakeStop(clock, 130), FakeGate(clock)
    run_loop(source, writer, clock, 30_000, stop, Notifier(None), gate, FakeBus(), reload)
    # Due at 60, then every 10 s from 30 on: 40, 50; then 30 s again, but what was due at 60 comes at 60
    assert source.begun_s == [0.0, 30.0, 40.0, 50.0, 60.0, 90.0, 120.0]
    assert [tick.cover_ms for tick in writer.ticks] == [30_000, 30_000, 10_000, 10_000, 30_000, 30_000, 30_000]
    assert reload.taken_s == [35.0, 55.0, 56.0]


def test_settings_are_taken_in_a_pause_too() -> None:
    clock = FakeClock()
    reload = Asked(clock, (50.0, 10_000))
    gate = FakeGate(clock, (0.0, 100.0))
    source = ScriptedSource(clock, itertools.repeat(OK))
    run_loop(source, ListWriter(), clock, 30_000, FakeStop(clock, 115), Notifier(None), gate, FakeBus(), reload)
    assert reload.taken_s == [50.0]
    assert source.begun_s == [100.0, 110.0]
