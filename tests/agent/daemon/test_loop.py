import itertools
import logging
from typing import Optional, Union

import pytest

from gua.daemon.loop import run_loop
from gua.daemon.notify import Notifier
from gua.errors import DatabaseUnusable
from gua.model import TickStatus
from tests.agent.fakes import FakeClock, FakeStop, ListWriter, ScriptedSource

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
) -> None:
    run_loop(source, writer, clock, 30_000, FakeStop(clock, seconds), notify or Notifier(None), lambda: no_gpu)


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
    assert told == ["sampling takes longer than the interval: ticks are left out"]


@pytest.mark.parametrize("failure", [DatabaseUnusable("disk full"), ValueError("a defect"), OSError(5, "I/O")])
def test_a_failed_tick_is_lost_counted_and_told_once(failure: Exception, caplog: pytest.LogCaptureFixture) -> None:
    clock, writer = FakeClock(), ListWriter(failures=[failure] * 5)
    with caplog.at_level(logging.INFO):
        run(clock, ScriptedSource(clock, itertools.repeat(OK)), writer, seconds=290)
    assert len(writer.ticks) == 5
    lines = [record.message for record in caplog.records]
    assert [line for line in lines if line.startswith("tick lost")] == [lines[0]]
    assert type(failure).__name__ in lines[0]
    assert lines[1:] == ["recovered: 5 ticks were lost"]


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
