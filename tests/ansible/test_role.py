"""The role's own promises: what it documents, what it renders, and how tightly the service is shut in."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from gua.config import KEYS, load_settings

ANSIBLE = Path(__file__).parents[2] / "ansible"
PLAYBOOKS = sorted(path for path in ANSIBLE.glob("*.yml") if not path.name.startswith("inventory"))
ROLE = ANSIBLE / "roles" / "gua_agent"
UNIT = "gua-agent.service"
PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  vars_files: [{role}/defaults/main.yml, {role}/vars/main.yml]
  tasks:
    - ansible.builtin.template:
        src: "{role}/templates/{{{{ item }}}}.j2"
        dest: "{target}/{{{{ item }}}}"
        mode: "0644"
      loop: [agent.toml, gua-agent.service, probe.sh]
"""


def load(path: str) -> Any:
    return yaml.safe_load((ROLE / path).read_text())


def render(target: Path, **variables: Any) -> Path:
    """Render all templates with Ansible itself into `target`, with the role's defaults and `variables` on top."""
    if " " in sys.executable:
        pytest.skip("Ansible cannot run an interpreter whose path holds a blank")
    facts = {"gua_agent__host": {"systemd": "252"}, "gua_agent__candidates": ["python3"]}
    play = target / "play.yml"
    play.write_text(PLAY.format(role=ROLE, target=target))
    command = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "localhost,", str(play)]
    done = subprocess.run(
        [*command, "-e", json.dumps({**facts, **variables}), "-e", f"ansible_python_interpreter={sys.executable}"],
        capture_output=True, text=True, cwd=ANSIBLE,
        env={**os.environ, "ANSIBLE_HOME": str(target / "home"), "ANSIBLE_REMOTE_TMP": str(target / "home" / "tmp")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return target


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return render(tmp_path_factory.mktemp("rendered"))


def test_documented_defaults_are_the_defaults() -> None:
    documented: dict[str, Any] = {}
    for entry in load("meta/argument_specs.yml")["argument_specs"].values():
        for name, option in entry["options"].items():
            assert documented.setdefault(name, option) == option, f"{name} is documented in two ways"
    assert {name: option["default"] for name, option in documented.items()} == load("defaults/main.yml")


def test_every_entry_point_is_documented() -> None:
    called = {
        play["ansible.builtin.import_role"].get("tasks_from", "main.yml").removesuffix(".yml")
        for playbook in PLAYBOOKS
        for each in yaml.safe_load(playbook.read_text())
        for play in each.get("tasks", ())
        if "ansible.builtin.import_role" in play
    }
    assert called == set(load("meta/argument_specs.yml")["argument_specs"])


def test_every_playbook_is_understood_by_ansible(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "-i", "localhost,", "--syntax-check", *map(str, PLAYBOOKS)],
        capture_output=True, text=True, cwd=ANSIBLE, env={**os.environ, "ANSIBLE_HOME": str(tmp_path / "home")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_collection_and_no_exception_from_the_linters_rules_is_used() -> None:
    texts = {path: path.read_text() for path in sorted(ANSIBLE.rglob("*.yml"))}
    modules = {word for text in texts.values() for word in re.findall(r"^ +(\w+\.\w+\.\w+):$", text, re.M)}
    assert modules
    assert {name for name in modules if not name.startswith("ansible.builtin.")} == set()
    assert [path for path, text in texts.items() if re.search("noqa|skip_list|warn_list|ignore_errors", text)] == []


def test_every_setting_of_the_agent_can_be_set_and_has_the_agents_default(rendered: Path) -> None:
    text = (rendered / "agent.toml").read_text()
    sections = {line.strip("[]") for line in text.splitlines() if line.startswith("[")}
    written = {line.split(" = ")[0] for line in text.splitlines() if " = " in line}
    assert written == {key.name for key in KEYS if key.path != "host.scheduler"}
    assert sections == {key.section for key in KEYS} - {"host"}
    (rendered / "bare.toml").write_text('[store]\npath = "/var/lib/gua/gua.db"\n')
    system, bare = (load_settings(file=rendered / name, environ={}) for name in ("agent.toml", "bare.toml"))
    assert replace(system, file=None) == replace(bare, file=None)


def test_a_schedulers_name_reaches_the_settings(tmp_path: Path) -> None:
    render(tmp_path, gua_agent_scheduler="slurm")
    assert load_settings(file=tmp_path / "agent.toml", environ={}).scheduler == "slurm"


def test_an_old_systemd_gets_no_setting_it_does_not_know(tmp_path: Path) -> None:
    render(tmp_path, gua_agent__host={"systemd": "239"})
    unit = (tmp_path / "gua-agent.service").read_text()
    assert not re.search("ProtectClock|ProtectHostname|ProtectKernelLogs|PrivateIPC|RestrictSUIDSGID|LogRate", unit)


@pytest.mark.parametrize(("systemd", "protected"), [("247", False), ("252", False), ("253", True)])
def test_the_clock_is_protected_only_where_that_hides_no_device(tmp_path: Path, systemd: str, protected: bool) -> None:
    unit = (render(tmp_path, gua_agent__host={"systemd": systemd}) / UNIT).read_text()
    assert ("ProtectClock=yes" in unit) == protected


def test_the_unit_lets_the_agent_see_the_gpus_and_their_processes(rendered: Path) -> None:
    lines = (rendered / "gua-agent.service").read_text().splitlines()
    names = {line.split("=")[0] for line in lines if "=" in line and not line.startswith("#")}
    assert names & {"PrivateDevices", "ProtectProc", "ProcSubset", "PrivateUsers"} == set()


def test_the_service_tells_a_board_exactly_where_the_host_is_enrolled(rendered: Path, tmp_path: Path) -> None:
    lines = (rendered / UNIT).read_text().splitlines()
    [start] = [line.partition("=")[2] for line in lines if line.startswith("ExecStart=")]
    shell, option, script = shlex.split(start.replace("$$", "$"))  # systemd's own quoting is no other here
    assert (shell, option) == ("/bin/sh", "-c")
    enrolment = tmp_path / "cloud.json"
    script = script.replace("/var/lib/gua/cloud.json", str(enrolment)).replace("/opt/gua/current/bin/gua", "echo")
    expected = "daemon --foreground --settings /etc/gua/agent.toml --db /var/lib/gua/gua.db"
    for suffix in ("", " --cloud"):
        printed = subprocess.run([shell, option, script], capture_output=True, text=True, check=True).stdout
        assert printed == f"{expected}{suffix}\n"
        enrolment.touch()


def test_environment_variables_and_device_group_reach_the_unit(tmp_path: Path) -> None:
    render(
        tmp_path, gua_agent_environment={"GUA_SYSFS_ROOT": "/a b", "https_proxy": "http://u:p%40ss@proxy"},
        gua_agent__host={"systemd": "252", "device_group": "video"},
    )  # fmt: skip
    lines = (tmp_path / "gua-agent.service").read_text().splitlines()
    assert 'Environment="GUA_SYSFS_ROOT=/a b"' in lines
    assert 'Environment="https_proxy=http://u:p%%40ss@proxy"' in lines  # one % begins a word of systemd's own
    assert "SupplementaryGroups=video" in lines


def test_a_host_that_hides_processes_gets_the_group_that_sees_them_or_the_capability(tmp_path: Path) -> None:
    seen = {"systemd": "252", "hidepid": "2"}
    for name, host, line in (
        ("group", {**seen, "hidepid_group": "watchers"}, "SupplementaryGroups=watchers"),
        ("capability", seen, "AmbientCapabilities=CAP_SYS_PTRACE"),
    ):
        (tmp_path / name).mkdir()
        lines = (render(tmp_path / name, gua_agent__host=host, gua_agent_hidepid="ptrace") / UNIT).read_text()
        assert line in lines.splitlines()
        assert ("CapabilityBoundingSet=" in lines.splitlines()) == (name == "group")


@pytest.mark.parametrize(("gpu", "files"), [
    ("no_gpu", {"sys/bus/pci/devices/0/vendor": "0x8086", "sys/bus/pci/devices/0/class": "0x030000"}),
    ("no_gpu", {"sys/bus/pci/devices/0/vendor": "0x10de", "sys/bus/pci/devices/0/class": "0x040300"}),
    ("no_driver", {"sys/bus/pci/devices/0/vendor": "0x10de", "sys/bus/pci/devices/0/class": "0x030200"}),
])  # fmt: skip
def test_the_probe_tells_cards_from_other_devices(
    rendered: Path, tmp_path: Path, gpu: str, files: dict[str, str]
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    script = (rendered / "probe.sh").read_text().replace("sysfs=/sys", f"sysfs={tmp_path}/sys")
    script = script.replace("procfs=/proc", f"procfs={tmp_path}/proc")
    printed = subprocess.run(["/bin/sh"], input=script, capture_output=True, text=True, check=True).stdout
    assert f"gua-probe gpu {gpu}\n" in printed


def test_the_service_is_shut_in_tightly(rendered: Path) -> None:
    version = subprocess.run(["systemd-analyze", "--version"], capture_output=True, text=True).stdout if (
        shutil.which("systemd-analyze")
    ) else ""  # fmt: skip
    found = re.match(r"systemd (\d+)", version)
    if found is None or int(found[1]) < 250:
        pytest.skip("needs systemd-analyze 250 or later, which can judge a unit file offline")
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=25", str(rendered / "gua-agent.service")],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr


def test_the_probe_tells_of_this_machine_what_the_role_needs(rendered: Path) -> None:
    printed = subprocess.run(["/bin/sh", str(rendered / "probe.sh")], capture_output=True, text=True, check=True).stdout
    facts = dict(line.split(" ", 2)[1:] for line in printed.splitlines())
    assert facts["gpu"] in ("ok", "no_gpu", *load("vars/main.yml")["gua_agent__without_driver"])
    if "python" in facts:
        line = subprocess.run([facts["python"], "--version"], capture_output=True, text=True, check=True).stdout
        assert f"Python {facts['python_line']}." in line
    else:
        assert "pythons" in facts or shutil.which("python3", path="/usr/bin:/usr/local/bin") is None
