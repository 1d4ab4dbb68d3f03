"""`gua report` as people and controllers run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gua.clock import SystemClock
from gua.demo.history import fill
from gua.demo.profile import DEMO_HOSTS
from gua.demo.recording import open_demo_writer
from gua.frames import unwrap_document

NONCE = "0123456789abcdef" * 2


def gua(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the command with nothing of this machine's own settings, and no terminal."""
    clean = {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"], "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [sys.executable, "-m", "gua", *arguments],
        capture_output=True,
        encoding="utf-8",
        env={**clean, **environ},
        timeout=60,
    )


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six hours of the made-up host, ending now."""
    path, clock, profile = tmp_path_factory.mktemp("report") / "gua.db", SystemClock(), DEMO_HOSTS["demo"]
    with open_demo_writer(path, profile, clock) as writer:
        fill(writer, profile, since_ms=clock.now_ms() - 6 * 3_600_000, until_ms=clock.now_ms())
    return path


def test_report_prints_its_eight_sections_without_colours(database: Path) -> None:
    done = gua("report", "--since", "6h", "--db", str(database))
    assert (done.returncode, done.stderr) == (0, f"gua: database {database} (named by --db)\n")
    assert all(f"\n{number}. " in done.stdout for number in range(1, 9))
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_report_json_is_the_document_and_nothing_else(database: Path) -> None:
    document = json.loads(gua("report", "--json", "--since", "6h", "--db", str(database), "--tz", "UTC").stdout)
    assert document["schema"] == "gua.report/1"
    assert len(document["cards"]) == 8
    assert document["tz"] == "UTC"
    assert document["coverage"]["observed_card_s"] == pytest.approx(8 * 6 * 3600, rel=0.03)


def test_report_framed_is_json_whatever_the_format(database: Path) -> None:
    done = gua("report", "--format", "text", "--db", str(database), "--frame", NONCE)
    assert json.loads(unwrap_document(done.stdout.encode(), NONCE))["schema"] == "gua.report/1"


def test_report_takes_absolute_times(database: Path) -> None:
    done = gua("report", "--json", "--since", "2026-01-01T00:00", "--until", "1h", "--db", str(database), "--tz", "UTC")
    assert json.loads(done.stdout)["window"]["since"] == "2026-01-01T00:00:00Z"


def test_report_on_a_terminal_that_writes_ascii_only_is_ascii(database: Path) -> None:
    done = gua("report", "--db", str(database), PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.isascii()


@pytest.mark.parametrize(
    ("form", "begins"),
    [("md", "# GPU use on demo"), ("csv", "host,since,until,"), ("html", "<!doctype html>"), ("json", "{")],
)
def test_report_in_every_format_goes_whole_into_a_file(database: Path, tmp_path: Path, form: str, begins: str) -> None:
    path = tmp_path / "report"
    path.write_text("the old one", encoding="utf-8")
    done = gua("report", "--since", "6h", "--db", str(database), "--format", form, "-o", str(path))
    assert (done.returncode, done.stdout) == (0, "")
    assert f"gua: report {path}\n" in done.stderr
    assert path.read_text(encoding="utf-8").startswith(begins)
    assert [one.name for one in tmp_path.iterdir()] == ["report"], "nothing is left beside it"


def test_report_of_a_calendar_window_and_one_user(database: Path) -> None:
    done = gua("report", "--json", "--yesterday", "--user", "nobody-here", "--tz", "UTC", "--db", str(database))
    document = json.loads(done.stdout)
    assert [document["window"][edge][11:] for edge in ("since", "until")] == ["00:00:00Z", "00:00:00Z"]
    assert (document["user"], document["users"]) == ("nobody-here", [])


def test_report_by_another_rule_says_so(database: Path) -> None:
    done = gua("report", "--rules", "active=5,held=500", "--sensitivity", "--db", str(database))
    assert "active from 5 %, held over 500 MB, judged again for this report" in " ".join(done.stdout.split())
    assert "What other rules would say" in done.stdout


def test_report_draws_the_state_it_was_asked_for(database: Path) -> None:
    drawn = gua("report", "--heat", "truly-idle", "--since", "6h", "--db", str(database)).stdout
    assert "\n     truly-idle\n" in drawn


def test_report_without_a_database_says_what_to_run_first(tmp_path: Path) -> None:
    done = gua("report", "--db", str(tmp_path / "none.db"), GUA_SYSFS_ROOT=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 2, "which database, and what is wrong with it"
    assert "run `gua daemon` first" in done.stderr
    assert str(tmp_path / "none.db") in done.stderr


def test_report_without_a_database_on_a_host_without_gpu_says_that(tmp_path: Path) -> None:
    (tmp_path / "bus/pci/devices").mkdir(parents=True)
    roots = {"GUA_SYSFS_ROOT": str(tmp_path), "GUA_PROCFS_ROOT": str(tmp_path)}
    done = gua("report", "--db", str(tmp_path / "none.db"), "--frame", NONCE, **roots)
    assert done.returncode == 2
    assert "no NVIDIA device" in done.stderr
    assert json.loads(unwrap_document(done.stdout.encode(), NONCE))["code"] == "no_gpu"
    (tmp_path / "driver/nvidia").mkdir(parents=True)
    (tmp_path / "driver/nvidia/version").touch()
    done = gua("report", "--db", str(tmp_path / "none.db"), "--frame", NONCE, **roots)
    assert json.loads(unwrap_document(done.stdout.encode(), NONCE))["code"] == "database_missing"


def test_report_of_a_database_without_a_tick_says_no_history_yet(tmp_path: Path) -> None:
    with open_demo_writer(tmp_path / "gua.db", DEMO_HOSTS["demo"], SystemClock()):
        pass
    done = gua("report", "--db", str(tmp_path / "gua.db"))
    assert done.returncode == 0
    assert "No history yet" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--since", "soon"], "no duration"),
        (["--since", "1h", "--until", "2030-01-01", "--since", "2031-01-01"], "empty"),
        (["--settings", "/nowhere/agent.toml"], "/nowhere/agent.toml"),
        (["--width", "wide"], "width"),
        (["--width", "59"], "60 to 200"),
        (["--width", "201"], "60 to 200"),
        (["--last-week", "--since", "1d"], "window of its own"),
        (["--today", "--yesterday"], "not allowed with"),
        (["--rules", "idle=5"], "no threshold"),
        (["--tz", "Mars/Olympus"], "no such time zone"),
        (["--user", " "], "a user has a name"),
        (["-o", "/nowhere/report.html"], "/nowhere/report.html: cannot be written"),
    ],
)
def test_report_bad_option_is_one_usage_error(database: Path, arguments: list[str], word: str) -> None:
    done = gua("report", "--db", str(database), *arguments)
    assert done.returncode == (1 if "-o" in arguments else 2)
    assert word in done.stderr
    assert "Traceback" not in done.stderr


def test_a_controller_is_answered_in_a_zone_unknown_here_and_told_so(database: Path) -> None:
    done = gua("report", "--db", str(database), "--tz", "Mars/Olympus", "--frame", NONCE)
    document = json.loads(unwrap_document(done.stdout.encode(), NONCE))
    assert document["hours_of_week"] == []
    assert "tz_unknown" in [finding["id"] for finding in document["findings"]]


def test_demo_prints_a_report_and_keeps_nothing(tmp_path: Path) -> None:
    done = gua("demo", TMPDIR=str(tmp_path), HOME=str(tmp_path))
    assert done.returncode == 0
    assert "GPU use on demo" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_demo_keeps_the_database_it_was_given_and_says_how_to_read_it(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    assert gua("demo", "--db", str(path)).returncode == 0
    again = gua("demo", "--db", str(path), "--json")
    assert again.returncode == 0
    assert f"--db {path}" in again.stderr
    assert json.loads(again.stdout)["host"]["hostname"] == "demo"


def test_demo_never_writes_into_a_real_database(tmp_path: Path) -> None:
    with open_demo_writer(tmp_path / "real.db", DEMO_HOSTS["gpu01"], SystemClock()):
        pass
    done = gua("demo", "--db", str(tmp_path / "real.db"))
    assert done.returncode == 2
    assert "another host" in done.stderr
