"""A card that reads 0 % for a day while a real process that holds it burns CPU."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

import pytest

from gua.daemon.record import read_start_ticks
from gua.doctor.check import Check
from gua.doctor.readings import CpuTime, Zero, Zeroes, check_stuck_reading, read_zeroes
from gua.identity.proc import ProcFs
from gua.store.database import read_stored
from tests.agent.store.opened import SetClock, steady, stored
from tests.agent.store.ticks import BOOT, HOUR, MINUTE, MONDAY, card, holder

PROC = ProcFs(Path("/proc"))
BURN, WAIT = "while True: pass", "import sys; sys.stdin.read()"
# What the real processes of a test do in a second stands for so much of a day.
SCALE = 72_000


@contextlib.contextmanager
def process(code: str) -> Iterator[tuple[int, int]]:
    """Pid and start of one that runs the code; a burning one has used a second of CPU."""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as child:
        try:
            start = read_start_ticks(child.pid)
            assert start is not None
            ends_s = time.monotonic() + 120
            while code == BURN and (PROC.cpu_s(child.pid, start) or 0) < 1:
                assert time.monotonic() < ends_s, "it does not get to run"
                time.sleep(0.01)
            yield child.pid, start
        finally:
            child.kill()


def scaled(pid: int, start: int) -> Optional[float]:
    used_s = PROC.cpu_s(pid, start)
    return None if used_s is None else min(used_s, 1.0) * SCALE


def zeroes_of(path: Path, hours: float) -> Zeroes:
    return read_stored(path, lambda reader: read_zeroes(reader, SetClock(MONDAY + round(hours * HOUR))))


def judge(zeroes: Optional[Zeroes], cpu_s: CpuTime, hours: float = 26, *, blind: bool = False) -> Check:
    return check_stuck_reading(zeroes, BOOT, cpu_s, lambda _: hours * 3600, blind=blind)


def history(folder: Path, pid: int, start: int, *utils: Optional[int], hours: int = 26) -> Path:
    """So many hours in which the process held the card; utils: the last readings, all before them are 0."""
    ticks = steady(hours * 60 - len(utils), card("GPU-a", 0, (holder(pid=pid, start=start),)))
    for util in utils:
        ticks += steady(1, card("GPU-a", util, (holder(pid=pid, start=start),)), start=len(ticks))
    return stored(folder / "gua.db", ticks, interval_ms=MINUTE)


def test_a_card_that_reads_nothing_while_its_holder_burns_cpu_is_told(tmp_path: Path) -> None:
    with process(BURN) as (pid, start):
        zeroes = zeroes_of(history(tmp_path, pid, start), 26)
        check = judge(zeroes, scaled)
    assert (check.status, check.details) == ("warn", {"cards": ["GPU-a"]})
    assert check.summary == (
        f"card 0 (NVIDIA A100, GPU-a) reads 0 % for 26 h 00 min though PID {pid} (python), which holds it, "
        "works with 0.8 cores: the reading may be stuck"
    )


def test_a_holder_that_waits_holds_a_card_that_is_really_idle(tmp_path: Path) -> None:
    with process(WAIT) as (pid, start):
        zeroes = zeroes_of(history(tmp_path, pid, start), 26)
        assert [zero.pid for zero in zeroes.found] == [pid]
        assert judge(zeroes, scaled).status == "ok"


@pytest.mark.parametrize("utils", [(1,), (0, 1, 0), (77, 0), (9,)])
def test_one_reading_above_0_shows_that_readings_come(tmp_path: Path, utils: tuple[int, ...]) -> None:
    assert zeroes_of(history(tmp_path, 7, 9, *utils), 26) == Zeroes()


def test_readings_that_are_missing_are_not_0(tmp_path: Path) -> None:
    assert zeroes_of(history(tmp_path, 7, 9, *[None] * 150), 26) == Zeroes()


@pytest.mark.parametrize(("hours", "found"), [(23, 0), (24, 1)])
def test_a_day_of_them_is_what_it_takes(tmp_path: Path, hours: int, found: int) -> None:
    assert len(zeroes_of(history(tmp_path, 7, 9, hours=hours), hours).found) == found


def test_a_card_that_was_active_for_this_holder_days_ago_gives_readings(tmp_path: Path) -> None:
    held = (holder(pid=7, start=9),)
    ticks = steady(60, card("GPU-a", 80, held)) + steady(60 * 60, card("GPU-a", 0, held), start=60)
    assert zeroes_of(stored(tmp_path / "gua.db", ticks, interval_ms=MINUTE), 61) == Zeroes()


def _zero(key: str = f"{BOOT}:7:9") -> Zero:
    return Zero("card 0", "GPU-a", 7, "python", key, 26 * HOUR, 26 * HOUR)


@pytest.mark.parametrize(
    ("key", "cpu_h", "age_h", "status"),
    [
        (f"{BOOT}:7:9", 13.0, 26.0, "warn"),
        (f"{BOOT}:7:9", 12.9, 26.0, "ok"),
        (f"{BOOT}:7:9", 26.0, 40.0, "ok"),  # it worked before it held the card, perhaps
        (f"{BOOT}:7:9", None, 26.0, "ok"),  # another process has that pid by now
        ("another boot:7:9", 26.0, 26.0, "ok"),
        (f"{BOOT}:7:", 26.0, 26.0, "ok"),
    ],
)
def test_what_counts_as_work(key: str, cpu_h: Optional[float], age_h: float, status: str) -> None:
    used_s = None if cpu_h is None else cpu_h * 3600
    assert judge(Zeroes((_zero(key),)), lambda *_: used_s, age_h).status == status


def test_without_a_history_nothing_is_said() -> None:
    assert judge(None, lambda *_: None).status == "skip"


def test_processes_that_this_user_cannot_see_may_work_or_not() -> None:
    zeroes = Zeroes((_zero(),))
    check = judge(zeroes, lambda *_: None, blind=True)
    assert (check.status, check.details) == ("skip", {"cards": ["GPU-a"]})
    assert judge(Zeroes(), lambda *_: None, blind=True).status == "ok"
    assert judge(zeroes, lambda *_: 26 * 3600.0, blind=True).status == "warn"  # this user's own


class SlowClock(SetClock):
    """Every look at it takes half a second."""

    seconds = 0.0

    def monotonic_s(self) -> float:
        self.seconds += 0.5
        return self.seconds


@pytest.mark.parametrize(("cards", "found", "status"), [(1, 1, "ok"), (3, 1, "skip")])
def test_a_history_that_was_not_looked_at_to_its_end_is_not_said_to_be_well(
    tmp_path: Path, cards: int, found: int, status: str
) -> None:
    held = [card(f"GPU-{number}", 0, (holder(pid=7, start=9),)) for number in range(cards)]
    path = stored(tmp_path / "gua.db", steady(26 * 60, *held), interval_ms=MINUTE)
    zeroes = read_stored(path, lambda reader: read_zeroes(reader, SlowClock(MONDAY + 26 * HOUR)))
    assert (len(zeroes.found), zeroes.whole) == (found, status == "ok")
    assert judge(zeroes, lambda *_: None).status == status


def test_cpu_time_is_of_the_very_process() -> None:
    with process(BURN) as (pid, start):
        assert PROC.cpu_s(pid, start + 1) is None
        assert (PROC.cpu_s(pid, start) or 0) >= 1
    assert PROC.cpu_s(pid, start) is None
