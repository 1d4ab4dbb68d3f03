"""One tick into rows: what it covers, its samples, and what it adds to holds, stretches and roll-ups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Optional

from gua.coverage import SLOT_MS, Piece, Span, length_ms, pieces, subtract
from gua.model import CardTick, KnownDevice, Tick
from gua.store.codes import (
    IDLE_HELD,
    PROCESS_TYPE_CODE,
    STATE_OF_VERDICT,
    STATUS_CODE,
    VERDICT_CODE,
)
from gua.store.credit import Credits, Sample
from gua.store.devices import DeviceRow, Devices
from gua.store.holds import Holds, Seen, users_of
from gua.store.people import People
from gua.store.present import Present
from gua.store.raw import samples_of, ticks_between
from gua.store.samples import Samples
from gua.store.session import Session, TickTime
from gua.store.stretches import Stretch, Stretches

# Each conflict names its key: SQLite before 3.35 (Debian 11 and Rocky 9 have 3.34) takes no other form.
_CARD_SLOT = (
    "INSERT INTO card_slot VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(slot, device, rule, verdict) DO UPDATE SET"
    " covered_ms = covered_ms + excluded.covered_ms, samples = samples + excluded.samples,"
    " energy_mj = energy_mj + excluded.energy_mj, energy_ms = energy_ms + excluded.energy_ms, rev = excluded.rev"
)
_USER_SLOT = (
    "INSERT INTO user_slot VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT(slot, user, device, rule, state) DO UPDATE SET"
    " card_ms = card_ms + excluded.card_ms, share_ms = share_ms + excluded.share_ms,"
    " shared_ms = shared_ms + excluded.shared_ms, long_idle_ms = long_idle_ms + excluded.long_idle_ms,"
    " energy_mj = energy_mj + excluded.energy_mj, energy_ms = energy_ms + excluded.energy_ms,"
    " samples = samples + excluded.samples, rev = excluded.rev"
)
_TICK_SLOT = (
    "INSERT INTO tick_slot VALUES (?, ?, ?, ?, ?) ON CONFLICT(slot, status, cover_ms) DO UPDATE SET"
    " ticks = ticks + excluded.ticks, rev = excluded.rev"
)


@dataclass(frozen=True)
class KnownRule:
    """A stored rule, and from how much unbroken idle-held time it calls a stretch long."""

    id: int
    long_idle_ms: int


class TickWriter:
    """Everything the writer keeps in mind between ticks. Lives as long as nobody else wrote in between."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.people = People(session)
        self._devices = Devices(session)
        self._present = Present(session)
        self._holds = Holds(session)
        self._stretches = Stretches(session)
        self._credits = Credits()
        self._samples = Samples(session)
        self._counts: defaultdict[tuple[int, int, int], int] = defaultdict(int)
        rows = session.rows("SELECT max(longest_cover_ms), max(users_since_slot) FROM store")
        self._longest_cover_ms = int(rows[0][0] or 0)
        self._users_since_slot = int(rows[0][1] or 0)
        # What other recorders took lies below zero; see past.py.
        self._next_tick = int(session.rows("SELECT max(0, coalesce(max(id), 0)) + 1 FROM tick")[0][0])

    def known_devices(self) -> tuple[KnownDevice, ...]:
        rows = (row for row in self._devices.by_uuid.values() if row.retired_at_ms is None)
        return tuple(row.known(self._present.last_seen_ms(row.id)) for row in rows)

    def settle(self, store: int, boot: int, now_ms: int) -> None:
        """Let go of what cannot be here any more: another machine's cards, and processes of another boot.

        A card of the former machine that is met here after all goes on with its history.
        """
        for device, until_ms in self._session.rows(
            "SELECT device, until_ms FROM card_now JOIN device ON device.id = card_now.device"
            " JOIN tick ON tick.id = card_now.tick JOIN run ON run.id = tick.run"
            " WHERE retired_at_ms IS NULL AND run.store <> ?",
            (store,),
        ):
            self._devices.retire(device, min(until_ms, now_ms))
        gone = self._session.rows(
            "SELECT id FROM process WHERE boot <> ? AND id IN (SELECT process FROM hold WHERE is_open)", (boot,)
        )
        self._holds.end_processes({row[0] for row in gone})
        self._end_retired()

    def _end_retired(self) -> None:
        for device in self._devices.retired:
            self._holds.end(device)
            self._stretches.end(device)
        self._devices.retired.clear()

    def retire(self, uuid: str, at_ms: int) -> bool:
        """Expect a card no longer; see StoreWriter.retire_card."""
        row = self._devices.by_uuid.get(uuid)
        if row is None or row.retired_at_ms is not None:
            return False
        self._devices.retire(row.id, at_ms)
        self._end_retired()
        return True

    def write(self, tick: Tick, run: int, rule_of: Callable[[CardTick], KnownRule]) -> None:
        """Take in one tick. rule_of: the rule that judged a card. Rows that can wait are written by `flush`."""
        cards = self._devices.note(tick.cards, tick.mig_parents, tick.ts_ms)
        self._end_retired()
        spans = self._uncovered(tick)
        tick_id = self._insert_tick(tick, run, spans)
        self._name_users_from(tick.ts_ms // SLOT_MS)
        self._counts[tick.ts_ms // SLOT_MS, STATUS_CODE[tick.status], tick.cover_ms] += 1
        covered_ms = sum(length_ms(span) for span in spans)
        time = TickTime(tick_id, tick.ts_ms, spans[-1][1] if spans else tick.ts_ms, tick.cover_ms, covered_ms)
        cut = tuple(pieces(spans))
        for device, card in cards:
            rule = rule_of(card)
            verdict = VERDICT_CODE[card.verdict]
            stretch = self._stretches.advance(device.id, rule.id, tick_id, verdict, spans, tick.cover_ms)
            self._turn_long(stretch, tick_id, rule.long_idle_ms)
            self._take_card(device, card, time, rule.id, cut, is_long=stretch is not None and stretch.is_long)

    def flush(self) -> None:
        """Write what waits."""
        connection, rev = self._session.connection, self._session.rev
        self._samples.flush()
        connection.executemany(_CARD_SLOT, ((*key, *sums, rev) for key, sums in self._credits.cards.items()))
        connection.executemany(_USER_SLOT, ((*key, *sums, rev) for key, sums in self._credits.users.items()))
        connection.executemany(_TICK_SLOT, ((*key, ticks, rev) for key, ticks in self._counts.items()))
        self._credits = Credits()
        self._counts.clear()
        self._holds.flush()
        self._stretches.flush()
        self._present.flush()
        self.people.forget_except(self._holds.open_processes)

    def _uncovered(self, tick: Tick) -> tuple[Span, ...]:
        """What the tick covers and no stored tick does. Only spans that may reach it are asked for."""
        span = (tick.ts_ms, tick.ts_ms + tick.cover_ms)
        near = (span[0] - self._longest_cover_ms - 1, span[1])
        taken = self._session.rows(
            "SELECT ts_ms + cover_from, ts_ms + cover_until FROM tick WHERE ts_ms > ? AND ts_ms < ?"
            " AND cover_until > cover_from UNION ALL SELECT from_ms, until_ms FROM tick_fragment WHERE tick IN"
            " (SELECT id FROM tick WHERE ts_ms > ? AND ts_ms < ?)",
            near + near,
        )
        return subtract(span, taken)

    def _insert_tick(self, tick: Tick, run: int, spans: tuple[Span, ...]) -> int:
        first = spans[0] if spans else (tick.ts_ms, tick.ts_ms)
        tick_id = self._session.insert(
            "tick",
            id=self._next_tick,
            ts_ms=tick.ts_ms,
            run=run,
            status=STATUS_CODE[tick.status],
            cover_ms=tick.cover_ms,
            cover_from=first[0] - tick.ts_ms,
            cover_until=first[1] - tick.ts_ms,
            fault=f"{tick.fault.call}: {tick.fault.error}" if tick.fault else None,
            rev=self._session.rev,
        )
        self._next_tick += 1
        for start, end in spans[1:]:
            self._session.insert("tick_fragment", tick=tick_id, from_ms=start, until_ms=end)
        if tick.cover_ms > self._longest_cover_ms:
            self._longest_cover_ms = tick.cover_ms
            self._session.connection.execute("UPDATE store SET longest_cover_ms = ?", (tick.cover_ms,))
        if tick.driver_version is not None:
            self._session.connection.execute(
                "UPDATE run SET driver_version = ?, rev = ? WHERE id = ? AND driver_version IS NOT ?",
                (tick.driver_version, self._session.rev, run, tick.driver_version),
            )
        return tick_id

    def _name_users_from(self, slot: int) -> None:
        """A clock set far back names users in slots that were through with that: they will be gone through again."""
        if slot < self._users_since_slot:
            self._users_since_slot = slot
            self._session.connection.execute("UPDATE store SET users_since_slot = ?", (slot,))

    def _take_card(
        self, device: DeviceRow, card: CardTick, time: TickTime, rule: int, cut: tuple[Piece, ...], *, is_long: bool
    ) -> None:
        verdict = VERDICT_CODE[card.verdict]
        users: tuple[int, ...] = ()
        if card.evidence.holders is not None:
            seen = self._seen(card)
            users = users_of(seen)
            self._holds.look(device.id, seen, time, STATE_OF_VERDICT[verdict], long_idle=is_long)
        if not users and verdict == IDLE_HELD:
            users = (self.people.unattributed(),)
        power_dw = _power_dw(card)
        self._credits.add(
            Sample(device.id, rule, verdict, users, power_dw, is_long), cut, counted_in=time.ts_ms // SLOT_MS
        )
        energy_j = self._present.note(device.id, card, time)
        self._samples.add(time.id, device.id, card, verdict=verdict, rule=rule, power_dw=power_dw, energy_j=energy_j)

    def _seen(self, card: CardTick) -> list[Seen]:
        seen = []
        for holder in card.holders:
            process, user = self.people.process(holder.identity)
            listed = holder.process
            seen.append(Seen(process, user, PROCESS_TYPE_CODE[listed.type], listed.memory_mb, listed.sm_util_pct))
        return seen

    def _turn_long(self, stretch: Optional[Stretch], tick: int, long_idle_ms: int) -> None:
        """When a stretch has just become long, credit what came before this tick as long idle-held too."""
        if stretch is None or stretch.is_long or stretch.end_ms - stretch.start_ms < long_idle_ms:
            return
        self.flush()
        before = ticks_between(self._session, stretch.first_tick, tick - 1)
        held: defaultdict[int, int] = defaultdict(int)
        for raw in samples_of(self._session, before, stretch.device):
            if raw.sample.verdict == IDLE_HELD:
                self._credits.add_long_idle(raw.sample, pieces(raw.tick.spans))
                for hold in raw.holds:
                    held[hold.id] += sum(length_ms(span) for span in raw.tick.spans)
        for hold_id, covered_ms in held.items():
            self._holds.add_long_idle(hold_id, covered_ms)
        self._stretches.make_long(stretch)


def _power_dw(card: CardTick) -> Optional[int]:
    """Tenths of a watt; None for a MIG instance, whose parent's power is not its own."""
    reading = card.reading
    return None if reading.power_w is None or reading.mig is not None else round(reading.power_w * 10)
