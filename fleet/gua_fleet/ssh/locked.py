"""Which keys need a passphrase before anybody can be asked with them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gua_fleet.model import Host
from gua_fleet.ssh.keys import KeyRing, locked_out
from gua_fleet.ssh.ssh_config import SshConfig


def locked_keys(hosts: Iterable[Host]) -> dict[tuple[Path, ...], frozenset[str]]:
    """{key files that need a passphrase: names of the hosts that have nothing else to offer}.

    Hosts that the inventory gives the same key and ssh options are looked at once: reading ssh_config costs a process
    for each. One that ssh_config alone sets apart is found out when it is asked.
    """
    alike: dict[tuple[object, ...], list[Host]] = {}
    for host in hosts:
        asked = host.connection == "ssh" and not (host.maintenance or host.skip_reason)
        if asked and host.passphrase is None and host.password is None:
            alike.setdefault((host.identity_file, *sorted(host.ssh_options.items())), []).append(host)
    config, keys = SshConfig(), KeyRing()
    locked: dict[tuple[Path, ...], frozenset[str]] = {}
    for same in alike.values():
        try:
            files = locked_out(config.target(same[0]), keys)
        except (OSError, LookupError, ValueError):  # its own turn will tell what is wrong with it
            continue
        if files:
            locked[files] = locked.get(files, frozenset()) | {host.name for host in same}
    return locked
