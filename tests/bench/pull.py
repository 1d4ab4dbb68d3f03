"""What a pull costs the controller: `python -m tests.bench.pull [folder [part ...]]`, figures, no test.

A month of one host (8 cards, 30 s) and a day of 250 hosts over SSH to servers on loopback, into SQLite and, where its
programs are installed, PostgreSQL; then 100 pulls that are killed between their first chunk and their last, and 300
whose connection is cut after any byte. A `folder` keeps the databases made. Words after it choose parts: month, day,
kills, cuts; for docs/scale.md also day300 and intake.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from gua.export import stream
from gua_fleet.model import Outcome
from gua_fleet.pull import PullSettings, pull_hosts
from gua_fleet.ssh.settings import SweepSettings
from gua_fleet.store.care import size_bytes
from gua_fleet.store.database import open_store
from gua_fleet.store.histories import histories
from gua_fleet.store.intake import Intake
from gua_fleet.store.place import find_place
from gua_fleet.store.session import Session
from tests.agent.export.exporting import NONCE, export, stored_rows
from tests.agent.export.test_stream import history
from tests.bench.export import as_live
from tests.bench.store import cpu_ms, say
from tests.fleet.pull.hosts import real_agent
from tests.fleet.ssh.cutter import Cutter
from tests.fleet.ssh.sshd import Keys, StandingSshd
from tests.fleet.ssh.sshd import host as ssh_host
from tests.fleet.store.killing import LEAST_REVS, kill_in_mid_pull
from tests.fleet.store.postgres import Postgres, missing
from tests.fleet.store.pulling import as_kept, day_rows, kept_rows, present, pull, take_in
from tests.fleet.store.test_lies import retold

HOSTS, SERVERS, FORKS, KILLS, CUTS = 250, 10, 32, 100, 300
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


def day(bench: Bench, database: Path, store: str, label: str, hosts: int = HOSTS) -> None:
    """A day that was pulled before, and the next one: that is measured."""
    half = export(database, 0, 24)
    ids = [f"{number:032x}" for number in range(hosts)]
    later = export(database, 23)
    agents = [
        bench.agent(
            f"h{number}",
            retold(half, header={"store_id": ids[number], "newest_rev": 24}),
            retold(later, header={"store_id": ids[number]}),
        )
        for number in range(hosts)
    ]
    inventory = bench.inventory(agents)
    pulled(inventory, store)
    cpu_s, peak_mb, wire_mb = pulled(inventory, store)
    say(f"{label}: a day of {hosts} hosts, whole process", cpu_s, "s CPU", 60 * hosts / 250)
    say(f"{label}: a day of {hosts} hosts, peak", peak_mb, "MB", 200)
    say(f"{label}: a day of {hosts} hosts, on the wire", wire_mb, "MB", hosts * 0.15)


def intake(database: Path, store: str, label: str) -> None:
    """A day of many hosts taken in without SSH: what the store itself costs, and how large it becomes."""
    with open_store(find_place(store), now_ms=0) as session:
        for hosts, rollups_only in ((300, False), (3_000, True)):
            data = export(database, 0, 24, rollups_only=rollups_only)
            before, spent_s = size_bytes(session), 0.0
            for number in range(hosts):
                one = Intake(session, f"{rollups_only}{number}", rollups_only=rollups_only)
                answer = retold(data, header={"store_id": f"{rollups_only}{number}"})
                asked_rev = one.since_rev()
                spent_s += cpu_ms(lambda one=one, answer=answer, rev=asked_rev: take_in(one, answer, rev)) / 1000  # type: ignore[misc]
            what = f"{label}: a day of {hosts} hosts{', sums alone' if rollups_only else ''}, taken in"
            say(what, spent_s, "s CPU", hosts * (0.02 if rollups_only else 0.15))
            say(
                f"{what}, in the store",
                (size_bytes(session) - before) / 1e6,
                "MB",
                hosts * (0.5 if rollups_only else 5),
            )


def small_chunks(folder: Path) -> tuple[Path, Path]:
    """A host's database, and its agent, which sends forty rows a chunk: fifty of them."""
    database = folder / "small.db"
    if not database.exists():
        history(database, 0, 300)
    return database, real_agent(folder / "small", database)


def kills(bench: Bench, store: str, label: str, count: int) -> None:
    """Killed at any moment between the first chunk and the last, and each goes on from there: all is there, once."""
    database, agent = small_chunks(bench.folder)
    place = find_place(store)
    with open_store(place, now_ms=0) as session:
        newest = pull(session, database, "unbroken").taken.rev or 0
    rng, left, host_number, midst, moved = random.Random(1), 0, 0, 0, 0
    for number in range(count):
        host_number += left < LEAST_REVS
        folder, name = bench.folder / f"{label}-kill{number}", f"gpu{host_number}"
        before, reached = kill_in_mid_pull(folder, agent, place, name, rng.uniform(0, 0.15))
        midst += before < reached < newest
        moved += reached - before
        left = newest - reached
    say(f"{label}: of {count} kills, not in mid-pull", count - midst, "", 0)
    say(f"{label}: revisions that a killed pull had brought, on average", moved / count, "", newest)
    with open_store(place, now_ms=0) as session:
        wrong = [name for name in _hosts(session) if not _is_whole(session, name, database)]
        sound = not session.is_sqlite or session.value("PRAGMA integrity_check") == "ok"
        say(f"{label}: {len(_hosts(session)) - 1} hosts of them, lost or doubled", len(wrong) + (not sound), "", 0)


def _hosts(session: Session) -> list[str]:
    return sorted({one.name for one in histories(session)})


def _is_whole(session: Session, name: str, database: Path) -> bool:
    """Whether a last pull leaves what is in the host's database, and sums as of a pull that nothing disturbed."""
    pull(session, database, name)
    own, unbroken = present(session, name).id, present(session, "unbroken").id
    same_days = day_rows(session, own) == day_rows(session, unbroken)
    return kept_rows(session, own) == as_kept(stored_rows(database)) and same_days


def ready_answers(folder: Path, database: Path) -> Path:
    """An agent that has its answer to every question ready, so that a cut costs little more than the connection."""
    agent = folder / "gua"
    if folder.exists():
        return agent
    folder.mkdir()
    chunk_rows, stream.CHUNK_ROWS = stream.CHUNK_ROWS, 40
    for since_rev in range(1_200):
        answer = export(database, since_rev)
        (folder / str(since_rev)).write_bytes(answer)
        if b"gua-export-chunk" not in answer:
            break
    stream.CHUNK_ROWS = chunk_rows
    agent.write_text(
        f"#!/bin/sh\nfor nonce; do :; done\n"
        f'LC_ALL=C exec sed "s/^\\(gua-export-[a-z]* \\){NONCE}/\\1$nonce/" {folder}/$3\n'
    )
    agent.chmod(0o755)
    return agent


def cuts(bench: Bench, store: str, label: str, count: int) -> None:
    """The SSH connection cut after any number of bytes; each host is pulled until nothing is left, then the next."""
    database, place, server = small_chunks(bench.folder)[0], find_place(store), bench.servers[0]
    agent = ready_answers(bench.folder / "answers", database)
    known = bench.folder / f"{label}-known"
    with open_store(place, now_ms=0) as session, closing(Cutter(server.port)) as cutter:
        known.write_text(server.known_line().replace(str(server.port), str(cutter.port)))

        def pull_cut(name: str, after_bytes: int | None) -> Outcome:
            cutter.cut_after(after_bytes)
            host = ssh_host(cutter.port, bench.keys, known, agent, name=name)
            settings = PullSettings(raw_ms=None)
            return pull_hosts([host], session, place, settings, SweepSettings(timeout_s=120)).results[0].outcome

        if pull_cut("unbroken", None) is not Outcome.OK:
            raise SystemExit("it does not even go without a cut")
        whole, rng = cutter.sent, random.Random(1)
        number = cut = midst = 0
        while cut < count:
            outcome = pull_cut(f"gpu{number}", rng.randrange(whole))
            cut += outcome is not Outcome.OK
            midst += outcome is not Outcome.OK and f"gpu{number}" in _hosts(session)
            number += outcome is Outcome.OK
        wrong = [name for name in _hosts(session) if not _is_whole(session, name, database)]
        say(f"{label}: of {count} cuts, before the host had sent anything that is kept", count - midst, "", count)
        say(f"{label}: {number + 1} hosts of {count} cuts, lost or doubled", len(wrong), "", 0)


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


PARTS: dict[str, Callable[[Bench, Path, str, str], None]] = {
    "month": lambda bench, kept, store, label: month(bench, kept / "fine-30.db", store, label),
    "day": lambda bench, kept, store, label: day(bench, kept / "fine-2.db", store, label),
    "day300": lambda bench, kept, store, label: day(bench, kept / "fine-2.db", store, label, 300),
    "intake": lambda bench, kept, store, label: intake(kept / "fine-2.db", store, label),
    "kills": lambda bench, kept, store, label: kills(bench, store, label, KILLS),
    "cuts": lambda bench, kept, store, label: cuts(bench, store, label, CUTS),
}


def main() -> None:
    with tempfile.TemporaryDirectory() as made, ExitStack() as stack:
        folder = Path(made)
        kept = Path(sys.argv[1]) if len(sys.argv) > 1 else folder
        parts = sys.argv[2:] or ["month", "day", "kills", "cuts"]
        for days in (30, 2):
            if days == 2 or "month" in parts:
                as_live(kept / f"fine-{days}.db", days)
        bench = Bench(folder, stack)
        for label, place in stack.enter_context(stores(folder)):
            for part in parts:
                PARTS[part](bench, kept, place(part), label)


if __name__ == "__main__":
    main()
