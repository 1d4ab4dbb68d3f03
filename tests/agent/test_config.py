import contextlib
from dataclasses import fields, replace
from pathlib import Path
from typing import Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gua.config import KEYS, Key, Settings, load_settings, settings_file
from gua.config_values import Kind
from gua.errors import ConfigError
from gua.model import DEFAULT_RULE
from gua.rulebook import ModelRule


def load(
    tmp_path: Path, text: Optional[str] = None, environ: Optional[dict[str, str]] = None, **flags: str
) -> Settings:
    """Settings from a file with `text`; flags are named section_key."""
    file = None
    if text is not None:
        file = tmp_path / "agent.toml"
        file.write_text(text, encoding="utf-8")
    overrides = {"daemon.interval": ("--interval", flags["interval"])} if flags else {}
    return load_settings(file=file, overrides=overrides, environ=environ or {})


def test_defaults_are_the_documented_ones(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert settings.interval_ms == 30_000
    assert settings.nvml_deadline_ms == 10_000
    assert settings.rule == DEFAULT_RULE
    assert settings.trust_pid_namespace is False
    assert (settings.store_path, settings.scheduler) == (None, None)
    assert settings.raw_retention_ms == 90 * 86_400_000


def test_flag_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    text = '[daemon]\ninterval = "3s"\n'
    environ = {"GUA_DAEMON_INTERVAL": "2s"}
    assert load(tmp_path, text, environ, interval="1s").interval_ms == 1_000
    assert load(tmp_path, text, environ).interval_ms == 2_000
    assert load(tmp_path, text).interval_ms == 3_000
    assert load(tmp_path).interval_ms == 30_000


def test_every_key_can_be_set_in_the_file_and_in_the_environment(tmp_path: Path) -> None:
    samples = {
        Kind.DURATION: "2h",
        Kind.PERCENT: 7,
        Kind.MEMORY_MB: 7,
        Kind.FLAG: True,
        Kind.TEXT: "x",
        Kind.PATH: "/x",
    }
    for key in KEYS:
        value = samples[key.kind]
        written = f'"{value}"' if isinstance(value, str) else str(value).lower()
        from_file = load(tmp_path, f"[{key.section}]\n{key.name} = {written}\n")
        from_environment = load(tmp_path, environ={key.variable: str(value)})
        differing = [f.name for f in fields(Settings) if getattr(from_file, f.name) != getattr(load(tmp_path), f.name)]
        assert len(differing) == 2, f"{key.path} changed {differing}"  # the setting and `file`
        assert from_environment == load_settings(environ={key.variable: str(value)})
        name = next(name for name in differing if name != "file")
        assert getattr(from_environment, name) == getattr(from_file, name)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[daemon]\nintervall = 3\n", ["[daemon] intervall", "no such key", "interval"]),
        ("[daemom]\ninterval = '3s'\n", ["[daemom]", "no such section", "daemon"]),
        ("interval = '3s'\n", ["interval", "belongs in a section"]),
        ("[daemon]\ninterval = 30\n", ["[daemon] interval", "30", '"30s"']),
        ("[daemon]\ninterval = '-3s'\n", ["[daemon] interval", "-3s"]),
        ("[daemon]\ninterval = '0s'\n", ["[daemon] interval", "0s"]),
        ("[daemon]\ninterval = '1ms'\n", ["[daemon] interval", "too short", "100ms"]),
        ("[rule]\nlong_idle = '900ms'\n", ["[rule] long_idle", "too short", "1000ms"]),
        ("[rule]\nheld_mb = -1\n", ["[rule] held_mb", "-1", "0 or more"]),
        ("[rule]\nheld_mb = true\n", ["[rule] held_mb", "True"]),
        ("[rule]\nheld_mb = '100MB'\n", ["[rule] held_mb", "100MB"]),
        ("[rule]\nactive_util_pct = 101\n", ["[rule] active_util_pct", "1 to 100"]),
        ("[identity]\ntrust_pid_namespace = 'maybe'\n", ["trust_pid_namespace", "true or false"]),
        ("[store]\npath = 'gua.db'\n", ["[store] path", "absolute"]),
        ("[store]\nraw_retention = '90'\n", ["[store] raw_retention", "'90'", '"90d"']),
        ("[store]\nraw_retention = '90 days'\n", ["[store] raw_retention", "'90 days'"]),
        ("[nvml]\ndeadline = '-1s'\n", ["[nvml] deadline", "-1s"]),
        ("[nvml]\ndeadline = inf\n", ["[nvml] deadline", "inf"]),
        ("[daemon]\ninterval = 1979-05-27\n", ["[daemon] interval"]),
        ("[daemon\n", ["not TOML"]),
        ("[rule]\nmodel = 3\n", ["rule.model", "[[rule.model]]"]),
        ("[rule.model]\nmatch = 'T4'\n", ["rule.model", "[[rule.model]]"]),
        ("[[rule.model]]\nheld_mb = 3\n", ["[[rule.model]] number 1", "match is missing"]),
        ("[[rule.model]]\nmatch = 'a'\n[[rule.model]]\nmatch = 4\n", ["[[rule.model]] number 2: match", "pattern"]),
        ("[[rule.model]]\nmatch = ' '\n", ["match", "pattern"]),
        ("[[rule.model]]\nmatch = 'a'\nheld = 3\n", ["number 1: held", "no such key", "held_mb", "match"]),
        ("[[rule.model]]\nmatch = 'a'\nheld_mb = -3\n", ["number 1: held_mb", "-3", "0 or more"]),
        ("[[rule.model]]\nmatch = 'a'\nlong_idle = '1ms'\n", ["number 1: long_idle", "too short"]),
        ("[[rule.model]]\nmatch = 'a'\nmodel = [1]\n", ["number 1: model", "no such key"]),
    ],
)
def test_a_wrong_file_is_one_line_naming_file_key_and_cure(tmp_path: Path, text: str, parts: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    message = str(caught.value)
    assert message.startswith(str(tmp_path / "agent.toml"))
    assert "\n" not in message
    for part in parts:
        assert part in message


def test_a_file_that_is_not_utf8_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    file.write_bytes(b'[host]\nscheduler = "\xff"\n')
    with pytest.raises(ConfigError, match="not TOML"):
        load_settings(file=file, environ={})


def test_a_file_that_begins_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    assert load(tmp_path, '\ufeff[daemon]\r\ninterval = "3s"\r\n').interval_ms == 3_000


def test_a_file_nested_without_end_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"agent\.toml: .*nested"):
        load(tmp_path, "x = " + "[" * 100_000)


def test_a_path_in_the_home_of_a_user_without_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\[store\] path: '~no-such-user/gua.db' does not fit"):
        load(tmp_path, "[store]\npath = '~no-such-user/gua.db'\n")


@given(st.sampled_from(KEYS), st.text())
def test_any_text_is_a_value_or_one_line_that_names_the_variable(key: Key, text: str) -> None:
    with contextlib.suppress(ConfigError):
        load_settings(environ={key.variable: text})
        return
    with pytest.raises(ConfigError) as caught:
        load_settings(environ={key.variable: text})
    message = str(caught.value)
    assert message.startswith(f"{key.variable}: ")
    assert message.isprintable()


def test_a_wrong_variable_or_flag_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^GUA_RULE_HELD_MB: 'lots'"):
        load(tmp_path, environ={"GUA_RULE_HELD_MB": "lots"})
    with pytest.raises(ConfigError, match=r"^--interval: 'soon'"):
        load(tmp_path, interval="soon")


def test_a_named_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such settings file"):
        load_settings(file=tmp_path / "none.toml", environ={})
    with pytest.raises(ConfigError, match="no such settings file"):
        load_settings(environ={"GUA_SETTINGS": str(tmp_path / "none.toml")})


def test_the_option_beats_the_variable_beats_the_users_own_file(tmp_path: Path) -> None:
    own = tmp_path / ".gua/agent.toml"
    own.parent.mkdir()
    for path in (own, tmp_path / "a.toml", tmp_path / "b.toml"):
        path.write_text("")
    environ = {"HOME": str(tmp_path), "GUA_SETTINGS": str(tmp_path / "a.toml")}
    assert settings_file(tmp_path / "b.toml", environ) == tmp_path / "b.toml"
    assert settings_file(None, environ) == tmp_path / "a.toml"
    assert settings_file(None, {"HOME": str(tmp_path)}) == own
    assert settings_file(None, {}) is None


@pytest.mark.parametrize("key", ["daemon_interval", "nvml_deadline"])
def test_a_wait_of_more_than_a_day_is_refused(key: str) -> None:
    with pytest.raises(ConfigError, match="too long; write 24h or less"):
        load_settings(environ={f"GUA_{key}".upper(): "25h"})


MODELS = """
[rule]
held_mb = 200

[[rule.model]]
match = "*T4*"
active_util_pct = 3

[[rule.model]]
match = "*"
held_mb = 50
long_idle = "1h"
"""


def test_a_models_rule_is_the_hosts_rule_with_what_it_says_itself(tmp_path: Path) -> None:
    settings = load(tmp_path, MODELS)
    host = replace(DEFAULT_RULE, held_mb=200)
    assert settings.rule == settings.rules.default == host
    assert settings.rules.models == (
        ModelRule("*T4*", replace(host, active_util_pct=3)),
        ModelRule("*", replace(host, held_mb=50, long_idle_s=3600)),
    )


def test_what_a_models_rule_leaves_out_follows_the_environment_too(tmp_path: Path) -> None:
    first = load(tmp_path, MODELS, {"GUA_RULE_HELD_MB": "300"}).rules.models[0]
    assert (first.rule.held_mb, first.rule.active_util_pct) == (300, 3)


def test_a_misspelt_variable_is_named_with_the_right_one_and_others_are_left_alone(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^GUA_DAEMON_INTERVALL: no such variable; GUA_DAEMON_INTERVAL is"):
        load(tmp_path, environ={"GUA_DAEMON_INTERVALL": "1s"})
    assert load(tmp_path, environ={"GUA_NVML_SCENE": "/x", "GUA_DB": "/y"}) == load(tmp_path)
