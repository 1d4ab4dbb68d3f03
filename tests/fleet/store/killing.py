"""Pulls that are killed in their midst: the first chunk is in the store, and the last one was never sent."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from gua_fleet.store.database import open_to_read
from gua_fleet.store.histories import histories
from gua_fleet.store.place import Place
from tests.fleet.ssh.sshd import REPOSITORY
from tests.fleet.store.pulling import NOW_MS

# More than the last chunk of forty rows and the end have, and less than three such chunks.
_HELD_BACK_BYTES = 1_500

# Of ten ticks each: so many must be left for one of them to come before what is held back.
LEAST_REVS = 7

_PATIENCE_S = 120.0

_AGENT = """#!/bin/sh
{agent} "$@" >{folder}/answer
size=$(wc -c <{folder}/answer)
head -c $((size - {held})) {folder}/answer
until [ -e {folder}/over ]; do sleep 0.05; done
"""

PATHS = {"PYTHONPATH": os.pathsep.join(str(REPOSITORY / part) for part in ("agent", "fleet"))}

_PULL = """
import sys
from pathlib import Path
from gua_fleet.model import Host
from gua_fleet.pull import PullSettings, pull_hosts
from gua_fleet.ssh.settings import SweepSettings
from gua_fleet.store.database import open_store
from gua_fleet.store.place import Place
_, store, name, agent = sys.argv
place = Place(url=store) if "://" in store else Place(path=Path(store))
host = Host(name, name, connection="local", gua_command=(agent,))
with open_store(place, now_ms=0) as session:
    pull_hosts([host], session, place, PullSettings(raw_ms=None), SweepSettings(timeout_s=600))
"""


def pulling_program(place: Place, name: str, agent: Path) -> list[str]:
    """The command that pulls this host; it needs PATHS in its environment."""
    return [sys.executable, "-c", _PULL, place.url or str(place.path), name, str(agent)]


def cursor(place: Place, name: str) -> int:
    """How far the store has come with a host; 0: it has nothing of it."""
    with open_to_read(place, now_ms=NOW_MS) as session:
        return max((one.rev for one in histories(session) if one.name == name), default=0)


def kill_in_mid_pull(folder: Path, agent: Path, place: Place, name: str, after_s: float) -> tuple[int, int]:
    """Pull host `name` into a store that is there, and kill the pull `after_s` after its first chunk came in.

    The cursor as it was before, and as it is then. folder: a new one, for this. agent: what answers.
    """
    folder.mkdir()
    holding = folder / "gua"
    holding.write_text(_AGENT.format(agent=agent, folder=folder, held=_HELD_BACK_BYTES))
    holding.chmod(0o755)
    before = cursor(place, name)
    command = pulling_program(place, name, holding)
    with subprocess.Popen(command, env={**os.environ, **PATHS}, start_new_session=True) as child:
        until_s = time.monotonic() + _PATIENCE_S
        while cursor(place, name) == before:
            if child.poll() is not None or time.monotonic() > until_s:
                child.kill()
                raise AssertionError("no chunk came, or the pull ended though its agent holds the last one back")
            time.sleep(0.005)
        time.sleep(after_s)  # not to wait for anything: any moment from here on is in its midst
        assert child.poll() is None
        child.kill()
    (folder / "over").touch()
    return before, cursor(place, name)
