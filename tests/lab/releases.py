"""Agent wheels of other versions, and ones that break in a chosen way: the real wheel with a few lines changed."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path

# What is put at the beginning of the function `run` of a command's module.
EXITS = {"gua/cli/daemon.py": "raise SystemExit(1)"}
DIES_AFTER_5_S = {"gua/cli/daemon.py": "import os, threading; threading.Timer(5, os._exit, (1,)).start()"}
IS_UNHEALTHY = {
    "gua/cli/doctor.py": "import gua.doctor.host as host; "
    "host.check_clock = lambda *given: host.Check('clock', 'fail', 'made to fail')"
}

# `gua enroll` as a board would answer it: one token, once. It stands in until the lab has a board.
ENROLS = """
import os, shutil, sys

def configure(parser):
    for name in ("--settings", "--db", "--server-url", "--enrollment-token-file"):
        parser.add_argument(name)
    parser.add_argument("--check", action="store_true")

def run(options):
    place = "/var/lib/gua/cloud.json"
    if options.check:
        print("enrolled" if os.path.exists(place) else "not enrolled")
        return 0 if os.path.exists(place) else 2
    assert sys.stdin.read().strip().startswith("one-time-"), "that is no token"
    with open(place, "x") as file:
        os.chmod(place, 0o600)
        shutil.chown(place, "gua", "gua")
        file.write("host-token-of-its-own")
    return 0
"""


def alter_wheel(
    wheel: Path, folder: Path, version: str, changes: Mapping[str, str] | None = None, *, enrols: bool = False
) -> Path:
    """A wheel like `wheel`, in `folder`, that says it is `version`.

    changes: module -> what its `run` does first. enrols: whether `gua enroll` is the stand-in.
    """
    old = wheel.name.split("-")[1]
    folder.mkdir(parents=True, exist_ok=True)
    altered = folder / wheel.name.replace(f"-{old}-", f"-{version}-")
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(altered, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            text = source.read(name)
            if name == "gua/__init__.py" or name.endswith((".dist-info/METADATA", ".dist-info/RECORD")):
                text = text.replace(old.encode(), version.encode())
            if name in (changes or {}):
                text = _with_first_line(text.decode(), (changes or {})[name]).encode()
            if enrols and name == "gua/cli/main.py":
                text = text.replace(b"] = {\n", b'] = {\n    "enroll": ("gua.cli.enrols", "a stand-in"),\n', 1)
            target.writestr(name.replace(f"-{old}.dist-info", f"-{version}.dist-info"), text)
        if enrols:
            target.writestr("gua/cli/enrols.py", ENROLS)
    return altered


def _with_first_line(text: str, line: str) -> str:
    changed, times = re.subn(r'(^def run\(.*?\n    """.*?"""\n)', rf"\1    {line}\n", text, flags=re.S | re.M)
    assert times == 1, "the module has no function `run` with a docstring"
    return changed
