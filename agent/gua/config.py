"""Settings of the agent: one table of keys, from which the parser, help text and documentation come.

Precedence: flag, then environment (`GUA_SECTION_KEY`), then settings file (TOML), then default. A file that was
named must be there; `/etc/gua/agent.toml` and `~/.gua/agent.toml` are read where they are (the first one only).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from gua.config_values import Kind, parse_value, typed
from gua.errors import ConfigError
from gua.model import Rule
from gua.rulebook import ModelRule, RuleBook
from gua.text import shown

DEFAULT = "default"
SYSTEM_SETTINGS = Path("/etc/gua/agent.toml")


@dataclass(frozen=True)
class Key:
    """One setting. default: as one would write it in the file; None where "not set" is the default."""

    section: str
    name: str
    kind: Kind
    default: Any
    meaning: str

    @property
    def path(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        """The environment variable, `GUA_DAEMON_INTERVAL`."""
        return f"GUA_{self.section}_{self.name}".upper()


KEYS: tuple[Key, ...] = (
    Key("host", "scheduler", Kind.TEXT, None, "scheduler that gives out this host's cards (slurm, kubernetes)"),
    Key("daemon", "interval", Kind.DURATION, "30s", "time between two samples"),
    Key("nvml", "deadline", Kind.DURATION, "10s", "how long NVML may take for one sample before it is given up"),
    Key("rule", "active_util_pct", Kind.PERCENT, 10, "utilisation from which a card is active"),
    Key("rule", "held_mb", Kind.MEMORY_MB, 100, "processes that hold more than this hold the card"),
    Key("rule", "unattributed_mb", Kind.MEMORY_MB, 500, "more used memory than this, by nobody listed, holds the card"),
    Key("rule", "unattributed_v1_mb", Kind.MEMORY_MB, 1500, "the same where the driver counts its own reserve as used"),
    Key("rule", "long_idle", Kind.DURATION, "30m", "unbroken idle-held time from which it counts as long"),
    Key("identity", "trust_pid_namespace", Kind.FLAG, False, "believe process ids in a PID namespace that is not ours"),
    Key("store", "path", Kind.PATH, None, "the database"),
    Key("store", "raw_retention", Kind.DURATION, "90d", "how long single samples are kept; sums stay"),
    Key(
        "store",
        "user_retention",
        Kind.DURATION,
        "400d",
        "how long users are named in sums and holds; then they are (expired)",
    ),
)

RULE_KEYS = tuple(key for key in KEYS if key.section == "rule")
# What one `[[rule.model]]` may hold: which cards it is for, and the thresholds that differ for them.
MODEL_KEYS = (Key("rule.model", "match", Kind.PATTERN, None, "the cards it is for, by name"), *RULE_KEYS)

_MODELS = "rule.model"
# A tick stands for its whole interval: a longer one would tell days by a single look.
_MAXIMUM_MS = {"daemon.interval": 86_400_000, "nvml.deadline": 86_400_000}
_MINIMUM_MS = {"daemon.interval": 100, "nvml.deadline": 100, "store.raw_retention": 3_600_000, "rule.long_idle": 1_000}


@dataclass(frozen=True)
class Settings:
    """The settings in force. file: the settings file that was read, None when there was none.

    rules: what judges the cards, by model where the file says so.
    """

    scheduler: Optional[str]
    interval_ms: int
    nvml_deadline_ms: int
    rules: RuleBook
    trust_pid_namespace: bool
    store_path: Optional[Path]
    raw_retention_ms: int
    user_retention_ms: int
    file: Optional[Path]

    @property
    def rule(self) -> Rule:
        """The thresholds of every card whose model has none of its own: the run's."""
        return self.rules.default


def load_settings(
    *,
    file: Optional[Path] = None,
    overrides: Optional[Mapping[str, tuple[str, str]]] = None,
    environ: Mapping[str, str] = os.environ,
) -> Settings:
    """The settings in force.

    file: what `--settings` named. overrides: key path -> (flag, its text), {"daemon.interval": ("--interval", "1s")}.
    Raises ConfigError naming file, section and key, or the variable or flag, and how to write it.
    """
    chosen = settings_file(file, environ)
    in_file = {} if chosen is None else _read_file(chosen)
    _refuse_misspelt(environ)
    written = {key: _written(key, chosen, in_file, environ, overrides or {}) for key in KEYS}
    values = {key.path: _meaning(key, value, where) for key, (value, where) in written.items()}
    return Settings(
        scheduler=values["host.scheduler"],
        interval_ms=values["daemon.interval"],
        nvml_deadline_ms=values["nvml.deadline"],
        rules=RuleBook(_rule(values), _model_rules(chosen, in_file.get(_MODELS, []), values)),
        trust_pid_namespace=values["identity.trust_pid_namespace"],
        store_path=values["store.path"],
        raw_retention_ms=values["store.raw_retention"],
        user_retention_ms=values["store.user_retention"],
        file=chosen,
    )


def written_settings(file: Optional[Path], environ: Mapping[str, str] = os.environ) -> Mapping[Key, tuple[Any, str]]:
    """Every key with its value as written, None where it is not set, and where that stands (DEFAULT: nowhere).

    Raises ConfigError for a file that is none, not for a value that is wrong: that is for `load_settings`.
    """
    chosen = settings_file(file, environ)
    in_file = {} if chosen is None else _read_file(chosen)
    return {key: _written(key, chosen, in_file, environ, {}) for key in KEYS}


def settings_file(named: Optional[Path], environ: Mapping[str, str]) -> Optional[Path]:
    """Which settings file counts, or None. Raises ConfigError when one was named and is not there."""
    by_environment = environ.get("GUA_SETTINGS")
    explicit = named or (Path(by_environment) if by_environment else None)
    if explicit is not None:
        if not os.path.isfile(explicit):
            raise ConfigError(f"{explicit}: there is no such settings file; name one that is there, or none")
        return explicit
    home = environ.get("HOME")
    usual = [SYSTEM_SETTINGS] + ([Path(home) / ".gua/agent.toml"] if home else [])
    return next((path for path in usual if os.path.isfile(path)), None)


def describe_default(key: Key) -> str:
    """A key's default as one would write it in the file. Pure."""
    return describe_value(key.default)


def describe_value(value: Any) -> str:
    """A value as one would write it in the file. Pure."""
    if value is None:
        return "not set"
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def _rule(values: Mapping[str, Any]) -> Rule:
    return Rule(
        active_util_pct=values["rule.active_util_pct"],
        held_mb=values["rule.held_mb"],
        unattributed_mb=values["rule.unattributed_mb"],
        unattributed_v1_mb=values["rule.unattributed_v1_mb"],
        long_idle_s=values["rule.long_idle"] // 1000,
    )


def _model_rules(file: Optional[Path], entries: Any, defaults: Mapping[str, Any]) -> tuple[ModelRule, ...]:
    """The `[[rule.model]]` of the file in its order; what one leaves out is as in `[rule]`."""
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ConfigError(f"{file}: rule.model: a list of sections; write [[rule.model]] above each of them")
    return tuple(
        _model_rule(f"{file}: [[rule.model]] number {number}:", entry, defaults)
        for number, entry in enumerate(entries, start=1)
    )


def _model_rule(where: str, entry: Mapping[str, Any], defaults: Mapping[str, Any]) -> ModelRule:
    known = {key.name: key for key in MODEL_KEYS}
    for name in entry:
        if name not in known:
            raise ConfigError(f"{where} {name}: no such key; it may have {', '.join(known)}")
    if "match" not in entry:
        raise ConfigError(f'{where} match is missing; name the cards it is for, such as match = "*T4*"')
    own = {known[name].path: _parse(known[name], value, f"{where} {name}") for name, value in entry.items()}
    return ModelRule(own[f"{_MODELS}.match"], _rule({**defaults, **own}))


def _refuse_misspelt(environ: Mapping[str, str]) -> None:
    """Raise ConfigError for a variable that is nearly one of ours: it would be ignored without a word.

    Only nearly: other variables may begin with GUA_ for reasons of their own.
    """
    variables = {key.variable for key in KEYS}
    sections = tuple(f"GUA_{key.section}_".upper() for key in KEYS)
    for name in sorted(name for name in environ if name.startswith(sections) and name not in variables):
        import difflib  # only where it is needed: start-up counts

        meant = difflib.get_close_matches(name, variables, n=1, cutoff=0.8)
        if meant:
            raise ConfigError(f"{name}: no such variable; {meant[0]} is the one that is read")


def _written(
    key: Key,
    file: Optional[Path],
    in_file: Mapping[str, Any],
    environ: Mapping[str, str],
    overrides: Mapping[str, tuple[str, str]],
) -> tuple[Any, str]:
    """The value of a key as one would write it in the file, and where it stands."""
    if key.path in overrides:
        flag, text = overrides[key.path]
        return typed(key.kind, text), flag
    if key.variable in environ:
        return typed(key.kind, environ[key.variable]), key.variable
    if key.path in in_file:
        return in_file[key.path], f"{file}: [{key.section}] {key.name}"
    return key.default, DEFAULT


def _read_file(path: Path) -> dict[str, Any]:
    """Key path -> value as written. Raises ConfigError for what is no TOML, and for every key we do not know."""
    if sys.version_info >= (3, 11):  # most hosts have no such file, and start sooner
        import tomllib
    else:
        import tomli as tomllib
    try:
        document = tomllib.loads(path.read_bytes().decode("utf-8-sig"))  # some editors begin a file with a mark
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read: {exc.strerror}; it should be readable by everybody") from exc
    except RecursionError as exc:
        raise ConfigError(f"{path}: not settings: nested too deeply; it has sections and keys only") from exc
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{path}: not TOML: {exc}; texts need quotes there") from exc
    known = {key.path for key in KEYS} | {_MODELS}
    values = {}
    for section, entries in document.items():
        for name, value in _entries(path, section, entries).items():
            if f"{section}.{name}" not in known:
                raise ConfigError(f"{path}: [{section}] {name}: no such key; {_known_names(section)}")
            values[f"{section}.{name}"] = value
    return values


def _entries(path: Path, section: str, entries: Any) -> dict[str, Any]:
    sections = sorted({key.section for key in KEYS})
    if not isinstance(entries, dict):
        raise ConfigError(f"{path}: {section}: every key belongs in a section; sections are {', '.join(sections)}")
    if section not in sections:
        raise ConfigError(f"{path}: [{section}]: no such section; sections are {', '.join(sections)}")
    return entries


def _known_names(section: str) -> str:
    return f"this section has {', '.join(key.name for key in KEYS if key.section == section)}"


def _meaning(key: Key, value: Any, where: str) -> Any:
    return None if value is None else _parse(key, value, where)


def _parse(key: Key, value: Any, where: str) -> Any:
    parsed = parse_value(key.kind, value)
    if parsed is None:
        raise ConfigError(f"{where}: {shown(repr(value))} does not fit; write {key.kind.value}")
    minimum_ms = _MINIMUM_MS.get(key.path)
    if minimum_ms is not None and parsed < minimum_ms:
        raise ConfigError(f"{where}: {shown(repr(value))} is too short; write {minimum_ms}ms or more")
    maximum_ms = _MAXIMUM_MS.get(key.path)
    if maximum_ms is not None and parsed > maximum_ms:
        raise ConfigError(f"{where}: {shown(repr(value))} is too long; write {maximum_ms // 3_600_000}h or less")
    return parsed
