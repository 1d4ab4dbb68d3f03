"""The shell scripts that the role runs on hosts: what is kept of releases, and what putting one back would do."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.running import wait_until

FILES = Path(__file__).parents[2] / "ansible" / "roles" / "gua_agent" / "files"


class Host:
    """A folder that stands for a host's file system, with releases in the order of their names' age."""

    def __init__(self, root: Path, *releases: str) -> None:
        self.root = root / "opt"
        for age, name in enumerate(releases):
            release = self.root / "releases" / name
            release.mkdir(parents=True)
            (release / ".complete").write_text(name)
            os.utime(release, (1_000_000 - age, 1_000_000 - age))
        self.unit, self.config, self.override = root / "unit", root / "config", root / "override"

    def release(self, name: str) -> str:
        return str(self.root / "releases" / name) if name else ""

    def record(self, release: str, old: str = "", keep: int = 2) -> None:
        run("record.sh", self.root, self.release(release), self.release(old), f"wish of {release}", keep,
            self.unit, self.config, self.override)  # fmt: skip

    def rehearse(self, release: str) -> list[str]:
        """What putting back `release` would change, in words."""
        return run("restore.sh", self.root, self.release(release), "gua-test-none.service", self.unit, self.config,
                   self.override, self.root.parent / "gua", "yes").splitlines()  # fmt: skip

    def kept(self) -> set[str]:
        return {path.name for path in (self.root / "releases").iterdir()}


def run(script: str, *arguments: object) -> str:
    done = subprocess.run(
        ["/bin/sh", "-s", "--", *map(str, arguments)],
        input=(FILES / script).read_text(),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture
def host(tmp_path: Path) -> Host:
    host = Host(tmp_path, "3", "2", "1", "0")
    host.unit.write_text("unit\n")
    host.config.write_text("config\n")
    return host


@pytest.mark.parametrize("fetched", [False, True])
def test_a_wheelhouse_that_is_not_the_one_that_was_promised_is_not_installed(tmp_path: Path, fetched: bool) -> None:
    other, archive, release = tmp_path / "other.tar", tmp_path / "house.tar", tmp_path / "release"
    other.write_bytes(b"something else")
    archive.write_bytes(b"" if fetched else other.read_bytes())
    url = other.as_uri() if fetched else ""
    promised = hashlib.sha256(b"what was made").hexdigest()
    done = subprocess.run(
        ["/bin/sh", "-s", "--", sys.executable, str(release), str(archive), "pip.whl", promised, url],
        input=(FILES / "build_release.sh").read_text(), capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"{url or archive} is not what this controller made")
    assert (release.exists(), archive.exists()) == (False, False)


@pytest.mark.parametrize(
    ("keep", "kept"), [(1, {"2", "1"}), (2, {"2", "1"}), (3, {"3", "2", "1"}), (9, {"3", "2", "1", "0"})]
)
def test_the_current_release_and_the_one_before_stay_then_the_newest(host: Host, keep: int, kept: set[str]) -> None:
    host.record("2", old="1", keep=keep)
    assert host.kept() == kept
    assert os.readlink(host.root / "previous") == host.release("1")


def test_deploying_the_same_release_again_does_not_make_it_its_own_predecessor(host: Host) -> None:
    host.record("2", old="1")
    host.record("2", old="2")
    assert os.readlink(host.root / "previous") == host.release("1")


def test_putting_back_names_exactly_what_differs_and_a_rehearsal_changes_nothing(host: Host) -> None:
    (host.root / "current").symlink_to(host.release("2"))
    host.record("2")
    assert host.rehearse("2") == []
    host.config.write_text("other\n")
    host.override.write_text("drop-in\n")
    (host.root / "current").unlink()
    (host.root / "current").symlink_to(host.release("3"))
    assert host.rehearse("2") == [
        f"restored {host.config}", f"restored the absence of {host.override}", f"restored {host.release('2')}",
    ]  # fmt: skip
    assert host.config.read_text() == "other\n"
    assert os.readlink(host.root / "current") == host.release("3")


def children_of(pid: int) -> list[str]:
    """Names of the programs that one has started, as far as they are still there."""
    names = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with contextlib.suppress(OSError):
            names.append(Path(f"/proc/{child}/comm").read_text().strip())
    return names


def test_of_two_builds_at_once_the_second_takes_what_the_first_has_made(tmp_path: Path) -> None:
    release, lock = tmp_path / "release", tmp_path / ".building"
    with lock.open("w") as first, (FILES / "build_release.sh").open() as script:
        fcntl.flock(first, fcntl.LOCK_EX)
        second = subprocess.Popen(
            ["/bin/sh", "-s", "--", sys.executable, str(release), str(tmp_path / "house.tar"), "pip.whl", "", ""],
            stdin=script, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        wait_until(lambda: "flock" in children_of(second.pid), "the second to wait for the first")
        for name in ("python", "gua"):
            program = release / "bin" / name
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text("#!/bin/sh\n")
            program.chmod(0o755)
        (release / ".complete").touch()
    assert (second.communicate(timeout=60)[0], second.returncode) == ("", 0)
    assert (release / ".complete").exists()
