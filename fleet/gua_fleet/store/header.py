"""What a host's export says of itself before its rows. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gua.errors import UsageError
from gua.units import parse_time_ms
from gua_fleet.store.shape import NotBelieved

_LONGEST = 200


@dataclass(frozen=True)
class Header:
    """store_id is empty where nothing was ever recorded. Revisions; times in Unix UTC milliseconds.

    raw_since_ms: raw ticks of before are gone there; None: none are.
    """

    store_id: str
    machine_id: str
    boot_id: str
    hostname: str
    agent_version: str
    since_rev: int
    until_rev: int
    newest_rev: int
    oldest_whole_rev: int
    users_since_slot: int
    raw_since_ms: int | None
    generated_ms: int


def believed_header(header: Mapping[str, Any], asked_rev: int) -> Header:
    """The header of the export that was asked for with this revision. Raises NotBelieved."""
    since_rev, until_rev = _number(header, "since_rev"), _number(header, "until_rev")
    if since_rev != asked_rev or until_rev < asked_rev:
        raise NotBelieved("its export is of other revisions than were asked for")
    try:
        generated_ms = parse_time_ms(header["generated_at"])
        raw_since = header["raw_since"]
        raw_since_ms = None if raw_since is None else parse_time_ms(raw_since)
    except (UsageError, KeyError, TypeError, AttributeError) as exc:
        raise NotBelieved("its export does not say when it was made") from exc
    return Header(
        store_id=_word(header, "store_id"),
        machine_id=_word(header, "machine_id"),
        boot_id=_word(header, "boot_id"),
        hostname=_word(header, "hostname"),
        agent_version=_word(header, "agent_version"),
        since_rev=since_rev,
        until_rev=until_rev,
        newest_rev=_number(header, "newest_rev"),
        oldest_whole_rev=_number(header, "oldest_whole_rev"),
        users_since_slot=_number(header, "users_since_slot"),
        raw_since_ms=raw_since_ms,
        generated_ms=generated_ms,
    )


def _number(header: Mapping[str, Any], name: str) -> int:
    number = header.get(name)
    if name == "oldest_whole_rev" and number is None:  # no tick is left there
        number = 0
    if type(number) is not int or not 0 <= number < 1 << (31 if name == "users_since_slot" else 53):
        raise NotBelieved(f"its export's {name} cannot be")
    return number


def _word(header: Mapping[str, Any], name: str) -> str:
    word = header.get(name)
    if not isinstance(word, str) or len(word) > _LONGEST or not word.isprintable():
        raise NotBelieved(f"its export's {name} cannot be")
    return word
