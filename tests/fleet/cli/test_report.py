"""What `gua-fleet report` asks for, what it refuses before it asks anybody, and what it shows of the answers."""

from __future__ import annotations

import csv
import email
import io
import json
from email import policy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gua.errors import UsageError
from gua.report.window import settle_window
from gua_fleet.merge_rules import parse_rule, rule_argument
from gua_fleet.period import fleet_window
from tests.documents import RULE
from tests.fleet.cli.test_commands import _inventory, _run
from tests.fleet.ssh.sshd import REPOSITORY

HOUR_MS = 3_600_000
NOW_MS = 1_772_452_810_123


@given(
    st.integers(1, 40 * 24 * HOUR_MS),
    st.integers(-2 * HOUR_MS, 30 * 24 * HOUR_MS),
    st.integers(0, 3 * HOUR_MS),
    st.integers(0, 900_000),
)
def test_window_is_the_same_on_every_host_whose_clock_is_not_behind(
    length_ms: int, ago_ms: int, ahead_ms: int, shift_ms: int
) -> None:
    now_ms = NOW_MS + shift_ms
    until_ms = now_ms - ago_ms
    since_ms = min(until_ms, now_ms) - length_ms
    asked = fleet_window(since_ms, until_ms, now_ms)
    assert settle_window(*asked, now_ms=now_ms + ahead_ms, raw_since_ms=None).span == asked
    assert asked[0] <= since_ms
    assert min(until_ms, now_ms) - 900_000 < asked[1] <= now_ms


def test_window_that_has_not_begun_is_refused() -> None:
    with pytest.raises(UsageError, match="has not begun: it begins 2026-03-02T12:00:10"):
        fleet_window(NOW_MS, NOW_MS + 1, NOW_MS)


@pytest.mark.parametrize(
    ("output", "words"), [("", "is a directory"), ("nowhere/report.txt", "there is no directory nowhere")]
)
def test_report_output_that_cannot_be_written_is_refused_before_anybody_is_asked(
    tmp_path: Path, output: str, words: str
) -> None:
    asked = tmp_path / "asked"
    hosts = _inventory(tmp_path, {"a": f"open({str(asked)!r}, 'w').close()"})
    done = _run(tmp_path, "report", "--hosts", str(hosts), "-o", output or str(tmp_path))
    assert (done.returncode, done.stdout, asked.exists()) == (2, "", False)
    assert words in done.stderr


# An agent that reports one card, active all the window, by the rule it is configured with or by the one it is asked
# for. {rules}: its own. {again}: whether it can judge anew.
AGENT = """
sys.path.insert(0, {repository!r}); sys.path.insert(0, {fleet!r})
from datetime import datetime
from gua_fleet.merge_rules import parse_rule
from tests.documents import card, now, report, states
asked = dict(zip(sys.argv[1:], sys.argv[2:]))
window = {{"since": asked["--since"], "until": asked["--until"], "history_begins": None}}
ends = [datetime.fromisoformat(window[key].replace("Z", "+00:00")) for key in ("since", "until")]
length = (ends[1] - ends[0]).total_seconds()
if "--rules" in asked and not {again}:
    sys.stderr.write("gua: --rules judges raw ticks again, and those are gone\\n"); sys.exit(2)
rules = [parse_rule(asked["--rules"])] if "--rules" in asked else {rules!r}
spent = states(length) if rules == [{default!r}] else states(held=length)
made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
one = card("GPU-{name}", spent, expected_card_s=length, unobserved_card_s=0.0, now=now(at=made, since=made))
document = report([one], store_id="{name}", generated_at=made, window=window, tz=asked["--tz"], rules=rules)
sys.stdout.write(frame(document))
"""
STRICT = parse_rule("active=50")


def agent(name: str, *rules: dict[str, int], again: bool = True) -> str:
    values = {"repository": str(REPOSITORY), "fleet": str(REPOSITORY / "fleet"), "default": RULE}
    return AGENT.format(name=name, rules=list(rules or [RULE]), again=again, **values)


@pytest.mark.processes
def test_report_hosts_of_another_rule_are_asked_again_or_stand_apart(tmp_path: Path) -> None:
    bodies = {
        "a": agent("a"),
        "b": agent("b"),
        "strict": agent("strict", STRICT),
        "gone": agent("gone", STRICT, again=False),
    }
    hosts = str(_inventory(tmp_path, bodies))
    done = _run(tmp_path, "report", "--hosts", hosts, "--json", "--since", "2h")
    document = json.loads(done.stdout)
    assert (done.returncode, document["rules"]) == (0, [RULE])
    assert [row["host"] for row in document["apart"]] == ["gone"]
    assert "those are gone" in document["hosts"][3]["detail"]
    assert document["card_s"]["active"] == pytest.approx(3 * 7200)
    assert document["card_s"]["idle-held"] == 0
    assert document["coverage"]["unobserved_card_s"] == pytest.approx(7200)
    assert "2 of 4 hosts judge by another rule: asked again" in done.stderr
    own = json.loads(_run(tmp_path, "report", "--hosts", hosts, "--json", "--since", "2h", "--rules", "own").stdout)
    assert (own["apart"], own["card_s"]["idle-held"]) == ([], pytest.approx(2 * 7200))
    asked = ["--rules", rule_argument(STRICT)]
    strict = json.loads(_run(tmp_path, "report", "--hosts", hosts, "--json", "--since", "2h", *asked).stdout)
    assert (strict["rules"], strict["apart"]) == ([STRICT], [])
    assert strict["card_s"]["idle-held"] == pytest.approx(4 * 7200)


@pytest.mark.processes
def test_report_silent_host_is_remembered_from_the_run_before(tmp_path: Path) -> None:
    hosts = _inventory(tmp_path, {"a": agent("a"), "b": agent("b")})
    assert _run(tmp_path, "report", "--hosts", str(hosts), "--since", "1h").returncode == 0
    (tmp_path / "b" / "gua").unlink()
    done = _run(tmp_path, "report", "--hosts", str(hosts), "--since", "1h", "--format", "csv")
    assert done.returncode == 1
    rows = {(row["section"], row["name"]): row for row in csv.DictReader(io.StringIO(done.stdout))}
    assert (rows["host", "b"]["outcome"], rows["host", "b"]["cards"]) == ("agent-missing", "1")
    assert float(rows["model", "NVIDIA H100 80GB HBM3"]["unobserved_card_s"]) == pytest.approx(3600)
    text = _run(tmp_path, "report", "--hosts", str(hosts), "--since", "1h", "--allow-missing", "1")
    assert text.returncode == 0
    assert "No answer: b (agent-missing, 1 card)" in text.stdout
    assert "(last seen 2" in text.stdout


@pytest.mark.processes
def test_report_goes_to_a_file_and_into_a_mail(tmp_path: Path) -> None:
    hosts = str(_inventory(tmp_path, {"a": agent("a")}))
    begins = {"table": "GPU use", "html": "<!DOCTYPE html>"}
    for form, begin in begins.items():
        out = tmp_path / f"report.{form}"
        done = _run(tmp_path, "report", "--hosts", hosts, "--last-week", "--format", form, "-o", str(out))
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        assert out.read_text(encoding="utf-8").startswith(begin)
    done = _run(tmp_path, "report", "--hosts", hosts, "--format", "mail", "--mail-to", "ops@example.org")
    message = email.message_from_string(done.stdout, policy=policy.default)
    assert (message["To"], message.is_multipart()) == ("ops@example.org", True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--format", "mail"], "needs --mail-to"),
        (["--format", "mail", "--mail-to", "nobody"], "no address"),
        (["--by", "host,card"], "no section: 'card'"),
        (["--last-week", "--since", "1d"], "not allowed with"),
        (["--last-month", "--until", "1d"], "leave out --until"),
        (["--rules", "active=200"], "percentage"),
    ],
)
def test_report_that_cannot_be_is_refused_before_anybody_is_asked(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    asked = tmp_path / "asked"
    hosts = _inventory(tmp_path, {"a": f"open({str(asked)!r}, 'w').close()"})
    done = _run(tmp_path, "report", "--hosts", str(hosts), *arguments)
    assert (done.returncode, done.stdout, asked.exists()) == (2, "", False)
    assert words in done.stderr


def test_report_nobody_answers_is_exit_status_3_and_still_a_report(tmp_path: Path) -> None:
    done = _run(tmp_path, "report", "--hosts", str(_inventory(tmp_path, {"d": None})))
    assert (done.returncode, "0 of 1 hosts reported" in done.stdout) == (3, True)
