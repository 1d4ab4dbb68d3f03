"""What people and hosts are called in an export. Pure but for reading who there is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from gua.model import State
from gua.store.codes import STATES
from gua_fleet.anonymous import instead_of
from gua_fleet.merge_people import NO_MAP, UserMap, fleet_user
from gua_fleet.store.forgotten import shown_user
from gua_fleet.store.session import Session

_IDLE_HELD = STATES.index(State.IDLE_HELD)


@dataclass(frozen=True)
class Names:
    """people: the user map. users, hosts: what they become, by what they are called; None: as they are."""

    people: UserMap = NO_MAP
    users: Mapping[str, str] | None = None
    hosts: Mapping[str, str] = field(default_factory=dict)

    def user(self, name: str, host: str) -> str:
        person = fleet_user(name, host, self.people)
        return person if self.users is None else self.users.get(person, "a user")

    def host(self, name: str) -> str:
        return self.hosts.get(name, name)

    def process(self, name: str, pid: int) -> tuple[str | None, int | None]:
        """A person chose the name of a process, so it goes with the names of people."""
        return (name, pid) if self.users is None else (None, None)


def nameless(session: Session, people: UserMap) -> Names:
    """Names that tell nobody: `user 1` is who held most without work. A host that holds a person's name goes, too."""
    held: defaultdict[str, int] = defaultdict(int)
    hosts = {name for (name,) in session.rows("SELECT name FROM host")}
    for host, name, held_ms in session.rows(
        "SELECT host.name, person.name, coalesce((SELECT CAST(sum(card_ms) AS BIGINT) FROM user_day WHERE"
        " user_day.history = person.history AND user_day.person = person.id AND state = ?), 0) FROM person"
        " JOIN history ON history.id = person.history JOIN host ON host.id = history.host",
        (_IDLE_HELD,),
    ):
        held[fleet_user(shown_user(name), host, people)] += held_ms
    users, masked = instead_of(sorted(held, key=lambda name: (-held[name], name)), sorted(hosts))
    return Names(people, users, masked)
