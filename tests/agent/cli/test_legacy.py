import os
import signal
import subprocess
from pathlib import Path

import pytest

from gua.cli.legacy import main
from tests.agent.running import command, environment, no_daemon_left, tick_statuses, wait_until


def run(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    line = command(*words, program="gua.cli.legacy")
    return subprocess.run(line, env=environment(home), capture_output=True, text=True, timeout=120)


def test_the_daemon_stays_in_the_foreground(tmp_path: Path) -> None:
    line = command("daemon", "--interval", "200ms", "--db", str(tmp_path / "old.db"), program="gua.cli.legacy")
    process = subprocess.Popen(line, env=environment(tmp_path), stderr=subprocess.PIPE)
    try:
        wait_until((tmp_path / "old.db").exists, "its database")
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    assert process.returncode == 0
    assert tick_statuses(tmp_path / "old.db") == []  # this host has no card


def test_a_report_without_a_database_is_one_line(tmp_path: Path) -> None:
    done = run(tmp_path, "report", "--since", "1h", "--width", "60", "--interval", "30s")
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == "gpu-usage-audit: --interval is no longer needed and changes nothing"
    assert "Traceback" not in done.stderr


def test_a_daemon_for_a_board_needs_the_enrolment(tmp_path: Path) -> None:
    done = run(tmp_path, "daemon", "--cloud", "--config", str(tmp_path / "cloud.json"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "gua enroll" in done.stderr
    assert os.listdir(tmp_path) == ["sys"]


@pytest.mark.processes
def test_its_background_starts_tells_and_stops(tmp_path: Path) -> None:
    database = ("--db", str(tmp_path / "gua.db"), "--pid-file", str(tmp_path / "old.pid"))
    with no_daemon_left(tmp_path):
        started = run(tmp_path, "start", "--interval", "200ms", *database)
        assert started.returncode == 0, started.stderr
        assert (tmp_path / "old.pid").exists()
        assert run(tmp_path, "status", *database).stdout.startswith("running (pid ")
        assert run(tmp_path, "stop", *database).stdout.startswith("stopped (pid ")
    assert not (tmp_path / "old.pid").exists()
    assert run(tmp_path, "status", *database).returncode == 3


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    assert main(["help"]) == 0
    text = capsys.readouterr().out
    for word in ("daemon", "report", "demo", "version", "help"):
        assert word in text
