"""How the card time of one user comes about: on each card, alone or shared with how many. Pure.

It credits ticks by the same code as the report, so the sums cannot differ from the report's figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gua.coverage import SLOT_MS, Span, pieces
from gua.model import ProcessType
from gua.store.codes import IDLE_HELD, STATES, VERDICT_CODE
from gua.store.credit import CARD, LONG_IDLE, SHARE, SHARED, USER_SAMPLES, Credits, Sample
from gua.store.evidence_rows import CardTickRow


@dataclass
class Amounts:
    """Milliseconds by what they are; state_ms in the order of codes.STATES. samples: ticks."""

    card_ms: int = 0
    share_ms: int = 0
    shared_ms: int = 0
    long_idle_ms: int = 0
    samples: int = 0
    state_ms: list[int] = field(default_factory=lambda: [0] * len(STATES))

    def add(self, other: Amounts) -> None:
        self.card_ms += other.card_ms
        self.share_ms += other.share_ms
        self.shared_ms += other.shared_ms
        self.long_idle_ms += other.long_idle_ms
        self.samples += other.samples
        self.state_ms = [mine + more for mine, more in zip(self.state_ms, other.state_ms)]


def users_at(row: CardTickRow, ids: Mapping[str, int], unattributed: int) -> tuple[int, ...]:
    """Ids of the users charged for one card-tick, ascending: those with a process that holds, else nobody's memory."""
    found = tuple(sorted({ids[held.user] for held in row.holds if held.type is not ProcessType.GRAPHICS}))
    return found or ((unattributed,) if VERDICT_CODE[row.verdict] == IDLE_HELD else ())


class Sharing:
    """The amounts of one user on one card, by the number of users who held it at the time."""

    def __init__(self, user: int, device: int) -> None:
        self._user = user
        self._device = device
        self._credits: dict[int, Credits] = {}

    def add(self, row: CardTickRow, users: tuple[int, ...], spans: Iterable[Span], part: Span, *, long: bool) -> None:
        """One tick that charges the user. spans: what it covers within `part` of the window."""
        counted_in = row.at_ms // SLOT_MS if part[0] <= row.at_ms < part[1] else None
        sample = Sample(self._device, 0, VERDICT_CODE[row.verdict], users, None, long)
        self._credits.setdefault(len(users), Credits()).add(sample, tuple(pieces(spans)), counted_in)

    def by_users(self) -> dict[int, Amounts]:
        """Number of users -> amounts, ascending."""
        return {number: self._amounts(found) for number, found in sorted(self._credits.items())}

    def _amounts(self, found: Credits) -> Amounts:
        total = Amounts()
        for (_, user, _, _, state), sums in found.users.items():
            if user == self._user:
                own = Amounts(sums[CARD], sums[SHARE], sums[SHARED], sums[LONG_IDLE], sums[USER_SAMPLES])
                own.state_ms[state] = sums[CARD]
                total.add(own)
        return total
