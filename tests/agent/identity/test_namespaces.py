"""Real PID namespaces and a real hidepid, where root may make them; each in a namespace of its own."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.agent.running import environment

pytestmark = pytest.mark.processes

UNSHARE = ("unshare", "--pid", "--fork", "--mount-proc")

IDENTIFY = """
import json, os, subprocess, sys
from pathlib import Path
from gua.clock import SystemClock
from gua.identity.users import build_identifier

trust, hidden = sys.argv[1] == "trust", sys.argv[2] == "hidden"
other = subprocess.Popen(["sleep", "300"])
people = build_identifier(Path("/proc"), SystemClock(), trust_pid_namespace=trust)
people.identify([os.getpid()])  # what it imports lies perhaps where the plain user may not read
if hidden:
    subprocess.run(["mount", "-o", "remount,hidepid=2", "/proc"], check=True)
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
found = people.identify([os.getpid(), other.pid])
print(json.dumps([[who.user_source.value, who.owner_uid, who.start_ticks] for who in found.values()]))
"""

# As a unit with PrivateUsers=yes: only root has a number
IN_USER_NAMESPACE = ("unshare", "--user", "--map-root-user")
IDENTIFY_ONE = """
import sys
from pathlib import Path
from gua.clock import SystemClock
from gua.identity.users import build_identifier
pid = int(sys.argv[1])
who = build_identifier(Path("/proc"), SystemClock(), trust_pid_namespace=True).identify([pid])[pid]
print(who.user, who.owner_uid)
"""


@pytest.fixture(autouse=True, scope="module")
def namespaces() -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root may make a PID namespace")
    if subprocess.run([*UNSHARE, "true"], capture_output=True).returncode != 0:
        pytest.skip("no right to make a PID namespace here")


def identify(home: Path, trust: str, hidden: str = "") -> Any:
    """(user source, owner uid, start) of the program itself and of a process that root started there."""
    done = subprocess.run(
        [*UNSHARE, sys.executable, "-c", IDENTIFY, trust, hidden],
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=90,
    )
    if hidden and "hidepid" in done.stderr:
        pytest.skip("no right to mount /proc with hidepid here")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_in_a_namespace_of_its_own_nobody_is_named_unless_it_is_trusted(tmp_path: Path) -> None:
    assert identify(tmp_path, "") == [["unknown", None, None], ["unknown", None, None]]
    for source, owner, start in identify(tmp_path, "trust"):
        assert (source, owner) != ("unknown", None)
        assert owner == 0
        assert start > 0


def test_with_hidepid_a_plain_user_names_his_own_processes_only(tmp_path: Path) -> None:
    own, roots = identify(tmp_path, "trust", "hidden")
    assert own[:2] == ["system", 65534]
    assert roots == ["unknown", None, None]


def test_in_a_user_namespace_of_its_own_who_has_no_number_there_is_unknown(tmp_path: Path) -> None:
    own, other = IN_USER_NAMESPACE, subprocess.Popen(["sleep", "300"], user=65534, group=65534, extra_groups=[])
    try:
        done = subprocess.run(
            [*own, sys.executable, "-c", IDENTIFY_ONE, str(other.pid)],
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=90,
        )
    finally:
        other.kill()
        other.wait()
    assert (done.returncode, done.stdout.strip()) == (0, "unknown None"), done.stderr


def test_the_doctor_says_why_nobody_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        [*UNSHARE, sys.executable, "-m", "gua", "doctor", "--json"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=90,
    )
    check = next(check for check in json.loads(done.stdout)["checks"] if check["id"] == "pid_namespace")
    assert (check["status"], "users will be unknown" in check["summary"]) == ("warn", True)
