"""Sums over one window: whole slots from roll-ups, ragged ends from raw ticks, added up alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from gua.coverage import SLOT_MS, Span, clip, pieces
from gua.store.codes import STATE_OF_VERDICT, STATES
from gua.store.credit import CARD, COVERED, SHARE, Credits
from gua.store.packing import VERDICT_BITS
from gua.store.raw import RawTick, samples_of, ticks_touching
from gua.store.sample_id import DEVICE_BITS
from gua.store.session import Session

WEEK_SLOTS = 7 * 86_400_000 // SLOT_MS
# A year at once is more than SQLite sorts in one piece of memory: by parts of four weeks it takes a sixth less.
SORTED_SLOTS = 4 * WEEK_SLOTS

# One column of covered time for each state, so that rows in the order of their slots need no sorting.
_BY_STATE = ", ".join(
    f"sum(covered_ms) FILTER (WHERE verdict IN ({', '.join(map(str, verdicts))})) AS ms_{state}"
    for state, verdicts in enumerate(
        [code for code, of in enumerate(STATE_OF_VERDICT) if of == state] for state in range(len(STATES))
    )
)


def _zeros(count: int) -> defaultdict[tuple[int, int], list[int]]:
    return defaultdict(lambda: [0] * count)


@dataclass
class WindowSums:
    """Milliseconds and millijoules over a window.

    cards: (device, verdict) -> sums in the order of credit.COVERED and following.
    users: (user, state) -> sums in the order of credit.CARD and following.
    held: (device, state) -> covered ms in which anybody held the card. user_cards: (user, device) -> covered ms held.
    slots: (slot, state) -> covered ms of all cards; see add_slots.
    ticks: (status, cover_ms) -> ticks begun in the window.
    """

    cards: defaultdict[tuple[int, int], list[int]] = field(default_factory=lambda: _zeros(4))
    users: defaultdict[tuple[int, int], list[int]] = field(default_factory=lambda: _zeros(7))
    held: defaultdict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    user_cards: defaultdict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    slots: defaultdict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    ticks: defaultdict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    card_rules: set[tuple[int, int]] = field(default_factory=set)

    @property
    def rules(self) -> set[int]:
        """All rules that judged any card."""
        return {rule for _, rule in self.card_rules}

    def by_verdict(self) -> dict[int, list[int]]:
        """Sums over all cards, by verdict."""
        totals: defaultdict[int, list[int]] = defaultdict(lambda: [0] * 4)
        for (_, verdict), sums in self.cards.items():
            _add(totals[verdict], sums)
        return totals

    def add_slots(self, session: Session, first: int, end: int, alike: Iterable[tuple[int, int]] = ()) -> None:
        """Add the slots first <= slot < end from the roll-ups.

        alike: stretches of these slots in which a slot's time may stand in `slots` as that of the same hour of the
        stretch's first week, so that a year makes as few of them as a week.
        """
        bounds = (first, end)
        # Keys in one number: SQLite sorts all rows by them, in two thirds of the time that several columns take.
        for device, verdict, rule, *sums in _rows_by_parts(
            session,
            "card_slot",
            "SELECT device, verdict, rule, sum(covered_ms), sum(samples), sum(energy_mj), sum(energy_ms)"
            " FROM card_slot WHERE slot >= ? AND slot < ?"
            f" GROUP BY (rule << {DEVICE_BITS} | device) << {VERDICT_BITS} | verdict",
            bounds,
        ):
            self.card_rules.add((device, rule))
            _add(self.cards[device, verdict], sums)
        for user, device, state, *sums in _rows_by_parts(
            session,
            "user_slot",
            "SELECT user, device, state, sum(card_ms), sum(share_ms), sum(shared_ms), sum(long_idle_ms),"
            " sum(energy_mj), sum(energy_ms), sum(samples) FROM user_slot WHERE slot >= ? AND slot < ?"
            f" GROUP BY (user << {DEVICE_BITS} | device) << {VERDICT_BITS} | state",
            bounds,
        ):
            self._add_user(user, device, state, sums)
        for stretch in alike or (bounds,):
            self._add_hours(session, stretch, WEEK_SLOTS if alike else end)
        for status, cover_ms, ticks in session.rows(
            "SELECT status, cover_ms, sum(ticks) FROM tick_slot WHERE slot >= ? AND slot < ? GROUP BY status, cover_ms",
            bounds,
        ):
            self.ticks[status, cover_ms] += ticks

    def _add_hours(self, session: Session, bounds: tuple[int, int], period: int) -> None:
        """Add to `slots`, the times of slots that lie whole periods apart to the first of them."""
        for number, *times in session.rows(
            f"SELECT (slot - ?) % ?, {', '.join(f'sum(ms_{state})' for state in range(len(STATES)))}"
            f" FROM (SELECT slot, {_BY_STATE} FROM card_slot WHERE slot >= ? AND slot < ? GROUP BY slot) GROUP BY 1",
            (bounds[0], period, *bounds),
        ):
            for state, covered_ms in enumerate(times):
                if covered_ms is not None:
                    self.slots[bounds[0] + number, state] += covered_ms

    def add_raw(self, session: Session, window: Span, longest_cover_ms: int) -> None:
        """Add the part of raw ticks that lies in the window."""
        ticks = ticks_touching(session, window, longest_cover_ms)
        found = Credits()
        for raw in samples_of(session, ticks):
            spans = (clip(span, window) for span in raw.tick.spans)
            inside = window[0] <= raw.tick.ts_ms < window[1]
            found.add(raw.sample, tuple(pieces(spans)), raw.tick.ts_ms // SLOT_MS if inside else None)
        self.add_credits(found)
        self.add_ticks(tick for tick in ticks if window[0] <= tick.ts_ms < window[1])

    def add_credits(self, found: Credits) -> None:
        for (slot, device, rule, verdict), sums in found.cards.items():
            self.card_rules.add((device, rule))
            _add(self.cards[device, verdict], sums)
            self.slots[slot, STATE_OF_VERDICT[verdict]] += sums[COVERED]
        for (_, user, device, _, state), sums in found.users.items():
            self._add_user(user, device, state, sums)

    def _add_user(self, user: int, device: int, state: int, sums: Sequence[int]) -> None:
        _add(self.users[user, state], sums)
        self.held[device, state] += sums[SHARE]
        self.user_cards[user, device] += sums[CARD]

    def add_ticks(self, ticks: Iterable[RawTick]) -> None:
        for tick in ticks:
            self.ticks[tick.status, tick.cover_ms] += 1


def _rows_by_parts(session: Session, table: str, query: str, bounds: tuple[int, int]) -> Iterator[Sequence[int]]:
    """The rows of the query for each part of the slots in `bounds`, empty ones left out: its sums are to be added up.

    query: takes the part's first slot and its end.
    """
    first, end = bounds
    while True:
        start = session.rows(f"SELECT min(slot) FROM {table} WHERE slot >= ? AND slot < ?", (first, end))[0][0]
        if start is None:
            return
        first = min(start + SORTED_SLOTS, end)
        yield from session.rows(query, (start, first))


def _add(sums: list[int], more: Iterable[int]) -> None:
    for position, amount in enumerate(more):
        sums[position] += amount
