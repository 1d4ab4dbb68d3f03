"""The real daemon, in a process of its own, on the real bindings and the NVML stub."""

import contextlib
import resource
import signal
import socket
import sqlite3
import time
from pathlib import Path

import pytest

from tests.agent.running import add_pci_card, run_gua, run_json, running_daemon, tick_statuses, wait_until
from tests.nvml_stub import Card, Delay, Error, Scene

pytestmark = pytest.mark.processes

# What is promised is one second; a stop that waited for NVML's deadline would take ten, for a lock thirty.
STOP_S = 5.0

TWO_CARDS = Scene(cards=(Card("GPU-a", util=93), Card("GPU-b")))


def wait_for_ticks(home: Path, number: int) -> None:
    wait_until(lambda: len(tick_statuses(home / "gua.db")) >= number, f"{number} ticks")


def test_it_ticks_and_stops_on_a_signal_within_a_second(tmp_path: Path, nvml_scene: Path) -> None:
    TWO_CARDS.save(nvml_scene)
    for number in (signal.SIGTERM, signal.SIGINT):
        with running_daemon(tmp_path) as daemon:
            before = len(tick_statuses(tmp_path / "gua.db"))
            wait_for_ticks(tmp_path, before + 3)
            assert daemon.stop(number) < STOP_S
            assert daemon.process.returncode == 0
    assert set(tick_statuses(tmp_path / "gua.db")) == {"ok"}
    assert "Traceback" not in daemon.log()


def test_a_second_daemon_on_the_same_database_is_refused_in_one_line(tmp_path: Path) -> None:
    with running_daemon(tmp_path, "--fake") as daemon:
        wait_for_ticks(tmp_path, 1)
        second = run_gua(tmp_path, "daemon", "--foreground", "--fake")
        assert second.returncode == 1
        first = f"another gua daemon (pid {daemon.process.pid})"
        assert second.stderr.splitlines()[-1] == f"gua: {first} already samples into {tmp_path}/gua.db"
        other = run_gua(tmp_path, "sync-once", "--push", "never", "--fake")
        assert other.returncode == 0, other.stderr


def test_a_killed_daemon_leaves_no_lock(tmp_path: Path) -> None:
    for _ in range(2):
        with running_daemon(tmp_path, "--fake") as daemon:
            before = len(tick_statuses(tmp_path / "gua.db"))
            wait_for_ticks(tmp_path, before + 1)
            daemon.stop(signal.SIGKILL)


def test_it_stops_in_the_middle_of_a_hung_sample(tmp_path: Path, nvml_scene: Path) -> None:
    hangs = Delay("nvmlDeviceGetUtilizationRates", 60_000, masked=True)
    TWO_CARDS.save(nvml_scene)
    with running_daemon(tmp_path) as daemon:
        wait_for_ticks(tmp_path, 1)
        Scene(cards=(Card("GPU-a", rules=(hangs,)),)).save(nvml_scene)
        # Nothing tells from outside that a call hangs, but that no tick comes any more
        wait_until(lambda: _stands_still(tmp_path), "a hung sample")
        assert daemon.stop() < STOP_S
        assert daemon.process.returncode == 0


def _stands_still(home: Path) -> bool:
    import time

    before = len(tick_statuses(home / "gua.db"))
    time.sleep(1.0)
    return len(tick_statuses(home / "gua.db")) == before


def test_a_call_that_hangs_gives_unresponsive_ticks_and_recovers(tmp_path: Path, nvml_scene: Path) -> None:
    TWO_CARDS.save(nvml_scene)
    database = tmp_path / "gua.db"
    with running_daemon(tmp_path, GUA_NVML_DEADLINE="1s") as daemon:
        wait_until(lambda: "ok" in tick_statuses(database), "a good tick")
        Scene(cards=(Card("GPU-a"),), rules=(Delay("nvmlDeviceGetUtilizationRates", 600_000),)).save(nvml_scene)
        wait_until(lambda: tick_statuses(database)[-1] == "unresponsive", "an unresponsive tick")
        TWO_CARDS.save(nvml_scene)
        wait_until(lambda: tick_statuses(database)[-1] == "ok", "a good tick again")
        # a tick is stored first and told then
        wait_until(lambda: "no longer: NVML does not answer" in daemon.log(), "the line that it ended")
        assert daemon.log().count("NVML does not answer") == 2  # when it began and when it ended


def test_a_driver_that_comes_after_the_daemon_is_picked_up(tmp_path: Path, nvml_scene: Path) -> None:
    add_pci_card(tmp_path)
    Scene(rules=(Error("nvmlInit", "DRIVER_NOT_LOADED"),)).save(nvml_scene)
    database = tmp_path / "gua.db"
    with running_daemon(tmp_path) as daemon:
        wait_until(lambda: "error" in tick_statuses(database), "a tick that says error")
        TWO_CARDS.save(nvml_scene)
        wait_until(lambda: tick_statuses(database)[-1] == "ok", "a good tick")
        wait_until(lambda: daemon.log().count("DRIVER_NOT_LOADED") == 2, "a line when it began and one when it ended")


def test_a_host_without_gpu_waits_quietly(tmp_path: Path, nvml_scene: Path) -> None:
    Scene(rules=(Error("nvmlInit", "DRIVER_NOT_LOADED"),)).save(nvml_scene)
    with running_daemon(tmp_path) as daemon:
        wait_until(lambda: "waiting for one" in daemon.log(), "its line")
        assert daemon.stop() < STOP_S
    assert daemon.log().count("waiting for one") == 1
    assert tick_statuses(tmp_path / "gua.db") == []


def test_opening_a_long_history_may_take_longer_than_its_watchdog_waits_for_a_tick(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        told = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "60000000"}
        with running_daemon(tmp_path, "--fake", **told):
            messages = [manager.recv(4096).decode() for _ in range(3)]
    assert messages == ["WATCHDOG_USEC=900000000", "WATCHDOG_USEC=60000000", "READY=1"]


def test_systemd_hears_that_it_is_ready_alive_and_stopping(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(30)
        with running_daemon(tmp_path, "--fake", NOTIFY_SOCKET=str(tmp_path / "notify")) as daemon:
            assert manager.recv(4096) == b"READY=1"
            assert manager.recv(4096).startswith(b"WATCHDOG=1\nSTATUS=last tick ")
            daemon.stop()
        messages = [manager.recv(4096)]
        while messages[-1] != b"STOPPING=1":
            messages.append(manager.recv(4096))


def test_the_journal_gets_lines_without_times(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    found, line = (tmp_path / "log").stat(), f"INFO sampling every 0.2 s into {tmp_path}/gua.db"
    with running_daemon(tmp_path, "--fake", JOURNAL_STREAM=f"{found.st_dev}:{found.st_ino}") as daemon:
        wait_until(lambda: "sampling every" in daemon.log(), "its first line")
        assert line in daemon.log().splitlines()
    with running_daemon(tmp_path, "--fake", JOURNAL_STREAM=f"{found.st_dev}:{found.st_ino + 1}") as daemon:
        wait_until(lambda: "sampling every" in daemon.log(), "its first line")
        assert line not in daemon.log().splitlines()  # what it inherited is another's stream


def test_the_doctor_sees_the_daemon_and_the_age_of_its_tick(tmp_path: Path) -> None:
    from tests.agent.running import check_of

    with running_daemon(tmp_path, "--fake"):
        wait_for_ticks(tmp_path, 2)
        check = check_of(run_json(tmp_path, "doctor"), "daemon")
        assert check["status"] == "ok", check
        assert check["details"]["running"] is True
        assert 0 <= check["details"]["last_tick_age_s"] < 120
        assert check["details"]["last_tick_status"] in ("ok", "partial")
    check = check_of(run_json(tmp_path, "doctor"), "daemon")
    assert (check["status"], check["details"]["running"]) == ("warn", False)


def test_a_wrong_interval_is_one_line_before_anything_is_touched(tmp_path: Path) -> None:
    done = run_gua(tmp_path, "daemon", "--foreground", "--interval", "soon")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        'gua: --interval: \'soon\' does not fit; write a duration such as "30s", "10m", "90d"'
    ]
    assert not (tmp_path / "gua.db").exists()


def test_it_stops_while_it_waits_for_a_locked_database(tmp_path: Path) -> None:
    with running_daemon(tmp_path, "--fake") as daemon:
        wait_for_ticks(tmp_path, 1)
        with contextlib.closing(sqlite3.connect(tmp_path / "gua.db", timeout=30)) as other:
            other.execute("BEGIN EXCLUSIVE")
            time.sleep(0.5)  # by now a tick waits
            assert daemon.stop() < STOP_S
        assert daemon.process.returncode == 0


def test_it_stops_while_it_opens_a_locked_database(tmp_path: Path) -> None:
    with running_daemon(tmp_path, "--fake") as daemon:
        wait_for_ticks(tmp_path, 1)
        daemon.stop()
    with contextlib.closing(sqlite3.connect(tmp_path / "gua.db")) as other:
        other.execute("BEGIN EXCLUSIVE")
        with running_daemon(tmp_path, "--fake") as daemon:
            time.sleep(1.0)
            assert daemon.stop() < STOP_S


def test_a_database_locked_for_longer_than_it_waits_costs_ticks_and_nothing_else(tmp_path: Path) -> None:
    with running_daemon(tmp_path, "--fake") as daemon:
        wait_for_ticks(tmp_path, 1)
        with contextlib.closing(sqlite3.connect(tmp_path / "gua.db")) as other:
            other.execute("BEGIN EXCLUSIVE")
            wait_until(lambda: "tick lost" in daemon.log(), "a lost tick")
        before = len(tick_statuses(tmp_path / "gua.db"))
        wait_for_ticks(tmp_path, before + 2)
        wait_until(lambda: "recovered" in daemon.log(), "its line")


def test_a_database_that_breaks_meanwhile_is_moved_aside_and_said_once(tmp_path: Path) -> None:
    database = tmp_path / "gua.db"
    with running_daemon(tmp_path, "--fake") as daemon:
        wait_for_ticks(tmp_path, 2)
        with contextlib.closing(sqlite3.connect(database)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            other.execute("PRAGMA writable_schema = 1")
            page = other.execute("SELECT rootpage FROM sqlite_master WHERE name = 'card_slot'").fetchone()[0]
        size = 4096
        with database.open("r+b") as file:
            file.seek((page - 1) * size)
            file.write(bytes(size))
        # What is in its cache is seen only when another connection has written
        with contextlib.closing(sqlite3.connect(database, timeout=30)) as other:
            other.execute("UPDATE store SET rev = rev + 1")
            other.commit()
        wait_until(lambda: "moved to" in daemon.log(), "a new database")
        wait_for_ticks(tmp_path, 2)
        assert daemon.log().count("moved to") == 1
        assert daemon.stop() < STOP_S
    assert len(list(tmp_path.glob("gua.db.damaged-*Z"))) == 1


def test_a_daemon_that_stood_still_stamps_what_it_sees_with_the_time_of_now(tmp_path: Path) -> None:
    with running_daemon(tmp_path, "--fake") as daemon:
        wait_for_ticks(tmp_path, 2)
        daemon.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: _state(daemon.process.pid) == "T", "it to stand still")
        stopped_ms = time.time_ns() // 1_000_000
        before = len(tick_statuses(tmp_path / "gua.db"))
        time.sleep(1.5)
        resumed_ms = time.time_ns() // 1_000_000
        daemon.process.send_signal(signal.SIGCONT)
        wait_for_ticks(tmp_path, before + 3)
        wait_until(lambda: "the daemon did not run" in daemon.log(), "the line that says so")
    with contextlib.closing(sqlite3.connect(tmp_path / "gua.db")) as database:
        times = [row[0] for row in database.execute("SELECT ts_ms FROM tick ORDER BY id")]
    # One tick may have been at work when it was stopped; none was made up for the time it stood still
    assert [time_ms for time_ms in times if stopped_ms < time_ms < resumed_ms] == []


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_full_disk_costs_ticks_that_are_counted_and_nothing_else(tmp_path: Path) -> None:
    database = tmp_path / "gua.db"
    with running_daemon(tmp_path, "--fake") as daemon:
        wait_for_ticks(tmp_path, 3)
        pid = daemon.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        # No file may grow beyond this: for SQLite the same as a disk without room
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (16_384, before[1]))
        wait_until(lambda: "tick lost" in daemon.log(), "a lost tick")
        time.sleep(1.0)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
        wait_until(lambda: "recovered" in daemon.log(), "its recovery")
        wait_for_ticks(tmp_path, len(tick_statuses(database)) + 2)
        assert daemon.stop() < STOP_S
    assert daemon.log().count("tick lost") == 1
    assert list(tmp_path.glob("gua.db.damaged-*")) == []
    with contextlib.closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_one_card_that_hangs_is_unresponsive_and_the_others_have_every_tick(tmp_path: Path, nvml_scene: Path) -> None:
    TWO_CARDS.save(nvml_scene)
    database = tmp_path / "gua.db"
    with running_daemon(tmp_path, GUA_NVML_DEADLINE="6s") as daemon:
        wait_until(lambda: "ok" in tick_statuses(database), "a good tick")
        hangs = Card("GPU-b", rules=(Delay("nvmlDeviceGetPowerUsage", 600_000, masked=True),))
        Scene(cards=(Card("GPU-a", util=93), hangs)).save(nvml_scene)
        wait_until(lambda: "card GPU-b: unresponsive" in daemon.log(), "its line")
        wait_until(lambda: tick_statuses(database)[-3:] == ["partial"] * 3, "ticks without it")
    assert set(tick_statuses(database)) <= {"ok", "partial"}
