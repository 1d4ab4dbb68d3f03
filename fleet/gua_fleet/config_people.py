"""The parts of `gua-fleet.yml` about people: the user map and the excuses."""

from __future__ import annotations

from datetime import date, timedelta, tzinfo

from gua.errors import UsageError
from gua.units import parse_time_ms
from gua_fleet.config_yaml import Node
from gua_fleet.people import Excuse, UserMap

EXCUSE_KEYS = ("user", "host", "process", "card", "until", "reason")
_WHO_OR_WHAT = EXCUSE_KEYS[:4]
# Names that mean somebody else on every host.
_LOCAL = ("unknown", "unattributed")


def read_users(node: Node) -> UserMap:
    """`person: [name, name@host, ...]`. Raises ConfigError for a name that would be two people."""
    owners: dict[str, Node] = {}
    aliases: dict[str, str] = {}
    for person, names in node.entries(None, "people").items():
        for name in names.items("names") if isinstance(names.value, list) else [names]:
            alias = _alias(name)
            if alias in owners:
                first = owners[alias]
                raise name.place.error(
                    f"{alias} is already {aliases[alias]} (line {first.place.line}); keep one of them"
                )
            owners[alias], aliases[alias] = name, person
    for alias, person in aliases.items():
        if aliases.get(person, person) != person:
            raise owners[alias].place.error(f"{person} is itself a name of {aliases[person]}; name that person here")
    return UserMap(aliases)


def _alias(node: Node) -> str:
    name = node.text.strip()
    if isinstance(node.value, dict | list) or not name:
        raise node.place.error("must be a name as the report has it, such as alice, uid:1001@gpu03 or container:0a1b*")
    if (name in _LOCAL or name.startswith("uid:")) and "@" not in name:
        raise node.place.error(
            f"{name} is somebody else on every host; write {name}@HOST (or {name}@* where it is not)"
        )
    return name


def read_excuses(node: Node, zone: tzinfo | None) -> tuple[Excuse, ...]:
    """The list of excuses. zone: where `until` has no offset, None for UTC. Raises ConfigError."""
    return tuple(_excuse(item, zone) for item in node.items("excuses"))


def _excuse(node: Node, zone: tzinfo | None) -> Excuse:
    entries = node.entries(EXCUSE_KEYS, "an excuse")
    texts: dict[str, str] = {}
    for name, entry in entries.items():
        if isinstance(entry.value, dict | list) or not entry.text.strip():
            raise entry.place.error("must be a text")
        texts[name] = entry.text.strip()
    if "reason" not in texts:
        raise node.place.error("has no reason; write `reason: why these cards may be idle`")
    if not any(name in texts for name in _WHO_OR_WHAT):
        raise node.place.error(f"would excuse everything; write at least one of {', '.join(_WHO_OR_WHAT)}")
    until_ms = _until_ms(entries["until"], zone) if "until" in entries else None
    patterns = {name: texts.get(name) for name in _WHO_OR_WHAT}
    return Excuse(texts["reason"], **patterns, until_ms=until_ms)


def _until_ms(node: Node, zone: tzinfo | None) -> int:
    """A day counts to its end, a time to itself."""
    text = node.text.strip()
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    try:
        moment = (day + timedelta(days=1)).isoformat() if day else text
        return parse_time_ms(moment, zone) if zone else parse_time_ms(moment)
    except (UsageError, OverflowError) as exc:
        raise node.place.error(f"{text!r} is no day (2026-12-31) and no time (2026-12-31T18:00)") from exc
