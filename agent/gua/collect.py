"""One tick of this host: sample, identify, reconcile, judge. The edges are brought in; nothing is stored here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Optional, Protocol

from gua.classify import classify, evidence_of
from gua.model import CardReading, CardTick, Holder, KnownDevice, ProcessIdentity, Snapshot, Tick
from gua.reconcile import reconcile
from gua.rulebook import RuleBook


class Sampler(Protocol):
    """Where readings come from. `sample` never raises for trouble with the driver: the Snapshot says it."""

    def sample(self) -> Snapshot: ...

    def close(self) -> bool:
        """Let go of the driver; whether nothing holds it any more. A later `sample` takes it up again."""
        ...


class Identifies(Protocol):
    """Who processes are: an identity for every pid asked for."""

    def identify(self, pids: Iterable[int]) -> Mapping[int, ProcessIdentity]: ...


class TickSource(Protocol):
    """Where whole ticks come from: this host, or a made-up one."""

    def judge_by(self, rules: RuleBook) -> None:
        """Judge the cards of later ticks by other rules."""
        ...

    def collect(self, *, ts_ms: int, cover_ms: int, known: Sequence[KnownDevice]) -> Tick:
        """One tick begun at `ts_ms`. known: the unretired cards of the history; absent ones are in the tick too."""
        ...

    def close(self) -> bool:
        """Let go of the driver; whether nothing holds it any more. A later `collect` takes it up again."""
        ...


class Collector:
    """The real host's TickSource. rules.default must be the run's: cards judged by it carry no rule of their own."""

    def __init__(self, sampler: Sampler, identifier: Identifies, rules: RuleBook) -> None:
        self._sampler = sampler
        self._identifier = identifier
        self._rules = rules

    def collect(self, *, ts_ms: int, cover_ms: int, known: Sequence[KnownDevice]) -> Tick:
        snapshot = self._sampler.sample()
        # Straight after sampling, while the listed processes are most likely still alive
        identities = self._identifier.identify(_pids(snapshot.cards))
        reconciled = reconcile(snapshot, known)
        names = {device.uuid: device.name for device in known}
        return Tick(
            ts_ms=ts_ms,
            status=reconciled.status,
            cover_ms=cover_ms,
            cards=tuple(self._judge(card, names.get(card.uuid), identities) for card in reconciled.cards),
            driver_version=snapshot.driver_version,
            fault=snapshot.fault,
            mig_parents=snapshot.mig_parents,
            strangers=reconciled.strangers,
        )

    def judge_by(self, rules: RuleBook) -> None:
        self._rules = rules

    def close(self) -> bool:
        return self._sampler.close()

    def _judge(
        self, card: CardReading, known_name: Optional[str], identities: Mapping[int, ProcessIdentity]
    ) -> CardTick:
        evidence = evidence_of(card)
        holders = tuple(Holder(process, identities[process.pid]) for process in card.processes or ())
        # A card that does not tell its name just now is still judged as its model
        own = self._rules.own_rule(card.name or known_name)
        return CardTick(card, evidence, classify(evidence, own or self._rules.default), holders, own)


def _pids(cards: Iterable[CardReading]) -> list[int]:
    return sorted({process.pid for card in cards for process in card.processes or ()})
