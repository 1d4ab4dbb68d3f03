"""The merge: sums add, every host is there, and what could not be seen is never idle."""

from __future__ import annotations

import pytest

from gua_fleet.merge import find_twins
from gua_fleet.model import Document, Host, HostResult, Outcome, Seen
from gua_fleet.people import Excuse, UserMap
from gua_fleet.rows_now import free_text
from tests.documents import NOW_MS, RULE, WINDOW_S, card, now, report, states, user
from tests.fleet.merging import STRICT, answer, merge, silent


def finding_ids(document: Document) -> list[str]:
    return [finding["id"] for finding in document["findings"]]


H1 = report([card("GPU-a", states(7200, 3600, 3600))], [user("alice", states(7200, 3600))])
H2 = report(
    [card("GPU-b", states(0, 7200, 3600, 1800), name="NVIDIA A100-SXM4-80GB")],
    [user("alice", states(0, 3600)), user("uid:1017", states(0, 3600), uid=1017)],
    store_id="s2",
)


def test_merge_two_hosts_adds_their_sums() -> None:
    merged = merge(answer("a", H1), answer("b", H2))
    assert merged["card_s"] == states(7200, 10800, 7200, 1800)
    assert merged["coverage"]["expected_card_s"] == 2 * WINDOW_S
    assert merged["coverage"]["unobserved_card_s"] == 1800
    assert merged["coverage"]["unknown_by_reason"] == {"card_lost": 1800}
    assert merged["samples"] == 960


def test_merge_same_name_on_two_hosts_is_one_user_but_bare_uid_is_not() -> None:
    users = {row["user"]: row for row in merge(answer("a", H1), answer("b", H2))["users"]}
    assert set(users) == {"alice", "uid:1017@b"}
    assert users["alice"]["card_s"] == 14400
    assert users["alice"]["hosts"] == ["a", "b"]


def test_merge_names_nobody_can_own_carry_their_host() -> None:
    document = report(
        [card("GPU-a", states(held=3600))],
        [user(name, states(held=900), uid=None) for name in ("container:3f9c0ad4", "unknown", "unattributed", "root")],
    )
    names = [row["user"] for row in merge(answer("a", document))["users"]]
    assert names == ["container:3f9c0ad4@a", "root", "unattributed@a", "unknown@a"]


def test_merge_user_with_two_uids_has_none_to_name() -> None:
    other = report([card("GPU-b", states(3600))], [user("alice", states(3600), uid=2001)], store_id="s2")
    (row,) = merge(answer("a", H1), answer("b", other))["users"]
    assert row["uid"] is None


def test_merge_energy_is_of_the_known_part_and_says_how_much_that_is() -> None:
    known = report(
        [card("GPU-a", states(3600), energy_j=states(9e5), energy_known_s=3600.0)],
        [user("alice", states(3600), energy_j=9e5, energy_known_s=3600.0)],
    )
    merged = merge(answer("a", known), answer("b", H2))
    (alice, other) = merged["users"]
    assert (alice["energy_j"], alice["energy_known_s"], alice["share_s"]) == (9e5, 3600, 7200)
    assert (other["energy_j"], other["energy_known_s"]) == (None, 0)
    energy = {row["name"]: (row["energy_j"], row["energy_known_s"]) for row in merged["models"]}
    assert energy == {
        "NVIDIA A100-SXM4-80GB": (None, 0),
        "NVIDIA H100 80GB HBM3": (states(9e5), 3600),
    }


def test_merge_host_without_answer_has_null_amounts_and_its_known_cards_are_unobserved() -> None:
    merged = merge(answer("a", H1), silent("b", cards=8))
    row = merged["hosts"][1]
    assert (row["card_s"], row["coverage"], row["cards"], row["detail"]) == (None, None, 8, "no route to host")
    assert merged["coverage"]["expected_card_s"] == 9 * WINDOW_S
    assert merged["coverage"]["unobserved_card_s"] == 8 * WINDOW_S
    assert merged["card_s"] == states(7200, 3600, 3600)


def test_merge_host_without_answer_and_without_known_cards_adds_nothing() -> None:
    merged = merge(answer("a", H1), silent("b"))
    assert merged["hosts"][1]["cards"] is None
    assert merged["coverage"]["expected_card_s"] == WINDOW_S


def test_merge_host_that_has_no_gpu_expects_nothing_whatever_the_inventory_says() -> None:
    merged = merge(silent("b", Outcome.NO_GPU, cards=8), silent("c", Outcome.NO_GPU))
    assert merged["coverage"]["expected_card_s"] == 0
    [finding] = merged["findings"]
    assert finding["text"].startswith("b finds no NVIDIA card, gua_cards says 8")


def test_merge_nobody_answered_still_lists_every_host_in_order() -> None:
    merged = merge(silent("z"), silent("a"))
    assert [row["name"] for row in merged["hosts"]] == ["z", "a"]
    assert merged["card_s"] == states()


def test_merge_two_names_of_one_agent_count_once_and_it_is_said() -> None:
    merged = merge(answer("short", H1), answer("a.long.name", H1))
    assert merged["card_s"] == H1["card_s"]
    assert merged["hosts"][0]["card_s"] is None
    assert "same agent as a.long.name" in merged["hosts"][0]["detail"]
    assert "same_agent" in finding_ids(merged)


def test_merge_cloned_images_share_a_store_id_but_not_a_boot_and_count_twice() -> None:
    clone = report([card("GPU-b", states(3600))], store_id="s1")
    clone["host"] = clone["host"] | {"boot_id": "b2"}
    assert find_twins([answer("a", H1), answer("b", clone)]) == {}


def test_merge_same_agent_ids_with_other_cards_is_another_agent() -> None:
    """Containers from one image on one machine, or a host that lies about who it is: neither hides the other."""
    other = report([card("GPU-z", states(3600))], store_id=H1["host"]["store_id"])
    assert other["host"] == H1["host"]
    merged = merge(answer("a", H1), answer("0-lies", other))
    assert merged["card_s"] == states(7200 + 3600, 3600, 3600)


def test_merge_card_in_service_on_two_hosts_is_a_finding() -> None:
    twin = report([card("GPU-a", states(3600))], store_id="s2")
    assert "card_on_two_hosts" in finding_ids(merge(answer("a", H1), answer("b", twin)))


def test_merge_card_that_moved_is_no_finding() -> None:
    left = report([card("GPU-a", states(3600), retired_at="2026-03-02T09:00:00Z")], store_id="s2")
    merged = merge(answer("a", H1), answer("b", left))
    assert "card_on_two_hosts" not in finding_ids(merged)
    assert merged["cards"] == 1


def test_merge_mixed_windows_and_zones_are_findings() -> None:
    other = report(
        [card("GPU-b", states(3600))],
        store_id="s2",
        window={"since": "2026-03-02T07:45:00Z", "until": "2026-03-02T12:00:00Z", "history_begins": None},
        tz="Asia/Seoul",
        hours_of_week=[{"weekday": 0, "hour": 20, "card_s": states(3600)}],
    )
    merged = merge(answer("a", H1), answer("b", other))
    assert {"mixed_windows", "mixed_zones"} <= set(finding_ids(merged))
    assert merged["hours_of_week"] == []
    assert merged["window"]["since"] == "2026-03-02T08:00:00Z"


def test_merge_wider_window_all_hosts_agree_on_is_the_one_said_and_expected() -> None:
    wide = {"since": "2026-03-02T07:45:00Z", "until": "2026-03-02T12:00:00Z", "history_begins": None}
    merged = merge(answer("a", H1 | {"window": wide}), silent("b", cards=1))
    assert merged["window"]["since"] == wide["since"]
    assert merged["coverage"]["expected_card_s"] == WINDOW_S + (WINDOW_S + 900)


def test_merge_slices_are_rows_of_their_own_and_never_added_to_whole_cards() -> None:
    mig = {"parent_uuid": "GPU-p", "profile": "1g.10gb"}
    sliced = report(
        [
            card("GPU-a", states(3600)),
            card("MIG-1", states(idle=3600), mig=mig),
            card("MIG-2", states(idle=3600), mig=mig),
        ]
    )
    merged = merge(answer("a", sliced))
    models = {(row["name"], row["mig"]): (row["cards"], row["card_s"]) for row in merged["models"]}
    assert models == {
        ("NVIDIA H100 80GB HBM3", False): (2, states(3600)),
        ("NVIDIA H100 80GB HBM3 1g.10gb", True): (2, states(idle=7200)),
    }
    assert merged["sliced_cards"] == 1
    assert merged["hosts"][0]["cards"] == 2


def test_merge_groups_count_a_host_in_each_and_say_so() -> None:
    merged = merge(answer("a", H1, groups=("all", "vision", "h100")), silent("b", cards=2, groups=("all", "vision")))
    groups = {row["name"]: row for row in merged["groups"]}
    assert set(groups) == {"vision", "h100"}
    assert (groups["vision"]["hosts"], groups["vision"]["cards"]) == (2, 3)
    assert groups["vision"]["expected_card_s"] == 3 * WINDOW_S
    assert "host_in_groups" in finding_ids(merged)


def test_merge_only_implied_groups_are_kept_when_there_is_no_other() -> None:
    assert [row["name"] for row in merge(answer("a", H1, groups=("all",)))["groups"]] == ["all"]


def test_merge_free_is_idle_now_seen_lately_and_not_a_schedulers() -> None:
    document = report(
        [
            card("GPU-free", states(idle=60)),
            card("GPU-stale", states(idle=60), now=now(at="2026-03-02T11:58:39Z")),
            card("GPU-clock-set-back", states(idle=60), now=now(at="2026-03-02T13:00:00Z")),
            card("GPU-held", states(idle=60), now=now("idle-held")),
            card("GPU-retired", states(idle=60), retired_at="2026-03-02T11:00:00Z"),
            card("GPU-never", states(), now=None),
        ]
    )
    merged = merge(answer("a", document))
    assert [row["uuid"] for row in merged["free"]] == ["GPU-free"]
    assert merged["hosts"][0]["last_tick_at"] == "2026-03-02T13:00:00Z"


def test_merge_card_last_looked_at_too_long_ago_is_said_to_be_neither_free_nor_taken() -> None:
    old, mig = now(at="2026-03-02T11:50:00Z"), {"parent_uuid": "GPU-p", "profile": "1g.10gb"}
    cards = [
        card("GPU-old", states(idle=60), now=old),
        card("GPU-never", states(), now=None),
        card("GPU-retired", states(idle=60), now=old, retired_at="2026-03-02T11:00:00Z"),
        card("GPU-p", states(), now=None),
        card("MIG-1", states(idle=60), mig=mig, now=now("idle-held")),
    ]
    document = merge(answer("a", report(cards)))
    assert (document["free"], document["stale"]) == ([], [{"host": "a", "cards": 2}])
    assert free_text(document) == "No card is known to be free; last looked at too long ago: a (2)"


@pytest.mark.parametrize(
    ("whole_at", "free"), [("11:59:20", ["MIG-1", "MIG-2"]), ("11:59:50", ["MIG-1", "MIG-2"]), ("12:00:05", ["GPU-p"])]
)
def test_merge_a_card_is_free_whole_or_in_slices_as_it_was_sampled_last(whole_at: str, free: list[str]) -> None:
    """Within three intervals of a cut both ways of it are fresh: half of them can be given to nobody."""
    mig = {"parent_uuid": "GPU-p", "profile": "1g.10gb"}
    cards = [card("GPU-p", states(idle=60), now=now(at=f"2026-03-02T{whole_at}Z"))]
    cards += [card(uuid, states(idle=60), mig=mig) for uuid in ("MIG-1", "MIG-2")]
    document = merge(answer("a", report(cards)))
    assert ([row["uuid"] for row in document["free"]], document["stale"]) == (free, [])


def test_merge_idle_cards_of_a_scheduler_stand_apart_from_free() -> None:
    document = report([card("GPU-a", states(idle=60))])
    for managed in (answer("a", document, scheduler="slurm"), answer("a", _with_scheduler(document))):
        merged = merge(managed)
        assert merged["free"] == []
        assert [row["scheduler"] for row in merged["scheduler_idle"]] == ["slurm"]


def _with_scheduler(document: Document) -> Document:
    return document | {"host": document["host"] | {"scheduler": "slurm"}}


def test_merge_holds_and_findings_carry_their_host() -> None:
    hold = {"user": "uid:7", "process": "python", "pid": 1, "card": "GPU-a", "since": "x", "until": None}
    place = {"index": 0, "model": "NVIDIA H100 80GB HBM3", "excuse": None}
    finding = {"id": "stale", "severity": "warn", "card": None, "text": "t"}
    merged = merge(answer("a", H1 | {"holds": [hold], "findings": [finding]}))
    assert merged["holds"] == [hold | place | {"host": "a", "user": "uid:7@a"}]
    assert merged["findings"] == [finding | {"host": "a"}]


def test_merge_history_that_begins_late_is_said() -> None:
    late = H1 | {"window": H1["window"] | {"history_begins": "2026-03-02T09:00:00Z"}}
    merged = merge(answer("a", late))
    assert "history_begins" in finding_ids(merged)
    assert merged["window"]["history_begins"] == "2026-03-02T09:00:00Z"


def test_merge_host_judged_by_another_rule_is_in_no_sum_and_its_cards_are_not_seen() -> None:
    other = report([card("GPU-b", states(3600, 10800))], [user("bob", states(3600))], store_id="s2", rules=[STRICT])
    third = report([card("GPU-c", states(0, 0, 14400))], store_id="s3")
    merged = merge(answer("a", H1), answer("b", other), answer("c", third))
    assert merged["rules"] == [RULE]
    assert merged["card_s"] == states(7200, 3600, 3600 + 14400)
    assert merged["coverage"]["expected_card_s"] == 3 * WINDOW_S
    assert merged["coverage"]["unobserved_card_s"] == WINDOW_S
    assert [row["user"] for row in merged["users"]] == ["alice"]
    assert merged["apart"] == [
        {"host": "b", "rules": [STRICT], "card_s": other["card_s"], "coverage": other["coverage"]}
    ]
    assert (merged["hosts"][1]["card_s"], merged["hosts"][1]["cards"]) == (None, 1)
    assert "other_rules" in finding_ids(merged)


def test_merge_asked_rule_beats_the_common_one_and_own_rules_add_everything() -> None:
    other = report([card("GPU-x", states(3600))], store_id="s9", rules=[STRICT])
    results = [answer("a", H1), answer("b", other), answer("c", H2)]
    assert [row["host"] for row in merge(*results, rule=STRICT)["apart"]] == ["a", "c"]
    merged = merge(*results, own_rules=True)
    assert (merged["apart"], len(merged["rules"])) == ([], 2)
    assert "mixed_rules" in finding_ids(merged)


def test_merge_rule_that_changed_within_the_window_is_not_the_fleets() -> None:
    changed = report([card("GPU-b", states(3600))], store_id="s2", rules=[STRICT, RULE])
    assert [row["host"] for row in merge(answer("a", H1), answer("b", changed))["apart"]] == ["b"]


def test_merge_free_cards_and_holds_of_another_rule_are_not_promised() -> None:
    idle = report([card("GPU-x", states(idle=3600))], store_id="s9", rules=[STRICT])
    merged = merge(answer("a", H1), answer("b", idle), answer("c", H2))
    assert [row["host"] for row in merged["free"]] == ["a", "c"]


@pytest.mark.parametrize(
    ("ahead_s", "elapsed_s", "told"),
    [(0, 0.1, ""), (29, 0.1, ""), (31, 0.1, "31 s ahead"), (-45, 20, ""), (-51, 20, "31 s behind"), (7200, 1, "2 h")],
)
def test_merge_clock_that_differs_beyond_the_round_trip_is_told(ahead_s: int, elapsed_s: float, told: str) -> None:
    answered_at_ms = NOW_MS - ahead_s * 1000  # the document says NOW
    result = HostResult(Host("a", "a"), Outcome.OK, None, H1, elapsed_s=elapsed_s, answered_at_ms=answered_at_ms)
    found = [finding["text"] for finding in merge(result)["findings"] if finding["id"] == "clock_differs"]
    assert told in "".join(found)
    assert bool(found) == bool(told)


def test_merge_version_that_differs_from_the_rest_is_told() -> None:
    old = H2 | {"host": H2["host"] | {"agent_version": "0.0.9"}}
    third = report([card("GPU-c", states(60))], store_id="s3")
    found = [f for f in merge(answer("a", H1), answer("b", old), answer("c", third))["findings"] if "agent" in f["id"]]
    assert [finding["text"] for finding in found] == ["agent 0.0.9, most run 0.1.0: b"]


def test_merge_silent_host_has_the_cards_it_had_when_it_was_last_seen() -> None:
    seen = {"b": Seen("2026-02-28T00:00:00Z", 4, {"NVIDIA L4": 4}), "c": Seen("2026-02-28T00:00:00Z", 2, {})}
    merged = merge(answer("a", H1), silent("b"), silent("c", cards=3), silent("d", Outcome.NO_GPU), seen=seen)
    assert [(row["cards"], row["last_seen_at"]) for row in merged["hosts"][1:]] == [
        (4, "2026-02-28T00:00:00Z"),
        (3, "2026-02-28T00:00:00Z"),
        (None, None),
    ]
    models = {row["name"]: (row["cards"], row["expected_card_s"]) for row in merged["models"]}
    assert models["NVIDIA L4"] == (4, 4 * WINDOW_S)
    assert models["(model not known)"] == (3, 3 * WINDOW_S)
    assert merged["coverage"]["expected_card_s"] == 8 * WINDOW_S


def test_merge_held_card_that_cannot_be_measured_is_listed_and_its_time_said() -> None:
    holder = {"user": "uid:7", "process": "p", "pid": 1, "memory_mb": None, "type": "compute"}
    blind = now("unknown", reason="util_unavailable", util_pct=None, holders=[holder, holder | {"type": "graphics"}])
    lost = now("unknown", reason="card_lost", util_pct=None)
    document = report(
        [
            card("MIG-1", states(unknown=600), now=blind, held_unmeasured_s=500.0),
            card("GPU-2", states(unknown=60), now=lost),
        ]
    )
    merged = merge(answer("a", document))
    assert [(row["uuid"], row["users"]) for row in merged["not_measurable"]] == [("MIG-1", ["uid:7@a"])]
    assert merged["held_unmeasured_s"] == 500


def test_merge_mapped_names_are_one_person_across_hosts() -> None:
    people = UserMap({"uid:1017@b": "alice", "EXAMPLE\\al": "alice"})
    third = report([card("GPU-c", states(60))], [user("EXAMPLE\\al", states(60))], store_id="s3")
    (alice,) = merge(answer("a", H1), answer("b", H2), answer("c", third), people=people)["users"]
    assert (alice["user"], alice["hosts"]) == ("alice", ["a", "b", "c"])
    assert alice["card_s"] == 7200 + 3600 + 3600 + 3600 + 60


def test_merge_excused_hold_is_marked_and_stays_in_every_sum() -> None:
    hold = {"user": "alice", "process": "jupyter", "pid": 1, "card": "GPU-a", "since": "x", "until": None}
    ended = hold | {"pid": 2, "until": "y"}
    document = H1 | {"holds": [hold, hold | {"process": "train"}, ended]}
    excuse = Excuse("paper deadline", user="alice", process="jup*", until_ms=NOW_MS + 1)
    merged = merge(answer("a", document), excuses=[excuse])
    assert [row["excuse"] for row in merged["holds"]] == ["paper deadline", None, None]
    assert merged["card_s"] == merge(answer("a", document))["card_s"]
    late = Excuse("over", user="alice", until_ms=NOW_MS)
    assert [row["excuse"] for row in merge(answer("a", document), excuses=[late])["holds"]] == [None] * 3
