"""Runs of the real command in a process of its own, as this host's users start it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import gua

PACKAGES = str(Path(gua.__file__).resolve().parents[1])
PATIENCE_S = 90.0
# What a made-up host ticks: now and then a card of it has no process list for a quarter of an hour, as in every fleet.
MADE_UP = {"ok", "partial"}


def environment(home: Path, **more: str) -> dict[str, str]:
    """This process's environment without anything of ours, in a home of its own, on a host with no PCI device."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GUA_") or "SCENE" in name}
    inherited.pop("JOURNAL_STREAM", None)
    (home / "sys/bus/pci/devices").mkdir(parents=True, exist_ok=True)
    own = {"HOME": str(home), "PYTHONPATH": PACKAGES, "GUA_SYSFS_ROOT": str(home / "sys")}
    return {**inherited, **own, "GUA_DB": str(home / "gua.db"), **more}


def command(*words: str, program: str = "gua") -> list[str]:
    return [sys.executable, "-m", program, *words]


def run_gua(home: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run `gua` to its end."""
    return subprocess.run(
        command(*words), env=environment(home, **more), capture_output=True, text=True, timeout=PATIENCE_S
    )


def add_pci_card(home: Path, address: str = "0000:01:00.0") -> None:
    """Put an NVIDIA card on the PCI bus of this host."""
    entry = home / "sys/bus/pci/devices" / address
    entry.mkdir(parents=True)
    (entry / "vendor").write_text("0x10de\n")
    (entry / "class").write_text("0x030200\n")


@dataclass
class Daemon:
    """A running `gua daemon --foreground`."""

    process: subprocess.Popen[bytes]
    log_path: Path

    def log(self) -> str:
        return self.log_path.read_text()

    def stop(self, number: int = signal.SIGTERM) -> float:
        """Signal it, and the seconds it took to end."""
        begin = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(PATIENCE_S)
        return time.monotonic() - begin


@contextlib.contextmanager
def running_daemon(home: Path, *words: str, **more: str) -> Iterator[Daemon]:
    """A daemon with 200 ms ticks, killed at the end if it still runs."""
    log_path = home / "log"
    with log_path.open("wb") as log:
        line = command("daemon", "--foreground", "--interval", "200ms", *words)
        process = subprocess.Popen(line, env=environment(home, **more), stderr=log)
    try:
        yield Daemon(process, log_path)
    finally:
        process.kill()
        process.wait(PATIENCE_S)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Poll until it holds. Fails the test, naming `what`, when it never does."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, f"waited in vain for {what}"
        time.sleep(0.02)


def tick_statuses(database: Path) -> list[str]:
    """Statuses of the ticks stored so far, in order; empty while there is no database yet."""
    import sqlite3

    from gua.store.codes import STATUSES

    if not database.exists():
        return []
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        try:
            rows = connection.execute("SELECT status FROM tick ORDER BY id").fetchall()
        except sqlite3.OperationalError:
            return []
    return [STATUSES[row[0]].value for row in rows]


def check_of(document: dict[str, Any], identifier: str) -> dict[str, Any]:
    """One check of a doctor's document."""
    found: Optional[dict[str, Any]] = next((c for c in document["checks"] if c["id"] == identifier), None)
    assert found is not None, f"no check {identifier}"
    return found


def run_json(home: Path, *words: str, **more: str) -> dict[str, Any]:
    """The JSON document a command prints."""
    document: dict[str, Any] = json.loads(run_gua(home, *words, "--json", **more).stdout)
    return document


@contextlib.contextmanager
def no_daemon_left(home: Path) -> Iterator[None]:
    """Kill whatever daemon has the database of this home when the block ends."""
    try:
        yield
    finally:
        pid = pid_of_daemon(home)
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: pid_of_daemon(home) is None, "the daemon's end")


def pid_of_daemon(home: Path) -> Optional[int]:
    """The daemon that has the database of this home; None when there is none."""
    from gua.daemon.presence import find_daemon

    record = find_daemon(home / "gua.db").record
    return None if record is None else record.pid
