"""Agent wheels of other versions, and ones that break in a chosen way: the real wheel with a few lines changed."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path

# What is put at the beginning of the function `run` of a command's module.
EXITS = {"gua/cli/daemon.py": "raise SystemExit(1)"}
FEARS_BOARDS = {"gua/cli/daemon.py": "if options.cloud: raise SystemExit(1)"}
MARK = "/etc/gua-marked-by-a-test"
# The mark holds the version that must not come up.
EXITS_WHERE_MARKED = {
    "gua/cli/daemon.py": f"import os, gua; os.path.exists({MARK!r}) and open({MARK!r}).read() == gua.__version__ "
    "and os._exit(1)"
}
# Brings the database to a schema that this version does not know; its doctor, a program of its own, does not either.
WRITES_A_NEWER_SCHEMA = {
    "gua/cli/daemon.py": "from gua.store import database, migrations, version; "
    "migrations.STEPS += (lambda connection: connection.execute('CREATE TABLE later (x)'),); "
    "database.SCHEMA_VERSION = migrations.SCHEMA_VERSION = version.SCHEMA_VERSION = version.SCHEMA_VERSION + 1"
}
# A controller of which the agents are too old.
READS_LATER_REPORTS = {"gua_fleet/cli/doctor.py": "from gua_fleet import protocol; protocol.READS = ('gua.report/2',)"}
DIES_AFTER_5_S = {"gua/cli/daemon.py": "import os, threading; threading.Timer(5, os._exit, (1,)).start()"}
IS_UNHEALTHY = {
    "gua/cli/doctor.py": "import gua.doctor.host as host; "
    "host.check_clock = lambda *given: host.Check('clock', 'fail', 'made to fail')"
}


def alter_wheel(wheel: Path, folder: Path, version: str, changes: Mapping[str, str] | None = None) -> Path:
    """A wheel like `wheel`, in `folder`, that says it is `version`. changes: module -> what its `run` does first."""
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
            target.writestr(name.replace(f"-{old}.dist-info", f"-{version}.dist-info"), text)
    return altered


def _with_first_line(text: str, line: str) -> str:
    changed, times = re.subn(r'(^def run\(.*?\n    """.*?"""\n)', rf"\1    {line}\n", text, flags=re.S | re.M)
    assert times == 1, "the module has no function `run` with a docstring"
    return changed


def rename_schema(wheel: Path, old: str, new: str) -> None:
    """Make the agent of a wheel one that writes a document of another number: `report.1`, `report.2`."""
    unchanged = wheel.rename(wheel.with_suffix(".old"))
    with zipfile.ZipFile(unchanged) as source, zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            target.writestr(name.replace(f"gua/schemas/gua.{old}.", f"gua/schemas/gua.{new}."), source.read(name))
