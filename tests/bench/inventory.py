"""How long an inventory takes to be read (`PYTHONPATH=agent:fleet python -m tests.bench.inventory [hosts]`): no test.

500 hosts in ten racks, each with four templated connection variables, against the same inventory without templates and
against `ansible-inventory --list`, which reads but resolves nothing: the floor. Goal: 500 templated hosts within 4 s.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from gua_fleet.inventory.load import load_inventory

RACKS = 10
GOAL_S = 4.0
TIMES = 3


def inventory(hosts: int, *, templated: bool) -> str:
    """YAML text. Templates are completed by rack and by host, as sites do it."""
    lines = ["all:", "  vars:", "    admin: ops", "    subnet: 192.0.2"]
    if templated:
        lines += ['    ansible_user: "{{ admin }}"', '    ansible_host: "{{ subnet }}.{{ rack }}.{{ index }}"']
    lines += ["  children:"]
    for rack in range(RACKS):
        lines += [f"    rack{rack}:", "      vars:", f"        rack: {rack}"]
        if templated:
            lines += ['        ansible_port: "{{ 2200 + rack | int }}"']
            lines += ['        ansible_ssh_common_args: "-J {{ admin }}@bastion{{ rack }}"']
        lines += ["      hosts:"]
        lines += [f"        gpu{rack}-{index}: {{index: {index}}}" for index in range(hosts // RACKS)]
    return "\n".join(lines) + "\n"


def shortest_s(work: Callable[[], object]) -> tuple[float, float]:
    """(wall, CPU) of the best of a few runs: what the work takes where nothing else runs. CPU counts Ansible too."""
    wall, cpu = [], []
    for _ in range(TIMES):
        wall_s, cpu_s = time.monotonic(), _cpu_s()
        work()
        wall.append(time.monotonic() - wall_s)
        cpu.append(_cpu_s() - cpu_s)
    return min(wall), min(cpu)


def _cpu_s() -> float:
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def main(hosts: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        templated, plain = Path(folder) / "templated.yml", Path(folder) / "plain.yml"
        templated.write_text(inventory(hosts, templated=True))
        plain.write_text(inventory(hosts, templated=False))
        read = load_inventory(str(templated)).hosts
        assert len(read) == hosts // RACKS * RACKS
        assert not [host for host in read if host.skip_reason or host.jump is None]
        listing = [Path(sys.executable).parent / "ansible-inventory", "-i", templated, "--list"]
        _, floor_s = shortest_s(lambda: subprocess.run(listing, capture_output=True, check=True))
        for name, file in (("templated", templated), ("plain", plain)):
            wall_s, cpu_s = shortest_s(lambda file=file: load_inventory(str(file)))  # type: ignore[misc]
            goal = f", goal {GOAL_S:.0f} s at 500 hosts" if file is templated else ""
            ratio = f"{cpu_s:.2f} s CPU, {cpu_s / floor_s:.1f} x ansible-inventory"
            print(f"{name}: {hosts} hosts in {wall_s:.2f} s wall, {ratio}{goal}")  # noqa: T201 - a script


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
