"""Inventory in, one outcome per host out: the path every fleet command takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gua.errors import ExitStatus
from gua_fleet.inventory.load import Inventory
from gua_fleet.model import HostResult, Outcome
from gua_fleet.probes.probe import Probe
from gua_fleet.ssh.sweep import Notice, Progress, SweepSettings, sweep

_ANSWERED = frozenset({Outcome.OK, Outcome.NO_GPU, Outcome.NO_HISTORY})


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


def exit_status(
    results: Sequence[HostResult], allow_missing: int = 0, sound: Callable[[HostResult], bool] = lambda result: True
) -> ExitStatus:
    """OK when at most `allow_missing` hosts failed, NOBODY_ANSWERED when no host answered at all, else FAILED.

    A host without a GPU or without history did answer. One in maintenance or skipped neither answers nor fails.
    sound: whether what a host answered is good news; bad news from any is FAILED, and is not tolerated as missing.
    """
    if not any(result.outcome in _ANSWERED for result in results):
        return ExitStatus.NOBODY_ANSWERED
    failed = sum(result.failed for result in results)
    bad_news = any(result.document is not None and not sound(result) for result in results)
    return ExitStatus.OK if failed <= allow_missing and not bad_news else ExitStatus.FAILED
