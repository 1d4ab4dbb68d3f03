"""A report that may be shown to anyone: the same figures, and no person's name in it. Pure.

Users become `user 1`, `user 2`, ..., most idle-held first. Whatever a person or a host wrote freely (holds, processes,
mount hints, details, texts of findings) goes, because a name may be in any of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gua_fleet.model import Document, HostResult
from gua_fleet.present import CardNow, Holder, HostNow

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
            _at(row, hosts) | {"scheduler": _scheduler(row["scheduler"], parts)} for row in document["scheduler_idle"]
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


def compare_without_names(document: Document) -> Document:
    """A `gua.fleet-compare/1` with every name of a person replaced, the same person's alike in both windows."""
    users = _user_names(map(_both_windows, document["users"]))
    parts = _telling_parts(users)
    hosts = _replaced((host["name"] for host in document["hosts"]), "host", parts)
    return {
        **document,
        "hosts": [
            host | {"name": hosts[host["name"]], "sources": {side: _mute(at) for side, at in host["sources"].items()}}
            for host in document["hosts"]
        ],
        "users": [user | {"user": users[user["user"]]} for user in document["users"]],
        "findings": [_finding(finding | {"host": None}, hosts, parts) for finding in document["findings"]],
        "names": False,
    }


def _both_windows(user: Mapping[str, Any]) -> dict[str, Any]:
    states = [user[side]["card_s"] for side in ("this", "before")]
    return {
        **user,
        "idle_held_card_s": sum(one["idle-held"] for one in states),
        "card_s": sum(sum(one.values()) for one in states),
    }


def _mute(source: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return None if source is None else {**source, "detail": None}


def instead_of(users: Sequence[str], hosts: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """What users become, in the order given, and hosts whose name holds part of one's: {name: what it becomes}."""
    parts = _telling_parts(users)
    return {user: f"user {place}" for place, user in enumerate(users, 1)}, _replaced(hosts, "host", parts)


# What a document of a host may hold that no person wrote. Whatever else there is, now or in agents to come, goes.
_HOST_KEYS = ("store_id", "boot_id", "machine_id", "agent_version", "driver_version")
_CARD_KEYS = ("uuid", "index", "name", "memory_total_mb", "mig")
_NOW_KEYS = ("at", "state", "reason", "util_pct", "memory_used_mb", "since")
_OBSERVATION_KEYS = ("schema", "observed_at", "status", "stored", "store_failed")


@dataclass(frozen=True)
class Mask:
    """What names become, for the fleet now. users, hosts: {name: what it becomes}. parts: of names, as they may stand
    in a word. Processes and details go.
    """

    users: Mapping[str, str]
    hosts: Mapping[str, str]
    parts: tuple[str, ...] = ()

    def host(self, host: HostNow) -> HostNow:
        return replace(
            host,
            name=self.hosts[host.name],
            detail=None,
            cards=tuple(map(self.card, host.cards)),
            scheduler=self.scheduler(host.scheduler),
            twin_of=None if host.twin_of is None else self.hosts[host.twin_of],
        )

    def scheduler(self, name: str | None) -> str | None:
        return _scheduler(name, self.parts)

    def card(self, card: CardNow) -> CardNow:
        return replace(card, host=self.hosts[card.host], holders=tuple(map(self.holder, card.holders)))

    def holder(self, holder: Holder) -> Holder:
        return replace(holder, user=self.users[holder.user], process="process", pid=None)

    def result(self, result: HostResult, host: HostNow) -> HostResult:
        """The host's observation as `host`, which is masked already, shows it; what it wrote freely goes."""
        place = replace(result.host, name=host.name)
        if result.document is None:
            return replace(result, host=place, detail=None)
        said, shown_cards = result.document, {(card.uuid, card.index): card for card in host.cards}
        document = {
            **_only(said, _OBSERVATION_KEYS),
            "stored_reason": None,
            # A reason may be in the words of a board, wherever a host puts it
            "push": {"mode": said["push"]["mode"], "result": said["push"]["result"].partition(":")[0]},
            "host": {
                **_only(said["host"], _HOST_KEYS),
                "hostname": host.name,
                "scheduler": self.scheduler(said["host"]["scheduler"]),
            },
            "errors": [],
            "cards": [
                _nameless_card(card, shown_cards[card["uuid"], card["index"]])
                for card in said["cards"]
                if (card["uuid"], card["index"]) in shown_cards
            ],
        }
        return replace(result, host=place, detail=None, document=document)


def _only(document: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    return {key: document[key] for key in keys if key in document}


def _scheduler(name: str | None, parts: tuple[str, ...]) -> str | None:
    return "a scheduler" if name is not None and _tells(name, parts) else name


def _nameless_card(card: Mapping[str, Any], shown_card: CardNow) -> dict[str, Any]:
    holders = [
        {"user": one.user, "process": one.process, "pid": 0, "memory_mb": one.memory_mb, "type": "compute"}
        for one in shown_card.holders
    ]
    return {**_only(card, _CARD_KEYS), "now": {**_only(card["now"], _NOW_KEYS), "holders": holders}}


def mask_of(hosts: Sequence[HostNow]) -> Mask:
    """Who holds most cards becomes `user 1`; a host whose name holds part of a person's becomes `host 3`."""
    held: dict[str, set[tuple[str, str]]] = {}
    for host in hosts:
        for card in host.cards:
            for holder in card.holders:
                held.setdefault(holder.user, set()).add((card.host, card.uuid))
    ordered = sorted(held, key=lambda user: (-len(held[user]), user))
    users = {user: f"user {place}" for place, user in enumerate(ordered, 1)}
    parts = _telling_parts(held)
    return Mask(users, _replaced((host.name for host in hosts), "host", parts), parts)


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
