"""Imports in this process, with everything that decides given."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Optional

from gua.legacy.source import open_old
from gua.legacy.take_over import Import, Taken
from gua.rulebook import RuleBook
from gua.store.database import open_writer
from gua.store.past import PastWriter
from tests.agent.store.opened import SetClock
from tests.agent.store.ticks import BOOT

RULES = RuleBook()


class Cut(Exception):
    """The import dies here."""


def take(old: Path, database: Path, batches: Optional[int] = None, **more: Any) -> Taken:
    """Import. batches: die after so many were stored."""
    options: dict[str, Any] = {"clock": SetClock(), "machine_id": "m1", "boot_id": BOOT, "hostname": "host-a", **more}
    writer = open_writer(database, **options)
    stored = 0

    def on_batch(_: int) -> None:
        nonlocal stored
        stored += 1
        if stored == batches:
            raise Cut

    try:
        with open_old(old) as source:
            work = Import(source, RULES, source.host()[0] or "")
            return work.into(PastWriter(writer, work.keys(), RULES.default), on_batch)
    finally:
        writer.close()
