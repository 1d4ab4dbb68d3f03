"""What a sweep costs the controller (`PYTHONPATH=agent:fleet python -m tests.bench.sweep [hosts]`): figures, no test.

Ten sshd on loopback stand for all hosts (default 250), each answering a `gua.report/1` of about 20 or 200 KB. The floor
is `xargs -P16 ssh` with the same key and the cheap key exchange (the default one costs seven times as much).
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import paramiko

from gua_fleet.model import Host, HostResult, Outcome
from gua_fleet.probes.report import report_probe
from gua_fleet.ssh.keep import KeptFleet
from gua_fleet.ssh.settings import SweepSettings
from gua_fleet.ssh.sweep import sweep
from tests.documents import SINCE_MS, UNTIL_MS, card, report, states, user
from tests.fleet.ssh import stalls
from tests.fleet.ssh.sshd import Keys, Sshd, StandingSshd, host

FORKS = 32
SERVERS = 10
ROUNDS = 5
STALL_DEADLINE_S = 6.0
PROBE = report_probe(since_ms=SINCE_MS, until_ms=UNTIL_MS, tz="Etc/UTC")

# CPU seconds, peak RSS in MB, MB of the parsed documents that are kept, hosts lost.
_PROGRAM = f"""
import pickle, resource, sys
from gua_fleet.model import Outcome
from gua_fleet.ssh.settings import SweepSettings
from gua_fleet.ssh.sweep import sweep
from gua_fleet.probes.report import report_probe
hosts = pickle.load(sys.stdin.buffer)
probe = report_probe(since_ms={SINCE_MS}, until_ms={UNTIL_MS}, tz="Etc/UTC")
results = sweep(hosts, probe, SweepSettings(forks={FORKS}, timeout_s=60))
used = resource.getrusage(resource.RUSAGE_SELF)
def size(part):
    more = [*part, *part.values()] if isinstance(part, dict) else part if isinstance(part, list) else []
    return sys.getsizeof(part) + sum(map(size, more))
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, sum(size(r.document) for r in results) / 2**20,
      sum(r.outcome is not Outcome.OK for r in results))
"""


def document(size_bytes: int) -> dict[str, object]:
    """Eight cards, a week of hours, some users, and holds until the size is reached."""
    cards = [card(f"GPU-{index:08x}-1111-2222-3333-444455556666", states(7200, 3600, 3600)) for index in range(8)]
    users = [user(f"user{number}", states(600, 300)) for number in range(12)]
    hours = [
        {"weekday": day, "hour": hour, "card_s": states(60, 40, 30)} for day in range(7) for hour in range(0, 24, 2)
    ]
    made = report(cards, users, hours_of_week=hours)
    # what a newer agent might add: bulk that costs the wire, not the checks
    made["more"] = "x" * max(0, size_bytes - len(json.dumps(made)))
    return made


def write_answer(folder: Path, name: str, size_bytes: int) -> Path:
    """An agent in shell that costs the server little: the document, framed with whatever nonce it is given."""
    body, file = json.dumps(document(size_bytes), separators=(",", ":")), folder / f"{name}.json"
    file.write_text(body)
    digest = subprocess.run(["sha256sum", file], capture_output=True, text=True, check=True).stdout[:64]
    agent = folder / name
    agent.write_text(
        "#!/bin/sh\nfor nonce; do :; done\n"
        f'echo "gua-frame-begin $nonce"; cat {file}; echo; echo "gua-frame-end $nonce {len(body)} {digest}"\n'
    )
    agent.chmod(0o755)
    return agent


def say(what: str, figure: str, goal: str = "") -> None:
    print(f"{what:<34} {figure:>10}  {goal}", flush=True)  # noqa: T201 - a script


def cpu_s(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def measured(what: str, who: int, work: Callable[[], object], goal: str = "") -> float:
    """CPU seconds of `work`, printed with the wall time."""
    cpu, wall = cpu_s(who), time.monotonic()
    work()
    cpu, wall = cpu_s(who) - cpu, time.monotonic() - wall
    say(what, f"{cpu:.2f} CPU s", f"{goal:<30} ({wall:.1f} s)")
    return cpu


def lost(results: Sequence[HostResult]) -> int:
    return sum(result.outcome is not Outcome.OK for result in results)


class Bench:
    """The servers, and the same hosts with answers of several sizes."""

    def __init__(self, folder: Path, number: int, stack: contextlib.ExitStack) -> None:
        (folder / "keys").mkdir()
        self.folder, self.number, self.stack, self.keys = folder, number, stack, Keys(folder / "keys")
        self.known = folder / "known_hosts"
        # bash reads no rc file that deep, and so costs every round the same
        plain = ("LogLevel ERROR", "SetEnv SHLVL=5")
        self.servers = [
            stack.enter_context(StandingSshd(folder / f"sshd{index}", self.keys, *plain)) for index in range(SERVERS)
        ]
        self.known.write_text("".join(server.known_line() for server in self.servers))

    def hosts(self, agent: Path, number: int | None = None) -> list[Host]:
        return [
            host(self._server(index), self.keys, self.known, agent, name=f"h{index}")
            for index in range(self.number if number is None else number)
        ]

    def _server(self, index: int) -> Sshd:
        return self.servers[index % SERVERS]

    def floor(self, agent: Path) -> float:
        ports = "\n".join(str(self._server(index).port) for index in range(self.number))
        (self.folder / "ports").write_text(ports)
        command = (
            f"xargs -a {self.folder}/ports -P16 -I@ ssh -F none -i {self.keys.client} -p @ -o IdentitiesOnly=yes "
            f"-o BatchMode=yes -o UserKnownHostsFile={self.known} -o GlobalKnownHostsFile=none "
            f"-o KexAlgorithms=curve25519-sha256 127.0.0.1 {agent} {'0' * 32} > {self.folder}/out"
        )

        def run() -> None:
            subprocess.run(command, shell=True, check=True)

        return measured("floor: xargs ssh", resource.RUSAGE_CHILDREN, run)

    def sweep_cost(self, what: str, agent: Path, goal: str) -> float:
        hosts, results = self.hosts(agent), []

        def ask() -> None:
            results.extend(sweep(hosts, PROBE, SweepSettings(forks=FORKS, timeout_s=60)))

        cost = measured(what, resource.RUSAGE_SELF, ask, goal)
        if lost(results):
            say("  lost", str(lost(results)), "goal 0")
        return cost

    def program(self, agent: Path, size_bytes: int) -> None:
        """The sweep in a process that loads no more than it needs; this one holds the servers and the test library."""
        told = subprocess.run(
            [sys.executable, "-c", _PROGRAM], input=pickle.dumps(self.hosts(agent)), capture_output=True, check=True
        )
        cpu_s, peak_mb, document_mb, missing = map(float, told.stdout.split())
        size = f"{size_bytes // 1000} KB"
        say(f"alone, libraries to load, {size}", f"{cpu_s:.2f} CPU s", f"{missing:.0f} lost")
        say("  peak RSS", f"{peak_mb:.0f} MB", f"goal 65 and the documents kept, {document_mb:.0f} MB")

    def kept_cost(self, agent: Path) -> None:
        with KeptFleet(self.hosts(agent), SweepSettings(forks=FORKS, timeout_s=60)) as fleet:
            fleet.ask(PROBE)
            for _ in range(2):
                measured("refresh over kept connections", resource.RUSAGE_SELF, lambda: fleet.ask(PROBE), "goal 0.4")
            measured("10 s of keeping them", resource.RUSAGE_SELF, lambda: time.sleep(10))

    def losses(self, agent: Path) -> None:
        hosts = self.hosts(agent, 100)
        missing = sum(lost(sweep(hosts, PROBE, SweepSettings(forks=64, timeout_s=60))) for _ in range(20))
        say("lost in 20 x 100 at 64 threads", str(missing), "goal 0")

    def stalls(self, agent: Path) -> None:
        key = paramiko.PKey.from_path(self.keys.host)
        plain = (stalls.silent, stalls.endless_banner, stalls.banner_then_silence)
        for conversation in (*plain, *(stalls.stalling(stage, key) for stage in ("auth", "open", "exec", "output"))):
            with stalls.serving(conversation) as port:
                known = self.folder / "stalled"
                known.write_text(f"[127.0.0.1]:{port} {self.keys.public('host')}\n")
                hosts = [*self.hosts(agent, 8), host(port, self.keys, known, agent, name="stalled")]
                started_s = time.monotonic()
                results = sweep(hosts, PROBE, SweepSettings(timeout_s=STALL_DEADLINE_S))
                over_s = time.monotonic() - started_s - STALL_DEADLINE_S
            others = lost(results) - 1
            say(f"stall, {results[-1].outcome_text}", f"{over_s:+.2f} s", f"past the deadline, goal 0.5; {others} lost")


def main(number: int) -> None:
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        os.environ["HOME"] = name
        os.environ.pop("SSH_AUTH_SOCK", None)
        bench = Bench(folder, number, stack)
        small, big = write_answer(folder, "small", 20_000), write_answer(folder, "big", 200_000)
        bench.program(small, 20_000)
        bench.program(big, 200_000)
        bench.sweep_cost("first sweep here", small, "")
        floor = bench.floor(small)
        # in turns, and the least of each: the machine's own ups and downs are as large as what is looked for
        costs = [
            (
                bench.sweep_cost(f"sweep of {number}, 20 KB", small, "goal 1.35 for 250"),
                bench.sweep_cost(f"sweep of {number}, 200 KB", big, ""),
            )
            for _ in range(ROUNDS)
        ]
        cost, more = map(min, zip(*costs, strict=True))
        say("  of the floor", f"{cost / floor:.2f}", "goal 0.46")
        say("  more than 20 KB", f"{100 * (more / cost - 1):+.0f} %", "goal +10")
        bench.kept_cost(small)
        bench.stalls(small)
        bench.losses(small)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 250)
