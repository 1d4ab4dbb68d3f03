"""The root file system that all lab hosts share: made once per suite and recipe, then only read."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.needs import LabUnavailable, last_line

LAB_ROOT = Path(os.environ.get("GUA_LAB_ROOT", "/var/tmp/gua-lab"))
# Part of the cached base's name: raise it with every change to what is built here.
RECIPE = 1
# A base takes about a minute and a half; a slow mirror deserves patience, a dead one does not deserve an hour.
BUILD_TIMEOUT_S = 900
# python3-venv is left out on purpose: the role must do without it, as many real hosts do.
PACKAGES = (
    "systemd", "systemd-sysv", "dbus", "libpam-systemd", "libnss-systemd", "openssh-server", "python3",
    "iproute2", "sudo",
)  # fmt: skip
MASKED_UNITS = (
    "apt-daily.timer", "apt-daily-upgrade.timer", "console-getty.service", "systemd-networkd-wait-online.service",
)  # fmt: skip


def machine_suite() -> str:
    """The Debian or Ubuntu release to boot: GUA_LAB_SUITE, else this machine's own."""
    suite = os.environ.get("GUA_LAB_SUITE") or _codename()
    if not suite or shutil.which("apt-get") is None:
        raise LabUnavailable("the lab needs Debian or Ubuntu: its hosts come from this machine's apt sources")
    return suite


def _codename() -> str:
    """This machine's own release; empty where it has no such name."""
    fields = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    return fields.get("VERSION_CODENAME", "").strip('"')


def ensure_base(suite: str) -> Path:
    """The base of `suite`, built when it is not there. Whoever comes second waits for the first."""
    _own_root()
    base = LAB_ROOT / "base" / f"{suite}-{RECIPE}"
    base.parent.mkdir(parents=True, exist_ok=True)
    with locked(base.with_name(f"{base.name}.lock")):
        if not base.exists():
            unfinished = base.with_name(f"{base.name}.new")
            shutil.rmtree(unfinished, ignore_errors=True)
            _build(suite, unfinished)
            unfinished.rename(base)
    return base


def _own_root() -> None:
    """Make LAB_ROOT, which only root may write: root boots what lies in it, and everybody may write beside it."""
    LAB_ROOT.mkdir(mode=0o755, parents=True, exist_ok=True)
    status = LAB_ROOT.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != 0 or status.st_mode & 0o022:
        raise LabUnavailable(f"{LAB_ROOT} can be written by others than root: remove it")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path`; waits for it. The kernel frees it when its holder dies, however it dies."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(suite: str, root: Path) -> None:
    log = root.with_suffix(".log")
    command = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", suite, str(root), _mirror(suite)]
    with log.open("w") as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, timeout=BUILD_TIMEOUT_S)
    if done.returncode != 0:
        raise LabUnavailable(f"debootstrap {suite} failed: {last_line(log.read_text())} (all of it in {log})")
    _settle(root)


def _mirror(suite: str) -> str:
    """The package mirror of this machine's own apt sources: of `suite`, else of this machine's own release.

    Not just any: other vendors' packages lie in sources too.
    """
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(CODENAME) $(COMPONENT) $(REPO_URI)", "Created-By: Packages"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    targets = [line.split() for line in listed.splitlines()]
    mirrors = {codename: uri for codename, component, uri in targets if component == "main"}
    mirror = mirrors.get(suite) or mirrors.get(_codename())
    if mirror is None:
        raise LabUnavailable("this machine's apt sources name no mirror for the lab's hosts")
    return mirror


def _settle(root: Path) -> None:
    """Turn a fresh debootstrap into a base: nothing that hosts must not share, and a user who may become root."""
    for key in (root / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    for archive in (root / "var/cache/apt/archives").glob("*.deb"):
        archive.unlink()
    (root / "etc/machine-id").write_text("")
    for unit in MASKED_UNITS:
        (root / "etc/systemd/system" / unit).symlink_to("/dev/null")
    subprocess.run(["chroot", str(root), "useradd", "--create-home", "--shell", "/bin/bash", "deploy"], check=True)
    sudoers = root / "etc/sudoers.d/deploy"
    sudoers.write_text("deploy ALL=(ALL) NOPASSWD: ALL\n")
    sudoers.chmod(0o440)
    (root / "var/log/journal").mkdir(exist_ok=True)
