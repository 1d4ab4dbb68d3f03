"""Settings of the agent: one table of keys, from which the parser, help text and documentation come.

Precedence: flag, then environment (`GUA_SECTION_KEY`), then settings file (TOML), then default. A file that was
named must be there; `/etc/gua/agent.toml` and `~/.gua/agent.toml` are read where they are (the first one only).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Optional

from gua.errors import ConfigError, UsageError
from gua.model import Rule
from gua.units import parse_duration_ms

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SYSTEM_SETTINGS = Path("/etc/gua/agent.toml")


class Kind(Enum):
    """What a key holds. The value says how to write it."""

    DURATION = 'a duration such as "30s", "10m", "90d"'
    PERCENT = "a whole number from 1 to 100"
    MEMORY_MB = "a whole number of MiB, 0 or more"
    FLAG = "true or false"
    TEXT = "a text"
    PATH = "an absolute path or one that begins with ~/"


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

# A tick stands for its whole interval: a longer one would tell days by a single look.
_MAXIMUM_MS = {"daemon.interval": 86_400_000, "nvml.deadline": 86_400_000}
_MINIMUM_MS = {"daemon.interval": 100, "nvml.deadline": 100, "store.raw_retention": 3_600_000, "rule.long_idle": 1_000}


@dataclass(frozen=True)
class Settings:
    """The settings in force. file: the settings file that was read, None when there was none."""

    scheduler: Optional[str]
    interval_ms: int
    nvml_deadline_ms: int
    rule: Rule
    trust_pid_namespace: bool
    store_path: Optional[Path]
    raw_retention_ms: int
    user_retention_ms: int
    file: Optional[Path]


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
    values = {key.path: _effective(key, chosen, in_file, environ, overrides or {}) for key in KEYS}
    return Settings(
        scheduler=values["host.scheduler"],
        interval_ms=values["daemon.interval"],
        nvml_deadline_ms=values["nvml.deadline"],
        rule=_rule(values),
        trust_pid_namespace=values["identity.trust_pid_namespace"],
        store_path=values["store.path"],
        raw_retention_ms=values["store.raw_retention"],
        user_retention_ms=values["store.user_retention"],
        file=chosen,
    )


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
    if key.default is None:
        return "not set"
    return f'"{key.default}"' if isinstance(key.default, str) else str(key.default).lower()


def _rule(values: Mapping[str, Any]) -> Rule:
    return Rule(
        active_util_pct=values["rule.active_util_pct"],
        held_mb=values["rule.held_mb"],
        unattributed_mb=values["rule.unattributed_mb"],
        unattributed_v1_mb=values["rule.unattributed_v1_mb"],
        long_idle_s=values["rule.long_idle"] // 1000,
    )


def _effective(
    key: Key,
    file: Optional[Path],
    in_file: Mapping[str, Any],
    environ: Mapping[str, str],
    overrides: Mapping[str, tuple[str, str]],
) -> Any:
    if key.path in overrides:
        flag, text = overrides[key.path]
        return _parse_text(key, text, flag)
    if key.variable in environ:
        return _parse_text(key, environ[key.variable], key.variable)
    if key.path in in_file:
        return _parse(key, in_file[key.path], f"{file}: [{key.section}] {key.name}")
    return None if key.default is None else _parse(key, key.default, key.path)


def _read_file(path: Path) -> dict[str, Any]:
    """Key path -> value as written. Raises ConfigError for what is no TOML, and for every key we do not know."""
    try:
        with path.open("rb") as file:
            document = tomllib.load(file)
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read: {exc.strerror}; it should be readable by everybody") from exc
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{path}: not TOML: {exc}; texts need quotes there") from exc
    known = {key.path for key in KEYS}
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


def _parse_text(key: Key, text: str, where: str) -> Any:
    """The value of a key that comes as text (flag, environment), where numbers and flags have no type of their own."""
    value: Any = text.strip()
    if key.kind is Kind.FLAG:
        value = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}.get(value.lower(), text)
    elif key.kind in (Kind.PERCENT, Kind.MEMORY_MB) and value.isascii() and value.isdigit():
        value = int(value)
    return _parse(key, value, where)


def _parse(key: Key, value: Any, where: str) -> Any:
    parsed = _parsers[key.kind](value)
    if parsed is None:
        raise ConfigError(f"{where}: {value!r} does not fit; write {key.kind.value}")
    minimum_ms = _MINIMUM_MS.get(key.path)
    if minimum_ms is not None and parsed < minimum_ms:
        raise ConfigError(f"{where}: {value!r} is too short; write {minimum_ms}ms or more")
    maximum_ms = _MAXIMUM_MS.get(key.path)
    if maximum_ms is not None and parsed > maximum_ms:
        raise ConfigError(f"{where}: {value!r} is too long; write {maximum_ms // 3_600_000}h or less")
    return parsed


def _parse_duration(value: Any) -> Optional[int]:
    try:
        return parse_duration_ms(value) if isinstance(value, str) else None
    except UsageError:
        return None


def _parse_percent(value: Any) -> Optional[int]:
    return value if type(value) is int and 1 <= value <= 100 else None


def _parse_memory(value: Any) -> Optional[int]:
    return value if type(value) is int and 0 <= value < 1 << 31 else None


def _parse_path(value: Any) -> Optional[Path]:
    if not isinstance(value, str) or not value.startswith(("/", "~/")):
        return None
    return Path(value).expanduser()


# Each gives None for a value that is not of its kind.
_parsers: Mapping[Kind, Any] = {
    Kind.DURATION: _parse_duration,
    Kind.PERCENT: _parse_percent,
    Kind.MEMORY_MB: _parse_memory,
    Kind.FLAG: lambda value: value if isinstance(value, bool) else None,
    Kind.TEXT: lambda value: value if isinstance(value, str) and value else None,
    Kind.PATH: _parse_path,
}
