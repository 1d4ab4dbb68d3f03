"""One lab host: its own root, network namespace and address, a real systemd as PID 1 and a real sshd."""

from __future__ import annotations

import subprocess
import time
import uuid
from pathlib import Path

from tests.lab.link import Link
from tests.lab.machine import HostFailed, do
from tests.lab.slot import NSPAWN_STATE, Slot, kill_cgroup

__all__ = ["HostFailed", "LabHost"]

BOOT_DEADLINE_S = 120.0

# nspawn asks the mount table which cgroup hierarchy to give: in a mount namespace of its own only v2 is there.
# It makes its groups in the one it is started from (--keep-unit), so the shell first enters the host's own.
BOOT = """
umount --recursive /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup || exit 1
echo $$ > "/sys/fs/cgroup/$1/cgroup.procs" || exit 1
shift
exec systemd-nspawn "$@"
"""


class LabHost:
    """A host of `slot`. `name` is its host name and inventory name; `index` (1..200) picks its address."""

    def __init__(self, slot: Slot, index: int, name: str, base: Path) -> None:
        self.name = name
        self.address = slot.address(index)
        self._slot = slot
        self._base = base
        self._machine = f"{slot.prefix}-{index}"
        self._link = Link(slot, index, self._machine)
        self._directory = slot.directory / name
        self._cgroup = slot.cgroup / name
        self._nspawn: subprocess.Popen[bytes] | None = None

    # --- making it -------------------------------------------------------------------------------------------

    def create(self, authorized_key: str) -> None:
        """Lay out root, identity and network. `authorized_key` may log in as root and deploy."""
        for part in ("upper", "work", "root"):
            (self._directory / part).mkdir(parents=True)
        layers = f"lowerdir={self._base},upperdir={self._directory}/upper,workdir={self._directory}/work"
        do("mount", "-t", "overlay", self._machine, "-o", layers, str(self.path("/")))
        self._identify()
        for user in ("root", "deploy"):
            self.authorize(user, authorized_key)
        do("ip", "netns", "add", self._machine)
        self._link.connect(self.address)

    def _identify(self) -> None:
        self.path("/etc/hostname").write_text(f"{self.name}\n")
        self.path("/etc/machine-id").write_text(f"{uuid.uuid4().hex}\n")
        self.path("/etc/hosts").write_text(f"127.0.0.1 localhost\n{self.address} {self.name}\n")
        self.path("/etc/resolv.conf").write_text("")
        key = self.path("/etc/ssh/ssh_host_ed25519_key")
        do("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", self.name, "-f", str(key))

    def path(self, inside: str) -> Path:
        """Where the absolute path `inside` lies as seen from this machine."""
        return self._directory / "root" / inside.lstrip("/")

    def authorize(self, user: str, public_key: str) -> None:
        """Let the holder of `public_key` log in as `user`, who exists."""
        home = "/root" if user == "root" else f"/home/{user}"
        keys = self.path(f"{home}/.ssh/authorized_keys")
        keys.parent.mkdir(mode=0o700, exist_ok=True)
        keys.write_text(f"{public_key}\n")
        do("chroot", str(self.path("/")), "chown", "--recursive", f"{user}:", f"{home}/.ssh")

    def add_user(self, name: str, public_key: str, groups: tuple[str, ...] = ()) -> None:
        """An ordinary account that `public_key` opens."""
        extra = ["--groups", ",".join(groups)] if groups else []
        do("chroot", str(self.path("/")), "useradd", "--create-home", "--shell", "/bin/bash", *extra, name)
        self.authorize(name, public_key)

    def known_host_line(self) -> str:
        kind, key = self.path("/etc/ssh/ssh_host_ed25519_key.pub").read_text().split()[:2]
        return f"{self.address} {kind} {key}\n"

    # --- power -----------------------------------------------------------------------------------------------

    def boot(self) -> None:
        """Switch it on; `wait_running` tells when it is up."""
        self._cgroup.mkdir(parents=True, exist_ok=True)
        self._link.up()
        nspawn = [
            "--quiet", "--boot", f"--directory={self.path('/')}", f"--machine={self._machine}",
            f"--hostname={self.name}", f"--network-namespace-path=/run/netns/{self._machine}", "--register=no",
            "--keep-unit", "--link-journal=no", "--resolv-conf=off", "--timezone=off", "--console=read-only",
        ]  # fmt: skip
        group = f"{self._slot.prefix}/{self.name}"
        command = ["unshare", "--mount", "--propagation", "slave", "sh", "-c", BOOT, "boot", group, *nspawn]
        with (self._directory / "console.log").open("ab") as console:
            self._nspawn = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=console, stderr=console, start_new_session=True
            )

    def wait_running(self) -> None:
        """Return when systemd has started everything. Raises HostFailed with the console's end."""
        end = time.monotonic() + BOOT_DEADLINE_S
        while time.monotonic() < end:
            if self._pid1() and self._system_state() in ("running", "degraded"):
                return
            time.sleep(0.2)
        console = (self._directory / "console.log").read_text(errors="replace")
        raise HostFailed(f"{self.name} did not boot within {BOOT_DEADLINE_S:.0f} s; its console:\n{console[-2000:]}")

    def _system_state(self) -> str:
        return self._nsenter(("systemctl", "is-system-running", "--wait"), None, BOOT_DEADLINE_S).stdout.strip()

    def power_off(self) -> None:
        """Pull the plug: every process dies at once, and its address answers nothing, not even with a reset.

        Nothing happens to a host that is off.
        """
        if not self._cgroup.exists():
            return
        self._link.down()
        kill_cgroup(self._cgroup)
        if self._nspawn is not None:
            self._nspawn.wait(timeout=20)
            self._nspawn = None
        for state in NSPAWN_STATE.glob(f"*/{self._machine}"):
            state.rmdir() if state.is_dir() else state.unlink()

    def cut(self) -> None:
        """Pull its network cable: frames to it and from it are lost."""
        self._link.down()

    def delay(self, ms: int) -> None:
        """Every frame to it and from it comes `ms` later."""
        self._link.spoil(delay_ms=ms, loss_pct=0)

    def lose(self, percent: int) -> None:
        """Of 100 frames to it, and of 100 from it, `percent` are lost: always the same ones."""
        self._link.spoil(delay_ms=0, loss_pct=percent)

    def heal(self) -> None:
        """End `cut`, `delay` and `lose`."""
        self._link.mend()
        self._link.up()

    def freeze(self) -> None:
        """Nothing in it runs any more; connections are still taken, as by a host that thrashes. `thaw` ends it."""
        (self._cgroup / "payload" / "cgroup.freeze").write_text("1")

    def thaw(self) -> None:
        (self._cgroup / "payload" / "cgroup.freeze").write_text("0")

    # --- inside ----------------------------------------------------------------------------------------------

    def run(self, *command: str, stdin: str | None = None, timeout_s: float = 60) -> str:
        """Run `command` as root inside and give its stdout. Raises HostFailed when it fails."""
        done = self._nsenter(command, stdin, timeout_s)
        if done.returncode != 0:
            raise HostFailed(f"{self.name}: {' '.join(command)} gave {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def start_process(self, user: str, name: str) -> int:
        """Start a process that `user` owns and that is called `name` (at most 15 letters); its pid inside."""
        program = f"/usr/local/bin/{name}"
        self.run("cp", "/bin/sleep", program)
        unit = f"{name}-{user}.service"
        self.run("systemd-run", "--quiet", f"--uid={user}", f"--unit={unit}", program, "infinity")
        return int(self.run("systemctl", "show", "--property=MainPID", "--value", unit))

    def _pid1(self) -> int | None:
        """The host's init as this machine numbers it; None while it is not there."""
        try:
            pids = (self._cgroup / "payload" / "init.scope" / "cgroup.procs").read_text().split()
        except OSError:
            return None
        return int(pids[0]) if pids else None

    def _nsenter(
        self, command: tuple[str, ...], stdin: str | None, timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        pid1 = self._pid1()
        if pid1 is None:
            raise HostFailed(f"{self.name} is not running")
        enter = ["nsenter", "--target", str(pid1), "--mount", "--uts", "--ipc", "--net", "--pid", "--"]
        clean = ["env", "-i", "HOME=/root", "LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
        return subprocess.run(
            [*enter, *clean, *command], input=stdin, capture_output=True, text=True, timeout=timeout_s
        )
