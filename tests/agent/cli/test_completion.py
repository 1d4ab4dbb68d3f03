from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gua.cli.completion import SHELLS, typed_command
from gua.cli.main import COMMANDS
from tests.agent.running import PATIENCE_S, command, environment, run_gua


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_names_the_command(tmp_path: Path, shell: str) -> None:
    done = run_gua(tmp_path, "completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert "_ARGCOMPLETE" in done.stdout
    assert "gua" in done.stdout


def test_another_shell_is_refused(tmp_path: Path) -> None:
    assert run_gua(tmp_path, "completion", "cmd").returncode == 2


def asked(home: Path, line: str) -> list[str]:
    """What the program answers a shell in which this much is typed."""
    found = home / "found"
    told = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    environ = environment(home, **told, ARGCOMPLETE_USE_TEMPFILES="1", _ARGCOMPLETE_STDOUT_FILENAME=str(found))
    subprocess.run(command(), env=environ, timeout=PATIENCE_S, check=False, stderr=subprocess.DEVNULL)
    return [word.strip() for word in found.read_text().split("\n")]


def test_commands_and_options_are_completed(tmp_path: Path) -> None:
    assert set(asked(tmp_path, "gua exp")) == {"explain", "export"}
    assert set(asked(tmp_path, "gua export --")) >= {"--since-rev", "--until-rev", "--rollups-only", "--db"}
    assert "--foreground" in asked(tmp_path, "gua daemon --fo")


def test_only_the_command_that_is_typed_is_imported() -> None:
    def typed(line: str) -> object:
        return typed_command(COMMANDS, {"COMP_LINE": line, "COMP_POINT": str(len(line))})

    assert typed("gua repo") is None
    assert typed("gua report") is None
    assert typed("gua report ") == "report"
    assert typed("gua report --si") == "report"
    assert typed("gua nonsense --si") is None


def test_completing_imports_nothing_heavy() -> None:
    code = (
        "import sys; from gua.cli.main import build_parser, COMMANDS; import gua.cli.completion, argcomplete;"
        " [build_parser('gua', COMMANDS, name) for name in ('import', 'export', 'completion')];"
        " print(*sorted({'peewee', 'pynvml', 'sqlite3', 'rich', 'tabulate'} & set(sys.modules)))"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.stdout.strip() == ""
    assert done.returncode == 0
