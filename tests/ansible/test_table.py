"""The table that ends a run: every host with what became of it, however the run ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ANSIBLE = Path(__file__).parents[2] / "ansible"
PLAY = """
- hosts: all
  connection: local
  gather_facts: false
  tasks:
    - ansible.builtin.set_stats:
        per_host: true
        data: {gua: {old: 1.0, reason: note}}
- hosts: all
  connection: local
  gather_facts: false
  serial: 1
  max_fail_percentage: 0
  tasks:
    - ansible.builtin.set_stats:
        per_host: true
        data: {gua: {new: 2.0, result: deployed}}
      when: inventory_hostname == 'a'
    - ansible.builtin.fail:
        msg: "{{ inventory_hostname }}: it is broken\\nand more"
      when: inventory_hostname == 'b'
"""

REFUSING = """
- hosts: all
  connection: local
  gather_facts: false
  tasks:
    - ansible.builtin.copy:
        content: x
        dest: "{{ playbook_dir }}/settings"
        mode: "0644"
        validate: ls --no-such-option %s
"""

FAILING = """
- hosts: all
  connection: local
  gather_facts: false
  tasks:
    - ansible.builtin.command:
        argv: [sh, -c, "printf 'Traceback:\\n  a line\\nError: no room\\n' >&2; exit 1"]
"""


def test_hosts_that_worked_failed_and_were_not_reached_all_have_a_line(tmp_path: Path) -> None:
    (tmp_path / "play.yml").write_text(PLAY)
    (tmp_path / "callback_plugins").symlink_to(ANSIBLE / "callback_plugins")
    python = json.dumps({"ansible_python_interpreter": sys.executable})
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "-i", "a,b,c,", "-e", python, str(tmp_path / "play.yml")],
        capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "ANSIBLE_HOME": str(tmp_path / "home"), "ANSIBLE_NOCOLOR": "1"},
    )  # fmt: skip
    table = done.stdout.partition("HOSTS ***")[2].splitlines()[1:]
    assert [line.split(maxsplit=4) for line in table] == [
        ["host", "old", "new", "result", "reason"],
        ["a", "1.0", "2.0", "deployed", "note"],
        ["b", "1.0", "-", "failed", "it is broken"],
        ["c", "1.0", "-", "not", "touched  the run ended before it got here"],
    ]


@pytest.mark.parametrize(("play", "words"), [(FAILING, "Error: no room"), (REFUSING, "Try 'ls --help'")])
def test_of_a_program_that_failed_its_last_line_is_told(tmp_path: Path, play: str, words: str) -> None:
    (tmp_path / "play.yml").write_text(play)
    (tmp_path / "callback_plugins").symlink_to(ANSIBLE / "callback_plugins")
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "-i", "a,", str(tmp_path / "play.yml"),
         "-e", json.dumps({"ansible_python_interpreter": sys.executable})],
        capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "ANSIBLE_HOME": str(tmp_path / "home"), "ANSIBLE_NOCOLOR": "1"},
    )  # fmt: skip
    *columns, reason = done.stdout.rstrip().splitlines()[-1].split(maxsplit=4)
    assert columns == ["a", "-", "-", "failed"]
    assert reason.startswith(words)
