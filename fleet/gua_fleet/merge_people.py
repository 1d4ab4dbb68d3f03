"""Who a user is in the fleet, and whose holds are excused: `users` and `excuses` of gua-fleet.yml. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from gua_fleet.model import Document, HostResult


class UserMap(Protocol):
    """The administrator's names for people."""

    def person(self, user: str, host: str | None = None) -> str:
        """The fleet's name for what this host calls `user`; `user` itself where nothing is said about it."""


class Excuse(Protocol):
    """Why some cards may be held without work."""

    @property
    def reason(self) -> str: ...

    def covers(
        self, *, user: str, host: str, process: str, uuid: str, index: int | None, model: str, at_ms: int
    ) -> bool:
        """Whether a hold that is there at `at_ms` (Unix UTC milliseconds) is excused."""


class _NoMap:
    def person(self, user: str, host: str | None = None) -> str:
        return user


NO_MAP: UserMap = _NoMap()


def fleet_user(user: str, host_name: str, people: UserMap = NO_MAP) -> str:
    """The fleet's name for one host's user: the mapped one, else by `qualified_user`."""
    mapped = people.person(user, host_name)
    return qualified_user(user, host_name) if mapped == user else mapped


def qualified_user(user: str, host_name: str) -> str:
    """A login name is one person everywhere; a bare number, a container or nobody-knows means something only on its
    host, so it carries it: `uid:1001@gpu03`.
    """
    local = user.startswith(("uid:", "container:")) or user in ("unknown", "unattributed")
    return f"{user}@{host_name}" if local else user


def fleet_holds(result: HostResult, people: UserMap, excuses: Sequence[Excuse], at_ms: int) -> list[dict[str, Any]]:
    """One host's holds as the fleet shows them: with host, person, card and, where there is one, the excuse.

    An excuse marks a hold that is there at `at_ms`; its time stays in every sum.
    """
    document: Document = result.report or {}
    cards = {card["uuid"]: card for card in document["cards"]}
    return [
        _fleet_hold(hold, result.host.name, cards.get(hold["card"], {}), people, excuses, at_ms)
        for hold in document["holds"]
    ]


def _fleet_hold(
    hold: Mapping[str, Any],
    host_name: str,
    card: Mapping[str, Any],
    people: UserMap,
    excuses: Sequence[Excuse],
    at_ms: int,
) -> dict[str, Any]:
    person = fleet_user(hold["user"], host_name, people)
    row = {**hold, "host": host_name, "user": person, "index": card.get("index"), "model": card.get("name")}
    excuse = None
    if excuses and hold["until"] is None:
        excuse = next((one for one in excuses if _covers(one, row, at_ms)), None)
    return row | {"excuse": None if excuse is None else excuse.reason}


def _covers(excuse: Excuse, row: Mapping[str, Any], at_ms: int) -> bool:
    return excuse.covers(
        user=row["user"],
        host=row["host"],
        process=row["process"],
        uuid=row["card"],
        index=row["index"],
        model=row["model"] or "",
        at_ms=at_ms,
    )
