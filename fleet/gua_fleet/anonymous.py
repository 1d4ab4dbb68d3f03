"""A report that may be shown to anyone: the same figures, and no person's name in it. Pure.

Users become `user 1`, `user 2`, ..., most idle-held first. Whatever a person or a host wrote freely (holds, processes,
mount hints, details, texts of findings) goes, because a name may be in any of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from gua_fleet.model import Document

# Parts of names that are shorter than this are in half of all host names: there they count as whole words only.
_TELLING = 3
_FINDING_ID = re.compile(r"[a-z][a-z0-9_]{0,39}")
# These users are nobody.
_NOBODY = frozenset({"unknown", "unattributed"})


def without_names(document: Document) -> Document:
    """The document with every name of a person replaced or left out; sums and every host stay.

    A host or group whose name holds part of a person's name becomes `host 3`, `group 1`.
    """
    users = _user_names(document["users"])
    parts = _telling_parts(users)
    hosts = _replaced((host["name"] for host in document["hosts"]), "host", parts)
    groups = _replaced((group["name"] for group in document["groups"]), "group", parts)
    return {
        **document,
        "hosts": [host | {"name": hosts[host["name"]], "detail": None} for host in document["hosts"]],
        "apart": [_at(row, hosts) for row in document["apart"]],
        "groups": [group | {"name": groups[group["name"]]} for group in document["groups"]],
        "users": [_nameless(user, users, hosts) for user in document["users"]],
        "free": [_at(row, hosts) for row in document["free"]],
        "scheduler_idle": [
            _at(row, hosts) | ({"scheduler": "a scheduler"} if _tells(row["scheduler"], parts) else {})
            for row in document["scheduler_idle"]
        ],
        "stale": [_at(row, hosts) for row in document["stale"]],
        "not_measurable": [
            _at(row, hosts) | {"users": [users.get(user, "a user") for user in row["users"]]}
            for row in document["not_measurable"]
        ],
        "holds": [],
        "findings": [_finding(finding, hosts, parts) for finding in document["findings"]],
        "names": False,
    }


def _user_names(users: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """{name: what it becomes}; those that are nobody stay what they are."""
    ordered = sorted(users, key=lambda user: (-user["idle_held_card_s"], -user["card_s"], user["user"]))
    names: dict[str, str] = {}
    for user in ordered:
        nobody = user["user_source"] in _NOBODY
        names[user["user"]] = f"{user['user_source']} {len(names) + 1}" if nobody else f"user {len(names) + 1}"
    return names


def _telling_parts(users: Iterable[str]) -> tuple[str, ...]:
    """Parts of names, by which a host or group may give a person away."""
    words = {word for user in users for word in re.split(r"[\W_]+", user.partition("@")[0].casefold())}
    return tuple(sorted(word for word in words if len(word) > 1 and not word.isdecimal()))


def _tells(name: str, parts: tuple[str, ...]) -> bool:
    folded = name.casefold()
    words = re.split(r"[\W_]+", folded)
    return any(part in (folded if len(part) >= _TELLING else words) for part in parts)


def _replaced(names: Iterable[str], word: str, parts: tuple[str, ...]) -> dict[str, str]:
    return {name: f"{word} {place}" if _tells(name, parts) else name for place, name in enumerate(names, 1)}


def _at(row: Mapping[str, Any], hosts: Mapping[str, str]) -> dict[str, Any]:
    return {**row, "host": hosts[row["host"]]}


def _nameless(user: Mapping[str, Any], users: Mapping[str, str], hosts: Mapping[str, str]) -> dict[str, Any]:
    return {**user, "user": users[user["user"]], "uid": None, "hosts": [hosts[name] for name in user["hosts"]]}


def _finding(finding: Mapping[str, Any], hosts: Mapping[str, str], parts: tuple[str, ...]) -> dict[str, Any]:
    """Its id says what it is about; its text was written by a host, or lists hosts."""
    known = _FINDING_ID.fullmatch(finding["id"]) and not _tells(finding["id"], parts)
    name = finding["id"] if known else "finding"
    host = None if finding["host"] is None else hosts[finding["host"]]
    return {**finding, "id": name, "host": host, "text": name.replace("_", " ")}
