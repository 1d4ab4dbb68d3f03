"""What a pull costs the controller: `PYTHONPATH=agent:fleet python -m tests.bench.pull [folder]`, figures, no test.

A month of one host (8 cards, 30 s) and a day of 250 hosts over SSH to servers on loopback, into SQLite and, where its
programs are installed, PostgreSQL; then 100 pulls that are killed at any moment. A `folder` keeps the databases made.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from gua_fleet.store.database import open_store
from gua_fleet.store.place import Place
from tests.agent.export.exporting import NONCE, export, stored_rows
from tests.bench.export import as_live
from tests.bench.store import say
from tests.fleet.ssh.sshd import Keys, StandingSshd
from tests.fleet.store.postgres import Postgres, missing
from tests.fleet.store.pulling import as_kept, kept_rows, present
from tests.fleet.store.test_lies import retold

HOSTS, SERVERS, FORKS, KILLS = 250, 10, 32, 100
PROGRAM = [sys.executable, "-m", "gua_fleet", "pull", "--json", "--timeout", "120s", "--raw-retention", "3650d"]


class Bench:
    def __init__(self, folder: Path, stack: ExitStack) -> None:
        (folder / "keys").mkdir()
        self.folder, self.keys = folder, Keys(folder / "keys")
        self.servers = [
            stack.enter_context(StandingSshd(folder / f"sshd{number}", self.keys, "LogLevel ERROR"))
            for number in range(SERVERS)
        ]
        self.known = folder / "known_hosts"
        self.known.write_text("".join(server.known_line() for server in self.servers))

    def inventory(self, agents: list[Path]) -> Path:
        path = self.folder / f"hosts{len(agents)}.json"
        hosts = {
            agent.name: {
                "ansible_host": "127.0.0.1",
                "ansible_port": self.servers[number % SERVERS].port,
                "ansible_ssh_private_key_file": str(self.keys.client),
                "ansible_ssh_common_args": f"-o UserKnownHostsFile={self.known}",
                "gua_command": str(agent),
            }
            for number, agent in enumerate(agents)
        }
        path.write_text(json.dumps({"all": {"hosts": hosts}}))
        return path

    def agent(self, name: str, first: bytes, later: bytes = b"") -> Path:
        """Answers with these exports, which cost it nothing to make: `first` to who asks for everything."""
        path = self.folder / name
        for kind, data in (("first", first), ("later", later)):
            (self.folder / f"{name}.{kind}").write_bytes(data)
        path.write_text(
            '#!/bin/sh\nfor nonce; do :; done\nfile=later; [ "$3" = 0 ] && file=first\n'
            f'LC_ALL=C exec sed "s/^\\(gua-export-[a-z]* \\){NONCE}/\\1$nonce/" {path}.$file\n'
        )
        path.chmod(0o755)
        return path


def pulled(inventory: Path, store: str, *more: str) -> tuple[float, float, float]:
    """CPU seconds, peak MB and MB on the wire of one whole command."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [*PROGRAM, "-i", str(inventory), "--store", store, "--forks", str(FORKS), *more]
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(command, env=environ, stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        out.seek(0)
        hosts = json.loads(out.read())["hosts"]
    if status:
        raise SystemExit([(one["name"], one["outcome"], one["detail"]) for one in hosts if one["outcome"] != "ok"])
    wire_mb = sum(one["pulled"]["bytes"] for one in hosts) / 1e6
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, wire_mb


def inventory_s(inventory: Path) -> float:
    """CPU seconds of reading the inventory, which every command does first, whatever it asks for then."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "gua_fleet", "hosts", "-i", str(inventory)]
    child = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    usage = os.wait4(child.pid, 0)[2]
    return usage.ru_utime + usage.ru_stime


def month(bench: Bench, database: Path, store: str, label: str) -> None:
    inventory = bench.inventory([bench.agent("month", export(database))])
    cpu_s, peak_mb, wire_mb = pulled(inventory, store)
    say(f"{label}: 30 days of one host, beside the inventory", cpu_s - inventory_s(inventory), "s CPU", 3)
    say(f"{label}: 30 days of one host, peak", peak_mb, "MB", 200)
    say(f"{label}: 30 days of one host, on the wire", wire_mb, "MB", 3)


def day(bench: Bench, database: Path, store: str, label: str) -> None:
    """A day that was pulled before, and the next one: that is measured."""
    half = export(database, 0, 24)
    ids = [f"{number:032x}" for number in range(HOSTS)]
    later = export(database, 23)
    agents = [
        bench.agent(
            f"h{number}",
            retold(half, header={"store_id": ids[number], "newest_rev": 24}),
            retold(later, header={"store_id": ids[number]}),
        )
        for number in range(HOSTS)
    ]
    inventory = bench.inventory(agents)
    pulled(inventory, store)
    cpu_s, peak_mb, wire_mb = pulled(inventory, store)
    say(f"{label}: a day of {HOSTS} hosts, whole process", cpu_s, "s CPU", 60)
    say(f"{label}: a day of {HOSTS} hosts, peak", peak_mb, "MB", 200)
    say(f"{label}: a day of {HOSTS} hosts, on the wire", wire_mb, "MB", HOSTS * 0.15)


def kills(bench: Bench, database: Path) -> None:
    """Killed at any moment of a pull, and each one goes on from there; in the end all is there, once."""
    path = bench.folder / "killed.db"
    agent = bench.folder / "real"
    agent.write_text(f'#!/bin/sh\nexec {sys.executable} -m gua "$@" --db {database}\n')
    agent.chmod(0o755)
    inventory = bench.inventory([agent])
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [*PROGRAM, "-i", str(inventory), "--store", str(path)]
    started_s = time.monotonic()
    pulled(inventory, str(bench.folder / "whole.db"))
    whole_s = time.monotonic() - started_s
    rng, ended, cursors = random.Random(1), 0, [0]
    for _ in range(KILLS):
        child = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0, whole_s))
        ended += child.poll() is not None
        child.send_signal(signal.SIGKILL)
        child.wait()
        if path.exists() and path.stat().st_size:
            with open_store(Place(path=path), now_ms=0) as session:
                cursors += [row[0] for row in session.rows("SELECT rev FROM history")]
    pulled(inventory, str(path))
    with open_store(Place(path=path), now_ms=0) as session:
        whole = kept_rows(session, present(session, "real").id) == as_kept(stored_rows(database))
        sound = session.value("PRAGMA integrity_check") == "ok"
    forward = cursors == sorted(cursors)
    say(f"{KILLS} kills, {ended} after the end: lost or doubled", float(not (whole and sound and forward)), "", 0)


@contextmanager
def stores(folder: Path) -> Iterator[list[tuple[str, Callable[[str], str]]]]:
    """(label, what gives the place of a new store by its name)."""
    kinds: list[tuple[str, Callable[[str], str]]] = [("SQLite", lambda name: str(folder / f"{name}.db"))]
    if missing():
        yield kinds
        return
    server = Postgres()
    try:
        server.start()

        def cleared(name: str) -> str:
            server.clear()
            return server.url

        yield [*kinds, ("PostgreSQL", cleared)]
    finally:
        server.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as made, ExitStack() as stack:
        folder = Path(made)
        kept = Path(sys.argv[1]) if len(sys.argv) > 1 else folder
        for days in (30, 2):
            as_live(kept / f"fine-{days}.db", days)
        bench = Bench(folder, stack)
        for label, place in stack.enter_context(stores(folder)):
            month(bench, kept / "fine-30.db", place("month"), label)
            day(bench, kept / "fine-2.db", place("day"), label)
        kills(bench, kept / "fine-2.db")


if __name__ == "__main__":
    main()
