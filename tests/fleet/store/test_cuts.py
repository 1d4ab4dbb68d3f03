"""One stream cut at every byte of it, each time for another host, which then goes on: the same as in one go."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pytest

from gua.export import stream
from gua_fleet.store.histories import histories
from gua_fleet.store.intake import Intake
from gua_fleet.store.session import Session
from tests.agent.export.exporting import export, stored_rows
from tests.agent.store.opened import steady, writing
from tests.agent.store.ticks import MINUTE, card, holder
from tests.fleet.store.pulling import DAYS, as_kept, day_rows, kept_rows, take_in

# PostgreSQL takes each of thousands of transactions to a server and back: there it is every so many bytes.
_STEPS = {True: 1, False: 61}


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four chunks in three thousand bytes: every kind of record, and a revision that goes on in a second chunk."""
    monkeypatch.setattr(stream, "CHUNK_ROWS", 10)
    path = tmp_path / "gua.db"
    with writing(path, interval_ms=MINUTE) as writer:
        for one in steady(5, card("GPU-a", 50, (holder("ada", 1, name="train"),))):
            writer.write_tick(one)
    return path


def test_a_stream_cut_at_any_byte_goes_on_to_the_same(session: Session, database: Path) -> None:
    answers = lru_cache(maxsize=None)(lambda since_rev: export(database, since_rev))
    whole = answers(0)
    assert whole.count(b"\ngua-export-chunk ") > 2
    if session.is_sqlite:
        session.execute("PRAGMA synchronous = OFF")  # no machine loses power here
    reached = []
    for cut in range(0, len(whole), _STEPS[session.is_sqlite]):
        intake = Intake(session, f"cut-{cut}", rollups_only=False)
        assert not take_in(intake, whole[:cut], intake.since_rev())
        reached.append(intake.taken.rev or 0)
        resumed = Intake(session, f"cut-{cut}", rollups_only=False)
        since_rev = resumed.since_rev()
        assert take_in(resumed, answers(since_rev), since_rev)
        resumed.finish(raw_ms=None)
    assert reached == sorted(reached)  # what was whole is kept, never less than of a shorter part
    assert len(set(reached)) > 2
    wanted = as_kept(stored_rows(database))
    found = histories(session)
    assert len(found) == len(reached)
    days = day_rows(session, found[0].id)
    assert all(days[table] for table in DAYS)
    for history in found:
        assert kept_rows(session, history.id) == wanted, history.name
        assert day_rows(session, history.id) == days, history.name
