"""What `gua-fleet config` shows: the settings in force, and where each is from. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gua.units import to_iso
from gua_fleet.config import KEYS, FleetConfig, Key
from gua_fleet.people import Excuse
from gua_fleet.render import Cell
from gua_fleet.show import one_line
from gua_fleet.store.place import without_password
from gua_fleet.view import Section, View

SCHEMA = "gua.fleet-config/1"
_HEADERS = ("setting", "value", "from")
_COLUMNS = ("setting", "value", "source", "where")
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms"))
_PATTERNS = ("user", "host", "process", "card")


def show_view(config: FleetConfig, given: Mapping[str, Any]) -> View:
    """All that is in force. given: setting -> its value, for those that the command line gives."""
    rows = [*_rows(config, given), *_people_rows(config)]
    return _view(config, given, (), [Section("", _HEADERS, rows)])


def check_view(config: FleetConfig, given: Mapping[str, Any], now_ms: int) -> View:
    """That it is right, and which excuses are over at `now_ms`."""
    return _view(config, given, _verdict(config, now_ms), [])


def _view(config: FleetConfig, given: Mapping[str, Any], lines: tuple[str, ...], sections: list[Section]) -> View:
    settings = {key.field: _entry(config, key, given) for key in KEYS}
    document = {
        "schema": SCHEMA,
        "file": None if config.file is None else str(config.file),
        "settings": settings,
        "users": [{"person": person, "names": names} for person, names in _people(config).items()],
        "excuses": [_excuse(excuse) for excuse in config.excuses],
        "warnings": list(config.warnings),
    }
    flat = [{"setting": name, **entry, "value": _flat(entry["value"])} for name, entry in settings.items()]
    return View(document, lines=lines, sections=sections, columns=_COLUMNS, flat=flat)


def _entry(config: FleetConfig, key: Key, given: Mapping[str, Any]) -> dict[str, Any]:
    """value: None where the command decides. where: file and line, or the variable; None for a default."""
    value, where = _in_force(config, key, given)
    if where == key.variable:
        source = "environment"
    elif key.name in given:
        source = "option"
    else:
        source = "default" if where is None else "file"
    return {"value": _plain(value), "source": source, "where": where}


def _in_force(config: FleetConfig, key: Key, given: Mapping[str, Any]) -> tuple[Any, str | None]:
    if key.name in given:
        return given[key.name], key.option
    return config[key.name], config.origins.get(key.name)


def _plain(value: Any) -> Any:
    """As JSON has it, without a password."""
    if isinstance(value, tuple):
        return [without_password(part) for part in value]
    return without_password(value) if isinstance(value, str) else value


def _flat(value: Any) -> Any:
    return " ".join(value) if isinstance(value, list) else value


def _excuse(excuse: Excuse) -> dict[str, Any]:
    patterns = {name: getattr(excuse, name) for name in _PATTERNS}
    return {**patterns, "until": None if excuse.until_ms is None else to_iso(excuse.until_ms), "reason": excuse.reason}


def _people(config: FleetConfig) -> dict[str, list[str]]:
    """Person -> the names that hosts use."""
    people: dict[str, list[str]] = {}
    for name, person in config.users.aliases.items():
        people.setdefault(person, []).append(name)
    return people


def _verdict(config: FleetConfig, now_ms: int) -> tuple[str, ...]:
    if config.file is None:
        return ("no gua-fleet.yml found; the defaults and the environment are right",)
    names, excuses = len(config.users.aliases), len(config.excuses)
    mapped = f"{names} name{'' if names == 1 else 's'} mapped, {excuses} excuse{'' if excuses == 1 else 's'}"
    over = [excuse for excuse in config.excuses if excuse.until_ms is not None and excuse.until_ms <= now_ms]
    told = (f"over since {to_iso(excuse.until_ms or 0)}: {one_line(excuse.reason)}" for excuse in over)
    return (f"{config.file}: right; {mapped}", *told)


def _rows(config: FleetConfig, given: Mapping[str, Any]) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for key in KEYS:
        value, where = _in_force(config, key, given)
        rows.append((key.name, _shown(value, key.default), where or "default"))
    return rows


def _people_rows(config: FleetConfig) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = [
        (f"user: {person}", ", ".join(names), str(config.file)) for person, names in _people(config).items()
    ]
    for excuse in config.excuses:
        until = "" if excuse.until_ms is None else f" until {to_iso(excuse.until_ms)}"
        parts = [f"{name} {pattern}" for name in _PATTERNS if (pattern := getattr(excuse, name))]
        rows.append((f"excuse: {', '.join(parts)}", f"{excuse.reason}{until}", str(config.file)))
    return rows


def _duration(seconds: float) -> str:
    """As it is written in the file: `30d`, `90s`, `1500ms`."""
    ms = round(seconds * 1000)
    size, unit = next((size, unit) for size, unit in _UNITS if ms % size == 0)
    return f"{ms // size}{unit}"


def _shown(value: Any, default: str) -> str:
    if value is None or value == ():
        return default
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return _duration(value)
    return ", ".join(value) if isinstance(value, tuple) else without_password(str(value))
