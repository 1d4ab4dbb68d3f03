"""The history of real hosts, pulled from them over SSH: the store's report of a window is the live one, to the second.

Each host has recorded hours of work of its own and goes on recording; the windows lie before now, so that every
answer is to the same question.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from gua.host import read_machine_id
from gua.model import Tick
from tests.agent.store.opened import SetClock, writing
from tests.agent.store.ticks import HOUR, card, holder, tick
from tests.fleet.store.reported import figures, holds
from tests.lab.deployment import QUICK, Site
from tests.lab.harness import Lab
from tests.lab.host import LabHost

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[2]
READERS = "gpureaders"
HOSTS = {"atlas": ("NVIDIA H100", 2), "boreas": ("NVIDIA A100", 3), "cetus": ("NVIDIA L40S", 1)}
USERS = ("alice", "bob", "carol")
INTERVAL_MS = 30_000
SLOT_MS = 900_000
DATABASE = "/var/lib/gua/gua.db"
PATIENCE_S = 120.0


@dataclass
class Fleet:
    """Deployed hosts, who reads them, and until when they have a past."""

    lab: Lab
    inventory: Path
    now_ms: int

    def run(self, *words: str) -> tuple[int, str, str]:
        """A `gua-fleet` command as the reader types it: exit status, stdout, stderr."""
        paths = os.pathsep.join(str(ROOT / part) for part in ("agent", "fleet"))
        command = [sys.executable, "-m", "gua_fleet", *words, "--hosts", str(self.inventory)]
        environment = {**self.lab.environment(), "PYTHONPATH": paths}
        done = subprocess.run(command, text=True, capture_output=True, timeout=120, env=environment)
        return done.returncode, done.stdout, done.stderr

    def store(self, name: str) -> str:
        return str(self.lab.directory / f"{name}.db")

    def report(self, since_ms: int, until_ms: int, *words: str, status: int = 0) -> Any:
        window = ("--since", iso(since_ms), "--until", iso(until_ms), "--tz", "Europe/Berlin")
        got, printed, errors = self.run("report", "--format", "json", *window, *words)
        assert got == status, printed + errors
        return json.loads(printed)


def iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@pytest.fixture(scope="module")
def fleet(lab: Lab) -> Iterator[Fleet]:
    site = Site(lab, *HOSTS, gua_agent_readers_group=READERS, **QUICK)
    deployed = site.play("deploy.yml", "-e", "gua_serial=100%")
    assert deployed.status == 0, deployed.output
    now_ms = time.time_ns() // 1_000_000
    for name, host in lab.hosts.items():
        host.add_user("reader", lab.public_key, groups=(READERS,))
        give_past(host, record(lab.directory / f"{name}-past.db", name, host, now_ms))
    fleet = Fleet(lab, lab.write_inventory("reader.yml", user="reader"), now_ms)
    for name in ("fine", "coarse"):
        status, printed, errors = fleet.run(
            "pull", "--store", fleet.store(name), "--json", *(("--rollups-only",) if name == "coarse" else ())
        )
        assert status == 0, printed + errors
    return fleet


def record(path: Path, name: str, host: LabHost, now_ms: int) -> Path:
    """A database of this host with seven hours until a minute ago."""
    clock = SetClock(now_ms)
    machine_id = read_machine_id(host.path("/etc/machine-id"))
    with writing(path, interval_ms=INTERVAL_MS, clock=clock, machine_id=machine_id, hostname=name) as writer:
        writer.write_ticks(past(name, now_ms))
    return path


def past(name: str, now_ms: int) -> list[Tick]:
    """Cards that people hold by turns, alone or two together, at work or not; sampled at no even times, with gaps."""
    rng, (model, count) = random.Random(name), HOSTS[name]
    made = []
    for at_ms in range(now_ms - 7 * HOUR, now_ms - 60_000, INTERVAL_MS):
        turn = (at_ms // 2_000_000) % 5
        if rng.random() < 0.03:
            continue  # nobody looked
        cards = []
        for index in range(count):
            people = [USERS[(turn + index) % 3], *([USERS[(turn + 1) % 3]] if turn == 2 else [])]
            held = tuple(holder(who, 1_000 * turn + place, uid=1_000 + place) for place, who in enumerate(people))
            busy = rng.randrange(20, 100) if turn % 2 else 0
            one = card(f"GPU-{name}-past-{index}", busy, held if turn else (), index=index, pci=f"0:{index}")
            cards.append(replace(one, reading=replace(one.reading, name=model)))
        made.append(tick(at_ms + rng.randrange(900), *cards, cover_ms=INTERVAL_MS))
    return made


def give_past(host: LabHost, recorded: Path) -> None:
    """Put the database in the place of the agent's own, which goes on in it."""
    host.run("systemctl", "stop", "gua-agent")
    host.path("/root/past.db").write_bytes(recorded.read_bytes())
    install = f"rm {DATABASE}*; install -o gua -g {READERS} -m 0640 /root/past.db {DATABASE}"
    host.run("sh", "-c", f"{install}; systemctl start gua-agent")
    end_s = time.monotonic() + PATIENCE_S
    while newest_tick_at(host) <= iso(int(time.time() * 1000) - 30_000):
        assert time.monotonic() < end_s, f"{host.name} does not go on recording"
        time.sleep(0.5)


def newest_tick_at(host: LabHost) -> str:
    status = json.loads(host.run("sh", "-c", "gua status --json || true"))
    return str(status["last_tick_at"] or "")


def test_a_window_within_the_hour_is_the_same_from_the_store_as_live(fleet: Fleet) -> None:
    window = (fleet.now_ms - 6 * HOUR - 12_345, fleet.now_ms - 123_456)
    live = fleet.report(*window, "--from", "live")
    stored = fleet.report(*window, "--from", "store", "--store", fleet.store("fine"))
    assert [host["outcome"] for host in live["hosts"]] == ["ok"] * 3
    assert [host["outcome"] for host in stored["hosts"]] == ["stored"] * 3
    assert live["window"] == {**live["window"], "since": iso(window[0]), "until": iso(window[1])}
    assert {user["user"] for user in live["users"]} >= set(USERS)
    assert {model for model, _ in HOSTS.values()} <= {model["name"] for model in live["models"]}
    assert all(live["card_s"][state] > HOUR / 1000 for state in ("active", "idle-held", "truly-idle"))
    assert figures(stored) == figures(live)
    assert holds(stored, stored) == holds(live, stored)
    assert len(stored["holds"]) > 20


def test_sums_alone_give_the_same_for_a_window_of_whole_quarter_hours(fleet: Fleet) -> None:
    edge_ms = fleet.now_ms // SLOT_MS * SLOT_MS
    window = (edge_ms - 6 * HOUR, edge_ms - SLOT_MS)
    live = fleet.report(*window, "--from", "live")
    stored = fleet.report(*window, "--from", "store", "--store", fleet.store("coarse"))
    assert live["samples"] > 3_000
    assert figures(stored) == figures(live)


def test_a_host_that_is_cut_off_is_shown_by_the_store_with_its_age_and_live_names_it(fleet: Fleet) -> None:
    window = (fleet.now_ms - 6 * HOUR - 12_345, fleet.now_ms - 123_456)
    words = ("--store", fleet.store("fine"), "--timeout", "5s")
    whole = fleet.report(*window, *words)
    cetus = fleet.lab.hosts["cetus"]
    cetus.cut()
    try:
        filled = fleet.report(*window, *words, status=1)
        live = fleet.report(*window, "--from", "live", *words, status=1)
        status, table, _ = fleet.run("report", "--since", iso(window[0]), "--until", iso(window[1]), *words)
    finally:
        cetus.heal()
    assert figures(filled) == figures(whole)
    (told,) = (host for host in filled["hosts"] if host["from_store"])
    assert (told["name"], told["outcome"].partition(":")[0] in ("unreachable", "timeout")) == ("cetus", True)
    assert 0 < told["from_store"]["age_s"] < time.time() - fleet.now_ms / 1000 + 60
    (silent,) = (host for host in live["hosts"] if host["outcome"] != "ok")
    assert (silent["name"], silent["card_s"], silent["from_store"]) == ("cetus", None, None)
    assert live["card_s"]["active"] < filled["card_s"]["active"]
    assert status == 1
    assert "cetus" in table
    again = fleet.report(*window, *words)
    assert [host["outcome"] for host in again["hosts"]] == ["ok"] * 3
