"""Agents' databases taken into a store, as a pull does it but for the SSH, and reports of both to compare."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gua.report.zones import find_zone
from gua_fleet.merge import merge_reports
from gua_fleet.model import Document, Host, HostResult, Outcome, Stored
from gua_fleet.store.database import open_store
from gua_fleet.store.place import Place
from gua_fleet.store.question import Question
from gua_fleet.store.reports import stored_reports
from gua_fleet.store.session import Session
from tests.agent.store.opened import report
from tests.agent.store.ticks import MONDAY
from tests.fleet.store.pulling import pull

# What an agent finds about now, or by reading single ticks: the store does neither.
NOT_STORED = {"stale", "clock", "ghost", "clock_set_back", "paused", "card_lost", "card_missing", "driver"}
NOT_STORED |= {"unresponsive", "memory_unavailable", "clock_differs"}


@contextlib.contextmanager
def new_store(place: Path | Place) -> Iterator[Session]:
    with open_store(place if isinstance(place, Place) else Place(path=place), now_ms=MONDAY) as session:
        yield session


def take(session: Session, name: str, path: Path, **options: Any) -> None:
    """Pull the database at `path` as that of host `name`. options: of `pulling.pull`."""
    pull(session, path, name, **options)


def question(since_ms: int, until_ms: int, now_ms: int, tz: str = "UTC") -> Question:
    zone = find_zone(tz)
    assert zone is not None
    return Question(since_ms, until_ms, now_ms, zone, tz)


def from_agents(paths: Mapping[str, Path], asked: Question) -> Document:
    """The merged report of what the agents say themselves."""
    options = {"now_ms": asked.now_ms, "zone": asked.zone, "zone_name": asked.tz}
    answers = {name: report(path, asked.since_ms, asked.until_ms, **options) for name, path in paths.items()}
    return _merged([HostResult(_host(name), Outcome.OK, document=dict(one)) for name, one in answers.items()], asked)


def from_store(session: Session, names: list[str], asked: Question) -> Document:
    """The merged report of what the store has."""
    with session.reading():
        found: dict[str, Stored] = stored_reports(session, names, asked)
    return _merged([HostResult(_host(name), Outcome.STORED, stored=found[name]) for name in names], asked)


def _host(name: str) -> Host:
    return Host(name, name, groups=("rack1",) if name < "b" else ("rack1", "rack2"))


def _merged(results: list[HostResult], asked: Question) -> Document:
    span = {"since_ms": asked.since_ms, "until_ms": asked.until_ms, "generated_at_ms": asked.now_ms}
    return merge_reports(results, **span, tz=asked.tz)


def figures(document: Document) -> Document:
    """All that must be the same, whoever was asked: everything but what is about now."""
    same = {
        key: document[key]
        for key in (
            *("window", "rules", "model_rules", "intervals_s", "coverage", "card_s", "held_unmeasured_s", "samples"),
            *("cards", "sliced_cards", "models", "users", "groups", "tz", "hours_of_week"),
        )
    }
    keys = ("name", "cards", "card_s", "coverage")
    return {
        **same,
        "hosts": [{key: host[key] for key in keys} for host in document["hosts"]],
        "findings": sorted(
            (one["id"], str(one["host"]), str(one["card"]))
            for one in document["findings"]
            if one["id"] not in NOT_STORED
        ),
    }


def holds(document: Document, ends: Document) -> dict[tuple[str, int], Document]:
    """The document's holds by host and id, ended as those of `ends` are.

    What is open an agent lists to the end of time; the store has it until when it was seen, if that is in the window.
    """
    until = {(hold["host"], hold["id"]): hold["until"] for hold in ends["holds"]}
    found = {(hold["host"], hold["id"]): hold for hold in document["holds"]}
    return {
        key: {**hold, "until": until.get(key) if hold["until"] is None else hold["until"]}
        for key, hold in found.items()
        if hold["until"] is not None or key in until
    }
