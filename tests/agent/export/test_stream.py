from __future__ import annotations

import io
import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gua.errors import FrameError
from gua.export import stream
from gua.export.stream import Asked, read_chunks, write_stream
from gua.schemas import load_schema
from gua.store.database import open_reader
from gua.store.retention import Retention
from tests.agent.export.exporting import NONCE, Keeper, chunks_of, export, stored_rows
from tests.agent.store.opened import SetClock, writing
from tests.agent.store.ticks import HOUR, MINUTE, MONDAY, card, holder, tick


def history(path: Path, first: int = 0, end: int = 120) -> Path:
    """Two cards, three users, minute by minute; every tenth tick is its own transaction's only one."""
    rng = random.Random(first)
    with writing(path, interval_ms=MINUTE) as writer:
        for n in range(first, end, 10):
            made = []
            for m in range(n, min(end, n + 10)):
                who = ("ada", "ben", "chi")[m // 40 % 3]
                held = (holder(who, 10 + m // 40, memory_mb=1_000 + m // 7),)
                busy = card("GPU-a", rng.randrange(100) if m % 90 < 50 else 0, held, pci="1")
                made.append(tick(MONDAY + m * MINUTE, busy, card("GPU-b", 0, index=1, pci="2"), cover_ms=MINUTE))
            writer.write_ticks(made)
    return path


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return history(tmp_path_factory.mktemp("export") / "gua.db")


@pytest.fixture(scope="module")
def whole(database: Path) -> bytes:
    """An export of everything, as the other tests make it too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "CHUNK_ROWS", 30)
        return export(database)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "CHUNK_ROWS", 30)


def test_an_export_holds_every_row_of_the_database(database: Path) -> None:
    keeper = Keeper()
    assert keeper.take(chunks_of(export(database)))
    assert keeper.rows == stored_rows(database)
    assert len(keeper.rows["sample"]) == 240
    assert {row["power_dw"] for row in keeper.rows["sample"].values()} == {1000}


@pytest.mark.usefixtures("small_chunks")
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(cuts=st.lists(st.integers(0, 10**9), max_size=3))
def test_an_export_cut_anywhere_and_gone_on_with_has_the_same_rows_as_one_in_one_go(
    database: Path, cuts: list[int]
) -> None:
    keeper, in_one_go = Keeper(), Keeper()
    in_one_go.take(chunks_of(export(database)))
    for cut in cuts:
        data = export(database, keeper.cursor)
        torn = data[: cut % (len(data) + 1)]
        assert keeper.take(read_chunks(io.BytesIO(torn), NONCE)) is (len(torn) >= len(data))
    assert keeper.take(chunks_of(export(database, keeper.cursor)))
    assert (keeper.rows, keeper.cursor) == (in_one_go.rows, in_one_go.cursor)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(place=st.integers(0, 10**9), bit=st.integers(0, 7))
def test_an_export_with_one_bit_changed_is_refused(database: Path, whole: bytes, place: int, bit: int) -> None:
    """Or the change lies before its beginning, where anything may stand."""
    data = bytearray(whole)
    data[place % len(data)] ^= 1 << bit
    keeper = Keeper()
    assert keeper.take(read_chunks(io.BytesIO(bytes(data)), NONCE)) is False
    good = stored_rows(database)
    for name, rows in keeper.rows.items():
        assert rows.items() <= good[name].items()


def parts(data: bytes) -> list[bytes]:
    """The records of an export."""
    mark = b"gua-export-"
    return [mark + part for part in data.split(mark)[1:]]


def test_chunks_that_were_put_elsewhere_left_out_or_come_from_another_export_are_refused(database: Path) -> None:
    header, *chunks, end = parts(export(database))
    assert len(chunks) > 4
    other = parts(export(database, 1))
    for records in (
        [header, chunks[1], chunks[0], *chunks[2:], end],
        [header, *chunks[1:], end],
        [header, *chunks[:-1], end],
        [header, *chunks],
        [header, other[1], *chunks[1:], end],
        [header, chunks[0], *chunks, end],
        [*chunks, end],
    ):
        with pytest.raises(FrameError):
            chunks_of(b"".join(records))
    assert len(chunks_of(b"Welcome!\n" + b"".join([header, *chunks, end]) + b"Bye\n")) == len(chunks)


def test_another_nonce_is_no_answer(database: Path) -> None:
    with pytest.raises(FrameError, match="no export"):
        list(read_chunks(io.BytesIO(export(database)), "f" * 32))
    assert list(read_chunks(io.BytesIO(export(database))))


def test_chunks_are_whole_revisions_unless_one_is_larger_than_a_chunk(database: Path) -> None:
    chunks = chunks_of(export(database))
    assert [chunk.sequence for chunk in chunks] == list(range(1, len(chunks) + 1))
    assert {chunk.whole for chunk in chunks} == {True, False}
    for chunk in chunks:
        assert sum(len(table.rows) for table in chunk.tables.values()) <= 30
        assert all(chunk.after_rev < chunk.until_rev for chunk in chunks)
    assert chunks[-1].whole
    assert chunks[-1].until_rev == chunks[0].header["newest_rev"]


def test_revisions_and_tables_are_those_that_were_asked_for(database: Path) -> None:
    sums = Keeper()
    sums.take(chunks_of(export(database, rollups_only=True)))
    assert {"tick", "sample", "occupancy", "hold_memory", "tick_fragment"}.isdisjoint(sums.rows)
    assert sums.rows["card_slot"] == stored_rows(database)["card_slot"]
    ticks = stored_rows(database)["tick"].values()
    some = Keeper()
    some.take(chunks_of(export(database, 3, 7)))
    assert list(some.rows["tick"].values()) == [row for row in ticks if 3 < row["rev"] <= 7]
    assert some.cursor == 7


def test_a_cursor_ahead_of_the_database_gives_an_empty_export_that_says_so(database: Path) -> None:
    data = export(database, 10_000)
    assert chunks_of(data) == []
    header = json.loads(parts(data)[0].split(b"\n")[1])
    assert header["newest_rev"] < header["since_rev"] == 10_000


def test_a_growing_store_is_exported_as_far_as_it_reached_when_that_began(tmp_path: Path) -> None:
    """A writer goes on after every chunk; what it changes comes next time, and nothing is missing then."""
    path = history(tmp_path / "gua.db", 0, 60)
    keeper = Keeper()
    grown = iter(range(60, 120, 10))

    class Out(io.BytesIO):
        def write(self, data: object) -> int:
            first = next(grown, None)
            if first is not None:
                history(path, first, first + 10)
            return super().write(data)  # type: ignore[arg-type]

    out = Out()
    with open_reader(path) as reader:
        began = reader.rev()
        write_stream(reader, out, Asked(0), nonce=NONCE, agent_version="0.1.0", now_ms=MONDAY)
    assert keeper.take(chunks_of(out.getvalue()))
    assert keeper.cursor == began
    assert next(grown, None) is None
    assert keeper.take(chunks_of(export(path, keeper.cursor)))
    assert keeper.rows == stored_rows(path)


def test_what_retention_removed_is_told(tmp_path: Path) -> None:
    clock = SetClock()
    with writing(tmp_path / "gua.db", interval_ms=HOUR, clock=clock, retention=Retention(48 * HOUR, 10**13)) as writer:
        for n in range(24 * 9):
            clock.ms = MONDAY + n * HOUR
            writer.write_tick(tick(clock.ms, card(), cover_ms=HOUR))
    (first, *_) = chunks_of(export(tmp_path / "gua.db"))
    with open_reader(tmp_path / "gua.db") as reader:
        raw_since_ms = reader.raw_since_ms()
    assert raw_since_ms is not None
    assert first.header["stores"][0]["raw_since_ms"] == raw_since_ms
    assert first.header["oldest_whole_rev"] > 1


def test_header_and_chunks_fit_their_schemas(database: Path) -> None:
    import zlib

    import jsonschema

    header, *chunks, _ = parts(export(database))
    jsonschema.validate(json.loads(header.split(b"\n")[1]), load_schema("gua.export.1"))
    for chunk in chunks:
        line, body = chunk.split(b"\n", 1)
        size = json.loads(line.split(b" ", 2)[2])["bytes"]
        jsonschema.validate(json.loads(zlib.decompress(body[:size])), load_schema("gua.export-chunk.1"))


def test_a_header_of_another_major_version_is_refused_and_says_which(database: Path) -> None:
    from gua.export.records import write_record

    record, _ = write_record("", "header", NONCE, {}, b'{"schema": "gua.export/2"}')
    with pytest.raises(FrameError, match=r"gua\.export/2"):
        chunks_of(record)
