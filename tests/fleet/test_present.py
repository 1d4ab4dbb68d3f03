"""What is free and who holds what, from documents whose answer is known."""

from __future__ import annotations

from typing import Any

import pytest
from wcwidth import wcswidth

from gua.errors import UsageError
from gua_fleet.anonymous import mask_of
from gua_fleet.free import Wanted, find_free, parse_memory_mb
from gua_fleet.holds import Filter, Hold, current_holds, without_name
from gua_fleet.model import Host, HostResult, Outcome, Seen
from gua_fleet.people import Excuse, UserMap
from gua_fleet.present import HostNow, Knowledge, fleet_now, unknown_cards
from gua_fleet.view import rendered
from gua_fleet.view_free import free_view
from gua_fleet.view_holds import holds_view
from gua_fleet.view_hosts import unseen_section
from gua_fleet.view_status import headline, is_at_work, status_view
from tests.documents import NOW, NOW_MS, card, now, report, states

H100, RTX = {"name": "NVIDIA H100 80GB HBM3"}, {"name": "NVIDIA GeForce RTX 4090", "memory_total_mb": 24564}


def one(uuid: str, state: str = "truly-idle", since: str = "11:00:00", **more: Any) -> dict[str, Any]:
    """A card sampled at 11:59:50 whose state began at `since` of that day."""
    seen = {key: more.pop(key) for key in ("memory_used_mb", "reason", "holders", "at") if key in more}
    return card(uuid, states(), now=now(state, since=f"2026-03-02T{since}Z", **seen), **more)


def holder(user: str, pid: int = 7, kind: str = "compute") -> dict[str, Any]:
    return {"user": user, "process": f"{user}.py", "pid": pid, "memory_mb": 1024, "type": kind}


def hold(user: str, uuid: str, since: str, pid: int = 7) -> dict[str, Any]:
    base = {"user": user, "process": f"{user}.py", "pid": pid, "card": uuid, "until": None, "memory_mb": 1024}
    return {**base, "since": f"2026-03-02T{since}Z", "states": states(), "idle_held_long_card_s": 0.0}


def answered(name: str, cards: list[dict[str, Any]], scheduler: str | None = None, **fields: Any) -> HostResult:
    return HostResult(
        Host(name, name, scheduler=scheduler), Outcome.OK, document=report(cards, store_id=name, **fields)
    )


def fleet(*results: HostResult, people: UserMap | None = None) -> tuple[HostNow, ...]:
    return fleet_now(results, Knowledge(people or UserMap()))


SHOP = (
    answered("x", [one("X", name="NVIDIA L4", memory_total_mb=None)]),
    answered("w", [one("W0", **RTX), one("W1", memory_used_mb=12000, **RTX)]),
    answered("h", [one("H0", **H100), one("H1", since="11:50:00", **H100)]),
)


@pytest.mark.parametrize(
    ("wanted", "uuids"),
    [
        (Wanted(), ["H0", "H1", "W0", "W1", "X"]),
        (Wanted(model="h100"), ["H0", "H1"]),
        (Wanted(model="*4090"), ["W0", "W1"]),
        (Wanted(memory_mb=parse_memory_mb("24G")), ["W0", "H0", "H1"]),  # the smallest that is enough comes first
        (Wanted(memory_mb=parse_memory_mb("80GB")), ["H0", "H1"]),
        (Wanted(free_s=1800.0), ["W0", "W1", "H0", "X"]),
        (Wanted(model="A100"), []),
    ],
)
def test_free_takes_what_was_asked_for_best_first(wanted: Wanted, uuids: list[str]) -> None:
    found = find_free(fleet(*SHOP), wanted)
    assert [found.uuid for found in found.free] == uuids
    unknown = ["X"] if wanted.memory_mb else []
    assert [found.uuid for found in found.memory_unknown] == unknown
    assert len(found.free) + len(unknown) + len(found.others) == 5, "no free card is left out"


@pytest.mark.parametrize(("text", "memory_mb"), [("40G", 40960), ("40", 40960), ("0.5GiB", 512), ("500M", 500)])
def test_memory_is_read_in_the_units_that_cards_are_told_in(text: str, memory_mb: int) -> None:
    assert parse_memory_mb(text) == memory_mb


@pytest.mark.parametrize("text", ["", "much", "-1G", "0", "1e9G", "40X", "9" * 30])
def test_memory_that_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not an amount of memory"):
        parse_memory_mb(text)


@pytest.mark.parametrize(
    ("at", "fresh"),
    [("11:58:40", True), ("11:58:39", False), ("12:01:40", True), ("12:01:41", False)],  # 3 x 30 s around 12:00:10
)
def test_a_card_is_free_only_if_seen_within_three_intervals(at: str, fresh: bool) -> None:
    hosts = fleet(answered("a", [one("A", at=f"2026-03-02T{at}Z")]))
    assert [card.uuid for card in find_free(hosts, Wanted()).free] == (["A"] if fresh else [])
    assert hosts[0].stale is not fresh


def test_what_is_not_free_is_told_apart() -> None:
    hosts = fleet(
        answered("s", [one("S")], scheduler="slurm"),
        answered("a", [one("A0", "unknown", reason="card_lost"), one("A1", "idle-held"), one("R", retired_at=NOW)]),
        HostResult(Host("gone", "gone"), Outcome.UNREACHABLE, "no route"),
    )
    found = find_free(hosts, Wanted())
    assert (list(found.free), list(found.others)) == ([], [])
    assert [(card.uuid, name) for card, name in found.scheduled] == [("S", "slurm")]
    assert [card.uuid for card in found.idle_held] == ["A1"]
    text = rendered(free_view(found, Wanted(), hosts, generated_at=NOW), "table", 80)
    assert text.startswith("No card is free on the hosts that answered.\n")
    assert "gone      -      unreachable  no route" in text


def test_one_agent_with_two_names_has_its_cards_once() -> None:
    twin = answered("a2", [one("A")])
    first = HostResult(Host("a1", "a1"), Outcome.OK, document=twin.document)
    assert [card.host for card in find_free(fleet(twin, first), Wanted()).free] == ["a1"]


def holds_of(*results: HostResult, people: UserMap | None = None, excuses: tuple[Excuse, ...] = ()) -> list[Hold]:
    return current_holds(fleet(*results, people=people), excuses, NOW_MS)


def test_a_hold_is_idle_as_long_as_the_card_and_the_process_both_were_there() -> None:
    early, late = hold("alice", "A", "08:00:00", 1), hold("bob", "A", "11:30:00", 2)
    cards = [
        one("A", "idle-held", "11:00:00", holders=[holder("alice", 1), holder("bob", 2), holder("x", 3, "graphics")])
    ]
    found = holds_of(answered("a", cards, holds=[early, late]))
    assert [(hold.user, hold.idle_s) for hold in found] == [("alice", 3590.0), ("bob", 1790.0)]
    assert found[0].holder is not None
    assert found[0].holder.held_s == 4 * 3600 - 10


def test_a_card_that_works_or_cannot_be_measured_is_not_idle() -> None:
    cards = [
        one("A", "active", holders=[holder("alice")]),
        one("B", "unknown", reason="util_unavailable", holders=[holder("bob")], index=1),
        one("C", "truly-idle", holders=[holder("carol")], index=2),
        one("D", "idle-held", index=3),
        one("E", "idle-held", at="2026-03-02T09:00:00Z", holders=[holder("eve")], index=4),  # not known now
    ]
    found = {hold.user: hold.idle_s for hold in holds_of(answered("a", cards))}
    assert found == {"alice": 0.0, "bob": None, "(no process listed)": 3590.0}


def test_people_excuses_and_filters() -> None:
    cards = [one("A", "idle-held", holders=[holder("uid:7")]), one("B", "active", holders=[holder("bob")], index=1)]
    people = UserMap({"uid:7@a": "erin"})
    found = holds_of(answered("a", cards), people=people, excuses=(Excuse("leave", user="erin", until_ms=NOW_MS + 1),))
    assert [(hold.user, hold.excuse) for hold in found] == [("erin", "leave"), ("bob", None)]
    assert [hold.user for hold in found if Filter(idle_s=3600.0).takes(hold)] == []
    assert [hold.user for hold in found if Filter(idle_s=3590.0).takes(hold)] == ["erin"]
    assert [hold.user for hold in found if Filter(user="E*").takes(hold)] == ["erin"]
    assert len([hold for hold in found if Filter(held_s=1e6).takes(hold)]) == 2, "of unknown length: not left out"
    ended = holds_of(answered("a", cards), people=people, excuses=(Excuse("leave", user="erin", until_ms=NOW_MS),))
    assert [hold.excuse for hold in ended] == [None, None]


@pytest.mark.parametrize("form", ["table", "json", "csv", "md"])
def test_no_names_leaves_no_name_in_any_form(form: str) -> None:
    cards = [one("A", "idle-held", holders=[holder("alice"), holder("bob", 8)])]
    gone = HostResult(Host("gone", "gone"), Outcome.AUTH_FAILED, "alice is not let in")
    named = fleet(answered("alice-box", cards), gone)
    found = current_holds(named, (Excuse("alice is away", user="alice"),), NOW_MS)
    mask = mask_of(named)
    hosts, nameless = tuple(map(mask.host, named)), [without_name(hold, mask) for hold in found]
    view = holds_view(nameless, Filter(), hosts, left_out=0, generated_at=NOW, names=False)
    free = free_view(find_free(hosts, Wanted()), Wanted(), hosts, generated_at=NOW)
    text = rendered(view, form, 80) + rendered(free, form, 80)
    assert "alice" not in text
    assert "bob" not in text
    assert "user 1" in text


def test_a_process_cannot_write_a_formula_a_pipe_or_an_escape() -> None:
    cards = [one("A", "idle-held", holders=[{**holder("eve"), "process": "=cmd|' /C calc'!A0\x1b[2J"}])]
    hosts = fleet(answered("a", cards))
    view = holds_view(current_holds(hosts, (), NOW_MS), Filter(), hosts, left_out=0, generated_at=NOW)
    assert "'=cmd" in rendered(view, "csv", None)
    assert "=cmd\\|" in rendered(view, "md", None)
    assert "\x1b" not in rendered(view, "table", 80)


def test_cards_of_which_nothing_is_known_are_named_beside_those_that_are_free() -> None:
    old = one("A1", at="2026-03-02T09:00:00Z", index=1)
    cards = [one("A0"), old, one("A2", "unknown", reason="card_lost", index=2), {**one("A3", index=3), "now": None}]
    hosts = fleet(answered("a", cards))
    assert [card.uuid for card in unknown_cards(hosts)] == ["A1", "A2", "A3"]
    for view in (
        free_view(find_free(hosts, Wanted()), Wanted(), hosts, generated_at=NOW),
        holds_view(current_holds(hosts, (), NOW_MS), Filter(), hosts, left_out=0, generated_at=NOW),
    ):
        assert "3 cards whose state is not known now: a:1-3" in rendered(view, "table", 80)


NO_TICK = {"ok": 0, "partial": 0, "error": 0, "unresponsive": 0}


def _without_cards(name: str, **ticks: int) -> HostResult:
    result = answered(name, [])
    assert result.document is not None
    result.document["coverage"]["ticks"] = {**NO_TICK, **ticks}
    return result


def test_a_host_without_a_card_is_no_host_whose_driver_fails() -> None:
    results = (
        _without_cards("cpu"),
        _without_cards("broken", error=120),
        HostResult(Host("new", "new"), Outcome.NO_HISTORY, "no database"),
        HostResult(Host("bare", "bare"), Outcome.NO_GPU, "no card"),
        HostResult(Host("away", "away"), Outcome.MAINTENANCE, "new fans"),
    )
    hosts = fleet(*results)
    assert [host.has_none for host in hosts] == [True, False, False, True, False]
    assert headline(hosts) == (
        "5 hosts: 0 sampling, 2 not sampling (broken, new), 2 without a card (cpu, bare), 1 left out (away)"
    )
    by_name = {host.name: host for host in hosts}
    assert [is_at_work(result, by_name) for result in results] == [True, False, False, True, True]
    text = rendered(free_view(find_free(hosts, Wanted()), Wanted(), hosts, generated_at=NOW), "table", 80)
    assert text.startswith("No card is free on the hosts that answered.")
    assert "Nothing is known of 3 of 5 hosts now: broken, new, away" in text
    only_bare = hosts[3:4]
    assert rendered(holds_view([], Filter(), only_bare, left_out=0, generated_at=NOW), "table", 80).startswith(
        "No card is held without work now"
    )


@pytest.mark.parametrize(("whole_at", "shown"), [("09:00:00", ["S0", "S1"]), ("11:59:55", ["W"])])
def test_a_card_is_counted_whole_or_in_slices_as_it_was_sampled_last(whole_at: str, shown: list[str]) -> None:
    cut = {"mig": {"parent_uuid": "W", "profile": "1g.10gb"}}
    cards = [one("W", at=f"2026-03-02T{whole_at}Z"), one("S0", **cut), one("S1", **cut)]
    assert [card.uuid for card in fleet(answered("a", cards))[0].cards] == shown


@pytest.mark.parametrize("names", [[f"gpu{n:03d}.cluster.example.org" for n in range(300)], ["名前" * 14, "x" * 200]])
def test_tables_of_hosts_with_long_names_fit_the_screen_and_no_two_look_alike(names: list[str]) -> None:
    results = [answered(name, [one(f"U{n}")]) for n, name in enumerate(names)]
    hosts = fleet(*results)
    views = (
        status_view(results, hosts),
        free_view(find_free(hosts, Wanted()), Wanted(), hosts, generated_at=NOW),
    )
    for view in views:
        lines = rendered(view, "table", 80).splitlines()
        table = lines[lines.index("") + 3 :]
        assert max(map(wcswidth, table)) <= 80
        assert len({line.split()[0] for line in table[: len(names)]}) == len(names)


@pytest.mark.parametrize(
    ("outcome", "told", "seen", "cards"),
    [
        (Outcome.UNREACHABLE, 8, None, 8),
        (Outcome.UNREACHABLE, 8, 4, 8),  # the inventory is what the administrator says
        (Outcome.UNREACHABLE, None, 4, 4),
        (Outcome.UNREACHABLE, None, None, None),
        (Outcome.NO_GPU, None, 4, None),
    ],
)
def test_silent_host_has_the_cards_that_the_inventory_or_an_earlier_answer_told(
    outcome: Outcome, told: int | None, seen: int | None, cards: int | None
) -> None:
    earlier = {} if seen is None else {"a": Seen(NOW, seen)}
    hosts = fleet_now([HostResult(Host("a", "a", cards=told), outcome)], Knowledge(seen=earlier))
    assert [row[1] for row in unseen_section(hosts).rows] == [cards]
