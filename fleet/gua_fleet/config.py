"""Settings of the controller: one table of keys, from which the parser, help and documentation come.

Precedence: flag, then environment (`GUA_FLEET_KEY`), then `gua-fleet.yml`, then default. Flags are put over the rest in
`gua_fleet.cli.options`; here is the rest. The file also holds what no flag can say: who is who, and who is excused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from gua.errors import ConfigError, UsageError
from gua.report.zones import find_zone, local_zone_name
from gua.units import parse_duration_ms
from gua_fleet.errors import StoreUnusable
from gua_fleet.people import Excuse, UserMap
from gua_fleet.store.place import find_place, is_url, without_password

FILE_NAME = "gua-fleet.yml"
FORMATS = ("table", "md", "csv", "json", "html", "mail")


@dataclass(frozen=True)
class FleetConfig:
    """The settings in force, flags aside.

    hosts: inventories, paths made absolute; empty: none named. timeout_s: deadline per host in seconds. since: a
    duration or time, as `--since` takes it. tz, width, rules: None where the command decides. names: False leaves
    people's names out. store: path or URL; None: the default file. file: what was read, None where there is none.
    origins: key -> where its value is from.
    """

    hosts: tuple[str, ...] = ()
    limit: str | None = None
    vault_password_file: str | None = None
    timeout_s: float = 20.0
    forks: int = 32
    since: str = "7d"
    tz: str | None = None
    format: str = "table"
    width: int | None = None
    names: bool = True
    allow_missing: int = 0
    rules: str | None = None
    store: str | None = None
    raw_retention_s: float = 30 * 86_400.0
    users: UserMap = field(default_factory=UserMap)
    excuses: tuple[Excuse, ...] = ()
    file: Path | None = None
    warnings: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, key: str) -> Any:
        """A setting by its name in the file (`timeout`)."""
        return getattr(self, _FIELDS.get(key, key))


class _Bad(ValueError):
    """A value that its key does not take; the message says what it takes."""


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _Bad("a text")
    return value


def _paths(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    if not values or not all(isinstance(item, str) and item.strip() for item in values):
        raise _Bad("an inventory's path, or a list of them")
    return tuple(values)


def _seconds(value: Any) -> float:
    try:
        return parse_duration_ms(str(value)) / 1000
    except UsageError as exc:
        raise _Bad('a duration such as "20s"') from exc


def _number(least: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        text = str(value).strip()
        if isinstance(value, bool) or not (text.isascii() and text.isdecimal()) or int(text) < least:
            raise _Bad(f"a whole number, {least} or more")
        return int(text)

    return parse


def _flag(value: Any) -> bool:
    known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if str(value).strip().lower() not in known:
        raise _Bad("true or false")
    return known[str(value).strip().lower()]


def _zone(value: Any) -> str:
    if not isinstance(value, str) or find_zone(value) is None:
        raise _Bad("a time zone that this machine knows, such as Europe/Berlin or UTC")
    return value


def _format(value: Any) -> str:
    if value not in FORMATS:
        raise _Bad(f"one of {', '.join(FORMATS)}")
    return str(value)


def _store(value: Any) -> str:
    text = _text(value)
    try:
        find_place(text)
    except StoreUnusable as exc:
        raise _Bad("a file's path, or postgresql://USER@HOST/DATABASE") from exc
    return text


@dataclass(frozen=True)
class Key:
    """One setting, in the file and as `GUA_FLEET_NAME`. parse raises _Bad, with the words for what it takes."""

    name: str
    parse: Callable[[Any], Any]
    default: str
    meaning: str

    @property
    def variable(self) -> str:
        return f"GUA_FLEET_{self.name}".upper()

    @property
    def field(self) -> str:
        """Its name in FleetConfig and in documents, with the unit (`timeout_s`)."""
        return _FIELDS.get(self.name, self.name)

    @property
    def option(self) -> str:
        return f"--{self.name}".replace("_", "-")


KEYS: tuple[Key, ...] = (
    Key("hosts", _paths, "see below", "the inventory, or a list of inventories; paths count from this file"),
    Key("limit", _text, "all hosts", "an Ansible host pattern: only hosts that match it"),
    Key("vault_password_file", _text, "none", "the file (or program) that gives the vault's password"),
    Key("timeout", _seconds, "20s", "hard deadline per host"),
    Key("forks", _number(1), "32", "hosts asked at once"),
    Key("allow_missing", _number(0), "0", "exit 0 although up to so many hosts failed"),
    Key("since", _text, "7d", "where a report's window begins: a duration back from its end, or a time"),
    Key("tz", _zone, "this machine's", "time zone of a report, and of dates in this file"),
    Key("format", _format, "table", "a report's form"),
    Key("width", _number(40), "the terminal's", "columns of a report's tables"),
    Key("names", _flag, "true", "false leaves the names of people out of a report"),
    Key(
        "rules",
        _text,
        "the rule most hosts use",
        "the rule that every host's history is judged by, as `--rules` takes it; `own`: each host by its own",
    ),
    Key("store", _store, "~/.local/share/gua/fleet.db", "the fleet's store: a file, or a URL of PostgreSQL"),
    Key("raw_retention", _seconds, "30d", "how long single ticks are kept in the store"),
)
_BY_NAME = {key.name: key for key in KEYS}
_FIELDS = {"timeout": "timeout_s", "raw_retention": "raw_retention_s"}
_PATHS = {"hosts", "vault_password_file", "store"}
FILE_ONLY = {"users": "names that hosts use for a person", "excuses": "idle cards that nobody need be asked about"}


def load_config(
    named: str | None = None, beside: Sequence[Path] = (), environ: Mapping[str, str] = os.environ
) -> FleetConfig:
    """The settings in force but for flags.

    named: what `--config` gave. beside: folders of the inventories in use, where a file is looked for too.
    Raises ConfigError naming file, line and key, or the variable, and how to write it.
    """
    file, warnings = _find(named, beside, environ)
    found, origins = _from_file(file) if file is not None else ({}, {})
    for key in KEYS:
        if environ.get(key.variable):
            found[key.name] = _parsed(key, environ[key.variable], partial(_wrong, key))
            origins[key.name] = key.variable
    settings = {_FIELDS.get(name, name): value for name, value in found.items()}
    return FleetConfig(**settings, file=file, warnings=warnings, origins=origins)


def _from_file(file: Path) -> tuple[dict[str, Any], dict[str, str]]:
    from gua_fleet.config_people import read_excuses, read_users  # YAML costs time that most commands need not spend
    from gua_fleet.config_yaml import read_yaml

    entries = read_yaml(file).entries((*_BY_NAME, *FILE_ONLY), "settings")
    found = {
        name: _parsed(_BY_NAME[name], node.plain(), node.place.error)
        for name, node in entries.items()
        if name in _BY_NAME and node.value is not None
    }
    for name in _PATHS & found.keys():
        value = found[name]
        found[name] = (
            tuple(_absolute(part, file) for part in value) if isinstance(value, tuple) else _absolute(value, file)
        )
    if "users" in entries:
        found["users"] = read_users(entries["users"])
    if "excuses" in entries:
        found["excuses"] = read_excuses(entries["excuses"], find_zone(found.get("tz") or local_zone_name()))
    return found, {name: f"{file}:{node.place.line}" for name, node in entries.items() if name in found}


def _parsed(key: Key, value: Any, error: Callable[[str], ConfigError]) -> Any:
    try:
        return key.parse(value)
    except _Bad as exc:
        raise error(f"{without_password(repr(value))} does not do; write {exc}") from exc


def _wrong(key: Key, problem: str) -> ConfigError:
    return ConfigError(f"{key.variable}: {problem}")


def _absolute(name: str, file: Path) -> str:
    """A path counts from the file that names it; `host1,host2,` and a URL are no paths."""
    return name if "," in name or is_url(name) else str(file.absolute().parent / Path(name).expanduser())


def _find(named: str | None, beside: Sequence[Path], environ: Mapping[str, str]) -> tuple[Path | None, tuple[str, ...]]:
    """The file that counts, and what to tell about files that do not. Raises ConfigError: a named one is not there."""
    for given, why in ((named, "--config"), (environ.get("GUA_FLEET_CONFIG"), "GUA_FLEET_CONFIG")):
        if given:
            file = Path(given).expanduser()
            if not file.is_file():
                raise ConfigError(f"{file}: there is no such settings file ({why}); name one that is there, or none")
            return file, ()
    warnings: list[str] = []
    for folder in (Path(), *beside, _own_folder(environ)):
        file = folder / FILE_NAME
        if not file.is_file():
            continue
        if folder.stat().st_mode & 0o002:  # as Ansible does with ansible.cfg: anybody may have put it there
            warnings.append(f"{file} is not read: everybody may write to its directory; use --config to read it")
            continue
        return file, tuple(warnings)
    return None, tuple(warnings)


def _own_folder(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "gua-fleet"
