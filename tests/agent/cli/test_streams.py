"""What the caller did to stdout and stderr never becomes a traceback, nor a defect of ours."""

import subprocess
from pathlib import Path

import pytest

from tests.agent.running import PATIENCE_S, command, environment, run_gua


def run_shell(home: Path, line: str, *words: str, **more: str) -> "subprocess.CompletedProcess[str]":
    """`sh -c` of a line in which "$@" is the command."""
    return subprocess.run(
        ["sh", "-c", line, "sh", *command(*words)],
        env=environment(home, **more),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


@pytest.mark.parametrize("line", ['"$@" >&-', '"$@" >&- 2>&-', '"$@" <&- >&- 2>&-'])
def test_closed_streams_are_no_defect(tmp_path: Path, line: str) -> None:
    done = run_shell(tmp_path, line, "version", TMPDIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_stderr_still_gives_the_status(tmp_path: Path) -> None:
    assert run_shell(tmp_path, '"$@" 2>&-', "report", "--since", "soon").returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_device_is_one_line(tmp_path: Path) -> None:
    done = run_shell(tmp_path, '"$@" >/dev/full', "version")
    assert done.returncode == 1
    assert done.stderr == "gua: the result cannot be written: No space left on device\n"


def test_a_reader_that_went_away_is_silence(tmp_path: Path) -> None:
    done = run_shell(tmp_path, '"$@" | true', "version")
    assert (done.returncode, done.stderr) == (0, "")


def test_names_beyond_the_terminals_letters_are_escaped(tmp_path: Path) -> None:
    # The message of what was not stored goes to stdout, and names the path
    database = tmp_path / "名前" / "gua.db"
    database.mkdir(parents=True)
    ascii_only = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii"}
    done = run_gua(tmp_path, "sync-once", "--push", "never", "--fake", "--db", str(database), **ascii_only)
    assert "is no ordinary file" in done.stdout
    assert "defect" not in done.stderr
