"""Where `gua top` takes its view from: the daemon's database, or samples of its own that nobody stores."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Optional, Protocol

from gua.clock import Clock
from gua.collect import TickSource
from gua.errors import GuaError
from gua.host import hostname
from gua.model import CardTick, Holder, KnownDevice, Tick
from gua.report.wording import stale_after_ms
from gua.store.database import open_reader
from gua.store.devices import DeviceRow
from gua.store.evidence_rows import CardTickRow
from gua.store.reader import NowRow, StoreReader
from gua.top.view import STEPS, TopCard, TopHolder, TopView, history_of

_FALLBACK_STEP_MS = 30_000


class ViewSource(Protocol):
    """Gives the view of now, whenever it is asked."""

    def read(self) -> TopView: ...

    def close(self) -> object: ...


class StoreSource:
    """What the database says; nothing is sampled. notes: said with every view. source: what it is, in words."""

    def __init__(
        self, path: Path, clock: Clock, scheduler: Optional[str], notes: tuple[str, ...] = (), source: str = "database"
    ) -> None:
        self._path = path
        self._clock = clock
        self._scheduler = scheduler
        self._notes = notes
        self._source = source
        self._last: Optional[TopView] = None

    def read(self) -> TopView:
        """The newest ticks. When the database cannot be read just now, the last view with the reason."""
        try:
            with open_reader(self._path) as reader:
                self._last = self._view(reader)
        except GuaError as exc:
            if self._last is None:
                raise
            return replace(self._last, now_ms=self._clock.now_ms(), notes=(*self._notes, str(exc)))
        return self._last

    def close(self) -> None:
        """Nothing is held open."""

    def _view(self, reader: StoreReader) -> TopView:
        now_ms, host, current = self._clock.now_ms(), reader.host(), reader.now()
        step_ms = (host.interval_ms if host else None) or _FALLBACK_STEP_MS
        since = {row.id: row.since_ms for row in reader.ledger().holds((now_ms - 1, now_ms)) if row.is_open}
        cards = []
        for device in reader.devices():
            if device.id in current:
                ticks = list(reader.card_ticks(device.id, (now_ms - STEPS * step_ms, now_ms + 1)))
                cards.append(_stored_card(device, current[device.id], ticks, since, now_ms, step_ms))
        return TopView(
            hostname=host.hostname if host else hostname(),
            source=self._source,
            now_ms=now_ms,
            stale_ms=stale_after_ms([step_ms / 1000]),
            cards=tuple(cards),
            notes=self._notes,
            scheduler=self._scheduler,
        )


def _stored_card(
    device: DeviceRow, now: NowRow, ticks: Sequence[CardTickRow], since: dict[int, int], now_ms: int, step_ms: int
) -> TopCard:
    newest = next((row for row in reversed(ticks) if row.at_ms == now.at_ms), None)
    begun = {(held.user, held.pid): since.get(held.hold) for held in (newest.holds if newest else ())}
    return TopCard(
        uuid=device.uuid,
        index=device.index,
        name=device.name or "",
        at_ms=now.at_ms,
        state=now.verdict.state,
        reason=now.verdict.reason,
        since_ms=now.since_ms,
        util_pct=now.util_pct,
        memory_used_mb=now.memory_used_mb,
        memory_total_mb=device.memory_total_mb,
        power_w=newest.power_w if newest else None,
        holders=tuple(
            TopHolder(one.user, one.process, one.pid, one.type, one.memory_mb, begun.get((one.user, one.pid)))
            for one in now.holders
        ),
        history=history_of(((row.at_ms, row.util_pct) for row in ticks), now_ms, step_ms),
    )


class SampleSource:
    """Samples this host (or a made-up one) each time it is asked, and keeps the last minutes in mind."""

    def __init__(
        self,
        source: TickSource,
        clock: Clock,
        *,
        interval_ms: int,
        known: Sequence[KnownDevice] = (),
        name: str = "",
        notes: tuple[str, ...] = (),
        scheduler: Optional[str] = None,
    ) -> None:
        self._source = source
        self._clock = clock
        self._interval_ms = interval_ms
        self._known = known
        self._name = name or hostname()
        self._notes = notes
        self._scheduler = scheduler
        self._ticks: deque[Tick] = deque(maxlen=4 * STEPS)
        self._begun: dict[tuple[str, int, Optional[int]], Optional[int]] = {}

    def read(self) -> TopView:
        """One sample, and the view with it."""
        now_ms = self._clock.now_ms()
        self._take(now_ms)
        tick = self._ticks[-1]
        faults = (f"The driver could not be used: {tick.fault.call}: {tick.fault.error}",) if tick.fault else ()
        return TopView(
            hostname=self._name,
            source="sampled here, not stored",
            now_ms=now_ms,
            stale_ms=stale_after_ms([self._interval_ms / 1000]),
            cards=tuple(self._card(card, tick.ts_ms, now_ms) for card in tick.cards),
            notes=(*self._notes, *faults),
            scheduler=self._scheduler,
        )

    def close(self) -> object:
        return self._source.close()

    def fill(self, steps: int) -> None:
        """Take samples of the past, which only a made-up host can give."""
        now_ms = self._clock.now_ms()
        for step in range(steps, 0, -1):
            self._take(now_ms - step * self._interval_ms)

    def _take(self, ts_ms: int) -> None:
        first = not self._ticks
        tick = self._source.collect(ts_ms=ts_ms, cover_ms=self._interval_ms, known=self._known)
        listed = [(card, holder) for card in tick.cards for holder in card.holders]
        self._begun = {
            key: self._begun.get(key, None if first else ts_ms)
            for key in (_key(card, holder) for card, holder in listed)
        }
        self._ticks.append(tick)

    def _card(self, card: CardTick, at_ms: int, now_ms: int) -> TopCard:
        reading = card.reading
        past = [(tick.ts_ms, _util_of(tick, reading.uuid)) for tick in self._ticks]
        return TopCard(
            uuid=reading.uuid,
            index=reading.index,
            name=reading.name or "",
            at_ms=at_ms,
            state=card.verdict.state,
            reason=card.verdict.reason,
            since_ms=None,
            util_pct=reading.util_pct,
            memory_used_mb=reading.memory_used_mb,
            memory_total_mb=reading.memory_total_mb,
            power_w=reading.power_w,
            holders=tuple(
                TopHolder(
                    user=holder.identity.user,
                    process=holder.identity.name,
                    pid=holder.process.pid,
                    type=holder.process.type,
                    memory_mb=holder.process.memory_mb,
                    since_ms=self._begun.get(_key(card, holder)),
                )
                for holder in card.holders
            ),
            history=history_of(past, now_ms, self._interval_ms),
        )


def _key(card: CardTick, holder: Holder) -> tuple[str, int, Optional[int]]:
    return card.reading.uuid, holder.process.pid, holder.identity.start_ticks


def _util_of(tick: Tick, uuid: str) -> Optional[int]:
    return next((card.reading.util_pct for card in tick.cards if card.reading.uuid == uuid), None)
