"""Wheelhouses: everything a host needs to install gua-fleet without any network, one archive per Python line.

The playbook runs `python -m gua_fleet.wheelhouse --python 3.11 --python 3.9` on the controller, and reads from stdout

    {"version": "0.1.0", "houses": {"3.11": {"archive": PATH, "release": "0.1.0-py311-1a2b3c4d", "version": "0.1.0",
                                             "pip": WHEEL, "sha256": HEX, "needed_bytes": N}}}

sha256 is the archive's: hosts that fetch it from elsewhere check it, so the same house must always give the same bytes.

Dependencies come from lock files that name hashes, so what is installed does not depend on the day. The agent's are
pure-Python wheels, so one house serves every architecture. The controller's (`--fleet MACHINE`) are compiled ones for
one kind of machine. The standard library and pip are all this needs.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional

from gua.errors import GuaError
from gua_fleet.agent_wheel import find_checkout, make_agent_wheel, run_pip
from gua_fleet.protocol import judge, wheel_documents

# A host needs while a release is built: the archive, its wheels, and their content (six times as much) with byte code.
_NEEDED_TIMES = 14
LOCKS = Path(__file__).with_name("locks")
# Any Python, any machine: pip would prefer compiled wheels, which fit one Python line on one architecture.
PURE = ("--only-binary=:all:", "--platform", "any", "--abi", "none", "--implementation", "py")
# Kinds of machine that the controller installs on, as `uname -m` tells them, with glibc from 2.17 on or, at the latest,
# the 2.28 of Debian 10 and RHEL 8. pip does not know that a newer glibc runs what an older one does.
MACHINES = ("x86_64", "aarch64")
_GLIBC_MINORS = range(28, 16, -1)


class WheelhouseUnavailable(GuaError):
    """A wheelhouse cannot be made here; the message says what to do."""


def compiled(machine: str, python: str) -> list[str]:
    """What makes pip fetch wheels for one kind of machine and Python line, compiled where there is such a one."""
    tag = f"cp{python.replace('.', '')}"
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in _GLIBC_MINORS] + [f"manylinux2014_{machine}"]
    words = [word for platform in platforms for word in ("--platform", platform)]
    abis = ["--abi", tag, "--abi", "abi3", "--abi", "none"]
    return ["--only-binary=:all:", *words, *abis, "--implementation", "cp"]


def lock_of(python: str, machine: Optional[str] = None) -> Path:
    """The lock file of a Python line such as "3.11"; machine: the controller's. Raises WheelhouseUnavailable."""
    if machine is not None and machine not in MACHINES:
        raise WheelhouseUnavailable(
            f"no wheels of the controller for machines of type {machine}: it installs on {', '.join(MACHINES)}"
        )
    prefix, what = ("py", "agent") if machine is None else ("fleet-py", "controller")
    lock = LOCKS / f"{prefix}{python.replace('.', '')}.txt"
    if not lock.is_file():
        stems = (path.stem.removeprefix("fleet-") for path in LOCKS.glob(f"{prefix}*.txt"))
        known = sorted(stems, key=lambda stem: int(stem[3:]))
        raise WheelhouseUnavailable(f"no lock file for Python {python}: the {what} installs on {', '.join(known)}")
    return lock


def make_wheelhouse(python: str, wheel: Path, cache: Path, machine: Optional[str] = None) -> dict[str, Any]:
    """The house of one Python line, as above. needed_bytes: the room that a host needs to install it.

    machine: with the controller's dependencies, for this kind of machine. Made once, then taken from `cache` as long as
    every file in it has the hash its manifest names.
    """
    lock = lock_of(python, machine)
    release = release_name(python, wheel, lock, machine)
    house, archive = cache / "houses" / release, cache / "houses" / f"{release}.tar"
    fresh = not is_intact(house)
    if fresh:
        shutil.rmtree(house, ignore_errors=True)
        _fill(house, python, wheel, lock, PURE if machine is None else compiled(machine, python))
    _pack(house, archive)  # every time: only the house is known to be intact
    if fresh:
        sys.stderr.write(f"newly made: {archive}\n")
    pip = next(path.name for path in house.glob("pip-*.whl"))
    return {
        "archive": str(archive),
        "release": release,
        "version": _version(wheel),
        "pip": pip,
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        "needed_bytes": _NEEDED_TIMES * archive.stat().st_size,
    }


def release_name(python: str, wheel: Path, lock: Path, machine: Optional[str] = None) -> str:
    """`<version>-py311-<digest>`: two builds of one version that differ in what is run get two names.

    Of the agent only its own code counts; of the controller (`<version>-py311-x86_64-<digest>`) all of the wheel.
    """
    digest = hashlib.sha256(lock.read_bytes())
    counting = "gua/" if machine is None else ("gua/", "gua_fleet/")
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(name for name in archive.namelist() if name.startswith(counting)):
            digest.update(f"{name}\0{hashlib.sha256(archive.read(name)).hexdigest()}\n".encode())
    words = [_version(wheel), f"py{python.replace('.', '')}", *([machine] if machine else []), digest.hexdigest()[:8]]
    return "-".join(words)


def _version(wheel: Path) -> str:
    return wheel.name.split("-")[1]


def is_intact(house: Path) -> bool:
    """Whether a house holds exactly the files that its MANIFEST.json names, unchanged."""
    try:
        return bool(json.loads((house / "MANIFEST.json").read_text())["files"] == _hashes(house))
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _hashes(house: Path) -> dict[str, str]:
    files = sorted(path for path in house.iterdir() if path.name != "MANIFEST.json")
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _fill(house: Path, python: str, wheel: Path, lock: Path, kind: Sequence[str]) -> None:
    """Fetch into a folder beside `house` and put it in place in one step, so that a half-filled house never shows."""
    house.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=house.parent) as scratch:
        fresh = Path(scratch) / "house"
        fresh.mkdir()
        run_pip(
            "download", "--no-deps", "--require-hashes", *kind, "--python-version", python,
            "--dest", str(fresh), "--requirement", str(lock), failed=WheelhouseUnavailable,
        )  # fmt: skip
        shutil.copy(wheel, fresh)
        requirement = f"gua-fleet=={_version(wheel)} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"
        (fresh / "requirements.txt").write_text(lock.read_text() + requirement)
        manifest = {"version": _version(wheel), "python": python, "files": _hashes(fresh)}
        (fresh / "MANIFEST.json").write_text(json.dumps(manifest, indent=1) + "\n")
        fresh.rename(house)


def _pack(house: Path, archive: Path) -> None:
    """One tar of the house; not compressed, for wheels already are."""
    unfinished = archive.with_suffix(".new")
    with tarfile.open(unfinished, "w") as tar:
        for path in sorted(house.iterdir()):
            tar.add(path, arcname=path.name, filter=_of_nobody)
    unfinished.rename(archive)


def _of_nobody(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without what differs between two controllers that hold the same files."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o644
    return entry


def default_cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "gua-fleet"


def _own(cache: Path) -> None:
    """Make the folder, ours alone: hosts install, as root, what lies in it. Raises WheelhouseUnavailable."""
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    if cache.stat().st_uid != os.geteuid():
        raise WheelhouseUnavailable(
            f"{cache} belongs to another user: remove it, or set XDG_CACHE_HOME to a folder of your own"
        )
    cache.chmod(0o700)


# What zipfile raises for an archive that is torn, encrypted or packed in a way that it does not know.
_TORN = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, UnicodeDecodeError)


def _refuse_torn(wheel: Path) -> None:
    """Raise WheelhouseUnavailable for a file that is no wheel by its name, or not whole. Raises OSError."""
    cause: Exception | None = None
    try:
        with zipfile.ZipFile(wheel) as archive:
            whole = archive.testzip() is None and wheel.name.count("-") >= 4
    except _TORN as exc:
        whole, cause = False, exc
    if not whole:
        raise WheelhouseUnavailable(f"{wheel} is no wheel: name another with gua_wheel") from cause


def _refuse_unreadable(wheel: Path) -> None:
    """Raise WheelhouseUnavailable for an agent that this gua-fleet could not read once it runs everywhere."""
    verdict = judge(wheel_documents(wheel), _version(wheel))
    if not verdict.readable:
        raise WheelhouseUnavailable(f"{wheel.name}: {verdict.summary}: deploy it with the gua-fleet of its own version")


def main(argv: Sequence[str] | None = None) -> int:
    """Entry of `python -m gua_fleet.wheelhouse`. Prints JSON; a failure is one line on stderr and status 1."""
    parser = argparse.ArgumentParser(prog="gua_fleet.wheelhouse", description="Make wheelhouses.")
    parser.add_argument("--python", action="append", required=True, metavar="X.Y", help="a Python line; repeatable")
    parser.add_argument("--wheel", type=Path, metavar="FILE", help="the wheel (default: this gua-fleet's own)")
    parser.add_argument("--fleet", metavar="MACHINE", help="for the controller, on machines of this type (`uname -m`)")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="where to keep them (%(default)s)")
    options = parser.parse_args(argv)
    try:
        _own(options.cache)
        with (options.cache / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two deployments at once must not fill the same house
            wheel = options.wheel or make_agent_wheel(find_checkout(), options.cache / "wheels")
            if options.wheel:
                _refuse_torn(wheel)
            if options.wheel and options.fleet is None:
                _refuse_unreadable(wheel)
            houses = {line: make_wheelhouse(line, wheel, options.cache, options.fleet) for line in options.python}
    except (GuaError, OSError) as exc:
        sys.stderr.write(f"wheelhouse: {exc}\n")
        return 1
    document: dict[str, Any] = {"version": _version(wheel), "houses": houses}
    sys.stdout.write(json.dumps(document) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
