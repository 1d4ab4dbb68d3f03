"""Databases for tests, opened and closed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from datetime import timezone
from pathlib import Path
from typing import Any

from gua.model import DEFAULT_RULE, CardTick, Rule, Tick
from gua.report.build import build_report
from gua.report.document import Report
from gua.store.database import open_reader
from gua.store.writable import open_writer
from gua.store.writer import StoreWriter
from tests.agent.store.ticks import BOOT, HOUR, MINUTE, MONDAY, tick


class SetClock:
    """A clock that stands until told."""

    def __init__(self, ms: int = MONDAY) -> None:
        self.ms = ms

    def now_ms(self) -> int:
        return self.ms

    def monotonic_s(self) -> float:
        return self.ms / 1000

    def sleep_s(self, seconds: float) -> None:
        self.ms += round(seconds * 1000)


@contextlib.contextmanager
def writing(path: Path, rule: Rule = DEFAULT_RULE, interval_ms: int = 30_000, **more: Any) -> Iterator[StoreWriter]:
    options: dict[str, Any] = {"clock": SetClock(), "machine_id": "m1", "boot_id": BOOT, "hostname": "host-a", **more}
    writer = open_writer(path, **options)
    try:
        writer.begin_run("daemon", interval_ms, rule, "0.1.0")
        yield writer
    finally:
        writer.close()


def stored(path: Path, ticks: Iterable[Tick], **more: Any) -> Path:
    with writing(path, **more) as writer:
        for one in ticks:
            writer.write_tick(one)
    return path


def report(path: Path, since_ms: int, until_ms: int, **more: Any) -> Report:
    options: dict[str, Any] = {"now_ms": until_ms, "zone": timezone.utc, "zone_name": "UTC", "scheduler": None, **more}
    with open_reader(path) as reader:
        return build_report(reader, since_ms=since_ms, until_ms=until_ms, **options)


def steady(count: int, *cards: CardTick, start: int = 0) -> list[Tick]:
    """Ticks of the same cards, one a minute, from minute `start` of Monday on."""
    return [tick(MONDAY + n * MINUTE, *cards, cover_ms=MINUTE) for n in range(start, start + count)]


def hour(path: Path) -> Any:
    """The report over the first hour of Monday."""
    return report(path, MONDAY, MONDAY + HOUR)


def write(folder: Path, ticks: Iterable[Tick], **more: Any) -> Path:
    return stored(folder / "gua.db", ticks, **more)
