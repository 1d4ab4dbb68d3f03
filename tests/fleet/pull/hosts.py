"""Hosts whose agents run here, and what a pull of them leaves in the store."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from gua_fleet.model import Host
from gua_fleet.pull import Pulled, PullSettings, pull_hosts
from gua_fleet.ssh.settings import SweepSettings
from gua_fleet.store.place import Place
from gua_fleet.store.session import Session
from tests.agent.export.exporting import stored_rows
from tests.fleet.ssh.sshd import REPOSITORY
from tests.fleet.store.pulling import as_kept, kept_rows, present

# Chunks of a few rows, so that there are many in a small history.
_AGENT = """#!/bin/sh
export PYTHONPATH={agent} PYTHONDONTWRITEBYTECODE=1
exec {python} -c 'import sys
import gua.export.stream as stream
stream.CHUNK_ROWS = 40
from gua.cli.main import main
sys.exit(main(sys.argv[1:]))' "$@" --db {database}
"""


def real_agent(path: Path, database: Path) -> Path:
    return script(
        path,
        _AGENT.format(
            agent=shlex.quote(str(REPOSITORY / "agent")),
            python=shlex.quote(sys.executable),
            database=shlex.quote(str(database)),
        ),
    )


def script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def local(name: str, agent: Path, **more: object) -> Host:
    return Host(name, name, connection="local", gua_command=(str(agent),), **more)  # type: ignore[arg-type]


def pulled(
    session: Session, place: Place, *hosts: Host, timeout_s: float = 60.0, forks: int = 32, **settings: object
) -> Pulled:
    asking = SweepSettings(forks, timeout_s)
    return pull_hosts(hosts, session, place, PullSettings(raw_ms=None, **settings), asking)  # type: ignore[arg-type]


def assert_kept(session: Session, name: str, database: Path) -> None:
    assert kept_rows(session, present(session, name).id) == as_kept(stored_rows(database))
