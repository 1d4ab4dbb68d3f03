"""Boots, users and processes: found or made, remembered while the writer lives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Optional

from gua.model import USER_UNATTRIBUTED, ProcessIdentity, UserSource
from gua.store.codes import USER_SOURCE_CODE
from gua.store.session import Session

_REMEMBERED = 4096

_ProcessKey = tuple[str, int, Optional[int], str]


class People:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._boots: dict[str, int] = {}
        self._users: dict[str, int] = {}
        self._processes: dict[_ProcessKey, tuple[int, int, str]] = {}

    def boot(self, boot_id: str) -> int:
        """Id of a boot."""
        if boot_id not in self._boots:
            rows = self._session.rows("SELECT id FROM boot WHERE boot_id = ?", (boot_id,))
            self._boots[boot_id] = rows[0][0] if rows else self._session.insert("boot", boot_id=boot_id)
        return self._boots[boot_id]

    def unattributed(self) -> int:
        """Id of the user who stands for memory that no listed process accounts for."""
        return self._user(USER_UNATTRIBUTED, UserSource.UNATTRIBUTED, None)

    def process(self, who: ProcessIdentity) -> tuple[int, int]:
        """(process id, user id) of an identity; its name is kept as last seen."""
        key = (who.boot_id, who.pid, who.start_ticks, who.user)
        found = self._processes.get(key) or self._find(who)
        if found is None:
            found = self._insert(who)
        elif found[2] != who.name:
            self._session.connection.execute(
                "UPDATE process SET name = ?, rev = ? WHERE id = ?", (storable(who.name), self._session.rev, found[0])
            )
            found = (found[0], found[1], who.name)
        self._processes[key] = found
        return found[0], found[1]

    def forget_except(self, open_processes: Callable[[], set[int]]) -> None:
        """Drop remembered processes that hold nothing any more, so that memory does not grow with their number."""
        if len(self._processes) > _REMEMBERED:
            kept = open_processes()
            self._processes = {key: row for key, row in self._processes.items() if row[0] in kept}

    def _find(self, who: ProcessIdentity) -> Optional[tuple[int, int, str]]:
        rows = self._session.rows(
            "SELECT id, user, name FROM process WHERE boot = ? AND pid = ? AND start_ticks IS ? AND user = ?",
            (self.boot(who.boot_id), who.pid, who.start_ticks, self._user(who.user, who.user_source, who.uid)),
        )
        return rows[0] if rows else None

    def _insert(self, who: ProcessIdentity) -> tuple[int, int, str]:
        user = self._user(who.user, who.user_source, who.uid)
        process = self._session.insert(
            "process",
            boot=self.boot(who.boot_id),
            pid=who.pid,
            start_ticks=who.start_ticks,
            user=user,
            name=storable(who.name),
            source=USER_SOURCE_CODE[who.user_source],
            owner_uid=who.owner_uid,
            login_uid=who.login_uid,
            container_id=storable(who.container_id),
            slurm_job=storable(who.slurm_job),
            mount_hint=storable(who.mount_hint),
            rev=self._session.rev,
        )
        return process, user, who.name

    def _user(self, name: str, source: UserSource, uid: Optional[int]) -> int:
        if name not in self._users:
            rows = self._session.rows("SELECT id FROM user WHERE name = ?", (storable(name),))
            self._users[name] = rows[0][0] if rows else self._insert_user(name, source, uid)
        return self._users[name]

    def _insert_user(self, name: str, source: UserSource, uid: Optional[int]) -> int:
        return self._session.insert(
            "user", name=storable(name), source=USER_SOURCE_CODE[source], uid=uid, rev=self._session.rev
        )


def storable(text: Optional[str]) -> Optional[str]:
    """The text with what UTF-8 cannot hold written as escapes: a process may call itself anything."""
    return None if text is None else text.encode("utf-8", "backslashreplace").decode()
