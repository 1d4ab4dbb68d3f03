"""`gua-fleet deploy` and its kin: the right playbook, the user's arguments, Ansible's own exit status."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gua import __version__
from gua_fleet import deploy
from gua_fleet.cli.main import main
from gua_fleet.deploy import PLAYBOOKS, WITHOUT_HOSTS, PlaybooksMissing, playbook_environment, playbook_folder
from gua_fleet.python import module_command

ROOT = Path(__file__).parents[3]
UNPARSED = "ANSIBLE_INVENTORY_UNPARSED_FAILED"


Ask = Callable[..., list[str]]


@pytest.fixture
def command_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ask:
    """What ansible-playbook is told when `gua-fleet` is given these arguments."""
    became: list[list[str]] = []

    def become(program: str, command: list[str], environment: dict[str, str]) -> None:
        became.append(command)
        raise SystemExit(0)

    def ask(*arguments: str) -> list[str]:
        with contextlib.suppress(SystemExit):
            main([*arguments])
        command = became.pop()
        assert command[:5] == module_command("ansible", "playbook")
        return command[5:]

    monkeypatch.setattr(os, "execve", become)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GUA_FLEET_HOSTS", raising=False)
    return ask


@pytest.mark.parametrize(("name", "playbook"), PLAYBOOKS.items())
def test_each_command_runs_its_playbook_on_the_inventory(command_of: Ask, name: str, playbook: str) -> None:
    words = command_of(name, "--hosts", "a,b")
    path = ROOT / "ansible" / f"{playbook}.yml"
    assert path.is_file()
    assert words[: words.index(str(path))] == ([] if name in WITHOUT_HOSTS else ["-i", "a,b"])


def test_every_playbook_has_a_command() -> None:
    there = {path.stem for path in (ROOT / "ansible").glob("*.yml") if not path.stem.startswith("inventory")}
    assert set(PLAYBOOKS.values()) >= there - {"controller"}  # whose own page tells how to run it


def test_options_and_what_stands_behind_the_dashes_reach_ansible_in_that_order(command_of: Ask) -> None:
    given = ["-l", "gpu01", "-e", "a=1", "-e", "@file.yml", "--vault-id", "x@prompt", "--", "--check", "--diff", "-K"]
    assert command_of("deploy", "-i", "a,", *given)[3:] == [
        "--limit", "gpu01", "-e", "a=1", "-e", "@file.yml", "--vault-id", "x@prompt", "--check", "--diff", "-K",
    ]  # fmt: skip


def test_an_upgrade_names_this_version_unless_the_user_does(command_of: Ask) -> None:
    own = f"gua_agent_version={__version__}"
    assert command_of("upgrade", "-i", "a,", "-e", "gua_agent_version=7")[3:] == [
        "-e", own, "-e", "gua_agent_version=7",
    ]  # fmt: skip
    assert own not in command_of("deploy", "-i", "a,")


def test_without_an_inventory_it_is_one_line_and_status_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GUA_FLEET_HOSTS", raising=False)
    assert main(["deploy"]) == 2
    assert "give --hosts FILE" in capsys.readouterr().err


def test_a_site_with_its_own_ansible_cfg_keeps_it(tmp_path: Path) -> None:
    own = tmp_path / "mine.cfg"
    own.write_text("[defaults]\n")
    environ = {"ANSIBLE_CONFIG": str(own)}
    assert playbook_environment("wheelhouse", environ) == environ
    assert playbook_environment("deploy", environ) == {**environ, UNPARSED: "true"}
    assert playbook_environment("deploy", {**environ, UNPARSED: "0"})[UNPARSED] == "0"


def test_an_installation_without_playbooks_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(deploy, "__file__", str(tmp_path / "deploy.py"))
    with pytest.raises(PlaybooksMissing, match="install gua-fleet anew"):
        playbook_folder(None)


def play(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gua_fleet", *words], capture_output=True, text=True, check=False,
        env={**os.environ, "ANSIBLE_HOME": str(tmp_path), "PYTHONPATH": f"{ROOT}/agent:{ROOT}/fleet"},
    )  # fmt: skip


@pytest.mark.parametrize("name", [name for name in PLAYBOOKS if name not in WITHOUT_HOSTS])
def test_an_inventory_without_hosts_is_no_success(name: str, tmp_path: Path) -> None:
    (tmp_path / "none.yml").write_text("all:\n  hosts: {}\n")
    done = play(tmp_path, name, "--hosts", str(tmp_path / "none.yml"))
    assert (done.returncode, "The inventory names no host" in done.stdout + done.stderr) == (2, True)


@pytest.mark.parametrize("limit", [(), ("--limit", "gpu01")])
def test_an_inventory_that_cannot_be_read_is_no_success(limit: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "bad.yml").write_text("all: [\n")
    done = play(tmp_path, "verify", "--hosts", str(tmp_path / "bad.yml"), *limit)
    assert (done.returncode, "PLAY" in done.stdout) == (1, False)


@pytest.mark.parametrize("command", ["undeploy", "hosts"])
def test_an_empty_limit_is_not_every_host(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--hosts", "a,b", "--limit", " "])
    assert ended.value.code == 2
    assert "--limit: is empty" in capsys.readouterr().err


def test_an_interpreter_that_is_gone_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert main(["rollback", "--hosts", "a,"]) == 2
    assert "ansible-playbook cannot be started: No such file" in capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "status"), [(["--list-hosts"], 0), (["--no-such-option"], 2)])
def test_ansibles_exit_status_is_passed_on(arguments: list[str], status: int, tmp_path: Path) -> None:
    done = play(tmp_path, "rollback", "--hosts", "gpu01,", "--", *arguments)
    assert (done.returncode, "Traceback" in done.stderr) == (status, False)
    assert "inventory: gpu01," in done.stderr
    assert ("gpu01" in done.stdout) == (status == 0)
