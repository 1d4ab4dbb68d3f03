"""Opens the database of a made-up host, and never that of a real one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

from gua.clock import Clock
from gua.demo.profile import HostProfile
from gua.errors import DatabaseMissing, UsageError
from gua.report.zones import find_zone
from gua.store.database import open_reader
from gua.store.writable import open_writer
from gua.store.writer import StoreWriter


@contextlib.contextmanager
def open_demo_writer(
    path: Path, profile: HostProfile, clock: Clock, give_up: Callable[[], bool] = lambda: False
) -> Iterator[StoreWriter]:
    """The writer of the made-up host's database, made when it is not there, closed at the end.

    Raises UsageError when its directory cannot be made, and when the file holds another host's history: made-up
    ticks must never get among real ones.
    """
    if path.exists():
        _refuse_real_history(path, profile)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise UsageError(f"{path.parent}: cannot be made: {exc.strerror}; name another place") from exc
    writer = open_writer(
        path,
        clock=clock,
        machine_id=profile.machine_id,
        boot_id=profile.boot_id,
        hostname=profile.hostname,
        give_up=give_up,
    )
    try:
        yield writer
    finally:
        writer.close()


def _refuse_real_history(path: Path, profile: HostProfile) -> None:
    try:
        with open_reader(path) as reader:
            host = reader.host()
    except DatabaseMissing:
        return  # empty: an earlier demonstration was ended before it wrote anything
    if host is not None and host.machine_id != profile.machine_id:
        raise UsageError(f"{path} holds the history of another host; name a new file for the demonstration")


def zone_offset_ms(zone_name: str, now_ms: int) -> int:
    """How far clocks in the zone are ahead of UTC at `now_ms`; 0 for a zone this host does not know."""
    moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=now_ms)
    offset = moment.astimezone(find_zone(zone_name) or timezone.utc).utcoffset() or timedelta(0)
    return offset // timedelta(milliseconds=1)
