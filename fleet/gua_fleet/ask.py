"""Inventory in, one outcome per host out: the path every fleet command takes."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from gua.errors import ExitStatus
from gua_fleet.errors import KeysLocked
from gua_fleet.inventory.load import Inventory
from gua_fleet.model import HostResult, Outcome
from gua_fleet.probes.probe import Probe
from gua_fleet.prompt import ask_secret
from gua_fleet.secrets import Ask
from gua_fleet.ssh.keep import KeptFleet
from gua_fleet.ssh.sweep import Notice, Progress, SweepSettings, sweep

_ANSWERED = frozenset({Outcome.OK, Outcome.PAUSED, Outcome.NO_GPU, Outcome.NO_HISTORY})


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
    ask: Ask = ask_secret,
) -> Answers:
    """Ask every host of the inventory that is not left out. progress and notice: as for `sweep`.

    Where no key can be used without its passphrase, that is asked for first. Raises CannotAsk where nobody can tell it.
    """
    try:
        results = sweep(inventory.hosts, probe, settings, progress=progress, notice=notice)
    except KeysLocked as exc:  # found before anybody was asked
        inventory = with_passphrase(inventory, exc, ask)
        results = sweep(inventory.hosts, probe, settings, progress=progress, notice=notice)
    return Answers(inventory, results)


@contextlib.contextmanager
def kept_connections(
    inventory: Inventory, settings: SweepSettings, *, notice: Notice = lambda line: None, ask: Ask = ask_secret
) -> Iterator[KeptFleet]:
    """The inventory's hosts, to be asked again and again over connections that stay open; see `ask_inventory`."""
    fleet = KeptFleet(inventory.hosts, settings, notice=notice)
    try:
        fleet.__enter__()
    except KeysLocked as exc:
        fleet = KeptFleet(with_passphrase(inventory, exc, ask).hosts, settings, notice=notice)
        fleet.__enter__()
    try:
        yield fleet
    finally:
        fleet.close()


def with_passphrase(inventory: Inventory, locked: KeysLocked, ask: Ask = ask_secret) -> Inventory:
    """The inventory with the passphrase of the locked keys, typed now. Hosts that have one of their own keep it."""
    names = ", ".join(map(str, locked.files))
    passphrase = ask(f"passphrase of {names}", f"run `ssh-add {shlex.join(map(str, locked.files))}` first")
    hosts = tuple(replace(host, passphrase=host.passphrase or passphrase) for host in inventory.hosts)
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
    sound: whether what a host answered is good news; bad news from any is FAILED, and is not tolerated as missing.
    """
    if not any(result.outcome in _ANSWERED for result in results):
        return ExitStatus.NOBODY_ANSWERED
    failed = sum(result.failed for result in results)
    bad_news = any(result.document is not None and not sound(result) for result in results)
    return ExitStatus.OK if failed <= allow_missing and not bad_news else ExitStatus.FAILED
