"""The controller's role: what it documents, the units it renders, and that what they run is what gua-fleet takes."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from gua_fleet.cli.main import COMMANDS
from tests.ansible.test_role import ANSIBLE

ROLE = ANSIBLE / "roles" / "gua_controller"
PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  vars_files: [ROLE/defaults/main.yml, ROLE/vars/main.yml]
  tasks:
    - ansible.builtin.template:
        src: "ROLE/templates/job.{{ pair.1 }}.j2"
        dest: "TARGET/{{ item.name }}.{{ pair.1 }}"
        mode: "0644"
      loop: "{{ gua_controller__wanted | product(['service', 'timer']) }}"
      loop_control: {loop_var: pair}
      when: pair.1 == 'service' or item.timed
      vars: {item: "{{ pair.0 }}"}
"""
# A stand-in for the installed release: it writes what it was given where it was told to.
STAND_IN = """#!/bin/sh
for word; do
  [ "$before" != --output ] || echo "$@" >"$word"
  before=$word
done
"""


def load(path: str) -> Any:
    return yaml.safe_load((ROLE / path).read_text())


def render(target: Path, **variables: Any) -> Path:
    """Render all units with Ansible itself into `target`, with the role's defaults and `variables` on top."""
    if " " in sys.executable:
        pytest.skip("Ansible cannot run an interpreter whose path holds a blank")
    command = target / "current" / "bin" / "gua-fleet"
    command.parent.mkdir(parents=True)
    command.write_text(STAND_IN)
    command.chmod(0o755)
    given = {
        "gua_agent__host": {"systemd": "252"},
        "gua_controller__root": str(target),
        "gua_controller__reports": str(target),
        "gua_controller_page": str(target / "free.html"),
        "ansible_python_interpreter": sys.executable,
        **variables,
    }
    play = target / "play.yml"
    play.write_text(PLAY.replace("ROLE", str(ROLE)).replace("TARGET", str(target)))
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "-i", "localhost,", str(play), "-e", json.dumps(given)],
        capture_output=True, text=True, cwd=ANSIBLE,
        env={**os.environ, "ANSIBLE_HOME": str(target / "home"), "ANSIBLE_REMOTE_TMP": str(target / "home" / "tmp")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return target


@pytest.fixture(scope="module")
def filed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The units as the defaults make them."""
    return render(tmp_path_factory.mktemp("filed"))


@pytest.fixture(scope="module")
def mailed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The units of a site that wants all otherwise; its systemd is an old one."""
    return render(
        tmp_path_factory.mktemp("mailed"),
        gua_agent__host={"systemd": "239"}, gua_controller_mail_to=["ops@example.org", "Boss <boss@example.org>"],
        gua_controller_mail_from="gpu@example.org", gua_controller_sendmail="/bin/cat",
        gua_controller_store="postgresql://db/gua?a=%20$1", gua_controller_allow_missing=0,
        gua_controller_free_every="", gua_controller_on_failure="tell@%n.service",
        gua_controller_environment_file="/etc/gua-fleet/secrets", gua_controller_report_options=["--no-names"],
    )  # fmt: skip


def lines(folder: Path, unit: str) -> list[str]:
    return (folder / unit).read_text().splitlines()


def argv(folder: Path, job: str) -> list[str]:
    """What systemd would run: its own words for % and $ undone."""
    [text] = [line.partition("=")[2] for line in lines(folder, f"{job}.service") if line.startswith("ExecStart=")]
    return [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(text)]


def asked(folder: Path, job: str) -> argparse.Namespace:
    """The job's options, as gua-fleet itself understands them."""
    words = argv(folder, job)
    words = words[words.index(str(folder / "current" / "bin" / "gua-fleet")) + 1 :]
    parser = argparse.ArgumentParser(exit_on_error=False)
    import_module(COMMANDS[words[0]][0]).configure(parser)
    return parser.parse_args(words[1:])


def test_documented_defaults_are_the_defaults() -> None:
    specs = load("meta/argument_specs.yml")["argument_specs"]
    assert set(specs) == {"main", "preflight"}
    for entry in specs.values():
        assert {name: option["default"] for name, option in entry["options"].items()} == load("defaults/main.yml")


def test_only_what_is_wanted_is_rendered_and_a_mail_has_the_reports_clock(filed: Path, mailed: Path) -> None:
    jobs = ("pull", "free", "report")
    assert {path.name for path in filed.glob("gua-fleet-*")} == {
        f"gua-fleet-{job}.{kind}" for job in jobs for kind in ("service", "timer")
    }
    assert {path.name for path in mailed.glob("gua-fleet-*")} == {
        "gua-fleet-pull.service", "gua-fleet-pull.timer", "gua-fleet-report.service", "gua-fleet-mail.service",
        "gua-fleet-mail.timer",
    }  # fmt: skip
    assert "OnCalendar=Mon 07:00" in lines(mailed, "gua-fleet-mail.timer")
    assert {"Requires=gua-fleet-report.service", "After=gua-fleet-report.service"} <= set(
        lines(mailed, "gua-fleet-mail.service")
    )


def test_what_the_units_run_is_what_gua_fleet_takes(filed: Path, mailed: Path) -> None:
    for job in ("pull", "free", "report"):
        if job in COMMANDS:
            options = asked(filed, f"gua-fleet-{job}")
            assert (options.hosts, options.config_file) == (
                ["/etc/gua-fleet/inventory.yml"], "/etc/gua-fleet/gua-fleet.yml",
            )  # fmt: skip
            assert options.allow_missing == 1_000_000
    page = asked(filed, "gua-fleet-free")
    assert (page.format, page.refresh_s, page.names, page.output) == ("html", 120, False, filed / "free.html")
    report = asked(mailed, "gua-fleet-report")
    assert (report.period, report.format, report.mail_from) == ("last-week", "mail", "gpu@example.org")
    assert report.mail_to == ["ops@example.org", "Boss <boss@example.org>"]
    assert (report.names, report.allow_missing) == (False, 0)


def test_a_stores_url_and_a_sites_own_wishes_reach_the_units(mailed: Path) -> None:
    for job in ("pull", "report", "mail"):
        seen = lines(mailed, f"gua-fleet-{job}.service")
        assert {"OnFailure=tell@%n.service", "EnvironmentFile=/etc/gua-fleet/secrets"} <= set(seen)
        assert 'Environment="GUA_FLEET_STORE=postgresql://db/gua?a=%%20$1"' in seen  # there $ means nothing


def test_the_report_is_filed_by_its_week_and_the_mail_is_that_file(filed: Path, mailed: Path) -> None:
    week = (datetime.now() - timedelta(days=7)).strftime("%G-W%V")
    for folder, ending, form in ((filed, "html", "--format html"), (mailed, "eml", "--format mail")):
        subprocess.run(argv(folder, "gua-fleet-report"), check=True)
        [report] = folder.glob(f"*.{ending}")
        assert report.stem in (week, (datetime.now() - timedelta(days=7)).strftime("%G-W%V"))  # not over midnight
        assert form in report.read_text()
    (report.parent / "cat").write_text('#!/bin/sh\necho "$@"; cat\n')
    (report.parent / "cat").chmod(0o755)
    command = [word.replace("/bin/cat", str(report.parent / "cat")) for word in argv(mailed, "gua-fleet-mail")]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "-t -i\n" + report.read_text()


def test_an_old_systemd_gets_no_setting_it_does_not_know(mailed: Path) -> None:
    unit = (mailed / "gua-fleet-pull.service").read_text()
    assert not re.search("ProtectClock|ProtectHostname|ProtectKernelLogs|ProtectProc|PrivateIPC|RestrictSUIDSGID", unit)


def test_a_mail_program_may_become_another_user(mailed: Path) -> None:
    names = {line.split("=")[0] for line in lines(mailed, "gua-fleet-mail.service") if re.match("[A-Z]", line)}
    # each of these is, or brings with it, NoNewPrivileges
    assert not [
        name for name in names if re.match("NoNew|SystemCall|Restrict|Lock|Memory(Deny)|PrivateDev|Capab", name)
    ]
    assert "ProtectSystem=full" in lines(mailed, "gua-fleet-mail.service")


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    version = re.match(r"systemd (\d+)", shown("--version")) if shutil.which("systemd-analyze") else None
    if version is None or int(version[1]) < 250:
        pytest.skip("needs systemd-analyze 250 or later, which can judge a unit file offline")
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True)


def shown(*arguments: str) -> str:
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("site", ["filed", "mailed"])
def test_systemd_understands_every_unit(site: str, request: pytest.FixtureRequest) -> None:
    done = analyze("verify", *map(str, sorted(request.getfixturevalue(site).glob("gua-fleet-*"))))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize(("job", "threshold"), [("pull", 25), ("free", 25), ("report", 25)])
def test_the_services_are_shut_in_tightly(filed: Path, job: str, threshold: int) -> None:
    unit = str(filed / f"gua-fleet-{job}.service")
    done = analyze("security", "--offline=true", f"--threshold={threshold}", unit)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
