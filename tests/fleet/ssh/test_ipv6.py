"""Hosts that are reached over IPv6, by address and by link-local address with its zone."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from gua_fleet.model import Outcome
from tests.fleet.ssh.asking import ask
from tests.fleet.ssh.sshd import Keys, Sshd, host, needs_openssh

_LINK_LOCAL = "20"  # scope in /proc/net/if_inet6


def _can_bind(address: str) -> bool:
    try:
        family, *_, place = socket.getaddrinfo(address, 0, type=socket.SOCK_STREAM)[0]
        with socket.create_server(place, family=family):
            return True
    except OSError:
        return False


def _link_local() -> str | None:
    """An address of this machine with its zone, `fe80::1%eth0`; None where there is none."""
    try:
        lines = Path("/proc/net/if_inet6").read_text().splitlines()
    except OSError:
        return None
    for fields in map(str.split, lines):
        if fields[3] == _LINK_LOCAL:
            return f"{socket.inet_ntop(socket.AF_INET6, bytes.fromhex(fields[0]))}%{fields[5]}"
    return None


needs_ipv6 = pytest.mark.skipif(not _can_bind("::1"), reason="needs IPv6 on loopback")


@needs_ipv6
def test_sweep_reaches_a_host_by_its_ipv6_address(keys: Keys, agent: Path, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    with Sshd(tmp_path / "six", keys, address="::1") as server:
        known.write_text(server.known_line())
        target = host(server, keys, known, agent)
        assert (target.address, ask(target).outcome) == ("::1", Outcome.OK)
        known.write_text(server.known_line("other_host"))
        assert ask(target).outcome is Outcome.HOST_KEY_CHANGED


@needs_ipv6
def test_sweep_records_an_ipv6_host_as_ssh_does(keys: Keys, agent: Path, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    with Sshd(tmp_path / "six", keys, address="::1") as server:
        options = {"userknownhostsfile": str(known), "globalknownhostsfile": "none", "hashknownhosts": "no"}
        assert ask(host(server, keys, known, agent, ssh_options=options), accept_new=True).outcome is Outcome.OK
        assert known.read_text() == server.known_line()


@needs_ipv6
@needs_openssh
def test_sweep_reaches_an_ipv6_host_behind_a_jump_host(sshd: Sshd, keys: Keys, agent: Path, tmp_path: Path) -> None:
    known, config = tmp_path / "known_hosts", tmp_path / "ssh_config"
    config.write_text(
        f"Host 127.0.0.1\n  IdentityFile {keys.client}\n  IdentitiesOnly yes\n  IdentityAgent none\n"
        f"  UserKnownHostsFile {known}\n  GlobalKnownHostsFile none\n"
    )
    options = {"-F": str(config), "userknownhostsfile": str(known), "globalknownhostsfile": "none"}
    with Sshd(tmp_path / "six", keys, address="::1") as server:
        known.write_text(server.known_line() + sshd.known_line())
        result = ask(host(server, keys, known, agent, jump=f"127.0.0.1:{sshd.port}", ssh_options=options))
    assert (result.outcome, result.detail) == (Outcome.OK, None)


@pytest.mark.skipif(_link_local() is None, reason="needs a link-local address")
def test_sweep_reaches_a_host_by_its_link_local_address(keys: Keys, agent: Path, tmp_path: Path) -> None:
    known, address = tmp_path / "known_hosts", _link_local()
    assert address is not None
    with Sshd(tmp_path / "local", keys, address=address) as server:
        known.write_text(server.known_line())
        result = ask(host(server, keys, known, agent))
    assert (result.outcome, result.detail) == (Outcome.OK, None)
