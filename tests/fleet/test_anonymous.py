"""A report for a slide: the same figures, and no name of a person anywhere in any form."""

from __future__ import annotations

import email
import json
from email import policy
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gua_fleet.anonymous import without_names
from gua_fleet.merge import Known, merge_reports
from gua_fleet.model import Document, Host, HostResult, Outcome
from gua_fleet.people import Excuse
from gua_fleet.render_csv import render_csv
from gua_fleet.render_html import render_html
from gua_fleet.render_json import render_json
from gua_fleet.render_mail import render_mail
from gua_fleet.render_md import render_md
from gua_fleet.render_table import render_fleet
from tests.documents import NOW_MS, SINCE, SINCE_MS, UNTIL_MS, card, now, report, states, user
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
