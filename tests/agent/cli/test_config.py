from pathlib import Path

from gua.cli.config import settings_help
from gua.config import KEYS
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
