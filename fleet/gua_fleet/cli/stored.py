"""The fleet's store under a command that reads it: its reports, beside the answers or instead of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from gua_fleet.ask import Answers
from gua_fleet.cli.common import read_inventory
from gua_fleet.cli.store import store_place
from gua_fleet.errors import StoreMissing, StoreUnusable
from gua_fleet.model import Host, HostResult, Outcome, Stored
from gua_fleet.show import one_line
from gua_fleet.store.question import Question

if TYPE_CHECKING:  # peewee is loaded where the store is opened: most commands need none
    from gua_fleet.store.session import Session

_NAMED = 20


@contextmanager
def reading_store(options: argparse.Namespace, now_ms: int) -> Iterator[Session]:
    """One unchanging view of the store. Raises StoreMissing, StoreUnusable."""
    from gua_fleet.store.database import open_to_read

    with open_to_read(store_place(options), now_ms=now_ms) as session, session.reading():
        yield session


def ask_store(options: argparse.Namespace, question: Question, inventory: Answers | None = None) -> Answers:
    """What the store has of every host of the inventory; nobody is asked. inventory: as it was read before.

    Raises StoreMissing, StoreUnusable.
    """
    from gua_fleet.store.reports import stored_reports

    hosts = read_inventory(options) if inventory is None else inventory.inventory
    with reading_store(options, question.now_ms) as session:
        found = stored_reports(session, (host.name for host in hosts.hosts), question)
        if options.limit is None and inventory is None:
            _tell_others(session, hosts.hosts)
    return Answers(hosts, tuple(_from_store(host, found.get(host.name)) for host in hosts.hosts))


def fill_in(options: argparse.Namespace, answers: Answers, question: Question) -> Answers:
    """The answers, with the store's reports of hosts that gave none. A store that cannot be read is told, no more."""
    from gua_fleet.store.reports import stored_reports

    silent = [result.host.name for result in answers.results if _is_silent(result)]
    if not silent:
        return answers
    try:
        with reading_store(options, question.now_ms) as session:
            found = stored_reports(session, silent, question)
    except StoreMissing:
        return answers
    except StoreUnusable as exc:
        sys.stderr.write(f"report: the store cannot fill in: {one_line(str(exc), width=400)}\n")
        return answers
    results = (replace(result, stored=found.get(result.host.name)) for result in answers.results)
    return replace(answers, results=tuple(results))


def _is_silent(result: HostResult) -> bool:
    """Whether the host gave no report. One that says it has no card did tell all there is."""
    return result.document is None and result.outcome is not Outcome.NO_GPU


def _from_store(host: Host, stored: Stored | None) -> HostResult:
    if stored is not None:
        return HostResult(host, Outcome.STORED, stored=stored)
    return HostResult(host, Outcome.NO_HISTORY, "the store has nothing of it: run `gua-fleet pull`")


def _tell_others(session: Session, hosts: Sequence[Host]) -> None:
    from gua_fleet.store.histories import histories

    others = sorted({one.name for one in histories(session)} - {host.name for host in hosts})
    if others:
        sys.stderr.write(f"store: it also has the history of {_listed(others)}, not in this inventory\n")


def _listed(names: Sequence[str]) -> str:
    shown: Iterable[str] = (one_line(name) for name in names[:_NAMED])
    more = len(names) - _NAMED
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
