"""The fleet at this moment: every host, and each of its cards by the newest sample. Pure.

Read from a host's `gua.report/1` or `gua.observation/1`. Durations are told by the host's own clock, so that one that
runs ahead or behind changes none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gua.units import MS_PER_SECOND, parse_time_ms
from gua_fleet.merge import find_twins
from gua_fleet.merge_now import FRESH_INTERVALS, serving_now
from gua_fleet.merge_parts import model_name
from gua_fleet.merge_people import NO_MAP, UserMap, fleet_user
from gua_fleet.model import Document, HostResult, Outcome, Seen

NOT_LISTED = "(no process listed)"


@dataclass(frozen=True)
class Holder:
    """A compute or MPS process on a card. user: after the user map. Each None where not known, or not to be told."""

    user: str
    process: str
    pid: int | None
    memory_mb: int | None
    held_s: float | None


@dataclass(frozen=True)
class CardNow:
    """One card in service, by its newest sample.

    index: for display. fresh: whether that sample still tells what the card does now; where False, state,
    memory_used_mb and holders are what was, seen_s ago. state: None where the card was never sampled. state_s: how
    long it has stood, without a break, at that sample. All durations are seconds.
    """

    host: str
    uuid: str
    index: int | None
    model: str
    mig: bool
    memory_total_mb: int | None
    memory_used_mb: int | None = None
    util_pct: int | None = None
    state: str | None = None
    reason: str | None = None
    state_s: float = 0.0
    seen_s: float | None = None
    fresh: bool = False
    holders: tuple[Holder, ...] = ()

    @property
    def memory_free_mb(self) -> int | None:
        """None where the driver did not tell both figures."""
        if self.memory_total_mb is None or self.memory_used_mb is None:
            return None
        return max(0, self.memory_total_mb - self.memory_used_mb)

    @property
    def state_now(self) -> str | None:
        """Its state, as far as that is known now: None where the newest sample is too old."""
        return self.state if self.fresh else None


@dataclass(frozen=True)
class HostNow:
    """One host of the inventory. known: whether it answered with its cards; else outcome and detail say why not.

    twin_of: the name under which the same agent is counted already; then it has no cards of its own. sampled_s: seconds
    since its newest sample, by its own clock; None where there is none. interval_s: the longest it samples by. paused:
    None where its agent does not say. has_none: it answered that it has no card. seen: of an earlier answer, None where
    there was none. daemon: what its daemon does by `gua status` (`gua.status/1` has the words), None where that was not
    asked for. count: how many cards there are where `cards` does not list them: by `gua status`, or where it did not
    answer, by the inventory or an earlier answer; None where nobody told.
    """

    name: str
    outcome: str
    detail: str | None
    failed: bool
    known: bool = False
    cards: tuple[CardNow, ...] = ()
    scheduler: str | None = None
    twin_of: str | None = None
    sampled_s: float | None = None
    interval_s: float | None = None
    paused: bool | None = None
    has_none: bool = False
    seen: Seen | None = None
    daemon: str | None = None
    count: int | None = None

    @property
    def sampling(self) -> bool:
        """Whether something samples there: as its daemon's status says, else by whether any card's sample is fresh."""
        if self.daemon is not None:
            return self.twin_of is None and self.daemon == "running"
        return any(card.fresh for card in self.cards)

    @property
    def stale(self) -> bool:
        """Whether it answered, and what its cards do now is not known all the same."""
        if not self.known or self.has_none or self.twin_of is not None:
            return False
        return not self.sampling

    @property
    def left_out(self) -> bool:
        """Whether the inventory has it left alone."""
        return self.outcome in (Outcome.MAINTENANCE.value, Outcome.SKIPPED.value)


@dataclass(frozen=True)
class Knowledge:
    """What the controller knows besides the answers: who is who, and what hosts said earlier, by name."""

    people: UserMap = NO_MAP
    seen: Mapping[str, Seen] = field(default_factory=dict)


def fleet_now(results: Sequence[HostResult], known: Knowledge | None = None) -> tuple[HostNow, ...]:
    """Every host in the order given; an agent with two names in the inventory has its cards once."""
    known, twins = known or Knowledge(), find_twins(results)
    return tuple(_host_now(result, twins.get(result.host.name), known) for result in results)


def all_cards(hosts: Iterable[HostNow]) -> list[CardNow]:
    return [card for host in hosts for card in host.cards]


def unknown_cards(hosts: Iterable[HostNow]) -> list[CardNow]:
    """Cards whose state is not known now, on hosts that tell the state of others."""
    return [card for host in hosts if not host.stale for card in host.cards if card.state_now in (None, "unknown")]


def _host_now(result: HostResult, twin_of: str | None, known: Knowledge) -> HostNow:
    seen = known.seen.get(result.host.name)
    document = result.document
    if document is None:
        return HostNow(
            name=result.host.name,
            outcome=result.outcome_text,
            detail=result.detail,
            failed=result.failed,
            has_none=result.outcome is Outcome.NO_GPU,
            seen=seen,
            count=_told_cards(result, seen),
        )
    if "card_uuids" in document:
        return _by_status(result, document, twin_of, seen)
    made_ms = parse_time_ms(document.get("generated_at") or document["observed_at"])
    interval_s = max(document.get("intervals_s") or (), default=None)
    cards = () if twin_of else tuple(_cards(result.host.name, document, made_ms, interval_s, known.people))
    ages = [card.seen_s for card in cards if card.seen_s is not None]
    return HostNow(
        name=result.host.name,
        outcome=result.outcome_text,
        detail=result.detail,
        failed=result.failed,
        known=result.outcome is Outcome.OK,
        cards=cards,
        scheduler=result.host.scheduler or document["host"]["scheduler"],
        twin_of=twin_of,
        sampled_s=min(ages, default=None),
        interval_s=interval_s,
        paused=document["host"].get("paused"),
        has_none=not document["cards"] and _could_look(document),
        seen=seen,
    )


def _told_cards(result: HostResult, seen: Seen | None) -> int | None:
    """How many cards a host has that does not say so now; the report counts them the same way."""
    if result.host.cards is not None or seen is None or result.outcome is Outcome.NO_GPU:
        return result.host.cards
    return seen.cards


def _could_look(document: Document) -> bool:
    """Whether no card in the document means that there is none: a driver that fails hides them all."""
    if "status" in document:
        return bool(document["status"] != "error")
    ticks = document["coverage"]["ticks"]
    return not (ticks["error"] or ticks["unresponsive"])


def _by_status(result: HostResult, document: Document, twin_of: str | None, seen: Seen | None) -> HostNow:
    """By a `gua.status/1`, which tells of the daemon and not of single cards."""
    return HostNow(
        name=result.host.name,
        outcome=result.outcome_text,
        detail=result.detail,
        failed=result.failed,
        known=result.outcome is Outcome.OK,
        scheduler=result.host.scheduler or document["host"]["scheduler"],
        twin_of=twin_of,
        sampled_s=document["last_tick_age_s"],
        interval_s=document["interval_s"],
        paused=document["state"]
        == "paused",  # a pause that stands while no daemon runs is not why there are no samples
        has_none=document["state"] == "waiting",
        seen=seen,
        daemon=document["state"],
        count=document["cards"],
    )


def _cards(name: str, document: Document, made_ms: int, interval_s: float | None, people: UserMap) -> Iterable[CardNow]:
    began = {
        (hold["card"], hold["pid"], hold["user"]): parse_time_ms(hold["since"])
        for hold in document.get("holds") or ()
        if hold["until"] is None
    }
    for card in sorted(serving_now(document), key=lambda card: (card["index"] is None, card["index"] or 0)):
        yield _card(name, card, made_ms, interval_s, people, began)


def _card(
    name: str,
    card: Mapping[str, Any],
    made_ms: int,
    interval_s: float | None,
    people: UserMap,
    began: Mapping[tuple[str, int, str], int],
) -> CardNow:
    model = model_name(card) if card["name"] is not None else "(model not known)"
    place = (name, card["uuid"], card["index"], model, card["mig"] is not None, card["memory_total_mb"])
    now = card["now"]
    if not now:
        return CardNow(*place)
    at_ms = parse_time_ms(now["at"])
    holders = tuple(
        Holder(
            fleet_user(one["user"], name, people),
            one["process"],
            one["pid"],
            one["memory_mb"],
            _seconds(began.get((card["uuid"], one["pid"], one["user"])), at_ms),
        )
        for one in now["holders"]
        if one["type"] != "graphics"
    )
    return CardNow(
        *place,
        memory_used_mb=now["memory_used_mb"],
        util_pct=now["util_pct"],
        state=now["state"],
        reason=now["reason"],
        state_s=_seconds(parse_time_ms(now["since"]), at_ms) or 0.0,
        seen_s=(made_ms - at_ms) / MS_PER_SECOND,
        # one from the future was stamped before the clock was set back, nobody knows when
        fresh=abs(made_ms - at_ms) <= FRESH_INTERVALS * MS_PER_SECOND * (interval_s or 0.0),
        holders=holders,
    )


def _seconds(since_ms: int | None, until_ms: int) -> float | None:
    return None if since_ms is None else max(0, until_ms - since_ms) / MS_PER_SECOND
