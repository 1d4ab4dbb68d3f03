"""A lab host's cable to the bridge: whole, pulled, or bad (see relay.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.lab.machine import HostFailed, do
from tests.lab.slot import Slot, kill_cgroup

ROOT = Path(__file__).parents[2]
# The relay joins a group of its own first: what clears the slot ends it there.
RELAY = 'echo $$ >"$1/cgroup.procs" || exit 1; shift; exec "$@"'


class Link:
    """The cable of host `index` of `slot`, whose end in `namespace` is called eth0."""

    def __init__(self, slot: Slot, index: int, namespace: str) -> None:
        self._namespace = namespace
        self._bridge = slot.bridge
        self._near = f"{slot.prefix}v{index}"
        # A bad link is cut in two, and the relay sits between: near | relay | cut === port, on the bridge
        self._cut, self._port = f"{slot.prefix}c{index}", f"{slot.prefix}p{index}"
        self._relay_group = slot.cgroup / f"{index}.relay"
        self._relay: subprocess.Popen[str] | None = None

    def connect(self, address: str) -> None:
        """A veth pair from the bridge to the host. No default route: a host reaches the controller and no more."""
        do("ip", "link", "add", self._near, "type", "veth", "peer", "name", "eth0", "netns", self._namespace)
        do("ip", "link", "set", self._near, "master", self._bridge)
        do("ip", "-n", self._namespace, "address", "add", f"{address}/24", "dev", "eth0")
        for link in ("lo", "eth0"):
            do("ip", "-n", self._namespace, "link", "set", link, "up")

    def up(self) -> None:
        do("ip", "link", "set", self._near, "up")

    def down(self) -> None:
        do("ip", "link", "set", self._near, "down")

    def spoil(self, *, delay_ms: int, loss_pct: int) -> None:
        """Carry every frame `delay_ms` late each way, and lose `loss_pct` of 100; `mend` ends it."""
        do("ip", "link", "add", self._cut, "type", "veth", "peer", "name", self._port)
        # Off the bridge they would answer for this machine's addresses, past the relay.
        for link in (self._near, self._cut):
            do("ip", "link", "set", link, "nomaster", "arp", "off", "up")
        do("ip", "link", "set", self._port, "master", self._bridge, "up")
        self._relay_group.mkdir(parents=True)
        relay = [sys.executable, "-m", "tests.lab.relay", self._near, self._cut, str(delay_ms), str(loss_pct)]
        self._relay = subprocess.Popen(
            ["sh", "-c", RELAY, "relay", str(self._relay_group), *relay],
            cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        assert self._relay.stdout is not None
        if not self._relay.stdout.readline():
            raise HostFailed(f"the relay of {self._near} did not start")

    def mend(self) -> None:
        """Take the relay out again; nothing happens where there is none."""
        if self._relay is None:
            return
        kill_cgroup(self._relay_group)
        with self._relay:
            self._relay = None
        do("ip", "link", "delete", self._cut)
        do("ip", "link", "set", self._near, "master", self._bridge, "arp", "on")
