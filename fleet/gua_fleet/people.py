"""What a site knows about its people: which names are one person, and whose idle cards are excused. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class UserMap:
    """Names that hosts use -> the person they are.

    aliases: name as the merged report has it (`EXAMPLE\\alice`, `uid:1001@gpu03`, `container:0a1b2c3d4e5f`) -> person.
    A name may be a shell pattern (`container:0a1b*`), and may end in `@HOST` to count on that host alone.
    """

    aliases: Mapping[str, str] = field(default_factory=dict)

    def person(self, user: str, host: str | None = None) -> str:
        """Who `user` on `host` is; `user` itself where the map does not know.

        user: with or without the `@HOST` that merging adds to names that mean something on their host only.
        """
        suffix = f"@{host}"
        local = user.removesuffix(suffix) if host is not None else user
        asked = (local + suffix, local) if host is not None else (user,)
        for name in asked:
            if name in self.aliases:
                return self.aliases[name]
        for pattern, person in self.aliases.items():
            if "*" in pattern and any(fnmatchcase(name, pattern) for name in asked):
                return person
        return user


@dataclass(frozen=True)
class Excuse:
    """Idle cards that nobody need be asked about. Each of user, host, process, card is a shell pattern, None for any.

    user: the person after the user map. card: matches the UUID, the index or the model's name. until_ms: Unix UTC
    milliseconds from which it no longer counts; None without end.
    """

    reason: str
    user: str | None = None
    host: str | None = None
    process: str | None = None
    card: str | None = None
    until_ms: int | None = None

    def covers(
        self, *, user: str, host: str, process: str, uuid: str, index: int | None, model: str, at_ms: int
    ) -> bool:
        """Whether a hold that is there at `at_ms` is excused."""
        if self.until_ms is not None and at_ms >= self.until_ms:
            return False
        cards = (uuid, model) if index is None else (uuid, model, str(index))
        wanted = ((self.user, (user,)), (self.host, (host,)), (self.process, (process,)), (self.card, cards))
        return all(pattern is None or any(fnmatchcase(name, pattern) for name in names) for pattern, names in wanted)
