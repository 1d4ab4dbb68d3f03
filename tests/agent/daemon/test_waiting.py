import errno
import logging
from pathlib import Path

import pytest

from gua.daemon.notify import Notifier
from gua.daemon.waiting import Waiting
from gua.errors import DatabaseUnusable
from gua.filesystem import lacks_room
from tests.agent.fakes import FakeClock, FakeStop

FULL = DatabaseUnusable("cannot write gua.db: database or disk is full")
OTHER = DatabaseUnusable("gua.db was written by a newer gua")


class Manager(Notifier):
    """A service manager that wants to hear of us at least every ten seconds."""

    def __init__(self) -> None:
        super().__init__("nowhere", watchdog_s=10.0)
        self.told: list[str] = []

    def _send(self, message: str) -> None:
        self.told.append(message)


def test_under_a_service_manager_it_waits_for_room_says_so_once_and_counts_what_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock, manager = FakeClock(), Manager()
    waiting = Waiting(tmp_path / "gua.db", clock, FakeStop(clock, 3600), manager)
    with caplog.at_level(logging.INFO):
        for _ in range(4):
            waiting.wait(FULL)
        waiting.over(30_000)
    assert clock.elapsed_s == pytest.approx(60)
    assert [record.message for record in caplog.records] == [
        f"nothing is sampled, trying again every 15 s: {FULL}",
        "recovered: 3 ticks lost",
    ]
    assert manager.told[0] == "READY=1"
    alive = [line for line in manager.told if line.startswith("WATCHDOG=1")]
    assert alive[0] == f"WATCHDOG=1\nSTATUS=waiting for the database: {FULL}"
    assert len(alive) >= 60 / (10 / 3)


def test_who_starts_it_by_hand_sees_at_once_why_it_cannot(tmp_path: Path) -> None:
    clock = FakeClock()
    waiting = Waiting(tmp_path / "gua.db", clock, FakeStop(clock, 3600), Notifier(None))
    with pytest.raises(DatabaseUnusable, match="disk is full"):
        waiting.wait(FULL)


def test_what_no_waiting_cures_is_told_before_the_first_tick_and_waited_for_after_it(tmp_path: Path) -> None:
    clock = FakeClock()
    waiting = Waiting(tmp_path / "gua.db", clock, FakeStop(clock, 3600), Manager())
    with pytest.raises(DatabaseUnusable, match="newer gua"):
        waiting.wait(OTHER)
    waiting.over(30_000)
    waiting.wait(OTHER)
    assert clock.elapsed_s == pytest.approx(15)


def test_a_stop_ends_the_waiting(tmp_path: Path) -> None:
    clock = FakeClock()
    waiting = Waiting(tmp_path / "gua.db", clock, FakeStop(clock, 5), Manager())
    waiting.wait(FULL)
    assert clock.elapsed_s < 10
    waiting.wait(OTHER)  # raised by what the stop interrupted


@pytest.mark.parametrize(
    ("cause", "lacks"),
    [(OSError(errno.ENOSPC, "x"), True), (OSError(errno.EDQUOT, "x"), True), (OSError(errno.EACCES, "x"), False)],
)
def test_what_lacks_room_says_so_or_its_cause_does(tmp_path: Path, cause: OSError, lacks: bool) -> None:
    error = DatabaseUnusable("cannot write gua.db")
    error.__cause__ = cause
    assert lacks_room(tmp_path, error) is lacks
    assert lacks_room(tmp_path / "missing", error) is lacks
