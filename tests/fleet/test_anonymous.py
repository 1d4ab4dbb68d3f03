"""A report for a slide: the same figures, and no name of a person anywhere in any form."""

from __future__ import annotations

import email
import json
from email import policy
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gua_fleet.anonymous import mask_of, without_names
from gua_fleet.cli.common import fleet_document
from gua_fleet.free import Wanted, find_free
from gua_fleet.holds import Filter, current_holds, without_name
from gua_fleet.merge import Known, merge_reports
from gua_fleet.model import Document, Host, HostResult, Outcome
from gua_fleet.people import Excuse
from gua_fleet.present import fleet_now
from gua_fleet.render_csv import render_csv
from gua_fleet.render_html import render_html
from gua_fleet.render_json import render_json
from gua_fleet.render_mail import render_mail
from gua_fleet.render_md import render_md
from gua_fleet.render_table import render_fleet
from gua_fleet.view import View, rendered
from gua_fleet.view_free import free_view
from gua_fleet.view_holds import holds_view
from gua_fleet.view_sync import SCHEMA, sync_view
from tests.documents import NOW, NOW_MS, SINCE, SINCE_MS, UNTIL_MS, card, now, report, states, user
from tests.fleet.test_schema import schema

__all__ = ["schema"]

# Whatever of these is left in any form gives somebody away.
TELLING = ("alice", "wonder", "bobby", "1017", "secretproject", "carol", "scratch", "4242", "li-ws")


def telling_fleet() -> Document:
    """Every field that a name can get into holds one."""
    holder = {"user": "bobby", "process": "secretproject", "pid": 4242, "memory_mb": 1, "type": "compute"}
    blind = now("unknown", reason="util_unavailable", util_pct=None, holders=[holder])
    hold = {
        "user": "EXAMPLE\\alice.wonder",
        "process": "secretproject",
        "pid": 4242,
        "card": "GPU-a",
        "since": SINCE,
        "until": None,
        "memory_mb": 5,
        "states": states(held=60),
        "idle_held_long_card_s": 0.0,
        "mounts": "/scratch/alice",
        "process_key": "boot:4242:1",
    }
    finding = {"id": "stale", "severity": "warn", "card": None, "text": "card held by alice for carol"}
    odd = {"id": "carol_did_it", "severity": "warn", "card": None, "text": "x"}
    users = [
        user("EXAMPLE\\alice.wonder", states(held=3600), uid=1017),
        user("bobby", states(held=7200)),
        user("uid:1017", states(60), uid=1017),
        user("carol", states(60)),
        user("li", states(60)),
        user("unknown", states(held=30), uid=None, user_source="unknown"),
    ]
    document = report(
        [card("GPU-a", states(3600, 7200)), card("GPU-b", states(60), now=blind)],
        users,
        holds=[hold],
        findings=[finding, odd],
    )
    third = report([card("GPU-d", states(60))], store_id="s3")
    fourth = report([card("GPU-e", states(60), now=now(at=SINCE)), card("GPU-f", states(60))], store_id="s4")
    other = report([card("GPU-c", states(60))], store_id="s2", rules=[report([])["rules"][0] | {"held_mb": 9}])
    results = [
        HostResult(Host("alice-ws", "x", groups=("carols-lab", "shared")), Outcome.OK, document=document),
        HostResult(Host("gpu02", "x", groups=("shared",)), Outcome.AUTH_FAILED, detail="carol@gpu02: /home/carol/key"),
        HostResult(Host("gpu03", "x", groups=("shared",)), Outcome.OK, document=third),
        HostResult(Host("bobby2", "x"), Outcome.OK, document=other),
        HostResult(Host("li-ws", "x", scheduler="carol's cron"), Outcome.OK, document=fourth),
    ]
    known = Known(excuses=[Excuse("carol asked", user="*alice*")])
    return merge_reports(
        results, since_ms=SINCE_MS, until_ms=UNTIL_MS, tz="Etc/UTC", generated_at_ms=NOW_MS, known=known
    )


def forms(document: Document) -> dict[str, str]:
    """The report in every form there is, as what a reader sees."""
    mail = email.message_from_bytes(render_mail(document, to=["ops@example.org"]), policy=policy.default)
    parts = [part.get_content() for part in mail.walk() if not part.is_multipart()]
    texts = [part.decode() if isinstance(part, bytes) else part for part in parts]
    return {
        "table": render_fleet(document),
        "ascii": render_fleet(document, unicode=False),
        "md": render_md(document),
        "csv": render_csv(document),
        "json": render_json(document),
        "html": render_html(document),
        "mail": "\n".join([str(mail["Subject"]), *texts]),
    }


@pytest.mark.parametrize("form", ["table", "ascii", "md", "csv", "json", "html", "mail"])
def test_no_name_of_a_person_survives_in_any_form(form: str) -> None:
    document = telling_fleet()
    assert [word for word in TELLING if word in forms(document)[form].casefold()], "the test must be able to fail"
    text = forms(without_names(document))[form].casefold()
    assert [word for word in TELLING if word in text] == []
    assert "user 1" in text


def test_figures_and_hosts_stay_and_the_order_of_users_is_theirs(schema: Any) -> None:
    document = telling_fleet()
    bare = without_names(document)
    Draft202012Validator(schema).validate(bare)
    for key in ("card_s", "coverage", "samples", "cards", "rules", "models", "window"):
        assert bare[key] == document[key]
    assert [host["name"] for host in bare["hosts"]] == ["host 1", "gpu02", "gpu03", "host 4", "host 5"]
    assert [host["outcome"] for host in bare["hosts"]] == ["ok", "auth-failed", "ok", "ok", "ok"]
    held = {row["user"]: row["idle_held_card_s"] for row in bare["users"]}
    assert held == {"user 1": 7200, "user 2": 3600, "unknown 3": 30, "user 4": 0, "user 5": 0, "user 6": 0}
    assert sum(row["share_s"] for row in bare["users"]) == sum(row["share_s"] for row in document["users"])
    assert bare["holds"] == []
    assert [group["name"] for group in bare["groups"]] == ["group 1", "shared"]


def test_nothing_is_lost_but_names_where_hosts_tell_nobody() -> None:
    answer = report([card("GPU-a", states(60))], [user("zoe", states(60))])
    results = [HostResult(Host("gpu01", "x"), Outcome.OK, document=answer)]
    document = merge_reports(results, since_ms=SINCE_MS, until_ms=UNTIL_MS, tz="Etc/UTC", generated_at_ms=NOW_MS)
    bare = without_names(document)
    assert json.loads(render_json(bare))["free"] == document["free"]
    assert bare["hosts"] == document["hosts"]


def telling_answers(schema: str) -> list[HostResult]:
    """Answers of hosts that are seen now, a name in every field that can hold one, also in those to come."""
    holder = {"user": "bobby", "process": "secretproject", "pid": 4242, "memory_mb": 1, "type": "compute"}
    idle = now("idle-held", holders=[holder | {"mounts": "/scratch/alice"}], note="bobby's")
    held = card("GPU-a", states(), now=idle, note="carol's card")
    document = report([held, card("GPU-b", states(), index=1)], store_id="s1", contact="carol")
    document["host"] |= {"scheduler": "carol's cron", "hostname": "alice-ws", "contact": "carol"}
    if schema == "gua.observation/1":
        document |= {
            "schema": schema,
            "observed_at": NOW,
            "status": "partial",
            "stored": False,
            "stored_reason": "ask carol",
            "push": {"mode": "auto", "result": "failed: carol@board said no", "note": "carol"},
            "errors": ["alice's card is lost"],
        }
        del document["generated_at"]
    second = now("idle-held", holders=[holder | {"user": "carol"}, holder | {"user": "EXAMPLE\\alice.wonder"}])
    other = {**document, "cards": [card("GPU-c", states(), now=second)]}
    other["host"] = {**document["host"], "store_id": "s2", "boot_id": "b2", "scheduler": None}
    return [
        HostResult(Host("alice-ws", "x", scheduler="carol's cron"), Outcome.OK, document=document),
        HostResult(Host("gpu01", "x"), Outcome.OK, document=other),
        HostResult(Host("gpu02", "x"), Outcome.AUTH_FAILED, detail="carol@gpu02: /home/carol/key"),
        HostResult(Host("bobby2", "x"), Outcome.PAUSED, detail="paused by bobby"),
    ]


def view_now(name: str, *, masked: bool) -> View:
    """What `gua-fleet NAME` shows of them, as the command makes it."""
    results = telling_answers("gua.observation/1" if name == "sync-once" else "gua.report/1")
    hosts = fleet_now(results)
    mask = mask_of(hosts)
    if name == "sync-once":
        latest = {"gpu02": results[0].document or {}}
        if masked:
            hosts = tuple(map(mask.host, hosts))
            results = [mask.result(result, host) for result, host in zip(results, hosts, strict=True)]
        return sync_view(results, hosts, fleet_document(SCHEMA, results), latest)
    holds = current_holds(hosts, [Excuse("carol asked", user="*alice*")], NOW_MS)
    if masked:
        holds, hosts = [without_name(hold, mask) for hold in holds], tuple(map(mask.host, hosts))
    if name == "holds":
        return holds_view(holds, Filter(), hosts, left_out=0, generated_at=NOW, names=not masked)
    return free_view(find_free(hosts, Wanted()), Wanted(), hosts, generated_at=NOW)


@pytest.mark.parametrize("form", ["table", "md", "csv", "json"])
@pytest.mark.parametrize("name", ["sync-once", "holds", "free"])
def test_no_name_survives_in_what_the_fleet_does_now(name: str, form: str) -> None:
    if (name, form) != ("free", "csv"):  # which has nothing but cards that are free
        told = rendered(view_now(name, masked=False), form, 80).casefold()
        assert [word for word in TELLING if word in told], "the test must be able to fail"
    text = rendered(view_now(name, masked=True), form, 80).casefold()
    assert [word for word in TELLING if word in text] == []
    if name != "free":
        assert "user 1" in text
