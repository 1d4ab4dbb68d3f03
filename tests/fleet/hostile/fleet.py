"""About forty servers on loopback, most with one fault each, and what a sweep has to say of every one."""

from __future__ import annotations

import contextlib
import getpass
from dataclasses import dataclass, field, replace
from pathlib import Path

import paramiko

from gua_fleet.model import Host
from tests.fleet.hostile.accounts import ACCOUNTS, can_have_accounts, shell_of, wrapper
from tests.fleet.hostile.agents import SICK, healthy_agent, sick_agent
from tests.fleet.hostile.fakes import takes_only
from tests.fleet.ssh import stalls
from tests.fleet.ssh.sshd import Keys, Sshd, closed_port, host

# host -> (outcome, what its reason must hold). One without a reason is healthy: its document has to arrive.
EXPECTED: dict[str, tuple[str, str]] = {
    "unknown-key": ("host-key-unknown", "its key is not on file"),
    "changed-key": ("host-key-changed", "changed-key.known:2"),
    "revoked-key": ("host-key-changed", "is revoked in"),
    "revoked-list": ("host-key-changed", "is revoked in"),
    "only-cert-authority": ("host-key-unknown", "its key is not on file"),
    "beside-cert-authority": ("ok", ""),
    "auth-refused": ("auth-failed", "was not let in; tried"),
    "wants-password": ("auth-failed", "it takes password: for a password use --ask-pass"),
    "wants-one-time-password": ("auth-failed", "one-time passwords are not supported"),
    "wants-kerberos": ("auth-failed", "Kerberos (GSSAPI) alone"),
    "wants-second-factor": ("auth-failed", "a second factor typed in is not supported"),
    "tarpit": ("timeout:connect", "no SSH conversation came about within"),
    "silent": ("timeout:connect", "no SSH conversation came about within"),
    "silent-after-banner": ("timeout:connect", "no SSH conversation came about within"),
    "silent-at-auth": ("timeout:auth", "the log-in was not answered within"),
    "silent-at-open": ("timeout:open", "no session was opened within"),
    "silent-at-exec": ("timeout:exec", "the command was not accepted within"),
    "silent-at-output": ("timeout:output", "the command did not finish within"),
    "hangs-up": ("unreachable", "does not speak SSH, or takes no more log-ins just now"),
    "speaks-http": ("unreachable", "does not speak SSH"),
    "port-closed": ("unreachable", "connection refused"),
    "no-such-name": ("unreachable", "does not resolve"),
    "greets-before-its-banner": ("ok", ""),
    "banner-noise": ("ok", ""),
    "fish": ("ok", ""),
    "csh": ("ok", ""),
    "nologin": ("bad-output", "not available"),
    "noise-before": ("ok", ""),
    "noise-after": ("ok", ""),
    "rc-exits": ("bad-output", "the answer holds no frame"),
    "rc-reads": ("ok", ""),
    "latin-1-around": ("ok", ""),
    "slow": ("ok", ""),
    "agent-missing": ("agent-missing", "no agent at /opt/none/gua"),
    "agent-old": ("bad-output", "its agent is version 0.0.9"),
    "agent-crashes": ("agent-error", "ValueError: inside"),
    "torn-frame": ("bad-output", "the answer was cut before its closing line"),
    "endless-output": ("bad-output", "the answer is too long"),
    "latin-1-inside": ("bad-output", "the answer is not ASCII"),
    "agent-killed": ("agent-error", "the agent was killed there"),
    "sshd-killed": ("unreachable", "the connection was lost"),
    "match-and-include": ("ok", ""),
    "broken-ssh-config": ("ok", ""),
    "jump": ("ok", ""),
    "jump-two-hops": ("ok", ""),
    "jump-unknown-key": ("host-key-unknown", "through jump host"),
    "jump-changed-key": ("host-key-changed", "changed-jump.known:1"),
    "jump-refuses-forwarding": ("unreachable", "administratively prohibited"),
    "jump-lets-nobody-in": ("auth-failed", "through jump host"),
    "jump-silent": ("timeout:connect", "no SSH conversation came about within"),
    "in-maintenance": ("maintenance", "until Monday"),
    "skipped": ("skipped", "no address"),
}
_STALLS: dict[str, stalls.Conversation] = {
    "tarpit": stalls.endless_banner,
    "silent": stalls.silent,
    "silent-after-banner": stalls.banner_then_silence,
    "hangs-up": stalls.hangs_up,
    "speaks-http": stalls.not_ssh,
}
_METHODS = {"wants-one-time-password": "keyboard-interactive", "wants-kerberos": "gssapi-with-mic"}


def is_here(name: str) -> bool:
    """Whether this machine can have the host: those with another login shell need root and that shell."""
    return name not in ACCOUNTS or (can_have_accounts() and shell_of(name) is not None)


@dataclass
class Builder:
    """Puts servers up, one method a family of faults. Everything ends with the stack."""

    folder: Path
    keys: Keys
    stack: contextlib.ExitStack
    hosts: list[Host] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.host_key = paramiko.PKey.from_path(self.keys.host)
        self.plain = self.sshd("plain")
        self.good = self.known("good", self.plain.known_line())

    def sshd(self, name: str, *settings: str, **more: object) -> Sshd:
        return self.stack.enter_context(Sshd(self.folder / name, self.keys, *settings, **more))  # type: ignore[arg-type]

    def serving(self, conversation: stalls.Conversation) -> int:
        return self.stack.enter_context(stalls.serving(conversation))

    def known(self, name: str, text: str) -> Path:
        file = self.folder / f"{name}.known"
        file.write_text(text)
        return file

    def line(self, port: int, key: str = "host") -> str:
        return f"[127.0.0.1]:{port} {self.keys.public(key)}\n"

    def add(self, name: str, server: Sshd | int, known: Path, agent: Path | None = None, **more: object) -> None:
        """A host of that name, with an agent that answers unless another is given."""
        command = agent or healthy_agent(self.folder, name)
        self.hosts.append(host(server, self.keys, known, command, **{"name": name, **more}))

    def build(self) -> list[Host]:
        for family in (self.keys_of_hosts, self.log_ins, self.silences, self.shells, self.agents, self.configs):
            family()
        self.jumps()
        self.left_out()
        return [host for host in _with_healthy_between(self) if is_here(host.name)]

    def keys_of_hosts(self) -> None:
        plain, key = self.plain, self.keys.public("host")
        authority = f"@cert-authority * {self.keys.public('ecdsa_host')}\n"
        self.add("unknown-key", plain, self.known("unknown", "# nobody\n"))
        self.add("changed-key", plain, self.known("changed-key", f"# one\n{plain.known_line('other_host')}"))
        self.add("revoked-key", plain, self.known("revoked", f"{plain.known_line()}@revoked * {key}\n"))
        revoked = self.known("list", f"# stolen\n{key}\n")
        self.add("revoked-list", plain, self.good, ssh_options=self.options(self.good, revokedhostkeys=str(revoked)))
        self.add("only-cert-authority", plain, self.known("authority", authority))
        self.add("beside-cert-authority", plain, self.known("beside", f"{authority}gpu AAAA\n{plain.known_line()}"))

    def options(self, known: Path, **more: str) -> dict[str, str]:
        return {"userknownhostsfile": str(known), "globalknownhostsfile": "none", **more}

    def log_ins(self) -> None:
        self.add("auth-refused", self.plain, self.good, identity_file=str(self.keys.stranger))
        server = self.sshd("password", "PasswordAuthentication yes", "PubkeyAuthentication no")
        self.add("wants-password", server, self.known("password", server.known_line()))
        for name, method in _METHODS.items():
            self._add_fake(name, takes_only(method, self.host_key))
        second = takes_only("keyboard-interactive", self.host_key, key_first=True)
        self._add_fake("wants-second-factor", second)

    def _add_fake(self, name: str, conversation: stalls.Conversation) -> None:
        port = self.serving(conversation)
        self.add(name, port, self.known(name, self.line(port)))

    def silences(self) -> None:
        for name, conversation in _STALLS.items():
            self._add_fake(name, conversation)
        for stage in ("auth", "open", "exec", "output"):
            self._add_fake(f"silent-at-{stage}", stalls.stalling(stage, self.host_key))
        self.add("port-closed", self.stack.enter_context(closed_port()), self.good)
        self.add("no-such-name", 22, self.good, address="no-such-host.invalid")

    def shells(self) -> None:
        greeter = self.sshd("greeter", greeting=b"Welcome.\r\nTo the machine.\r\n")
        self.add("greets-before-its-banner", greeter, self.known("greeter", greeter.known_line()))
        text = self.folder / "banner.txt"
        text.write_text("gua-frame-begin\nAuthorised users only\n")
        banner = self.sshd("banner", f"Banner {text}")
        self.add("banner-noise", banner, self.known("banner", banner.known_line()))
        if can_have_accounts():
            server = self.sshd("accounts", wrapper=wrapper(self.folder / "homes"))
            for account in ACCOUNTS:
                self.add(account, server, self.known(account, server.known_line()), user=account)

    def agents(self) -> None:
        noise = "printf 'caf\\351 \\000\\n'"
        self.add("latin-1-around", self.plain, self.good, healthy_agent(self.folder, "latin-1-around", noise, noise))
        self.add("slow", self.plain, self.good, healthy_agent(self.folder, "slow", before="sleep 1"))
        self.add("agent-missing", self.plain, self.good, Path("/opt/none/gua"))
        for name in SICK:
            self.add(name, self.plain, self.good, sick_agent(self.folder, name))

    def configs(self) -> None:
        more = self.folder / "more.conf"
        more.write_text(f"Match host gpu-behind-match\n  HostName 127.0.0.1\n  Port {self.plain.port}\n")
        config = self.folder / "ssh_config"
        config.write_text(f"Include {more}\nMatch final all\n  ServerAliveInterval 7\nMatch host nobody\n  Port 1\n")
        self.add("match-and-include", self.plain, self.good, address="gpu-behind-match", port=None)
        self._last_options(**{"-F": str(config)})
        broken = self.folder / "broken_config"
        broken.write_text("Host *\n  Nonsense yes\n")
        self.add("broken-ssh-config", self.plain, self.good)
        self._last_options(**{"-F": str(broken)})

    def _last_options(self, **more: str) -> None:
        last = self.hosts[-1]
        self.hosts[-1] = replace(last, ssh_options={**last.ssh_options, **more})

    def jumps(self) -> None:
        bastion = self.sshd("bastion", host_keys=("other_host",))
        outer = self.sshd("outer", host_keys=("ecdsa_host",))
        closed = self.sshd("closed", "AllowTcpForwarding no")
        silent = self.serving(stalls.silent)
        ways: dict[str, tuple[str, str, str]] = {
            "jump": (_hop(bastion.port), bastion.known_line(), "client"),
            "jump-two-hops": (
                f"{_hop(outer.port)},{_hop(bastion.port)}",
                outer.known_line() + bastion.known_line(),
                "client",
            ),
            "jump-unknown-key": (_hop(bastion.port), "", "client"),
            "jump-changed-key": (_hop(bastion.port), bastion.known_line("host"), "client"),
            "jump-refuses-forwarding": (_hop(closed.port), closed.known_line(), "client"),
            "jump-lets-nobody-in": (_hop(bastion.port), bastion.known_line(), "stranger"),
            "jump-silent": (_hop(silent), self.line(silent), "client"),
        }
        for name, (jump, lines, key) in ways.items():
            file = self.known("changed-jump" if name == "jump-changed-key" else name, lines + self.plain.known_line())
            config = self.folder / f"{name}.conf"
            config.write_text(
                f"Host 127.0.0.1\n  IdentityFile {self.keys.folder / key}\n  IdentitiesOnly yes\n  IdentityAgent none\n"
                f"  UserKnownHostsFile {file}\n  GlobalKnownHostsFile none\n"
            )
            self.add(name, self.plain, file, jump=jump)
            self._last_options(**{"-F": str(config)})

    def left_out(self) -> None:
        self.add("in-maintenance", self.plain, self.good, maintenance="until Monday")
        self.add("skipped", self.plain, self.good, skip_reason="no address")


def _hop(port: int) -> str:
    return f"{getpass.getuser()}@127.0.0.1:{port}"


def _with_healthy_between(builder: Builder) -> list[Host]:
    """A healthy host after every third sick one."""
    sick, builder.hosts = builder.hosts, []
    mixed: list[Host] = []
    for position, each in enumerate(sick):
        mixed.append(each)
        if position % 3 == 2:
            builder.add(f"healthy{position // 3:02d}", builder.plain, builder.good)
            mixed.append(builder.hosts.pop())
    return mixed
