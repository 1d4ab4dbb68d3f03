"""Client CPU of a sweep against OpenSSH's (`PYTHONPATH=agent:fleet python -m tests.bench.sweep [hosts]`): no test.

One sshd on loopback stands for all hosts (default 100), each answering a `gua.report/1` of about 20 KB. The floor is
`xargs -P16 ssh` with the same key and the cheap key exchange (SSH.md: the default one costs seven times as much).
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from gua_fleet.merge import merge_reports
from gua_fleet.model import HostResult, Outcome
from gua_fleet.probes.report import report_probe
from gua_fleet.render_table import render_fleet
from gua_fleet.ssh.sweep import SweepSettings, sweep
from tests.documents import NOW_MS, SINCE_MS, UNTIL_MS, card, report, states, user
from tests.fleet.ssh.sshd import Keys, StandingSshd, host

FORKS = 32


def document() -> dict[str, object]:
    """Eight cards, a week of hours, some users: about 20 KB."""
    cards = [card(f"GPU-{index:08x}-1111-2222-3333-444455556666", states(7200, 3600, 3600)) for index in range(8)]
    users = [user(f"user{number}", states(600, 300)) for number in range(12)]
    hours = [
        {"weekday": day, "hour": hour, "card_s": states(60, 40, 30)} for day in range(7) for hour in range(0, 24, 2)
    ]
    return report(cards, users, hours_of_week=hours)


def write_answer(folder: Path) -> Path:
    """An agent in shell that costs the server little: the document, framed with whatever nonce it is given."""
    body = json.dumps(document(), separators=(",", ":"))
    (folder / "document").write_text(body)
    digest = subprocess.run(["sha256sum", folder / "document"], capture_output=True, text=True, check=True).stdout[:64]
    agent = folder / "gua"
    agent.write_text(
        "#!/bin/sh\nfor nonce; do :; done\n"
        f'echo "gua-frame-begin $nonce"; cat {folder}/document; echo; '
        f'echo "gua-frame-end $nonce {len(body)} {digest}"\n'
    )
    agent.chmod(0o755)
    print(f"document: {len(body) / 1000:.0f} KB")  # noqa: T201 - a script
    return agent


def cpu_s(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def measured(what: str, who: int, work: Callable[[], object]) -> float:
    """Client CPU seconds of `work`, printed with the wall time."""
    cpu, wall = cpu_s(who), time.monotonic()
    work()
    cpu, wall = cpu_s(who) - cpu, time.monotonic() - wall
    print(f"{what:<28} {cpu:6.2f} CPU s  {wall:6.2f} s")  # noqa: T201 - a script
    return cpu


def main(number: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "keys").mkdir()
        keys, known, agent = Keys(folder / "keys"), folder / "known_hosts", write_answer(folder)
        os.environ["HOME"] = name
        os.environ.pop("SSH_AUTH_SOCK", None)
        # bash reads no rc file that deep, and so costs every round the same
        with StandingSshd(folder / "sshd", keys, "LogLevel ERROR", "SetEnv SHLVL=5") as server:
            known.write_text(server.known_line())
            hosts = [host(server, keys, known, agent, name=f"h{index}") for index in range(number)]
            probe = report_probe(since_ms=SINCE_MS, until_ms=UNTIL_MS, tz="Etc/UTC")
            results: list[HostResult] = []

            def ask() -> None:
                results.extend(sweep(hosts, probe, SweepSettings(forks=FORKS, timeout_s=60)))

            command = (
                f"seq {number} | xargs -P16 -I@ ssh -F none -i {keys.client} -p {server.port} -o IdentitiesOnly=yes "
                f"-o BatchMode=yes -o UserKnownHostsFile={known} -o GlobalKnownHostsFile=none "
                f"-o KexAlgorithms=curve25519-sha256 127.0.0.1 {agent} {'0' * 32} > {folder}/out"
            )
            floor = measured(
                "floor: xargs ssh", resource.RUSAGE_CHILDREN, lambda: subprocess.run(command, shell=True, check=True)
            )
            first = measured("sweep, libraries to load", resource.RUSAGE_SELF, ask)
            results.clear()
            again = measured("sweep", resource.RUSAGE_SELF, ask)
        lost = [result for result in results if result.outcome is not Outcome.OK]
        print(f"lost: {len(lost)} {lost[0].detail if lost else ''}")  # noqa: T201 - a script
        print(f"of the floor: {first / floor:.2f} with loading, {again / floor:.2f} without")  # noqa: T201 - a script
        apart = [_as_agent(result, index) for index, result in enumerate(results)]
        measured("merge and render", resource.RUSAGE_SELF, lambda: _show(apart))
        print(f"peak RSS {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")  # noqa: T201 - a script


def _as_agent(result: HostResult, number: int) -> HostResult:
    """The same answer from an agent of its own, for twins count once."""
    told = result.document or {}
    return HostResult(result.host, result.outcome, document={**told, "host": {**told["host"], "store_id": str(number)}})


def _show(results: list[HostResult]) -> str:
    merged = merge_reports(results, since_ms=SINCE_MS, until_ms=UNTIL_MS, tz="Etc/UTC", generated_at_ms=NOW_MS)
    return render_fleet(merged)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
