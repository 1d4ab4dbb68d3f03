"""A host's export is taken in as it is, however often it is cut, doubled or begun anew."""

from __future__ import annotations

import io
import random
import threading
from pathlib import Path

import pytest

from gua.export import stream
from gua.export.reading import first_line, open_export
from gua.store.codes import STATE_OF_VERDICT
from gua_fleet.store.care import forget_host
from gua_fleet.store.database import open_store
from gua_fleet.store.header import believed_header
from gua_fleet.store.intake import AskAgain, Intake
from gua_fleet.store.place import Place
from gua_fleet.store.session import Session
from gua_fleet.store.shape import NotBelieved
from tests.agent.export.exporting import NONCE, export, stored_rows
from tests.agent.export.test_stream import history
from tests.agent.store.ticks import HOUR, MINUTE, MONDAY
from tests.fleet.store.pulling import NOW_MS, as_kept, day_rows, kept_rows, present, pull, take_in


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return history(tmp_path_factory.mktemp("host") / "gua.db")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "CHUNK_ROWS", 40)


def assert_same(session: Session, database: Path, name: str = "gpu01") -> None:
    assert kept_rows(session, present(session, name).id) == as_kept(stored_rows(database))


def test_everything_of_the_host_is_kept(session: Session, database: Path) -> None:
    intake = pull(session, database)
    assert_same(session, database)
    assert intake.taken.chunks > 5
    found = present(session)
    assert (found.rev, found.raw_rev) == (intake.taken.rev, intake.taken.rev)
    assert (found.name, found.hostname, found.branch, found.raw_since_ms) == ("gpu01", "host-a", 0, None)


def test_a_second_pull_changes_nothing_and_a_third_brings_what_came_since(session: Session, tmp_path: Path) -> None:
    path = history(tmp_path / "gua.db", 0, 60)
    pull(session, path)
    before, days = kept_rows(session, present(session).id), day_rows(session, present(session).id)
    again = pull(session, path)
    assert (kept_rows(session, present(session).id), day_rows(session, present(session).id)) == (before, days)
    assert again.taken.rows == 0
    assert 0 < again.taken.came < 200  # its newest tick is asked for once more, and what else came with it
    history(path, 60, 120)
    pull(session, path)
    assert_same(session, path)


def test_days_are_the_sums_of_their_slots(session: Session, database: Path) -> None:
    pull(session, database)
    history_id = present(session).id
    slots = kept_rows(session, history_id)["card_slot"]
    found = day_rows(session, history_id)
    day = MONDAY // 86_400_000
    assert {row[0] for rows in found.values() for row in rows} == {day}
    assert sum(row[4] for row in found["card_day"]) == sum(row["covered_ms"] for row in slots.values())
    assert sum(row[5] for row in found["card_day"]) == 240  # two cards, 120 ticks
    ((_, state_ms),) = found["slot_day"]
    by_state = [0] * 4
    for position in range(0, len(state_ms), 8):
        by_state[position // 8 % 4] += int.from_bytes(state_ms[position : position + 8], "little")
    assert sum(by_state) == 240 * MINUTE
    for state in range(4):
        wanted = [row["covered_ms"] for row in slots.values() if STATE_OF_VERDICT[row["verdict"]] == state]
        assert by_state[state] == sum(wanted)


def test_cut_again_and_again_it_goes_on_and_ends_the_same(session: Session, database: Path) -> None:
    rng = random.Random(8)
    reached = [0]
    for _ in range(8):
        left = len(export(database, Intake(session, "gpu01", rollups_only=False).since_rev()))
        pull(session, database, cut=rng.randrange(left))
        reached.append(present(session).rev)
    assert reached == sorted(reached)
    assert len(set(reached)) > 3
    pull(session, database)
    assert_same(session, database)


def test_cut_at_every_boundary_and_beside_it(session: Session, database: Path) -> None:
    """Each cut is another host's, so that one does not help the next."""
    data = export(database)
    borders = [place for place in range(len(data)) if data.startswith(b"gua-export-", place)]
    places = sorted(
        {place + beside for place in [*borders, len(data)] for beside in (-1, 0, 1)} & set(range(len(data)))
    )
    for cut in random.Random(1).sample(places, 12):
        name = f"cut-at-{cut}"
        pull(session, database, name, cut=cut)
        pull(session, database, name)
        assert_same(session, database, name)


def test_a_chunk_is_kept_with_its_cursor_or_not_at_all(
    session: Session, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the store failed at the end of the third chunk's transaction."""
    done = Intake._advance
    calls: list[int] = []

    def failing(self: Intake, *arguments: object) -> None:
        done(self, *arguments)  # type: ignore[arg-type]
        calls.append(1)
        if len(calls) == 3:
            raise RuntimeError("no room")

    monkeypatch.setattr(Intake, "_advance", failing)
    with pytest.raises(RuntimeError, match="no room"):
        pull(session, database)
    found = present(session)
    assert 0 < found.rev < 14
    assert {row["rev"] for row in kept_rows(session, found.id)["tick"].values()} >= set(range(2, found.rev + 1))
    pull(session, database)
    assert_same(session, database)


def test_two_at_once_double_nothing(place: Place, database: Path) -> None:
    with open_store(place, now_ms=NOW_MS) as one, open_store(place, now_ms=NOW_MS) as other:
        wrong: list[BaseException] = []

        def work(session: Session) -> None:
            try:
                for _ in range(3):
                    pull(session, database)
            except BaseException as exc:  # noqa: BLE001 - told below
                wrong.append(exc)

        threads = [threading.Thread(target=work, args=(session,)) for session in (one, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert wrong == []
        assert_same(one, database)
        assert one.value("SELECT count(*) FROM history") == 1
        assert sum(row[3] for row in day_rows(one, present(one).id)["tick_day"]) == 120


def test_the_slower_of_two_controllers_takes_nothing_back(session: Session, tmp_path: Path) -> None:
    """It asked before the other one did, and puts in what it got when the other one is through."""
    path = history(tmp_path / "gua.db", 0, 40)
    slow = Intake(session, "gpu01", rollups_only=False)
    asked_rev = slow.since_rev()
    old = export(path, asked_rev)
    history(path, 40, 80)
    pull(session, path)
    late = Intake(session, "gpu01", rollups_only=False)
    late_rev = late.since_rev()
    newer = export(path, late_rev)
    history(path, 80, 120)
    pull(session, path)
    assert take_in(late, newer, late_rev)
    late.finish(raw_ms=None)
    assert_same(session, path)
    with pytest.raises(AskAgain):  # there was nothing here when it was asked
        take_in(slow, old, asked_rev)
    assert_same(session, path)


def test_what_is_forgotten_in_mid_pull_gets_into_no_other_hosts_history(
    session: Session, database: Path, tmp_path: Path
) -> None:
    """SQLite gives the number of a history that went to the next one."""
    data, other = io.BytesIO(export(database)), history(tmp_path / "other.db", 0, 40)
    intake = Intake(session, "gpu01", rollups_only=False)
    header, chunks = open_export(data, first_line(data, NONCE), NONCE)
    intake.begin(believed_header(header, intake.since_rev()), NOW_MS)
    intake.take(next(chunks))
    forget_host(session, "gpu01")
    pull(session, other, "gpu02")
    for chunk in chunks:
        with pytest.raises(NotBelieved, match="forgotten while it was pulled"):
            intake.take(chunk)
    with pytest.raises(NotBelieved, match="forgotten while it was pulled"):
        intake.finish(raw_ms=None)
    assert_same(session, other, "gpu02")
    pull(session, database, "gpu01")
    assert_same(session, database)


def test_rollups_only_has_no_ticks_and_the_same_sums_and_ticks_come_later(session: Session, database: Path) -> None:
    pull(session, database, rollups_only=True)
    wanted = as_kept(stored_rows(database))
    kept = kept_rows(session, present(session).id)
    assert kept == {name: rows for name, rows in wanted.items() if name in kept}
    assert {"tick", "sample", "occupancy", "hold_memory"}.isdisjoint(kept)
    days = day_rows(session, present(session).id)
    assert (present(session).raw_rev, present(session).rev > 0) == (0, True)
    pull(session, database)
    assert_same(session, database)
    assert day_rows(session, present(session).id) == days


def test_raw_ticks_go_after_a_while_and_sums_stay(session: Session, database: Path) -> None:
    end_ms = MONDAY + 2 * HOUR
    pull(session, database, now_ms=end_ms)
    days = day_rows(session, present(session).id)
    # the export says that it was made on Monday at 00:00: neither clock may take away what the other calls new
    pull(session, database, now_ms=end_ms, raw_ms=HOUR)
    assert len(kept_rows(session, present(session).id)["tick"]) == 120
    pull(session, database, now_ms=end_ms, raw_ms=-HOUR)
    kept = kept_rows(session, present(session).id)
    assert sorted(row["ts_ms"] for row in kept["tick"].values())[0] == MONDAY + HOUR
    assert len(kept["sample"]) == 2 * len(kept["tick"]) == 120
    assert {row["occupancy"] for row in kept["sample"].values()} <= {key[0] for key in kept["occupancy"]}
    assert day_rows(session, present(session).id) == days
    assert present(session).raw_since_ms == MONDAY + HOUR
