"""What a report from the store costs: `python -m tests.bench.fleet_store [hosts] [days] [folder] [postgresql]`.

One host of eight cards at 30 s for `days` (30) is recorded and pulled, and its history copied to `hosts` (100) of them,
without single ticks. Figures with their goals; no test. A `folder` keeps the databases for the next time. `postgresql`:
also on a server of its own, as the tests have one.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gua.report.zones import find_zone
from gua_fleet.merge import merge_reports
from gua_fleet.model import Host, HostResult, Outcome
from gua_fleet.render_table import render_fleet
from gua_fleet.store.care import size_bytes
from gua_fleet.store.database import open_store
from gua_fleet.store.models import OF_HISTORY, RAW
from gua_fleet.store.place import Place
from gua_fleet.store.question import Question
from gua_fleet.store.reports import stored_reports
from gua_fleet.store.session import Session
from tests.agent.store.ticks import MONDAY
from tests.bench.export import as_live
from tests.bench.store import say
from tests.fleet.store.postgres import Postgres
from tests.fleet.store.pulling import pull

DAY_MS = 86_400_000
GOAL_S = 1.0


def fill(session: Session, recorded: Path, hosts: int, now_ms: int) -> None:
    """The store with this one host's history as that of each of so many hosts."""
    if session.value("SELECT count(*) FROM history") == hosts:
        return
    pull(session, recorded, name_of(0), now_ms=now_ms)
    copied = [model for model in OF_HISTORY if model not in RAW]
    for number in range(1, hosts):
        with session.writing():
            host = session.insert("host", name=name_of(number), asked_ms=now_ms, pulled_ms=now_ms, outcome="ok")
            history = _copy_history(session, host, number)
            for model in copied:
                meta: Any = model._meta  # peewee's way to ask a model about itself
                names = ", ".join(name for name in meta.fields if name != "history")
                session.execute(
                    f"INSERT INTO {meta.table_name} (history, {names})"
                    f" SELECT {history}, {names} FROM {meta.table_name} WHERE history = 1"
                )
            session.execute("UPDATE device SET uuid = uuid || ? WHERE history = ?", (f"-{number}", history))
    if not session.is_sqlite:
        session.execute("ANALYZE")


def _copy_history(session: Session, host: int, number: int) -> int:
    chosen = ", ".join(name for name in _columns(session, "history") if name not in ("id", "host", "store_id"))
    session.execute(
        f"INSERT INTO history (host, store_id, {chosen}) SELECT ?, store_id || ?, {chosen} FROM history WHERE id = 1",
        (host, f"-{number}"),
    )
    return int(session.value("SELECT max(id) FROM history"))


def _columns(session: Session, table: str) -> list[str]:
    schema = None if session.is_sqlite else "gua_fleet"
    return [column.name for column in session.database.get_columns(table, schema)]


def name_of(number: int) -> str:
    return f"gpu-node-{number:04d}.cluster.example.org"


def report(session: Session, hosts: int, question: Question) -> str:
    """The whole table, as `gua-fleet report --from store` makes it."""
    names = [name_of(number) for number in range(hosts)]
    with session.reading():
        found = stored_reports(session, names, question)
    results = [
        HostResult(Host(name, name, groups=("all", f"rack{place // 40}")), Outcome.STORED, stored=found[name])
        for place, name in enumerate(names)
    ]
    span = {"since_ms": question.since_ms, "until_ms": question.until_ms, "generated_at_ms": question.now_ms}
    return render_fleet(merge_reports(results, **span, tz=question.tz))


def spent_s(session: Session) -> float:
    """CPU seconds so far of this process, and of the server's that works for it."""
    own_s = time.process_time()
    if session.is_sqlite:
        return own_s
    backend = session.value("SELECT pg_backend_pid()")
    times = Path(f"/proc/{backend}/stat").read_text().rpartition(")")[2].split()[11:13]
    return own_s + sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def measure(session: Session, label: str, hosts: int, days: int) -> None:
    zone = find_zone("Europe/Berlin")
    assert zone is not None
    end_ms = MONDAY + days * DAY_MS
    for name, since_ms, goal_s in (
        (f"{hosts} hosts x {days} d, whole days", end_ms - days * DAY_MS, GOAL_S),
        (f"{hosts} hosts x {days - 1} d, from the middle of a day", end_ms - days * DAY_MS + 7 * 3_600_000, GOAL_S),
        (f"{hosts} hosts x 7 d", end_ms - 7 * DAY_MS, GOAL_S),
    ):
        until_ms = end_ms - (0 if "whole" in name else 5 * 3_600_000)
        question = Question(since_ms, until_ms, end_ms + DAY_MS, zone, "Europe/Berlin", holds=False)
        report(session, hosts, question)  # its pages are in memory then, as a machine has them that is asked often
        wall_s, cpu_s = time.perf_counter(), spent_s(session)
        report(session, hosts, question)
        say(f"{label}: {name}", spent_s(session) - cpu_s, "s CPU", goal_s)
        say(f"{label}: {name}, by the clock", time.perf_counter() - wall_s, "s", goal_s)


def main(hosts: int, days: int, folder: Path, server: Postgres | None) -> None:
    recorded = folder / f"recorded-{days}.db"
    as_live(recorded, days)
    places = [("SQLite", Place(path=folder / f"fleet-{hosts}-{days}.db"))]
    places += [] if server is None else [("PostgreSQL", Place(url=server.url))]
    for label, place in places:
        with open_store(place, now_ms=MONDAY) as session:
            fill(session, recorded, hosts, MONDAY + days * DAY_MS)
            measure(session, label, hosts, days)
            size_mb = size_bytes(session) / 1e6
        goal_mb = (3 if place.path else 12) * hosts + (2 if place.path else 5) * days
        say(f"{label}: store of {hosts} hosts x {days} d of sums, one with ticks", size_mb, "MB", goal_mb)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "postgresql"]
    with tempfile.TemporaryDirectory() as made, contextlib.ExitStack() as ending:
        server = None
        if "postgresql" in sys.argv:
            server = Postgres()
            ending.callback(server.close)
            server.start()
        main(
            int(words[0]) if words else 100,
            int(words[1]) if len(words) > 1 else 30,
            Path(words[2]) if len(words) > 2 else Path(made),
            server,
        )
