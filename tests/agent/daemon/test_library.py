"""An upgrade beneath a running daemon: it says so itself, in the words of the doctor, and its history stays whole."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from gua.daemon.bus import MadeUpBus
from gua.daemon.library import WithLibrary
from gua.driver_files import HAS_ONE, SAMPLES_ON
from gua.model import Tick, TickStatus
from tests.agent.fakes import FakeClock
from tests.agent.running import check_of, run_gua, run_json, running_daemon, tick_statuses, wait_until
from tests.agent.test_driver_files import MODULE, install
from tests.nvml_stub import Card, Error, Scene

OLD, NEW = "570.86.15", "580.65.06"
DIFFER = f"kernel module {OLD}, library {NEW}"


def load_module(root: Path) -> Path:
    """A procfs that shows the old module as loaded."""
    (root / "driver/nvidia").mkdir(parents=True)
    (root / "driver/nvidia/version").write_text(MODULE)
    return root


def _tick(status: TickStatus = TickStatus.OK) -> Tick:
    return Tick(ts_ms=0, status=status, cover_ms=0, cards=())


def test_a_replaced_library_is_noticed_within_a_minute_and_no_longer_told_when_it_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    procfs, library = load_module(tmp_path / "proc"), install(tmp_path / "lib", OLD)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library.parent))
    clock = FakeClock()
    bus = WithLibrary(MadeUpBus(), procfs, clock)
    assert bus.troubles(_tick()) == frozenset()
    install(tmp_path / "lib", NEW)
    clock.sleep_s(59)
    assert bus.troubles(_tick()) == frozenset()  # not at every tick
    clock.sleep_s(1)
    told = frozenset({f"{DIFFER}: the daemon {SAMPLES_ON}"})
    assert bus.troubles(_tick(TickStatus.PARTIAL)) == told
    assert bus.troubles(_tick(TickStatus.ERROR)) == frozenset()  # then it does not sample on
    install(tmp_path / "lib", OLD)
    assert bus.troubles(_tick()) == told
    clock.sleep_s(60)
    assert bus.troubles(_tick()) == frozenset()


@pytest.mark.processes
def test_daemon_doctor_status_and_sync_once_say_the_same_and_no_time_is_lost(
    tmp_path: Path, nvml_scene: Path, nvml_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in (OLD, NEW):
        (tmp_path / "lib").mkdir(exist_ok=True)
        (tmp_path / "lib" / f"libnvidia-ml.so.{version}").write_bytes(nvml_library.read_bytes())
    link = tmp_path / "lib/libnvidia-ml.so.1"
    link.symlink_to(f"libnvidia-ml.so.{OLD}")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(link.parent))
    monkeypatch.setenv("GUA_NVML_SCENE", str(nvml_scene))
    more = {"GUA_PROCFS_ROOT": str(load_module(tmp_path / "proc"))}
    cards = (Card("GPU-a", util=93), Card("GPU-b"))
    Scene(cards=cards).save(nvml_scene)
    database = tmp_path / "gua.db"
    with running_daemon(tmp_path, **more):
        wait_until(lambda: len(tick_statuses(database)) >= 2, "ticks")
        assert run_json(tmp_path, "status", **more)["driver_mismatch"] is None
        # Only what is initialised from now on meets the new library
        link.unlink()
        link.symlink_to(f"libnvidia-ml.so.{NEW}")
        Scene(cards=cards, rules=(Error("nvmlInit", "LIB_RM_VERSION_MISMATCH"),)).save(nvml_scene)
        once = run_json(tmp_path, "sync-once", "--push", "never", **more)
        assert (once["status"], once["stored"], once["cards"]) == ("error", False, [])
        assert "LIB_RM_VERSION_MISMATCH" in once["errors"][0]
        assert once["errors"][1:] == [f"daemon_samples_on: the daemon, whose last tick is ok, {SAMPLES_ON}"]
        doctor = run_json(tmp_path, "doctor", **more)
        assert check_of(doctor, "nvml")["summary"].endswith(" old) samples on, see driver_match")
        match = check_of(doctor, "driver_match")
        assert match["status"] == "fail"
        assert match["summary"].startswith(f"{DIFFER}: the running daemon (last tick ok, ")
        assert match["summary"].endswith(f" old) {SAMPLES_ON}")
        assert match["details"] == {"kernel_module": OLD, "library": NEW}
        status = run_json(tmp_path, "status", **more)
        assert (status["state"], status["last_tick_status"]) == ("running", "ok")
        assert status["driver_mismatch"] == {"kernel_module": OLD, "library": NEW}
        assert f"{DIFFER}: it {SAMPLES_ON}" in run_gua(tmp_path, "status", **more).stdout
        before = len(tick_statuses(database))
        wait_until(lambda: len(tick_statuses(database)) >= before + 2, "further ticks")
        link.unlink()
        once = run_json(tmp_path, "sync-once", "--push", "never", **more)
        assert "LIBRARY_NOT_FOUND" in once["errors"][0]
        assert once["errors"][1:] == [f"daemon_samples_on: the daemon, whose last tick is ok, {HAS_ONE}"]
        summary = check_of(run_json(tmp_path, "doctor", **more), "nvml")["summary"]
        assert "; the running daemon (last tick ok, " in summary
        assert summary.endswith(f" old) {HAS_ONE}")
        link.symlink_to(f"libnvidia-ml.so.{NEW}")
    # Its last tick is still a fresh one, but nobody samples any more
    assert len(run_json(tmp_path, "sync-once", "--push", "never", **more)["errors"]) == 1
    assert check_of(run_json(tmp_path, "doctor", **more), "driver_match")["summary"] == DIFFER
    # Also while nobody may touch the driver
    assert run_gua(tmp_path, "pause", "--for", "1h", **more).returncode == 0
    assert check_of(run_json(tmp_path, "doctor", **more), "driver_match")["summary"] == DIFFER
    assert set(tick_statuses(database)) == {"ok"}
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM run WHERE kind = 'sync-once'").fetchall() == [(0,)]


@pytest.mark.processes
def test_a_daemon_that_finds_a_replaced_library_logs_it_once(
    tmp_path: Path, nvml_scene: Path, nvml_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "lib" / f"libnvidia-ml.so.{NEW}"
    library.parent.mkdir()
    library.write_bytes(nvml_library.read_bytes())
    library.with_name("libnvidia-ml.so.1").symlink_to(library.name)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library.parent))
    Scene(cards=(Card("GPU-a"),)).save(nvml_scene)
    with running_daemon(tmp_path, GUA_PROCFS_ROOT=str(load_module(tmp_path / "proc"))) as daemon:
        wait_until(lambda: DIFFER in daemon.log(), "its line")
        before = len(tick_statuses(tmp_path / "gua.db"))
        wait_until(lambda: len(tick_statuses(tmp_path / "gua.db")) >= before + 3, "further ticks")
        assert daemon.log().count(f"{DIFFER}: the daemon {SAMPLES_ON}") == 1
