"""`free`, `holds`, `status` and `top --once` as a user runs them, on hosts whose answers are known."""

from __future__ import annotations

import csv
import io
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gua_fleet.model import Host, HostResult, Outcome
from gua_fleet.view_doctor import doctor_view
from tests.fleet.cli.conftest import Command
from tests.fleet.cli.reporting import fleet_of, write_state

IDLE = {"state": "truly-idle", "since_s": 7200}
HELD = {"state": "idle-held", "since_s": 4 * 3600, "holders": [{"user": "alice", "held_s": 6 * 3600}]}
BUSY = {"state": "active", "since_s": 60, "holders": [{"user": "bob", "held_s": 600}]}


pytestmark = pytest.mark.processes


def test_free_names_the_cards_that_fit_and_says_why_others_are_not_among_them(tmp_path: Path, command: Command) -> None:
    stale = {**IDLE, "seen_s": 120}  # four intervals of 30 s
    fleet = {"a": [IDLE, HELD, IDLE], "b": [IDLE], "slow": [stale], "gone": None, "away": [IDLE]}
    hosts = fleet_of(tmp_path, fleet, {"b": {"gua_scheduler": "slurm"}, "away": {"gua_maintenance": "new fans"}})
    done = command("free", "--hosts", hosts)
    assert done.status == 1
    text = done.out
    assert text.splitlines()[0] == "2 cards free: a:0,2"
    assert "1 idle, given out by slurm, so not counted as free: b:0" in text
    assert "Nothing is known of 3 of 5 hosts now: slow, gone, away" in text
    assert "its newest sample is 2 min old" in text
    assert "new fans" in text
    document = command("free", "--hosts", hosts, "--json").document
    assert [(card["host"], card["index"], card["memory_free_mb"]) for card in document["free"]] == [
        ("a", 0, 81556),
        ("a", 2, 81556),
    ]
    assert [(card["host"], card["users"]) for card in document["idle_held"]] == [("a", ["alice"])]
    assert [host["name"] for host in document["hosts"]] == list(fleet)


def test_free_of_a_full_fleet_is_an_answer_and_tells_what_is_held_longest(tmp_path: Path, command: Command) -> None:
    fleet = {"a": [BUSY, HELD], "b": [{**HELD, "since_s": 8 * 3600}]}
    done = command("free", "--hosts", fleet_of(tmp_path, fleet))
    assert done.status == 0
    assert done.out.startswith("No card is free now.\n2 held without work, the longest b:0 for 7 h 59 min")


def test_free_says_nothing_of_cards_where_nobody_knows(tmp_path: Path, command: Command) -> None:
    done = command("free", "--hosts", fleet_of(tmp_path, {"a": None}))
    assert done.status == 3
    assert done.out.startswith("Which cards are free is not known")


def test_free_as_a_page_for_everybody_names_silent_hosts_and_nobody(tmp_path: Path, command: Command) -> None:
    fleet = {"a": [IDLE, HELD], "gone": None, "alice-box": [IDLE]}
    page = tmp_path / "free.html"
    wanted = ["free", "--hosts", fleet_of(tmp_path, fleet), "--no-names", "--format", "html", "--refresh", "2m"]
    assert command(*wanted, "-o", str(page)).status == 1
    html = page.read_text()
    assert "<title>2 cards free</title>" in html
    assert "<td>gone</td>" in html
    assert '<meta http-equiv="refresh" content="120">' in html
    assert "alice" not in html
    page.write_text("the page before")
    assert command(*wanted[:-1], "2s", "-o", str(page)).status == 2
    assert page.read_text() == "the page before"


def test_holds_are_by_idle_time_with_people_and_excuses_of_the_settings(tmp_path: Path, command: Command) -> None:
    late = {"state": "idle-held", "since_s": 5 * 3600, "holders": [{"user": "carol", "held_s": 1800}]}
    nobody = {"state": "idle-held", "since_s": 900, "used_mb": 2048}
    lost = {"state": "unknown", "reason": "util_unavailable", "holders": [{"user": "dave"}]}
    fleet = {"a": [BUSY, HELD, late, nobody, lost], "b": [{**HELD, "holders": [{"user": "uid:7"}]}], "c": None}
    hosts = fleet_of(tmp_path, fleet)
    (tmp_path / "gua-fleet.yml").write_text(
        "users:\n  erin: ['uid:7@b']\nexcuses:\n  - {user: alice, reason: paper deadline}\n"
    )
    done = command("holds", "--json", "--hosts", hosts)
    document = done.document
    assert done.status == 1
    rows = [(hold["user"], hold["host"], hold["excuse"]) for hold in document["holds"]]
    assert rows == [
        ("alice", "a", "paper deadline"),
        ("erin", "b", None),
        ("carol", "a", None),
        ("(no process listed)", "a", None),
        ("bob", "a", None),
        ("dave", "a", None),
    ]
    # carol came to a card that was idle already; dave's card cannot be measured, which is not idle
    assert [round((hold["idle_s"] or -1) / 600) for hold in document["holds"][2:]] == [3, 1, 0, 0]
    assert [hold["idle_s"] for hold in document["holds"][4:]] == [0.0, None]
    text = command("holds", "--hosts", hosts, "--idle-for", "4h").out
    assert "No card is held without work now; 6 other holds are not as asked" in text  # 3 h 59 min 55 s, as sampled
    text = command("holds", "--hosts", hosts, "--idle-for", "3h").out
    assert "2 cards are held without work now: a:1 b:0; 4 other holds are not as asked and not shown" in text
    assert "* excused (1 hold): paper deadline" in text
    assert "Nothing is known of 1 of 3 hosts now: c" in text


def test_status_tells_those_that_do_not_sample_from_those_that_are_paused_or_silent(
    tmp_path: Path, command: Command
) -> None:
    old = {**IDLE, "seen_s": 7200}
    hosts = fleet_of(tmp_path, {"a": [IDLE], "down": [old], "paused": [old], "gone": None})
    write_state(tmp_path, "paused", [old], paused=True)
    write_state(tmp_path, "a", [IDLE], agent_version="9.9")
    done = command("status", "--hosts", hosts)
    assert done.status == 1
    assert done.out.startswith(
        "4 hosts: 1 sampling, 1 not sampling (down), 1 paused (paused), 1 did not answer (gone)\n"
        "Agents differ: 0.1.0 on 2 of them, 9.9 (a)\n"
    )
    document = command("status", "--json", "--hosts", hosts).document
    seen = [(host["name"], (host["document"] or {}).get("running")) for host in document["hosts"]]
    assert seen == [("a", True), ("down", None), ("paused", None), ("gone", None)]
    write_state(tmp_path, "down", [IDLE])
    assert command("status", "--hosts", hosts, "--allow-missing", "1").status == 0


def own_word(**said: Any) -> dict[str, Any]:
    """A `gua.status/1` of a daemon that is well, but for what is said."""
    host = {"hostname": "box", "boot_id": "b1", "machine_id": "m1", "agent_version": "0.2.0", "driver_version": "560"}
    return {
        "schema": "gua.status/1",
        "generated_at": "2026-03-02T12:00:00Z",
        "running": True,
        "state": "running",
        "pid": 4711,
        "unit": None,
        "held_by": "box",
        "last_tick_at": "2026-03-02T11:59:50Z",
        "last_tick_age_s": 10.0,
        "last_tick_status": "ok",
        "cards": 1,
        "card_uuids": [f"GPU-{said['store_id']}"],
        "card_states": {},
        "unknown_by_reason": {},
        "interval_s": 30.0,
        "paused": False,
        "database": "/var/lib/gua/gua.db",
        "enrolled": True,
        "error": None,
        "host": {**host, "store_id": said.pop("store_id"), "scheduler": None},
        "last_day": {"expected_card_s": 100.0, "observed_card_s": 50.0, "unknown_card_s": 0.0},
        **said,
    }


def table_rows(text: str) -> dict[str, list[str]]:
    """The cells of each row below the rule, by the first one; of a row of several lines those of its first line."""
    lines = text[text.index("\n---") + 1 :].splitlines()[1:]
    return {line.split()[0]: line.split() for line in lines if line and not line.startswith(" ")}


def test_status_goes_by_each_agents_own_word_and_by_the_report_of_an_older_one(
    tmp_path: Path, command: Command
) -> None:
    hosts = fleet_of(tmp_path, {name: [IDLE] for name in ("well", "stuck", "down", "older", "well-too")})
    write_state(tmp_path, "well", [], status=own_word(store_id="1"))
    write_state(tmp_path, "well-too", [], status=own_word(store_id="1"))
    write_state(tmp_path, "stuck", [], status=own_word(store_id="2", state="stuck", running=False))
    nothing = {"last_tick_at": None, "last_tick_age_s": None, "last_tick_status": None, "interval_s": None}
    down = own_word(store_id="3", state="stopped", running=False, pid=None, cards=0, last_day=None, **nothing)
    write_state(tmp_path, "down", [], status=down)
    done = command("status", "--hosts", hosts)
    text = done.out
    assert done.status == 1
    assert text.splitlines()[0] == (
        "5 hosts: 2 sampling, 2 not sampling (stuck, down), 1 counted under another name (well-too)"
    )
    rows = table_rows(text.partition("not seen")[0])
    assert [rows[name][1] for name in ("well", "stuck", "down", "older")] == ["yes", "stuck", "no", "yes"]
    assert (rows["well"][-1], rows["older"][-1]) == ("yes", "-")  # enrolled; a report does not tell
    document = command("status", "--json", "--hosts", hosts).document
    states = {host["name"]: host["document"]["state"] for host in document["hosts"]}
    assert (states["stuck"], states["down"], states["older"]) == ("stuck", "stopped", None)


def test_status_tells_what_a_daemon_does_that_does_not_sample_and_how_many_cards_that_concerns(
    tmp_path: Path, command: Command
) -> None:
    words = ("stopped", "starting", "elsewhere", "unknown", "paused", "waiting")
    hosts = fleet_of(tmp_path, {name: [] for name in words})
    for name in words:
        said = own_word(store_id=name, state=name, running=name in ("starting", "paused", "waiting"), cards=8)
        # A pause that was asked for stands, whether a daemon is there or not
        said.update(paused=name in ("paused", "stopped"), last_tick_age_s=900.0)
        write_state(tmp_path, name, [], status=said)
    done = command("status", "--hosts", hosts)
    assert done.status == 1
    head, _, unseen = done.out.partition("not seen")
    assert " ".join(head.partition("\n\n")[0].split()) == (
        "6 hosts: 0 sampling, 3 not sampling (stopped, starting, elsewhere), 1 not known (unknown), 1 paused (paused),"
        " 1 without a card (waiting)"
    )
    rows = table_rows(head)
    assert [rows[name][1] for name in words] == ["no", "starting", "elsewhere", "-", "paused", "-"]
    why = table_rows(unseen)
    assert "waiting" not in why
    assert {cells[1] for cells in why.values()} == {"8"}
    assert " ".join(why["stopped"][3:]).startswith("no daemon runs there; its newest sample is 15 min old")
    assert " ".join(why["unknown"][3:]).startswith("this user may not see whether")
    for name in ("stopped", "starting", "elsewhere", "unknown"):
        write_state(tmp_path, name, [], status=own_word(store_id=name))
    assert command("status", "--hosts", hosts).status == 0


def test_status_names_hosts_that_sample_while_their_board_hears_nothing(tmp_path: Path, command: Command) -> None:
    unknown = dict.fromkeys(("last_accepted_at", "last_accepted_age_s", "none_since", "failing_since", "reason"))
    never = {**unknown, "none_since": "2026-03-02T11:30:00Z"}
    later = {**never, "none_since": "2026-03-02T11:40:00Z"}
    cloud = "and no push fails: do the daemons run with --cloud?"
    http_500 = "https://board.invalid answered HTTP 500"
    refused = {"failing_since": "2026-03-02T11:40:00Z", "reason": http_500}
    ago = {"last_accepted_at": "2026-03-02T11:59:20Z", "last_accepted_age_s": 40.0}
    hours = {"last_accepted_at": "2026-03-02T09:00:00Z", "last_accepted_age_s": 10_800.0}
    ahead = {"last_accepted_at": "2026-03-02T14:00:00Z", "last_accepted_age_s": -7200.0}
    boards = {
        "well": {**unknown, **ago},
        "blip": {**unknown, **ago, "failing_since": "2026-03-02T11:59:50Z", "reason": "connection reset"},
        "mute": never,
        "mute-too": later,
        "just-enrolled": {**never, "none_since": "2026-03-02T11:58:00Z"},
        "untold": unknown,
        "untold-too": unknown,
        "refused": {**unknown, **refused, **hours},
        "refused-too": {**never, **refused},
        "ahead": {**unknown, **refused, **ahead, "reason": "connection refused"},
        "not-enrolled": None,
    }
    hosts = fleet_of(tmp_path, {name: [IDLE] for name in [*boards, "before", "down"]})
    for name, board in boards.items():
        write_state(tmp_path, name, [], status=own_word(store_id=name, board=board, enrolled=board is not None))
    write_state(tmp_path, "before", [], status=own_word(store_id="before"))  # an agent that does not tell
    down = own_word(store_id="down", state="stopped", running=False, board=never)
    write_state(tmp_path, "down", [], status=down)
    lines = command("status", "--hosts", hosts).out.partition("\n\n")[0].splitlines()
    assert lines[1:] == [
        f"The board hears nothing of mute, mute-too: none accepted since {later['none_since']} at the latest, {cloud}",
        "What the board hears of untold, untold-too is not known: do the daemons run with --cloud?",
        f"The board hears nothing of refused, refused-too: last accepted 3 h 00 min ago at the latest, {http_500}",
        "The board hears nothing of ahead: last accepted 2 h 00 min ahead of the clock, connection refused",
    ]
    done = command("status", "--json", "--hosts", hosts)
    told = {host["name"]: host["document"]["board"] for host in done.document["hosts"]}
    assert told == {**boards, "before": None, "down": never}
    schema = (files("gua_fleet.schemas") / "gua.fleet-status.1.schema.json").read_text()
    Draft202012Validator(json.loads(schema)).validate(done.document)


def test_a_silent_host_is_told_with_when_it_was_last_seen(tmp_path: Path, command: Command) -> None:
    hosts = fleet_of(tmp_path, {"a": [IDLE, IDLE], "b": [IDLE]})
    assert command("free", "--hosts", hosts).status == 0
    (tmp_path / "a" / "gua").unlink()
    document = command("free", "--hosts", hosts, "--json").document
    assert [host["last_seen_at"] is not None for host in document["hosts"]] == [True, True]
    assert document["hosts"][0]["outcome"] == "agent-missing"
    row = next(line for line in command("status", "--hosts", hosts).out.splitlines() if line.startswith("a "))
    assert row.split()[1:3] == ["2", "agent-missing"]
    assert row.split()[-1].count(":") == 1


def test_top_without_a_terminal_is_one_picture(tmp_path: Path, command: Command) -> None:
    hosts = fleet_of(tmp_path, {"a": [IDLE, BUSY, HELD], "slow": [{**BUSY, "seen_s": 7200}], "gone": None})
    done = command("top", "--hosts", hosts)
    assert done.status == 1
    lines = done.out.splitlines()
    assert lines[1] == "4 cards  1 active  1 idle-held  1 truly-idle  0 unknown  1 not known now"
    assert any(line.startswith("slow") and "(" in line and "2 h 00 min" in line for line in lines)
    assert any(line.startswith("gone") and "agent-missing" in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["free", "--memory", "much"], "write 40G, 500M"),
        (["free", "--for", "long"], "not a duration"),
        (["holds", "--idle-for", "0"], "not a duration"),
        (["status", "-o", "nowhere/x"], "there is no directory nowhere"),
        (["free", "-o", "."], "is a directory"),
    ],
)
def test_what_cannot_be_is_refused_before_anybody_is_asked(command: Command, arguments: list[str], words: str) -> None:
    done = command(*arguments, "--hosts", "localhost,")
    assert (done.status, done.out) == (2, "")
    assert words in done.err


@pytest.mark.parametrize("name", ["free", "holds", "status"])
def test_output_file_csv_and_the_schema(tmp_path: Path, command: Command, name: str) -> None:
    fleet = {"a": [IDLE, HELD, BUSY, {**IDLE, "card": {"memory_total_mb": None}}], "gone": None}
    hosts = fleet_of(tmp_path, fleet, {"sched": {"gua_maintenance": "x"}})
    out = tmp_path / "out.json"
    done = command(name, "--hosts", hosts, "--json", "-o", str(out))
    assert (done.status, done.out) == (1, "")
    document = json.loads(out.read_text())
    schema = json.loads(
        files("gua_fleet.schemas").joinpath(f"gua.fleet-{name}.1.schema.json").read_text(encoding="utf-8")
    )
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(document)
    assert set(document) == set(schema["properties"]), "every field is described"
    rows = list(csv.DictReader(io.StringIO(command(name, "--hosts", hosts, "--format", "csv").out)))
    assert len(rows) == {"free": 2, "holds": 2, "status": 3}[name]


def test_top_for_programs_tells_what_is_known_now_from_what_was(tmp_path: Path, command: Command) -> None:
    hosts = fleet_of(tmp_path, {"a": [BUSY, {**IDLE, "seen_s": 7200}], "gone": None})
    done = command("top", "--json", "--hosts", hosts)
    assert done.status == 1
    schema = json.loads(files("gua_fleet.schemas").joinpath("gua.fleet-top.1.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(done.document)
    first, gone = done.document["hosts"]
    assert set(first) == set(schema["properties"]["hosts"]["items"]["properties"]), "every field is described"
    assert [(card["state"], card["was"]) for card in first["cards"]] == [("active", "active"), (None, "truly-idle")]
    assert (gone["outcome"], gone["cards"]) == ("agent-missing", [])


def test_no_host_puts_itself_under_another_name_in_a_csv(tmp_path: Path, command: Command) -> None:
    """A host may add any field to what it says."""
    as_another = {"name": "b", "outcome": "timeout:connect", "agent_version": "9.9", "cards": 64, "sampling": False}
    board = dict.fromkeys(("last_accepted_at", "last_accepted_age_s", "failing_since", "reason")) | as_another
    day = {"expected_card_s": 100.0, "observed_card_s": 50.0, "unknown_card_s": 0.0, **as_another}
    hosts = fleet_of(tmp_path, {"a": [IDLE]})
    write_state(tmp_path, "a", [], status=own_word(store_id="a", board=board, last_day=day))
    [row] = csv.DictReader(io.StringIO(command("status", "--hosts", hosts, "--format", "csv").out))
    told = [row[name] for name in ("name", "outcome", "agent_version", "cards", "sampling")]
    assert told == ["a", "ok", "0.2.0", "1", "1"]


def test_no_check_of_a_host_counts_as_another_hosts() -> None:
    check = {"id": "nvml", "status": "fail", "summary": "gone", "cure": None, "details": {}}
    lies = {**check, "host": "b", "outcome": "unreachable", "ready": True, "check": "none"}
    result = HostResult(Host("a", "a"), Outcome.OK, document={"ready": False, "checks": [lies]})
    row, ours = doctor_view([result], {}, verbose=False).flat
    assert [row[name] for name in ("host", "outcome", "ready", "check")] == ["a", "ok", False, "nvml"]
    assert (ours["host"], ours["check"]) == ("a", "agent")  # it does not tell what it writes
