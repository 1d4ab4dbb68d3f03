"""A TAB: commands, options and the names of the inventory that was read last, without reading one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gua_fleet.host_names import complete_hosts, remember_names
from gua_fleet.model import Host
from tests.fleet.ssh.sshd import REPOSITORY


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def completed(folder: Path, line: str, module: str = "gua_fleet") -> list[str]:
    """What the shell's function gets for this line with the cursor at its end."""
    answer = folder / "answer"
    answer.write_text("")
    path = os.pathsep.join(str(REPOSITORY / part) for part in ("agent", "fleet"))
    tab = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_STDOUT_FILENAME": str(answer)}
    env = {**os.environ, **tab, "PYTHONPATH": path, "COMP_LINE": line, "COMP_POINT": str(len(line)), "PATH": ""}
    subprocess.run([sys.executable, "-m", module], env=env, cwd=folder, timeout=60, capture_output=True)
    return [word.strip() for word in answer.read_text().splitlines()]


def test_commands_and_options_of_both_programs(tmp_path: Path) -> None:
    assert completed(tmp_path, "gua-fleet fr") == ["free"]
    assert completed(tmp_path, "gua-fleet holds --idle") == ["--idle-for"]
    assert completed(tmp_path, "gua rep", "gua") == ["report"]


def test_host_names_come_from_the_inventory_read_last(tmp_path: Path) -> None:
    remember_names([Host("gpu01", "x", groups=("training",)), Host("gpu02", "x"), Host("b c", "x"), Host("\x1b", "x")])
    assert completed(tmp_path, "gua-fleet free --limit gpu") == ["gpu01", "gpu02"]
    assert complete_hosts("training:!gpu02,gp") == ["training:!gpu02,gpu01", "training:!gpu02,gpu02"]
    assert complete_hosts("all:!t") == ["all:!training"]
    assert complete_hosts("") == ["gpu01", "gpu02", "training"]


def test_nothing_read_yet_completes_nothing(tmp_path: Path) -> None:
    assert complete_hosts("g") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_function(shell: str) -> None:
    path = os.pathsep.join(str(REPOSITORY / part) for part in ("agent", "fleet"))
    done = subprocess.run(
        [sys.executable, "-m", "gua_fleet", "completion", shell],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert "gua-fleet" in done.stdout
