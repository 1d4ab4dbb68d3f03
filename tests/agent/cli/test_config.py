import json
from pathlib import Path

import jsonschema

from gua.cli.config import settings_help
from gua.config import KEYS
from gua.schemas import load_schema
from tests.agent.running import run_gua


def test_right_settings_are_said_to_be_right(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('[daemon]\ninterval = "10s"\n')
    done = run_gua(tmp_path, "config", "check", "--settings", str(tmp_path / "a.toml"))
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == f"settings are right ({tmp_path}/a.toml)"
    assert len(lines) == 2 + len(KEYS)
    assert "active from 10 %, held above 100 MB" in lines[-1]


def test_each_setting_is_told_with_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('[daemon]\ninterval = "10s"\n[nvml]\ndeadline = "9s"\n')
    words = ("config", "check", "--settings", str(tmp_path / "a.toml"))
    done = run_gua(tmp_path, *words, GUA_NVML_DEADLINE="8s", GUA_RULE_HELD_MB="7")
    assert f'[daemon] interval = "10s"   ({tmp_path}/a.toml: [daemon] interval)' in done.stdout
    assert '[nvml] deadline = "8s"   (GUA_NVML_DEADLINE)' in done.stdout
    assert "[rule] held_mb = 7   (GUA_RULE_HELD_MB)" in done.stdout
    assert "[rule] active_util_pct = 10   (default)" in done.stdout
    assert "[store] path = not set   (default)" in done.stdout


def test_the_rules_in_force_are_told_by_model(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('[[rule.model]]\nmatch = "*T4*"\nactive_util_pct = 3\n')
    done = run_gua(tmp_path, "config", "check", "--settings", str(tmp_path / "a.toml"))
    assert done.stdout.splitlines()[-1].startswith("rule of cards like *T4*: active from 3 %, held above 100 MB")


def test_the_settings_as_a_document_tell_value_unit_and_source(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text('[daemon]\ninterval = "1500ms"\n[[rule.model]]\nmatch = "*T4*"\nactive_util_pct = 3\n')
    words = ("--settings", str(file), "--json")
    done = run_gua(tmp_path, "config", "show", *words, GUA_NVML_DEADLINE="8s", GUA_STORE_PATH="~/x.db")
    document = json.loads(done.stdout)
    jsonschema.Draft202012Validator(load_schema("gua.config.1")).validate(document)
    settings = document["settings"]
    assert len(settings) == len(KEYS)
    where = f"{file}: [daemon] interval"
    assert settings["daemon.interval_s"] == {"value": 1.5, "source": "file", "where": where}
    assert settings["nvml.deadline_s"] == {"value": 8.0, "source": "environment", "where": "GUA_NVML_DEADLINE"}
    assert settings["rule.held_mb"] == {"value": 100, "source": "default", "where": None}
    assert settings["store.path"]["value"] == f"{tmp_path}/x.db"
    assert document["models"] == [{**document["rule"], "match": "*T4*", "active_util_pct": 3}]
    again = run_gua(tmp_path, "config", "check", *words, GUA_NVML_DEADLINE="8s", GUA_STORE_PATH="~/x.db")
    assert again.stdout == done.stdout


def test_show_says_what_check_says_but_for_the_verdict(tmp_path: Path) -> None:
    check, show = (run_gua(tmp_path, "config", action).stdout.splitlines() for action in ("check", "show"))
    assert show == check[1:]


def test_a_wrong_key_is_one_line_and_exit_status_2(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("[daemon]\nintervall = 10\n")
    done = run_gua(tmp_path, "config", "check", GUA_SETTINGS=str(tmp_path / "a.toml"))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"{tmp_path}/a.toml: [daemon] intervall: no such key" in done.stderr


def test_the_help_names_every_key_and_variable() -> None:
    text = settings_help()
    for key in KEYS:
        assert f"[{key.section}] {key.name}" in text
        assert key.variable in text
    assert "[[rule.model]]" in text
