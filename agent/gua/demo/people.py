"""Who uses the made-up cards: sessions that begin, work or not, and end. Pure functions of place and time.

Time is cut into blocks per card and use; a block holds one session or none, so any moment can be answered alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Optional

from gua.demo.chance import between, fraction, pick
from gua.model import UserSource
from gua.units import MS_PER_HOUR

_DAY_H = 24
# Unix time began on a Thursday.
_EPOCH_WEEKDAY = 3

# name -> (uid, how it was found). A container and a number without a name are what real hosts have too.
_PEOPLE: dict[str, tuple[Optional[int], UserSource]] = {
    "alice": (1001, UserSource.OWNER),
    "bob": (1002, UserSource.OWNER),
    "chen": (1003, UserSource.OWNER),
    "dora": (1004, UserSource.OWNER),
    "eli": (1005, UserSource.LOGINUID),
    "uid:1017": (1017, UserSource.OWNER),
    "container:3f9c0ad41b7e": (None, UserSource.CONTAINER),
}


@dataclass(frozen=True)
class Session:
    """One process of one person on one card, from start_ms to end_ms. load: a key of `gua.demo.load`."""

    user: str
    uid: Optional[int]
    source: UserSource
    process: str
    pid: int
    memory_share: float
    start_ms: int
    end_ms: int
    load: str


@dataclass(frozen=True)
class Habit:
    """How a card is used: by one of `users`, in blocks of block_h hours, each with a session by `chance`.

    memory: share of the card's memory, from and to. office: only in working hours, hardly at weekends.
    """

    users: tuple[str, ...]
    process: str
    load: str
    block_h: int
    chance: float
    memory: tuple[float, float]
    office: bool = False


_TRAINING = Habit(("alice", "chen", "eli"), "python", "train", 36, 0.92, (0.6, 0.95))
_FORGOTTEN = Habit(("bob", "dora", "bob", "chen"), "jupyter-kernel", "notebook", 96, 0.95, (0.3, 0.7))
_OFFICE = Habit(("dora", "alice", "bob"), "python3", "notebook", _DAY_H, 0.75, (0.2, 0.6), office=True)
_GUEST = Habit(("dora", "eli"), "jupyter-kernel", "notebook", _DAY_H, 0.7, (0.02, 0.05), office=True)
_CONTAINER = Habit(("container:3f9c0ad41b7e",), "python", "train", 48, 0.7, (0.5, 0.9))
_SERVICE = Habit(("uid:1017",), "tritonserver", "serve", 168, 1.0, (0.3, 0.4))
_SPARE = Habit(("chen", "eli", "alice"), "python", "train", 18, 0.4, (0.4, 0.8))

USES: dict[str, tuple[Habit, ...]] = {
    "training": (_TRAINING,),
    "shared": (_TRAINING, _GUEST),
    "container": (_CONTAINER,),
    "forgotten": (_FORGOTTEN,),
    "office": (_OFFICE,),
    "service": (_SERVICE,),
    "spare": (_SPARE,),
    "desktop": (),
    "empty": (),
}


def sessions_at(hostname: str, index: int, use: str, local_ms: int) -> tuple[Session, ...]:
    """Every session on one card at one time (milliseconds of the people's own clock), at most one per habit."""
    found = (
        _session(hostname, index, use, number, local_ms // (habit.block_h * MS_PER_HOUR))
        for number, habit in enumerate(USES[use])
    )
    return tuple(session for session in found if session and session.start_ms <= local_ms < session.end_ms)


@lru_cache(maxsize=65536)
def _session(hostname: str, index: int, use: str, number: int, block: int) -> Optional[Session]:
    habit, where = USES[use][number], (hostname, index, number, block)
    start_h, end_h = _hours(habit, block, where)
    if fraction("chance", *where) >= _chance(habit, block):
        return None
    user = pick(habit.users, "user", *where)
    uid, source = _PEOPLE[user]
    return Session(
        user=user,
        uid=uid,
        source=source,
        process=habit.process,
        pid=int(between(2_500, 4_000_000, "pid", *where)),
        memory_share=between(*habit.memory, "memory", *where),
        start_ms=round(start_h * MS_PER_HOUR),
        end_ms=round(end_h * MS_PER_HOUR),
        load=habit.load,
    )


def _chance(habit: Habit, block: int) -> float:
    weekend = habit.block_h == _DAY_H and (block + _EPOCH_WEEKDAY) % 7 >= 5
    return habit.chance * (0.15 if weekend and habit.office else 1.0)


def _hours(habit: Habit, block: int, where: tuple[object, ...]) -> tuple[float, float]:
    """Start and end of a block's session in hours since the epoch."""
    first = block * habit.block_h
    start = first + between(8.5, 11.0, "start", *where)
    if habit.office:
        return start, first + between(15.5, 20.0, "end", *where)
    if habit.load == "train":
        start = first + between(0.0, 3.0, "start", *where)
    return start, first + habit.block_h - between(0.0, 4.0, "end", *where)
