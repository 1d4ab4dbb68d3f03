"""A daemon in the background, by the commands that people have for it: real processes, real signals."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from gua.clock import SystemClock
from gua.daemon.ending import Stopped, stop_process
from gua.daemon.presence import find_daemon
from gua.schemas import load_schema
from tests.agent.cloud.enrolled import AGENT_TOKEN, write_enrolment
from tests.agent.running import (
    command,
    environment,
    no_daemon_left,
    pid_of_daemon,
    run_gua,
    run_json,
    running_daemon,
    tick_statuses,
    wait_until,
)
from tests.board import running_board
from tests.nvml_stub import Card, Delay, Scene

pytestmark = pytest.mark.processes


@pytest.fixture(autouse=True)
def _tidy(tmp_path: Path) -> Iterator[None]:
    with no_daemon_left(tmp_path):
        yield


def start(home: Path, *words: str, **more: str) -> int:
    """Start one with 200 ms ticks; its pid."""
    done = run_gua(home, "start", "--fake", "--interval", "200ms", *words, **more)
    assert done.returncode == 0, done.stderr
    pid = pid_of_daemon(home)
    assert done.stdout == f"started (pid {pid}), sampling every 0.2 s; log {home}/gua.log\n"
    assert pid is not None
    return pid


def wait_for_ticks(home: Path, number: int) -> None:
    wait_until(lambda: len(tick_statuses(home / "gua.db")) >= number, f"{number} ticks")


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_it_starts_tells_how_it_is_and_stops(tmp_path: Path) -> None:
    pid = start(tmp_path)
    assert (tmp_path / "gua.pid").read_text().splitlines()[0] == str(pid)
    assert os.getsid(pid) != os.getsid(0)
    assert [os.readlink(f"/proc/{pid}/fd/{number}") for number in (0, 1, 2)] == ["/dev/null"] * 3
    wait_for_ticks(tmp_path, 2)
    status = run_gua(tmp_path, "status")
    assert status.returncode == 0
    assert status.stdout.startswith(f"running (pid {pid}), last tick ")
    document = run_json(tmp_path, "status")
    Draft202012Validator(load_schema("gua.status.1")).validate(document)
    assert (document["running"], document["pid"], document["cards"]) == (True, pid, 8)
    assert document["last_day"]["observed_card_s"] > 0
    assert document["enrolled"] is False
    stop = run_gua(tmp_path, "stop")
    assert (stop.returncode, stop.stdout) == (0, f"stopped (pid {pid})\n")
    assert not (tmp_path / "gua.pid").exists()
    status = run_gua(tmp_path, "status")
    assert status.returncode == 3
    assert status.stdout.startswith("not running, last tick ")
    again = run_gua(tmp_path, "stop")
    assert (again.returncode, again.stdout) == (0, "not running\n")


def test_every_option_reaches_the_daemon_from_whatever_directory(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "prom").mkdir()
    words = ["--db", "own.db", "--pid-file", "own.pid", "--log-file", "own.log", "--textfile", "../prom"]
    words += ["--settings", "own.toml", "--per-user"]
    (tmp_path / "here/own.toml").write_text('[host]\nscheduler = "slurm"\n')
    line = command("daemon", "--fake", "--interval", "300ms", *words)
    done = subprocess.run(
        line, env=environment(tmp_path), cwd=tmp_path / "here", capture_output=True, text=True, timeout=120
    )
    database = tmp_path / "here/own.db"
    try:
        assert done.returncode == 0, done.stderr
        pid = int((tmp_path / "here/own.pid").read_text().splitlines()[0])
        assert f"sampling every 0.3 s into {database}" in (tmp_path / "here/own.log").read_text()
        metrics = tmp_path / "prom/gua.prom"
        wait_until(lambda: metrics.exists() and "gua_user_cards{" in metrics.read_text(), "its metrics")
        assert os.readlink(f"/proc/{pid}/cwd") == str(tmp_path / "here")
    finally:
        assert run_gua(tmp_path, "stop", "--db", str(database)).returncode == 0
    assert list((tmp_path / "prom").iterdir()) == []  # nothing is known any more


def test_of_two_that_start_at_once_one_samples_and_the_other_says_who(tmp_path: Path) -> None:
    line = command("start", "--fake", "--interval", "200ms")
    both = [
        subprocess.Popen(line, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=120) for process in both]
    assert sorted(process.returncode for process in both) == [0, 1], said
    loser = next(said[number][1] for number in (0, 1) if both[number].returncode == 1)
    assert "already samples into" in loser
    wait_for_ticks(tmp_path, 2)


def test_one_that_cannot_begin_shows_why_and_the_end_of_its_log(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "gua.db")) as database:
        database.execute("CREATE TABLE others (x)")
        database.execute("PRAGMA user_version = 99999")
        database.commit()
    (tmp_path / "gua.log").write_text("an older line\n")
    done = run_gua(tmp_path, "start", "--fake")
    assert (done.returncode, done.stdout) == (1, "")
    *_, logged, told = done.stderr.splitlines()
    assert " ERROR " in logged
    assert told.startswith("gua: the daemon did not start: ")
    assert f"its log is {tmp_path}/gua.log" in told
    assert "an older line" not in done.stderr
    assert pid_of_daemon(tmp_path) is None


def test_what_is_wrong_on_the_command_line_is_found_before_anything_is_touched(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text('[daemon]\ninterval = "-5s"\n')
    for words, status, said in [
        (("--settings", "agent.toml"), 2, "[daemon] interval: '-5s' does not fit"),
        (("--cloud",), 2, "gua enroll"),
        (("--pid-file", "gua.db"), 2, "two of them are one file"),
        (("--log-file", "/dev/null/no"), 1, "/dev/null/no"),
    ]:
        line = command("start", "--fake", *words)
        done = subprocess.run(
            line, env=environment(tmp_path), cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        assert (done.returncode, done.stdout) == (status, ""), done.stderr
        assert said in done.stderr.splitlines()[-1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["agent.toml", "sys"]


def test_a_stranger_with_the_pid_of_a_stale_file_is_never_signalled(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as stranger:
        for order in ("stop", "status"):
            (tmp_path / "gua.pid").write_text(f"{stranger.pid}\n")
            done = run_gua(tmp_path, order)
            assert done.returncode == (0 if order == "stop" else 3)
            assert f"pid {stranger.pid} belongs to another process; cleared stale pid file" in done.stderr
            assert not (tmp_path / "gua.pid").exists()
        assert stranger.poll() is None
        stranger.communicate()
        assert stranger.returncode == 0  # it was let end by itself


def test_one_that_was_killed_is_not_running_and_the_next_one_begins(tmp_path: Path) -> None:
    pid = start(tmp_path)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: pid_of_daemon(tmp_path) is None, "its end")
    status = run_gua(tmp_path, "status")
    assert status.returncode == 3
    assert f"its daemon is gone; cleared stale pid file {tmp_path}/gua.pid" in status.stderr
    before = len(tick_statuses(tmp_path / "gua.db"))
    start(tmp_path)
    wait_for_ticks(tmp_path, before + 2)


def test_a_daemon_starts_over_a_file_from_before_the_boot(tmp_path: Path) -> None:
    (tmp_path / "gua.pid").write_text(f'{os.getpid()}\n{{"start_ticks": 1, "boot_id": "before"}}\n')
    pid = start(tmp_path)
    assert (tmp_path / "gua.pid").read_text().splitlines()[0] == str(pid)


def test_one_that_stands_still_is_ended_the_hard_way(tmp_path: Path) -> None:
    pid = start(tmp_path)
    wait_for_ticks(tmp_path, 1)
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: state_of(pid) == "T", "it to stand still")
    record = find_daemon(tmp_path / "gua.db").record
    assert record is not None
    assert stop_process(record, SystemClock(), patience_s=0.5) == Stopped(killed=True, left=())
    assert run_json(tmp_path, "status")["state"] == "stopped"


def test_the_daemon_of_the_predecessor_is_never_run_over(tmp_path: Path) -> None:
    (tmp_path / "gpu_usage_audit.py").write_text("import sys; sys.stdin.read()")
    line = [sys.executable, "-m", "gpu_usage_audit", "daemon"]
    with subprocess.Popen(line, cwd=tmp_path, stdin=subprocess.PIPE) as older:
        (tmp_path / "gua.pid").write_text(f"{older.pid}\n")
        said = f"gpu-usage-audit still samples here (pid {older.pid}): end it with `kill {older.pid}`"
        for order, status in (("start", 1), ("stop", 0), ("status", 3)):
            done = run_gua(tmp_path, order, *(["--fake"] if order == "start" else []))
            assert done.returncode == status
            assert said in done.stderr
        assert older.poll() is None
        older.communicate()
    start(tmp_path)


def test_stop_takes_the_sampling_process_along(tmp_path: Path, nvml_scene: Path) -> None:
    hangs = Delay("nvmlDeviceGetUtilizationRates", 600_000, masked=True)
    Scene(cards=(Card("GPU-a", rules=(hangs,)),)).save(nvml_scene)
    done = run_gua(tmp_path, "start", "--interval", "200ms")
    assert done.returncode == 0, done.stderr
    pid = pid_of_daemon(tmp_path)
    assert pid is not None
    children = Path(f"/proc/{pid}/task/{pid}/children")
    wait_until(lambda: children.read_text() != "", "its sampling process")
    child = children.read_text().split()[0]
    stop = run_gua(tmp_path, "stop")
    assert stop.returncode == 0
    assert "left behind" not in stop.stderr
    assert not Path(f"/proc/{child}").exists()


def test_systemds_daemon_is_left_to_systemd(tmp_path: Path) -> None:
    with running_daemon(tmp_path, "--fake") as daemon:
        wait_for_ticks(tmp_path, 1)
        lock = tmp_path / "gua.db.lock"
        first, rest = lock.read_text().splitlines()
        lock.write_text(f"{first}\n{json.dumps({**json.loads(rest), 'unit': 'gua-agent.service'})}\n")
        done = run_gua(tmp_path, "stop")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.splitlines()[-1].endswith("`systemctl stop gua-agent.service`")
        second = run_gua(tmp_path, "start", "--fake")
        assert second.returncode == 1
        assert f"another gua daemon (pid {daemon.process.pid} of gua-agent.service)" in second.stderr
        assert daemon.process.poll() is None


def test_a_daemon_that_is_shut_in_and_knows_the_boot_by_another_id_is_known_all_the_same(tmp_path: Path) -> None:
    pid = start(tmp_path)
    lock = tmp_path / "gua.db.lock"
    first, rest = lock.read_text().splitlines()
    lock.write_text(f"{first}\n{json.dumps({**json.loads(rest), 'boot_id': 'as the kernel has it'})}\n")
    assert run_json(tmp_path, "status")["pid"] == pid
    stop = run_gua(tmp_path, "stop")
    assert (stop.returncode, stop.stdout) == (0, f"stopped (pid {pid})\n")


def test_a_lock_whose_holder_nobody_knows_is_no_reason_to_signal_anybody(tmp_path: Path) -> None:
    with running_daemon(tmp_path, "--fake"):
        wait_for_ticks(tmp_path, 1)
        (tmp_path / "gua.db.lock").write_text(f"{os.getpid()}\n")  # ours, without the start: no proof
        assert run_gua(tmp_path, "stop").returncode == 1
        status = run_json(tmp_path, "status")
        assert (status["running"], status["pid"]) == (True, None)  # its ticks say so


def runs(home: Path) -> list[tuple[int, int, int]]:
    """Of each run: its interval, the utilisation from which its rule calls a card active, its ticks."""
    with contextlib.closing(sqlite3.connect(home / "gua.db")) as database:
        return database.execute(
            "SELECT interval_ms, active_util_pct, (SELECT count(*) FROM tick WHERE tick.run = run.id) FROM run"
            " JOIN rule ON rule.id = run.rule ORDER BY run.id"
        ).fetchall()


def test_reload_takes_what_is_right_tells_what_is_wrong_and_begins_a_run_for_a_new_rule(tmp_path: Path) -> None:
    settings, log = tmp_path / "agent.toml", tmp_path / "gua.log"
    settings.write_text('[daemon]\ninterval = "200ms"\n')
    done = run_gua(tmp_path, "start", "--fake", "--settings", str(settings))
    assert done.returncode == 0, done.stderr
    pid = pid_of_daemon(tmp_path)
    assert pid is not None
    wait_for_ticks(tmp_path, 2)
    settings.write_text('[daemon]\ninterwal = "1s"\n')
    os.kill(pid, signal.SIGHUP)
    wait_until(lambda: "the settings stay as they were" in log.read_text(), "the line on the broken file")
    assert f"{settings}: [daemon] interwal: no such key" in log.read_text()
    wait_for_ticks(tmp_path, len(tick_statuses(tmp_path / "gua.db")) + 2)
    assert len(runs(tmp_path)) == 1
    settings.write_text('[daemon]\ninterval = "300ms"\n[rule]\nactive_util_pct = 20\n')
    os.kill(pid, signal.SIGHUP)
    wait_until(lambda: len(runs(tmp_path)) == 2 and runs(tmp_path)[1][2] >= 2, "ticks of the next run")
    assert [run[:2] for run in runs(tmp_path)] == [(200, 10), (300, 20)]
    assert pid_of_daemon(tmp_path) == pid


def test_systemd_hears_of_a_reload(tmp_path: Path) -> None:
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        with running_daemon(tmp_path, "--fake", NOTIFY_SOCKET=str(tmp_path / "notify")) as daemon:
            assert manager.recv(4096) == b"READY=1"
            daemon.process.send_signal(signal.SIGHUP)
            said = [manager.recv(4096)]
            while not said[-1].startswith(b"RELOADING=1\nMONOTONIC_USEC="):
                said.append(manager.recv(4096))
            assert manager.recv(4096) == b"READY=1"
            assert b"READY=1" not in said


def test_a_board_hears_of_the_ticks_and_a_new_enrolment_is_taken_by_a_reload(tmp_path: Path) -> None:
    with running_board() as first, running_board() as second:
        for board in (first, second):
            board.agents[AGENT_TOKEN] = "host-1"
        write_enrolment(tmp_path / "cloud.json", first.url)
        pid = start(tmp_path, "--cloud")
        wait_until(lambda: len(first.taken) >= 2, "two states")
        assert run_json(tmp_path, "status")["enrolled"] is True
        write_enrolment(tmp_path / "cloud.json", second.url)
        os.kill(pid, signal.SIGHUP)
        wait_until(lambda: len(second.taken) >= 2, "two states at the other board")
        (tmp_path / "cloud.json").write_text("{")
        os.kill(pid, signal.SIGHUP)
        log = tmp_path / "gua.log"
        wait_until(lambda: "the board stays as it was" in log.read_text(), "the line on the broken enrolment")
        number = len(second.taken)
        wait_until(lambda: len(second.taken) > number, "a state after all that")
        assert run_gua(tmp_path, "stop").returncode == 0
        assert first.violations + second.violations == []
        assert AGENT_TOKEN not in log.read_text()


def test_the_end_of_a_terminal_ends_what_was_run_by_hand_on_it(tmp_path: Path) -> None:
    terminal, side = os.openpty()
    take = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
    line = command("daemon", "--foreground", "--fake", "--interval", "200ms")
    daemon = subprocess.Popen(
        [sys.executable, "-c", take, *line],
        env=environment(tmp_path),
        stdin=side,
        stdout=side,
        stderr=side,
        start_new_session=True,
    )
    os.close(side)
    try:
        wait_for_ticks(tmp_path, 1)
        assert pid_of_daemon(tmp_path) == daemon.pid
    finally:
        os.close(terminal)
        daemon.wait(120)
    assert daemon.returncode == 0
    assert pid_of_daemon(tmp_path) is None


@pytest.mark.parametrize("phase", ["gua.db.lock", "gua.pid", "gua.db", "gua.db-wal", "a tick"])
def test_killed_in_any_phase_it_leaves_nothing_that_the_next_one_minds(tmp_path: Path, phase: str) -> None:
    def reached() -> bool:
        return bool(tick_statuses(tmp_path / "gua.db")) if phase == "a tick" else (tmp_path / phase).exists()

    line = command("start", "--fake", "--interval", "200ms")
    starting = subprocess.Popen(
        line, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_until(reached, phase)
    wait_until(lambda: pid_of_daemon(tmp_path) is not None, "the lock to name its holder")
    pid = pid_of_daemon(tmp_path)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    _, told = starting.communicate(timeout=120)
    assert starting.returncode == 0 or "it ended before it had begun" in told
    assert run_gua(tmp_path, "status").returncode == 3
    before = len(tick_statuses(tmp_path / "gua.db"))
    start(tmp_path)
    wait_for_ticks(tmp_path, before + 2)
    with contextlib.closing(sqlite3.connect(tmp_path / "gua.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
