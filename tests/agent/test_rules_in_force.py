"""A rule for one model, from the settings file to the report, in the real command."""

import json
from dataclasses import asdict
from pathlib import Path

from gua.model import DEFAULT_RULE
from tests.agent.running import run_gua, run_json
from tests.nvml_stub import Card, Scene

SETTINGS = """
[[rule.model]]
match = "*t4*"
active_util_pct = 5
"""


def test_a_card_is_judged_and_reported_by_the_rule_of_its_model(tmp_path: Path, nvml_scene: Path) -> None:
    Scene(cards=(Card("GPU-a", name="Tesla T4", util=7), Card("GPU-b", name="Tesla V100", util=7))).save(nvml_scene)
    (tmp_path / "agent.toml").write_text(SETTINGS)
    settings = ("--settings", str(tmp_path / "agent.toml"))
    seen = run_json(tmp_path, "sync-once", "--push", "never", "--interval", "30s", *settings)
    assert [card["now"]["state"] for card in seen["cards"]] == ["active", "truly-idle"]
    report = run_gua(tmp_path, "report", "--since", "1h", "--json")
    assert report.returncode == 0, report.stderr
    document = json.loads(report.stdout)
    own, default = ({**asdict(DEFAULT_RULE), "active_util_pct": 5}, asdict(DEFAULT_RULE))
    assert sorted(document["rules"], key=str) == sorted([own, default], key=str)
    assert [card["own_rule"] for card in document["cards"]] == [own, None]
