"""Inventory in, one outcome per host out: the path every fleet command takes."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gua.errors import ExitStatus
from gua_fleet.inventory.load import Inventory
from gua_fleet.model import HostResult, Outcome
from gua_fleet.probes.probe import Probe
from gua_fleet.prompt import ask_secret
from gua_fleet.secrets import Ask
from gua_fleet.ssh.settings import SweepSettings
from gua_fleet.ssh.sweep import Notice, Progress, sweep

_ANSWERED = frozenset(
    {Outcome.OK, Outcome.STORE_FAILED, Outcome.PAUSED, Outcome.NO_GPU, Outcome.NO_HISTORY, Outcome.STORED}
)


@dataclass(frozen=True)
class Answers:
    """results: one per host of `inventory.hosts`, in the same order."""

    inventory: Inventory
    results: tuple[HostResult, ...]


def ask_inventory(
    inventory: Inventory,
    probe: Probe,
    settings: SweepSettings,
    *,
    progress: Progress | None = None,
    notice: Notice = lambda line: None,
) -> Answers:
    """Ask every host of the inventory that is not left out. progress and notice: as for `sweep`."""
    return Answers(inventory, sweep(inventory.hosts, probe, settings, progress=progress, notice=notice))


def with_passphrases(inventory: Inventory, ask: Ask = ask_secret) -> Inventory:
    """The inventory with the passphrases of its locked keys, typed now, each for the hosts that have no other key.

    Nothing typed leaves such hosts as they are: they will not let us in, and are shown with that reason.
    """
    if all(host.connection == "local" for host in inventory.hosts):
        return inventory
    from gua_fleet.ssh.locked import locked_keys  # loads the SSH libraries, which local hosts do not need

    hosts = inventory.hosts
    for files, names in locked_keys(hosts).items():
        prompt = f"passphrase of {', '.join(map(str, files))}, for {len(names)} of {len(hosts)} hosts"
        typed = ask(prompt, f"run `ssh-add {shlex.join(map(str, files))}` first")
        if typed.reveal:
            hosts = tuple(replace(host, passphrase=typed) if host.name in names else host for host in hosts)
    return replace(inventory, hosts=hosts)


def with_passwords(inventory: Inventory, *, ask_pass: bool, ask_become: bool, ask: Ask = ask_secret) -> Inventory:
    """The inventory with passwords typed now, before anybody is asked, for the hosts that have none of their own.

    An empty sudo password is the one to log in with, as in Ansible. Raises CannotAsk where no terminal is.
    """
    password = ask("SSH password", "use a key, or ansible_password in a vault") if ask_pass else None
    become = ask("sudo password", "use a rule that needs none, or ansible_become_password") if ask_become else None
    if become is not None and not become.reveal:
        become = password
    if password is None and become is None:
        return inventory
    hosts = tuple(
        replace(host, password=host.password or password, become_password=host.become_password or become)
        for host in inventory.hosts
    )
    return replace(inventory, hosts=hosts)


def exit_status(
    results: Sequence[HostResult], allow_missing: int = 0, sound: Callable[[HostResult], bool] = lambda result: True
) -> ExitStatus:
    """OK when at most `allow_missing` hosts failed, NOBODY_ANSWERED when no host answered at all, else FAILED.

    A host without a GPU or without history, or a paused one, did answer. One in maintenance or skipped neither answers
    nor fails.
    sound: whether it is good news that a host answered so; bad news from any is FAILED, not tolerated as missing.
    """
    answered = [result for result in results if result.outcome in _ANSWERED]
    if not answered:
        return ExitStatus.NOBODY_ANSWERED
    failed = sum(result.failed for result in results)
    bad_news = not all(map(sound, answered))
    return ExitStatus.OK if failed <= allow_missing and not bad_news else ExitStatus.FAILED
