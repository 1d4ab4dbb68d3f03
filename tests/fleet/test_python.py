"""What lies where the user stands is no code of ours: it may be anybody's folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gua.errors import GuaError
from gua_fleet.agent_wheel import run_pip
from gua_fleet.python import module_command

ROOT = Path(__file__).parents[2]
EVIL = "import pathlib\npathlib.Path(__file__).with_name('ran').touch()\n"


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with modules of names that ours load, where the user stands; `ran` is there once one was loaded."""
    for name in ("ansible", "yaml", "jinja2", "pip", "runpy", "json", "gua"):
        (tmp_path / f"{name}.py").write_text(EVIL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANSIBLE_HOME", str(tmp_path / "home"))
    return tmp_path


def test_a_deployment_loads_nothing_from_where_the_user_stands(trap: Path) -> None:
    (trap / "inventory.ini").write_text("gpu01\n")
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}/agent:{ROOT}/fleet"}
    program = "import sys; sys.path.remove(''); from gua_fleet.cli.main import main; sys.exit(main())"  # as the script
    words = ["rollback", "--hosts", "inventory.ini", "--", "--list-hosts"]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False, env=environment
    )
    assert (done.returncode, "gpu01" in done.stdout, (trap / "ran").exists()) == (0, True, False), done.stderr


def test_pip_loads_nothing_from_there(trap: Path) -> None:
    run_pip("--version", failed=GuaError)
    assert not (trap / "ran").exists()


def test_an_interpreter_that_does_not_look_there_anyway_runs_it_too(trap: Path) -> None:
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}  # 3.10 does not know it
    done = subprocess.run(
        module_command("pip", "--version"), capture_output=True, text=True, check=False, env=environment
    )
    assert (done.returncode, done.stdout.startswith("pip "), (trap / "ran").exists()) == (0, True, False), done.stderr


def test_the_module_sees_its_own_arguments() -> None:
    done = subprocess.run(module_command("json.tool", "--help"), capture_output=True, text=True, check=True)
    assert "json.tool" in done.stdout or "json/tool" in done.stdout
