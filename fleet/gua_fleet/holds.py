"""Who holds which card now, and for how long without work: what was seen, not why. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from gua_fleet.anonymous import Mask
from gua_fleet.merge_people import Excuse
from gua_fleet.present import NOT_LISTED, CardNow, Holder, HostNow


@dataclass(frozen=True)
class Hold:
    """One process on one card now. holder None: the card's memory is in use and no listed process accounts for it.

    idle_s: how long, without a break, the card has been held without work while this process was there; 0 where the
    card is active now; None where its state is not known. excuse: the reason in the settings, or None.
    """

    card: CardNow
    holder: Holder | None
    idle_s: float | None
    excuse: str | None = None

    @property
    def user(self) -> str:
        return self.holder.user if self.holder else NOT_LISTED


@dataclass(frozen=True)
class Filter:
    """Which holds are shown; None: no matter. idle_s, held_s: at least so long. user: a name or a shell pattern."""

    idle_s: float | None = None
    held_s: float | None = None
    user: str | None = None

    def takes(self, hold: Hold) -> bool:
        """A hold that was there before history began has no known length, and is taken for a long one."""
        if self.idle_s is not None and (hold.idle_s is None or hold.idle_s < self.idle_s):
            return False
        held_s = hold.holder.held_s if hold.holder else None
        if self.held_s is not None and held_s is not None and held_s < self.held_s:
            return False
        return self.user is None or fnmatchcase(hold.user.casefold(), self.user.casefold())


def current_holds(hosts: Sequence[HostNow], excuses: Sequence[Excuse], at_ms: int) -> list[Hold]:
    """Every hold on a card whose state is known to be held now, the longest idle first, then those not known.

    at_ms: Unix, UTC, by which excuses end.
    """
    holds = [
        _hold(card, holder, excuses, at_ms)
        for host in hosts
        for card in host.cards
        if card.fresh and card.state != "truly-idle"
        for holder in card.holders or ((None,) if card.state == "idle-held" else ())
    ]
    return sorted(holds, key=_order)


def without_name(hold: Hold, mask: Mask) -> Hold:
    """The same hold with nobody's name in it: an excuse's reason may hold one, too."""
    holder = None if hold.holder is None else mask.holder(hold.holder)
    return Hold(mask.card(hold.card), holder, hold.idle_s, "in the settings" if hold.excuse else None)


def _hold(card: CardNow, holder: Holder | None, excuses: Sequence[Excuse], at_ms: int) -> Hold:
    hold = Hold(card, holder, _idle_s(card, holder))
    excuse = next((one.reason for one in excuses if _covers(one, hold, at_ms)), None)
    return Hold(card, holder, hold.idle_s, excuse)


def _idle_s(card: CardNow, holder: Holder | None) -> float | None:
    """A process that came to a card that was idle already has not been idle for longer than it is there."""
    if card.state == "active":
        return 0.0
    if card.state != "idle-held":
        return None
    return card.state_s if holder is None or holder.held_s is None else min(card.state_s, holder.held_s)


def _covers(excuse: Excuse, hold: Hold, at_ms: int) -> bool:
    card = hold.card
    return excuse.covers(
        user=hold.user,
        host=card.host,
        process=hold.holder.process if hold.holder else "",
        uuid=card.uuid,
        index=card.index,
        model=card.model,
        at_ms=at_ms,
    )


def _order(hold: Hold) -> tuple[bool, float, str, int, str]:
    idle_s = hold.idle_s
    return idle_s is None, -(idle_s or 0.0), hold.card.host, hold.card.index or 0, hold.user
