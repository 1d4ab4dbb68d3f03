"""What can go wrong around a pull, with real programs: several at once, a full disk, other versions, endless hosts."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gua_fleet.model import Outcome
from gua_fleet.store.check import check_store
from gua_fleet.store.database import open_store
from gua_fleet.store.histories import histories
from gua_fleet.store.place import Place
from gua_fleet.store.session import Session
from tests.agent.export.exporting import NONCE, export, stored_rows
from tests.agent.export.test_stream import history
from tests.fleet.pull.hosts import assert_kept, local, pulled, real_agent, script
from tests.fleet.ssh.sshd import REPOSITORY
from tests.fleet.store.killing import PATHS, pulling_program
from tests.fleet.store.postgres import Postgres
from tests.fleet.store.pulling import NOW_MS, as_kept, day_rows, kept_rows, present
from tests.fleet.store.test_lies import Tables, retold

pytestmark = pytest.mark.processes

# A header, then one chunk of a good export again and again, with the sequence and the checksums of a right one.
_ENDLESS = """#!/bin/sh
export PYTHONPATH={agent} PYTHONDONTWRITEBYTECODE=1
for nonce; do :; done
exec {python} -c 'import json, sys, zlib
from gua.export.records import write_record
nonce, header, chunk = sys.argv[1], json.load(open("{folder}/header")), json.load(open("{folder}/chunk"))
tables = zlib.decompress(open("{folder}/body", "rb").read())
record, before = write_record("", "header", nonce, {{}}, json.dumps(header).encode())
sys.stdout.buffer.write(record)
number = 0
while True:
    number += 1
    fields = {{**chunk, "sequence": number, "whole": False}}
    record, before = write_record(before, "chunk", nonce, fields, zlib.compress(tables, 0))
    sys.stdout.buffer.write(record)
' $nonce
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def new_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Without a store in it."""
    if request.param == "sqlite":
        return Place(path=tmp_path / "new.db")
    server: Postgres = request.getfixturevalue("postgres")
    server.clear()
    return Place(url=server.url)


def test_two_controllers_that_pull_one_fleet_into_one_new_store_double_nothing(
    new_place: Place, agent: Path, database: Path
) -> None:
    """They make the store at the same time, too."""
    children = [
        subprocess.Popen(
            pulling_program(new_place, "gpu01", agent),
            env={**os.environ, **PATHS},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(3)
    ]
    for child in children:
        said, _ = child.communicate(timeout=240)
        assert (child.returncode, said) == (0, "")
    with open_store(new_place, now_ms=NOW_MS) as session:
        assert len(histories(session)) == 1
        assert_kept(session, "gpu01", database)
        assert list(check_store(session)) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("only root makes a small disk, and not everywhere")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_really_full_is_said_and_what_was_stored_is_whole(
    small_disk: Path, agent: Path, database: Path
) -> None:
    place = Place(path=small_disk / "fleet.db")
    with open_store(place, now_ms=NOW_MS) as session:
        ballast = small_disk / "ballast"
        ballast.write_bytes(bytes(os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_bsize - 60_000))
        result = pulled(session, place, local("a", agent), local("b", agent))
        assert {one.outcome for one in result.results} == {Outcome.STORE_FAILED}
        assert "full: make room there; nothing that was stored before is lost" in str(result.store_error)
        assert list(check_store(session)) == []
        ballast.unlink()
        assert not pulled(session, place, local("a", agent), local("b", agent)).store_error
        for name in ("a", "b"):
            assert_kept(session, name, database)


def answering(folder: Path, name: str, data: bytes) -> Path:
    """An agent that answers with these bytes, signed for whoever asks."""
    (folder / f"{name}.data").write_bytes(data)
    return script(
        folder / name,
        f"#!/bin/sh\nfor nonce; do :; done\n"
        f'LC_ALL=C exec sed "s/^\\(gua-export-[a-z]* \\){NONCE}/\\1$nonce/" {folder}/{name}.data\n',
    )


def test_a_host_whose_agent_is_newer_is_taken_in_as_far_as_it_is_understood(
    session: Session, place: Place, tmp_path: Path, database: Path
) -> None:
    """One with more to say, one that speaks another language altogether, and one of today beside them."""

    def more(tables: Tables) -> None:
        tables["card_slot"]["columns"]["fan_rpm"] = {"same": 1_200}
        tables["nvlink"] = {"rows": 1, "columns": {"id": {"same": 1}, "bytes": {"same": 7}}}

    whole = export(database)
    hosts = [
        local(name, answering(tmp_path, name, data))
        for name, data in (
            ("newer", retold(whole, tables=more, header={"oracle": "of the next version"})),
            ("other", retold(whole, header={"schema": "gua.export/2"})),
            ("today", whole),
        )
    ]
    first, second, third = pulled(session, place, *hosts).results
    assert [first.outcome, second.outcome, third.outcome] == [Outcome.OK, Outcome.BAD_OUTPUT, Outcome.OK]
    assert "gua.export/2, and this program reads gua.export/1: update the older one" in (second.detail or "")
    for name in ("newer", "today"):
        assert_kept(session, name, database)


def test_a_host_that_sends_good_chunks_without_end_is_stopped_and_costs_no_room(
    session: Session, place: Place, tmp_path: Path, agent: Path, database: Path
) -> None:
    records = export(database).split(b"\n", 3)
    header_line, header, chunk_line, rest = records
    assert header_line.startswith(b"gua-export-header")
    chunk = chunk_line.split(b" ", 2)[2]
    (tmp_path / "header").write_bytes(header)
    (tmp_path / "chunk").write_bytes(chunk)
    (tmp_path / "body").write_bytes(rest)  # zlib ends by itself
    endless = script(
        tmp_path / "endless",
        _ENDLESS.format(
            agent=shlex.quote(str(REPOSITORY / "agent")), python=shlex.quote(sys.executable), folder=tmp_path
        ),
    )
    first, second = pulled(session, place, local("liar", endless), local("good", agent), most_bytes=3_000_000).results
    assert (first.outcome, second.outcome) == (Outcome.BAD_OUTPUT, Outcome.OK)
    assert "and was not done: stopped reading; run `gua doctor` there" in (first.detail or "")
    assert_kept(session, "good", database)
    assert present(session, "liar").rev == 0  # it never came to the end of a revision
    kept = kept_rows(session, present(session, "liar").id)
    assert all(rows.items() <= as_kept(stored_rows(database))[name].items() for name, rows in kept.items())


def test_a_host_that_announces_ten_gigabytes_is_not_listened_to(
    session: Session, place: Place, tmp_path: Path, database: Path
) -> None:
    data = export(database)
    at = data.index(b"gua-export-chunk")
    size = data.index(b'"bytes":', at) + len(b'"bytes":')
    end = min(data.index(mark, size) for mark in (b",", b"}"))
    boast = data[:size] + b"10000000000" + data[end:]
    (result,) = pulled(session, place, local("liar", answering(tmp_path, "liar", boast))).results
    assert (result.outcome, "a record's size cannot be" in (result.detail or "")) == (Outcome.BAD_OUTPUT, True)


def test_a_host_whose_clock_was_a_year_ahead_for_an_hour_loses_and_doubles_nothing(
    session: Session, place: Place, tmp_path: Path
) -> None:
    """It is pulled before, while and after; ticks of a year from now are kept until they are old."""
    year = 365 * 24 * 60
    database = tmp_path / "gua.db"
    agent = real_agent(tmp_path / "gua", database)
    for first, end in ((0, 60), (year, year + 60), (60, 120)):
        history(database, first, end)
        (result,) = pulled(session, place, local("gpu01", agent)).results
        assert result.outcome is Outcome.OK
    assert_kept(session, "gpu01", database)
    assert len(histories(session)) == 1
    assert sum(row[3] for row in day_rows(session, present(session, "gpu01").id)["tick_day"]) == 180
    assert list(check_store(session)) == []
