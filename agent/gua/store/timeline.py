"""Who was on one card at any tick: the lives of its holds cut where one begins or ends."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Generic, Protocol, TypeVar


class Lived(Protocol):
    """Something that was there from one tick to another, both included."""

    @property
    def first_tick(self) -> int: ...

    @property
    def last_tick(self) -> int: ...


Life = TypeVar("Life", bound=Lived)


class Timeline(Generic[Life]):
    """Answers by tick. Ticks may be asked for in any order, as clocks jump.

    cuts: ticks from which on the answer is another one, ascending. present: the answers, one more than cuts.
    """

    def __init__(self, lives: Iterable[Life]) -> None:
        coming: defaultdict[int, list[Life]] = defaultdict(list)
        going: defaultdict[int, list[Life]] = defaultdict(list)
        for life in lives:
            coming[life.first_tick].append(life)
            going[life.last_tick + 1].append(life)
        self.cuts: Sequence[int] = sorted({*coming, *going})
        now: dict[int, Life] = {}
        self.present: list[tuple[Life, ...]] = [()]
        for tick in self.cuts:
            for life in going[tick]:
                del now[id(life)]
            now.update((id(life), life) for life in coming[tick])
            self.present.append(tuple(now.values()))

    def at(self, tick: int) -> tuple[Life, ...]:
        return self.present[bisect_right(self.cuts, tick)]
