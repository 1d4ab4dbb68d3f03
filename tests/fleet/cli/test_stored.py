"""What is done with the pulled history, as a user types it: reports, comparisons, exports, forgetting."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gua.clock import SystemClock
from gua.store.copies import keep_copy
from gua_fleet.store.database import open_store
from gua_fleet.store.place import Place
from tests.agent.store.opened import steady, stored
from tests.agent.store.ticks import MINUTE, MONDAY, card, holder
from tests.fleet.cli.conftest import Command
from tests.fleet.cli.test_commands import _inventory
from tests.fleet.store.pulling import pull

WINDOW = ("--since", "2026-03-02T00:00:00Z", "--until", "2026-03-02T04:00:00Z", "--tz", "UTC")
BEFORE = "2026-03-01T20:00:00Z..2026-03-02T00:00:00Z"


@pytest.fixture
def inventory(tmp_path: Path) -> str:
    """Two hosts whose agents are gone, and one that was never pulled."""
    return str(_inventory(tmp_path, {"gpu01": None, "gpu02": None, "new": None}))


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Two hours of work on gpu01, one of a held card on gpu02, and an hour of a host that is in no inventory."""
    file = tmp_path / "fleet.db"
    held = (holder("ada", name="notebook"),)
    with open_store(Place(path=file), now_ms=MONDAY) as session:
        for name, minutes, util_pct in (("gpu01", 120, 50), ("gpu02", 60, 0), ("sold", 60, 0)):
            ticks = steady(minutes, card(f"GPU-{name}", util_pct, held))
            pull(session, stored(tmp_path / f"{name}.db", ticks, interval_ms=MINUTE), name)
    return str(file)


def fits(name: str, document: Any) -> None:
    """The document is as its schema says, which describes all of it."""
    schema = json.loads(files("gua_fleet.schemas").joinpath(f"{name}.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(document)
    assert set(document) == set(schema["properties"])


def test_report_of_the_store_asks_nobody(command: Command, inventory: str, store: str) -> None:
    done = command("report", "-i", inventory, "--from", "store", "--store", store, "--json", *WINDOW)
    assert done.status == 0, done.err
    assert [host["outcome"] for host in done.document["hosts"]] == ["stored", "stored", "no-history"]
    assert done.document["card_s"] == {"active": 7_200, "idle-held": 3_600, "truly-idle": 0, "unknown": 0}
    assert [hold["process"] for hold in done.document["holds"]] == ["notebook", "notebook"]
    assert "it also has the history of sold, not in this inventory" in done.err


@pytest.mark.parametrize("form", ["table", "html"])
def test_report_of_the_store_has_every_form(command: Command, inventory: str, store: str, form: str) -> None:
    words = ["--by", "host", "--no-names", "--format", form, "-o", "out"]
    done = command("report", "-i", inventory, "--from", "store", "--store", store, *words, *WINDOW)
    assert done.status == 0, done.err
    text = Path("out").read_text()
    assert "stored" in text
    assert "ada" not in text


def test_store_fills_in_for_hosts_that_do_not_answer_and_the_run_fails_all_the_same(
    command: Command, inventory: str, store: str
) -> None:
    done = command("report", "-i", inventory, "--store", store, "--json", *WINDOW)
    assert done.status == 3  # nobody answered
    outcomes = [(host["outcome"], host["from_store"] is not None) for host in done.document["hosts"]]
    assert outcomes == [("agent-missing", True), ("agent-missing", True), ("agent-missing", False)]
    assert done.document["card_s"]["active"] == 7_200


def test_live_is_live_alone(command: Command, inventory: str, store: str) -> None:
    done = command("report", "-i", inventory, "--from", "live", "--store", store, "--json", *WINDOW)
    assert done.status == 3
    assert done.document["card_s"]["active"] == 0
    assert all(host["from_store"] is None for host in done.document["hosts"])


def test_store_that_is_not_there_is_an_error_where_it_is_asked_for_and_else_none(
    command: Command, inventory: str
) -> None:
    done = command("report", "-i", inventory, "--from", "store", "--store", "nowhere.db", *WINDOW)
    assert (done.status, done.out) == (2, "")
    assert "there is no history yet" in done.err
    assert "nowhere" not in command("report", "-i", inventory, "--store", "nowhere.db", *WINDOW).err
    assert not Path("nowhere.db").exists()


def test_store_that_is_none_cannot_fill_in_and_says_so(command: Command, inventory: str, tmp_path: Path) -> None:
    (tmp_path / "thesis.db").write_text("mine\n" * 500)
    done = command("report", "-i", inventory, "--store", "thesis.db", *WINDOW)
    assert done.status == 3
    assert "report: the store cannot fill in: thesis.db" in done.err


def test_store_without_any_of_these_hosts_is_nobody(command: Command, tmp_path: Path, store: str) -> None:
    hosts = str(_inventory(tmp_path, {"other": None}))
    assert command("report", "-i", hosts, "--from", "store", "--store", store, *WINDOW).status == 3


def test_windows_of_the_store_are_compared(command: Command, inventory: str, store: str) -> None:
    words = ["--from", "store", "--store", store, "--compare", BEFORE]
    done = command("report", "-i", inventory, *words, "--json", *WINDOW)
    assert done.status == 0, done.err
    assert done.document["schema"] == "gua.fleet-compare/1"
    users = {row["user"]: row["reclaimed_card_s"] for row in done.document["users"]}
    assert users == {"ada": -3_600}
    text = command("report", "-i", inventory, *words, *WINDOW)
    assert "GPU use of the fleet, 2026-03-02 00:00 to 2026-03-02 04:00, against 2026-03-01 20:00" in text.out
    done = command("report", "-i", inventory, *words, "--format", "html", "--no-names", *WINDOW)
    assert done.out.startswith("<!DOCTYPE"), done.err
    assert "<td>user 1</td>" in done.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--compare", "next week"], "write one of today"),
        (["--compare", "7d", "--format", "mail", "--mail-to", "a@b.c"], "--compare has no mail"),
        (["--from", "memory"], "invalid choice"),
    ],
)
def test_report_that_cannot_be_is_refused(command: Command, inventory: str, words: list[str], told: str) -> None:
    done = command("report", "-i", inventory, *words, *WINDOW)
    assert (done.status, done.out) == (2, "")
    assert told in done.err


def test_export_writes_the_history_and_says_how_much(command: Command, store: str) -> None:
    done = command("export", "--csv", "out", "--store", store)
    assert done.status == 0, done.err
    assert done.out.startswith("written: out: ")
    manifest = json.loads(Path("out/manifest.json").read_text())
    fits("gua.fleet-export.1", manifest)
    assert manifest["names"] is True
    assert {one["name"] for one in manifest["datasets"] if one["rows"]} >= {"card_slots", "samples", "hosts"}
    again = command("export", "--csv", "out", "--store", store)
    assert "0 of them new" in again.out
    told = command("export", "--csv", "out", "--store", store, "--json")
    assert (told.status, told.document) == (0, json.loads(Path("out/manifest.json").read_text()))


def test_export_to_a_folder_of_something_else_is_refused(command: Command, store: str, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("words")
    done = command("export", "--csv", "mine", "--store", store)
    assert (done.status, "is not empty" in done.err) == (2, True)
    assert command("export", "--store", store).status == 2
    assert command("export", "--csv", "fleet.db/out", "--store", store).status == 1


def test_parquet_without_pyarrow_says_what_to_install(
    command: Command, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    done = command("export", "--parquet", "out", "--store", store)
    assert (done.status, "install gua-fleet[parquet]" in done.err) == (2, True)
    assert not Path("out").exists()


def test_host_is_forgotten(command: Command, store: str, inventory: str) -> None:
    done = command("forget", "gpu02", "--store", store, "--dry-run")
    assert (done.status, "would go" in done.out) == (0, True)
    rehearsed = command("forget", "gpu02", "--store", store, "--dry-run", "--json").document
    gone = command("forget", "gpu02", "--store", store, "--json")
    fits("gua.fleet-forget.1", gone.document)
    assert (gone.status, gone.document) == (0, {**rehearsed, "dry_run": False})
    assert (gone.document["host"], gone.document["histories"], gone.document["rows"] > 60) == ("gpu02", 1, True)
    again = command("forget", "gpu02", "--store", store)
    assert (again.status, "the store has nothing of it" in again.err) == (2, True)
    report = command("report", "-i", inventory, "--from", "store", "--store", store, "--json", *WINDOW)
    assert [host["outcome"] for host in report.document["hosts"]] == ["stored", "no-history", "no-history"]


def test_user_is_forgotten(command: Command, store: str, inventory: str) -> None:
    forgot = command("forget-user", "ada", "--store", store, "--json")
    fits("gua.fleet-forget-user.1", forgot.document)
    assert (forgot.status, forgot.document["hosts"]) == (0, ["gpu01", "gpu02", "sold"])
    again = command("forget-user", "ada", "--store", store)
    assert (again.status, "ada was not named here; the time is now" in again.out) == (0, True)
    report = command("report", "-i", inventory, "--from", "store", "--store", store, "--json", *WINDOW)
    assert [user["user"] for user in report.document["users"]] == ["(expired)"]


def test_what_was_copied_before_a_change_of_the_schema_is_named(command: Command, store: str) -> None:
    assert "still has it, for" not in command("forget-user", "ada", "--store", store).err
    copy = keep_copy(Path(store), 1, SystemClock().now_ms())
    for words in (("forget-user", "bo"), ("forget", "gpu02")):
        said = command(*words, "--store", store)
        assert (said.status, f"still has it, for 30 days: remove {copy}\n" in said.err) == (0, True)
    rehearsed = command("forget", "gpu01", "--dry-run", "--store", store)
    assert (rehearsed.status, "still has it" in rehearsed.err) == (0, False)


def test_store_is_looked_after(command: Command, store: str) -> None:
    info = command("store", "info", "--store", store, "--json")
    assert info.status == 0, info.err
    fits("gua.fleet-store-info.1", info.document)
    assert [host["name"] for host in info.document["hosts"]] == ["gpu01", "gpu02", "sold"]
    whole = command("store", "check", "--store", store, "--json")
    fits("gua.fleet-store-check.1", whole.document)
    assert (whole.status, whole.document["whole"], whole.document["wrong"]) == (0, True, [])
    room = command("store", "vacuum", "--store", store, "--json")
    fits("gua.fleet-store-vacuum.1", room.document)
    assert (room.status, room.document["before_bytes"] > 0, room.document["after_bytes"] > 0) == (0, True, True)
    with open_store(Place(path=Path(store)), now_ms=MONDAY) as session:
        session.execute("UPDATE card_day SET covered_ms = 0")
    done = command("store", "check", "--store", store)
    assert (done.status, done.out.splitlines()[0].endswith(": 3 things are wrong")) == (1, True)
    assert len([line for line in done.out.splitlines() if not line.startswith(" ")]) == 4
    assert len(command("store", "check", "--store", store, "--json").document["wrong"]) == 3


@pytest.mark.parametrize("words", [["store", "info"], ["store", "check"], ["export", "--csv", "x"], ["forget", "a"]])
def test_store_that_is_not_there_is_told(command: Command, words: list[Any]) -> None:
    done = command(*words, "--store", "nowhere.db")
    assert (done.status, "there is no history yet" in done.err) == (2, True)
    assert not Path("nowhere.db").exists()
