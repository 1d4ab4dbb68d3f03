"""A host that lies or is broken: refused, said, and nobody else is any worse for it."""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gua.export import stream
from gua.export.columns import unpack_column
from gua.export.records import CHUNK, END, HEADER, write_record
from gua_fleet.store.intake import AskAgain, Intake
from gua_fleet.store.session import Session
from gua_fleet.store.shape import NotBelieved
from tests.agent.export.exporting import NONCE, export, stored_rows
from tests.agent.export.test_stream import history, parts
from tests.agent.store.ticks import HOUR, MONDAY
from tests.fleet.store.pulling import as_kept, kept_rows, present, pull, take_in
from tests.fleet.store.reported import from_store, question

Tables = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return history(tmp_path_factory.mktemp("host") / "gua.db", 0, 40)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "CHUNK_ROWS", 60)


def retold(
    data: bytes, *, tables: Callable[[Tables], object] = lambda tables: None, header: dict[str, Any] | None = None
) -> bytes:
    """The export with rows of its last chunk, or fields of its header, changed and everything signed anew."""
    records = [part.split(b"\n", 1) for part in parts(data)]
    out, before, total = b"", "", 0
    for number, (line, body) in enumerate(records):
        kind = line.split(b" ", 1)[0].removeprefix(b"gua-export-").decode()
        fields = json.loads(line.split(b" ", 2)[2])
        content = body[:-1]
        if kind == HEADER:
            content = json.dumps({**json.loads(content), **(header or {})}).encode()
        if kind == CHUNK:
            document = json.loads(zlib.decompress(content))
            if number == len(records) - 2:
                tables(document["tables"])
            fields["rows"] = {name: table["rows"] for name, table in document["tables"].items()}
            total += sum(fields["rows"].values())
            content = zlib.compress(json.dumps(document).encode())
        if kind == END:
            fields["rows"] = total
        more = {name: value for name, value in fields.items() if name not in ("bytes", "sha256")}
        record, before = write_record(before, kind, NONCE, more, content)
        out += record
    return out


def all_of(table: str, column: str, value: Any) -> Callable[[Tables], object]:
    """Every row of the table has this value."""
    return lambda tables: tables[table]["columns"].update({column: {"same": value}})


def last_of(table: str, column: str, value: Any) -> Callable[[Tables], object]:
    """The last row of the table has this value."""

    def change(tables: Tables) -> None:
        values = unpack_column(tables[table]["columns"][column], tables[table]["rows"])
        tables[table]["columns"][column] = [*values[:-1], value]

    return change


def twice(table: str) -> Callable[[Tables], object]:
    """A table whose rows are all there a second time."""

    def double(tables: Tables) -> None:
        rows = tables[table]["rows"]
        columns = {name: unpack_column(column, rows) * 2 for name, column in tables[table]["columns"].items()}
        tables[table] = {"rows": 2 * rows, "columns": columns}

    return double


def more_users(tables: Tables) -> None:
    """A second user has all of the time, too, and undivided."""
    table = tables["user_slot"]
    columns = {name: unpack_column(column, table["rows"]) for name, column in table["columns"].items()}
    count = table["rows"]
    whole = {"card_ms": [900_000] * count, "share_ms": [900_000] * count}
    more = {**columns, **whole, "user": [user + 50 for user in columns["user"]]}
    tables["user_slot"] = {"rows": 2 * count, "columns": {name: columns[name] + more[name] for name in columns}}


def other_id(tables: Tables) -> None:
    """The same time told once more under another rule: more than a quarter of an hour in a quarter-hour."""
    table = tables["card_slot"]
    columns = {name: unpack_column(column, table["rows"]) for name, column in table["columns"].items()}
    more = {**columns, "rule": [rule + 1 for rule in columns["rule"]], "covered_ms": [900_000] * table["rows"]}
    tables["card_slot"] = {
        "rows": 2 * table["rows"],
        "columns": {name: columns[name] + more[name] for name in columns},
    }


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        (twice("tick"), "it says a tick row twice"),
        (twice("card_slot"), "it says a card_slot row twice"),
        (other_id, "more time than a quarter of an hour"),
        (more_users, "more time of a card's users than there is"),
        (all_of("user_slot", "card_ms", 900_001), "more time of a card's users than there is"),
        (all_of("card_slot", "covered_ms", 900_001), r"sums of a quarter-hour \(covered_ms\) are more"),
        (all_of("card_slot", "energy_mj", 10**15), r"\(energy_mj\) are more"),
        (all_of("card_slot", "covered_ms", -1), "a covered_ms that cannot be"),
        (all_of("card_slot", "slot", 2**31), "a card_slot row of it has a slot that cannot be"),
        (all_of("card_slot", "samples", 1.5), "a samples that cannot be"),
        (all_of("card_slot", "samples", None), "a samples that cannot be"),
        (all_of("hold", "active_ms", 2**60), "a hold row of it has a active_ms that cannot be"),
        (all_of("tick", "ts_ms", 2**70), "a ts_ms that cannot be"),
        # no date can be written of these
        (all_of("tick", "ts_ms", 2**50), "a ts_ms that cannot be"),
        (all_of("tick", "ts_ms", -1), "a ts_ms that cannot be"),
        (all_of("tick", "cover_from", -1), "a cover_from that cannot be"),
        (all_of("hold", "since_ms", -(2**50)), "a since_ms that cannot be"),
        (all_of("hold", "until_ms", 2**50), "a until_ms that cannot be"),
        (all_of("hold", "active_ms", -1), "a active_ms that cannot be"),
        (all_of("tick_slot", "slot", 2**31 - 1), r"sums of a quarter-hour \(slot\)"),
        (all_of("tick", "fault", "x" * 10_001), "a fault that cannot be"),
        (all_of("tick", "fault", ["list"]), "a fault that cannot be"),
        (all_of("card_slot", "verdict", 77), "a verdict that is not known here: upgrade gua-fleet"),
        (all_of("tick", "rev", 1), "its tick rows are of other revisions than it says"),
        (lambda tables: tables["card_slot"]["columns"].pop("covered_ms"), "have no covered_ms: upgrade the agent"),
    ],
)
def test_what_cannot_be_is_refused_and_what_came_before_stays(
    session: Session, database: Path, lie: Callable[[Tables], object], said: str
) -> None:
    intake = Intake(session, "liar", rollups_only=False)
    with pytest.raises(NotBelieved, match=said):
        take_in(intake, retold(export(database), tables=lie), intake.since_rev())
    kept = kept_rows(session, present(session, "liar").id)
    for name, rows in kept.items():
        assert rows.items() <= as_kept(stored_rows(database))[name].items()
    pull(session, database, "liar")
    assert kept_rows(session, present(session, "liar").id) == as_kept(stored_rows(database))


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"since_rev": 3}, "other revisions than were asked for"),
        ({"store_id": 7}, "store_id cannot be"),
        ({"store_id": "x" * 300}, "store_id cannot be"),
        ({"hostname": "a\x1b[2J"}, "hostname cannot be"),
        ({"generated_at": "yesterday"}, "does not say when it was made"),
        ({"newest_rev": -1}, "newest_rev cannot be"),
        ({"newest_rev": True}, "newest_rev cannot be"),
    ],
)
def test_a_header_that_cannot_be_is_refused(
    session: Session, database: Path, header: dict[str, Any], said: str
) -> None:
    intake = Intake(session, "liar", rollups_only=False)
    with pytest.raises(NotBelieved, match=said):
        take_in(intake, retold(export(database), header=header), intake.since_rev())
    assert session.value("SELECT count(*) FROM history") == 0


@pytest.mark.parametrize("which", [last_of, all_of])
@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("card_slot", "device"),
        ("user_slot", "device"),
        ("user_slot", "user"),
        ("process", "user"),
        ("hold", "device"),
        ("hold", "process"),
        ("card_slot", "rule"),
        ("user_slot", "rule"),
        ("run", "rule"),
        ("occupancy", "rule"),
    ],
)
def test_rows_that_refer_to_nothing_cost_no_report(
    session: Session,
    database: Path,
    monkeypatch: pytest.MonkeyPatch,
    table: str,
    column: str,
    which: Callable[[str, str, Any], Callable[[Tables], object]],
) -> None:
    """Nor that of the host that says them, or whose pull was cut before what they refer to came."""
    monkeypatch.setattr(stream, "CHUNK_ROWS", 24_000)
    intake = Intake(session, "liar", rollups_only=False)
    with contextlib.suppress(NotBelieved):  # of a card that does not exist there may be too much time
        take_in(intake, retold(export(database), tables=which(table, column, 99)), intake.since_rev())
        intake.finish(raw_ms=None)
    pull(session, history(database.parent / "again.db"), "liar")  # with another history beside it, too
    for since_ms, until_ms in ((0, 2 * HOUR), (61_000, 1_234_567)):
        asked = question(MONDAY + since_ms, MONDAY + until_ms, MONDAY + 2 * HOUR)
        document = from_store(session, ["liar"], asked)
        assert sum(document["card_s"].values()) <= document["coverage"]["expected_card_s"]


def test_ticks_that_claim_the_same_time_are_credited_with_it_once(
    session: Session, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "CHUNK_ROWS", 24_000)
    intake = Intake(session, "liar", rollups_only=False)
    lie = all_of("tick", "cover_until", HOUR)
    assert take_in(intake, retold(export(database), tables=lie), intake.since_rev())
    document = from_store(session, ["liar"], question(MONDAY + 61_000, MONDAY + 661_000, MONDAY + 2 * HOUR))
    assert sum(document["card_s"].values()) == 2 * 600
    assert sum(user["share_s"] for user in document["users"]) <= 2 * 600


def test_another_hosts_database_is_kept_as_ones_own_and_the_other_is_unharmed(
    session: Session, database: Path, tmp_path: Path
) -> None:
    pull(session, database, "honest")
    before = kept_rows(session, present(session, "honest").id)
    own = history(tmp_path / "own.db", 40, 80)
    stolen = {"store_id": present(session, "honest").store_id}
    intake = Intake(session, "liar", rollups_only=False)
    assert take_in(intake, retold(export(own), header=stolen), intake.since_rev())
    assert kept_rows(session, present(session, "honest").id) == before
    assert kept_rows(session, present(session, "liar").id) == as_kept(stored_rows(own))


def test_a_database_that_claims_to_have_gone_back_gets_a_branch_and_no_more(session: Session, database: Path) -> None:
    pull(session, database)
    for _ in range(2):
        intake = Intake(session, "gpu01", rollups_only=False)
        asked_rev = intake.since_rev()
        empty = export(database, asked_rev, until_rev=asked_rev)
        with pytest.raises(AskAgain):
            take_in(intake, retold(empty, header={"newest_rev": 1}), asked_rev)
        pull(session, database)
    assert session.value("SELECT max(branch) FROM history") == 2
    assert kept_rows(session, present(session).id) == as_kept(stored_rows(database))
    assert sum(row[0] for row in session.rows("SELECT ticks FROM tick_day")) == 40


def test_a_chunk_with_more_than_a_chunk_may_hold_is_refused_before_it_is_unpacked(
    session: Session, database: Path
) -> None:
    def many(tables: Tables) -> None:
        columns = {f"c{number}": {"same": 0} for number in range(100_000)}
        tables["tick"] = {"rows": 23_000, "columns": {**columns, **tables["tick"]["columns"]}}

    intake = Intake(session, "liar", rollups_only=False)
    assert not take_in(intake, retold(export(database), tables=many), intake.since_rev())
    assert present(session, "liar").rev < 5
