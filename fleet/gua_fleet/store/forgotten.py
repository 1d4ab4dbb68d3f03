"""People who asked to be forgotten: their names go, their time stays, and the next pull does not bring them back.

Who they were is not kept either: a name that comes from a host is compared by its digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from gua.model import UserSource
from gua.store.codes import USER_SOURCE_CODE
from gua.store.expiry import EXPIRED
from gua_fleet.merge_people import UserMap, fleet_user
from gua_fleet.store.session import Session

# In the store, apart from the one that stands for those whom the host itself dropped. Shown as that one.
FORGOTTEN = "(forgotten)"

_UNKNOWN = USER_SOURCE_CODE[UserSource.UNKNOWN]


@dataclass(frozen=True)
class Forgot:
    """hosts: on which the user was named. names: how many of the hosts' own names that were."""

    hosts: tuple[str, ...]
    names: int


def shown_user(name: str) -> str:
    """The name of a user of the store as it is shown."""
    return EXPIRED if name == FORGOTTEN else name


def forget_user(session: Session, user: str, people: UserMap, now_ms: int) -> Forgot:
    """Take every name of this person, as reports call them, out of the store, and do not let it in again."""
    with session.writing():
        found = [
            (host, name)
            for host, name in session.rows(
                "SELECT DISTINCT host.name, person.name FROM person JOIN history ON history.id = person.history"
                " JOIN host ON host.id = history.host"
            )
            if name not in (FORGOTTEN, EXPIRED) and user in (name, fleet_user(name, host, people))
        ]
        # a login name is one person everywhere; what means something on one host only is forgotten there
        marks = {_digest(user, "")} | {
            _digest(name, "" if fleet_user(name, host) == name else host) for host, name in found
        }
        session.execute_many(
            "INSERT INTO forgotten (digest, forgotten_ms) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING",
            [(mark, now_ms) for mark in sorted(marks)],
        )
        for history, host in session.rows(
            "SELECT history.id, host.name FROM history JOIN host ON host.id = history.host"
        ):
            drop_forgotten(session, history, host)
    return Forgot(tuple(sorted({host for host, _ in found})), len({name for _, name in found}))


def drop_forgotten(session: Session, history: int, host: str) -> None:
    """Take the names of those who are to be forgotten from one history of a host (its name). In a transaction."""
    marks = {mark for (mark,) in session.rows("SELECT digest FROM forgotten")}
    if not marks:
        return
    named = session.rows("SELECT id, name FROM person WHERE history = ?", (history,))
    gone = [number for number, name in named if name == FORGOTTEN or marks & set(_digests(name, host))]
    session.execute_many(
        "UPDATE person SET name = ?, source = ?, uid = NULL WHERE history = ? AND id = ?",
        [(FORGOTTEN, _UNKNOWN, history, number) for number in gone],
    )
    session.execute_many(
        "UPDATE process SET name = ?, owner_uid = NULL, login_uid = NULL, container_id = NULL, slurm_job = NULL,"
        " mount_hint = NULL WHERE history = ? AND person = ? AND name <> ?",
        [(EXPIRED, history, number, EXPIRED) for number in gone],
    )


def _digests(name: str, host: str) -> Iterable[str]:
    return _digest(name, ""), _digest(name, host)


def _digest(name: str, host: str) -> str:
    """host: empty: wherever the name comes from."""
    return hashlib.sha256(f"{host}\0{name}".encode("utf-8", "replace")).hexdigest()
