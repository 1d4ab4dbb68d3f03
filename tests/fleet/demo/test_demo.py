"""`gua-fleet demo`: one word, and a fleet is reported, by the code that reports a real one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from gua_fleet.cli.demo import typed_command
from gua_fleet.demo.inventory import inventory_text


def gua_fleet(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command away from this machine's own inventories and settings."""
    environ = {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"], "HOME": str(cwd), "TZ": "UTC"}
    return subprocess.run(
        [sys.executable, "-m", "gua_fleet", *arguments],
        capture_output=True,
        encoding="utf-8",
        env={**environ, "PYTHONIOENCODING": "utf-8", "ANSIBLE_HOME": str(cwd / ".ansible")},
        cwd=cwd,
        timeout=120,
    )


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A demonstration made in a directory with a blank in its name."""
    home = tmp_path_factory.mktemp("demo of mine")
    return home, gua_fleet("demo", cwd=home)


def test_demo_exits_0_though_a_host_is_missing_and_names_it(
    shown: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    _, done = shown
    assert done.returncode == 0, done.stderr
    assert "3 of 4 hosts reported. No answer: gpu04 (" in done.stdout
    assert f"  {sys.executable} -m gua_fleet report --hosts gua-demo/inventory.yml\n" in done.stdout
    assert "Traceback" not in done.stderr


def test_demo_is_the_report_of_its_own_inventory(shown: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    home, _ = shown
    done = gua_fleet("report", "--hosts", "gua-demo/inventory.yml", "--format", "json", cwd=home)
    assert done.returncode == 1, "gpu04 did not answer"
    document = json.loads(done.stdout)
    assert [host["name"] for host in document["hosts"]] == ["gpu01", "gpu02", "gpu03", "gpu04"]
    assert [host["cards"] for host in document["hosts"]] == [8, 8, 8, 8]
    assert document["hosts"][3]["card_s"] is None
    assert document["coverage"]["expected_card_s"] == pytest.approx(32 * 7 * 86400, rel=0.01)
    assert document["coverage"]["unobserved_card_s"] == pytest.approx(8 * 7 * 86400, rel=0.01)
    assert document["coverage"]["unknown_by_reason"]["card_lost"] > 2 * 86400
    assert "card_lost" in [finding["id"] for finding in document["findings"] if finding["host"] == "gpu02"]
    assert {row["name"] for row in document["groups"]} == {"training", "workstations", "new"}
    assert {row["host"] for row in document["scheduler_idle"]} <= {"gpu02"}


def test_demo_tolerates_its_missing_host_when_told(shown: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    home, _ = shown
    options = ("--hosts", "gua-demo/inventory.yml", "--allow-missing", "1", "-o", "report.txt")
    assert gua_fleet("report", *options, cwd=home).returncode == 0
    assert (home / "report.txt").read_text(encoding="utf-8").startswith("GPU use of the fleet\n")


def test_demo_again_adds_to_the_same_history(shown: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    home, _ = shown
    before = (home / "gua-demo/gpu01/gua.db").stat().st_size
    again = gua_fleet("demo", cwd=home)
    assert again.returncode == 0
    assert (home / "gua-demo/gpu01/gua.db").stat().st_size < before * 1.1


def test_report_into_a_directory_that_is_not_there_fails_before_anybody_is_asked(tmp_path: Path) -> None:
    done = gua_fleet("report", "--hosts", "nobody,", "-o", "none/report.txt", cwd=tmp_path)
    assert done.returncode == 2
    assert "make it first" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--tz", "Mars/Olympus"), "does not know that zone"),
        (("--since", "soon"), "no duration"),
        (("--hosts", "missing.yml"), "missing.yml"),
    ],
)
def test_report_bad_option_is_one_line_and_exit_2(arguments: tuple[str, ...], word: str, tmp_path: Path) -> None:
    done = gua_fleet("report", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert word in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_report_that_nobody_answers_exits_3_and_still_lists_the_hosts(tmp_path: Path) -> None:
    (tmp_path / "inventory.yml").write_text(
        "all: {hosts: {gpu09: {ansible_host: 127.0.0.1, ansible_port: 9}}}", encoding="utf-8"
    )
    done = gua_fleet("report", "--hosts", "inventory.yml", cwd=tmp_path)
    assert done.returncode == 3
    assert "0 of 1 hosts reported" in done.stdout
    assert "gpu09: unreachable" in done.stdout


def test_inventory_is_yaml_whatever_the_paths_hold() -> None:
    directory = Path("/tmp/a b: #'\"c")
    text = inventory_text(directory, "/opt/my python/bin/python3")
    command = yaml.safe_load(text)["all"]["children"]["training"]["hosts"]["gpu01"]["gua_command"]
    assert command[1] == f"GUA_DB={directory}/gpu01/gua.db"
    assert command[3:] == ["/opt/my python/bin/python3", "-m", "gua"]


def test_demo_directory_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = gua_fleet("demo", "--dir", "file/demo", cwd=tmp_path)
    assert done.returncode == 2
    assert "file/demo: cannot be written: Not a directory" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("content", [b"no database\n" * 1000, b""], ids=["damaged", "empty"])
def test_demo_history_that_was_left_broken_is_told_with_its_cure_or_made(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "gua-demo/gpu02").mkdir(parents=True)
    (tmp_path / "gua-demo/gpu02/gua.db").write_bytes(content)
    done = gua_fleet("demo", cwd=tmp_path)
    if content:
        last = done.stderr.splitlines()[-1]
        assert done.returncode == 1
        assert last.startswith("gua-fleet: cannot read gua-demo/gpu02/gua.db")
        assert "remove the directory gua-demo" in last
    else:
        assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


# Ctrl-C as a terminal sends it, to the whole group, as soon as one of the processes records.
INTERRUPTED = """
import os, signal, threading, time
from pathlib import Path
from gua_fleet.demo.fleet import make_fleet

def interrupt():
    while not list(Path("gua-demo").glob("*/gua.db")):
        time.sleep(0.001)
    os.killpg(0, signal.SIGINT)

if __name__ == "__main__":
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        make_fleet(Path("gua-demo"), now_ms=1_772_438_400_000, utc_offset_ms=0)
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_demo_that_is_interrupted_leaves_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "interrupted.py").write_text(INTERRUPTED, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "interrupted.py"],
        capture_output=True,
        encoding="utf-8",
        env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        cwd=tmp_path,
        start_new_session=True,
        timeout=120,
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


@pytest.mark.parametrize(
    ("argv0", "found", "shown"),
    [
        ("/home/x/clone/.venv/bin/gua-fleet", None, ".venv/bin/gua-fleet"),
        (".venv/bin/gua-fleet", "/usr/bin/gua-fleet", ".venv/bin/gua-fleet"),
        ("/home/x/clone/.venv/bin/gua-fleet", "/home/x/clone/.venv/bin/gua-fleet", "gua-fleet"),
        ("/opt/my tools/gua-fleet", None, "'/opt/my tools/gua-fleet'"),
        ("/home/x/clone/fleet/gua_fleet/__main__.py", "/usr/bin/gua-fleet", "/usr/bin/python3 -m gua_fleet"),
    ],
)
def test_demo_names_the_command_as_it_can_be_typed_here(argv0: str, found: str | None, shown: str) -> None:
    named = typed_command(argv0, found=found, python="/usr/bin/python3", directory=Path("/home/x/clone"))
    assert named == shown


def test_demo_never_writes_over_an_inventory_that_is_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "inventory.yml").write_text("all: {hosts: {gpu09: }}\n", encoding="utf-8")
    done = gua_fleet("demo", "--dir", ".", cwd=tmp_path)
    assert done.returncode == 2
    assert "stays as it is" in done.stderr
    assert (tmp_path / "inventory.yml").read_text(encoding="utf-8") == "all: {hosts: {gpu09: }}\n"
