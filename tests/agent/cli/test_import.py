from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
from pathlib import Path

import jsonschema
import pytest

from gua.cli import import_
from gua.cli.main import main
from gua.daemon.imports import imports_beside
from gua.schemas import load_schema
from gua.store.files import waiting_imports
from tests.agent.legacy.importing import take
from tests.agent.legacy.old_databases import HOST, OldFile, OldProc, OldSample, old_database
from tests.agent.legacy.test_import import dump, states
from tests.agent.running import PATIENCE_S, command, environment, run_gua, run_json, running_daemon, wait_until

pytestmark = pytest.mark.processes

HELD = OldSample(procs=(OldProc(),), state="idle_held")


def count(path: Path, query: str = "SELECT count(*) FROM tick WHERE id < 0") -> int:
    if not path.exists():
        return 0
    connection = sqlite3.connect(path)
    try:
        return int(connection.execute(query).fetchone()[0])
    except sqlite3.OperationalError:
        return 0
    finally:
        connection.close()


def test_an_import_says_what_it_took_and_what_it_could_not_know(tmp_path: Path) -> None:
    old_database(tmp_path / "old.db", "1.0.0", [[HELD]] * 10)
    done = run_gua(tmp_path, "import", str(tmp_path / "old.db"), "--from-host", HOST)
    assert done.returncode == 0
    for word in (
        "samplings taken",
        "2026-03-02T00:00:00Z to 2026-03-02T00:05:00Z",
        "GPU-a",
        "ada",
        "graphics processes",
    ):
        assert word in done.stdout
    document = run_json(tmp_path, "import", str(tmp_path / "old.db"), "--from-host", HOST)
    jsonschema.validate(document, load_schema("gua.import.1"))
    assert (document["ticks"], document["known_before"]) == (0, 10)


def test_a_dry_run_tells_the_same_and_changes_nothing(tmp_path: Path) -> None:
    old_database(tmp_path / "old.db", "1.8.0", [[HELD]] * 10)
    words = ("import", str(tmp_path / "old.db"), "--from-host", HOST)
    dry = run_json(tmp_path, *words, "--dry-run")
    assert not (tmp_path / "gua.db").exists()
    assert {**run_json(tmp_path, *words), "dry_run": True} == dry
    assert run_json(tmp_path, *words, "--dry-run")["known_before"] == 10


@pytest.mark.parametrize("content", [b"", b"precious text, no database at all" * 200, None])
def test_a_file_that_is_no_such_database_is_one_line(tmp_path: Path, content: object) -> None:
    old = tmp_path / "old.db"
    if isinstance(content, bytes):
        old.write_bytes(content)
    done = run_gua(tmp_path, "import", str(old))
    assert done.returncode in (1, 2)
    assert done.stderr.count("\n") == 2  # which database, and what is wrong
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "gua.db").exists()


def test_another_hosts_history_is_refused_until_somebody_says_it_is_this_one(tmp_path: Path) -> None:
    old_database(tmp_path / "old.db", "1.8.0", [[HELD]])
    done = run_gua(tmp_path, "import", str(tmp_path / "old.db"))
    assert done.returncode == 2
    assert f"--from-host {HOST}" in done.stderr


def test_an_old_database_is_read_while_its_daemon_writes_and_nothing_of_it_changes(tmp_path: Path) -> None:
    file = OldFile(tmp_path / "old.db", "1.8.0")
    run = file.run()
    for n in range(10):
        file.tick(run, 30 * n, HELD)
    assert os.path.getsize(f"{file.path}-wal") > 0
    before = file.path.read_bytes()
    assert run_json(tmp_path, "import", str(file.path), "--from-host", HOST)["ticks"] == 10
    assert file.path.read_bytes() == before
    file.tick(run, 300, HELD)
    assert run_json(tmp_path, "import", str(file.path), "--from-host", HOST)["ticks"] == 1


def test_an_import_that_is_killed_goes_on_the_next_time(tmp_path: Path) -> None:
    """Killed after its first batch of 2,000 samples, wherever it is then."""
    old = tmp_path / "old.db"
    old_database(old, "1.8.0", [[OldSample(f"GPU-{n}", n % 3 * 10, index=n) for n in range(20)]] * 150)
    words = ("import", str(old), "--from-host", HOST)
    child = subprocess.Popen(
        command(*words), env=environment(tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_until(lambda: count(tmp_path / "gua.db") > 0 or child.poll() is not None, "a batch")
    child.send_signal(signal.SIGKILL)
    child.wait(PATIENCE_S)
    assert run_gua(tmp_path, *words).returncode == 0
    take(old, tmp_path / "whole.db")
    left, right = dump(tmp_path / "gua.db"), dump(tmp_path / "whole.db")
    for table in ("tick", "sample", "hold", "hold_memory", "card_slot", "user_slot", "tick_slot", "idle_stretch"):
        assert left[table] == right[table]


def test_a_long_import_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old_database(tmp_path / "old.db", "1.8.0", [[HELD, OldSample("GPU-b")]] * 3)
    words = ["import", str(tmp_path / "old.db"), "--from-host", HOST, "--db", str(tmp_path / "gua.db")]
    assert main(words) == 0
    assert "looked at" not in capsys.readouterr().err
    monkeypatch.setattr(import_, "_PROGRESS_S", 0.0)
    for more in ([], ["--dry-run"]):
        assert main([*words, *more]) == 0
        said = [line for line in capsys.readouterr().err.splitlines() if "looked at" in line]
        assert said == [f"gua: {n} of 6 samples of cards looked at" for n in (2, 4, 6)]


def test_a_database_of_the_predecessor_in_our_place_is_kept_and_imported_beside_the_daemon(tmp_path: Path) -> None:
    old_database(tmp_path / "gua.db", "1.3.0", [[HELD]] * 10)
    content = (tmp_path / "gua.db").read_bytes()
    refused = run_gua(tmp_path, "report")
    assert refused.returncode == 1
    assert "is a database of gpu-usage-audit" in refused.stderr
    with running_daemon(tmp_path) as daemon:
        wait_until(lambda: any(tmp_path.glob("gua.db.gpu-usage-audit-*.imported")), "the import")
        wait_until(lambda: "sampling every" in daemon.log(), "sampling")
        daemon.stop()
        log = daemon.log()
    assert "was a database of gpu-usage-audit" in log
    assert "damaged" not in log
    assert waiting_imports(tmp_path / "gua.db") == []
    (kept,) = tmp_path.glob("gua.db.gpu-usage-audit-*.imported")
    assert kept.read_bytes() == content
    assert states(tmp_path / "gua.db") == {"idle-held": 300}


def test_the_import_beside_the_daemon_loads_nothing_from_where_it_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_json(tmp_path, "sync-once", "--fake", "--push", "never")
    old_database(tmp_path / "gua.db.gpu-usage-audit-1", "1.3.0", [[HELD]] * 10)
    trap = tmp_path / "trap"
    trap.mkdir()
    (trap / "gua.py").write_text("import pathlib\npathlib.Path(__file__).with_name('ran').touch()\n")
    monkeypatch.chdir(trap)
    with imports_beside(tmp_path / "gua.db"):
        wait_until(lambda: any(tmp_path.glob("gua.db.*.imported")) or (trap / "ran").exists(), "the import")
    assert not (trap / "ran").exists()


def test_importing_what_lies_in_our_place_keeps_the_old_file_beside(tmp_path: Path) -> None:
    old_database(tmp_path / "gua.db", "1.8.0", [[HELD]] * 10)
    document = run_json(tmp_path, "import", str(tmp_path / "gua.db"), "--from-host", HOST)
    assert document["ticks"] == 10
    assert states(tmp_path / "gua.db") == {"idle-held": 300}
    assert run_gua(tmp_path, "import", str(tmp_path / "gua.db")).returncode == 2
