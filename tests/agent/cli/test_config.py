from pathlib import Path

from gua.cli.config import settings_help
from gua.config import KEYS
from tests.agent.running import run_gua


def test_right_settings_are_said_to_be_right(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('[daemon]\ninterval = "10s"\n')
    done = run_gua(tmp_path, "config", "check", "--settings", str(tmp_path / "a.toml"))
    assert done.returncode == 0
    first, rule = done.stdout.splitlines()
    assert first == f"settings are right ({tmp_path}/a.toml)"
    assert "active from 10 %, held above 100 MB" in rule


def test_the_rules_in_force_are_told_by_model(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('[[rule.model]]\nmatch = "*T4*"\nactive_util_pct = 3\n')
    done = run_gua(tmp_path, "config", "check", "--settings", str(tmp_path / "a.toml"))
    assert done.stdout.splitlines()[2].startswith("rule of cards like *T4*: active from 3 %, held above 100 MB")


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
