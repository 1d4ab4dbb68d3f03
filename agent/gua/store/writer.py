"""The one way into the database: each tick, its samples, holds and roll-ups in one transaction."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any, Optional, TypeVar, cast

from peewee import PeeweeException, SqliteDatabase

from gua.errors import DatabaseDamaged, DatabaseReplaced, DatabaseUnusable
from gua.model import CardTick, KnownDevice, Rule, Tick
from gua.store.connection import connection_of, first_error, never, patiently
from gua.store.copies import KEPT_MS, drop_before, find_copies
from gua.store.expiry import expire_slot, old_slot
from gua.store.files import is_damage
from gua.store.retention import Retention, believed_now_ms, old_ticks, remove_ticks
from gua.store.session import Session
from gua.store.ticks import KnownRule, TickWriter
from gua.store.wal import WalWatch

logger = logging.getLogger(__name__)

Ticks = TypeVar("Ticks", bound=TickWriter)

# Ticks of one bulk transaction that may wait in memory before they are flushed.
_BULK_TICKS = 240

_GOES_ON = "(until_ms IS NULL OR until_ms > ?)"

_RULE_COLUMNS = ("active_util_pct", "held_mb", "unattributed_mb", "unattributed_v1_mb", "long_idle_s")


class StoreWriter:
    """Writes ticks. Another process may write to the same database in between: what it changed is then read again.

    give_up: asked while another writer's transaction is waited for; True ends the wait.
    retention: what is kept how long; None: everything for ever.
    moved_aside: where a file went that was found in the database's place and is no database; None otherwise.
    """

    def __init__(
        self,
        database: SqliteDatabase,
        *,
        now_ms: Callable[[], int],
        machine_id: str,
        boot_id: str,
        hostname: str,
        moved_aside: Optional[Path] = None,
        give_up: Callable[[], bool] = never,
        retention: Optional[Retention] = None,
    ) -> None:
        self.moved_aside = moved_aside
        self._retention = retention
        self._copies = find_copies(Path(str(database.database)))  # none is made while this one writes
        self._wal = WalWatch(str(database.database))
        self._database = database
        self._session = Session(connection_of(database))
        self._inode = _inode(str(database.database))
        self._now_ms = now_ms
        self._boot_id = boot_id
        self._hostname = hostname
        self._ticks: Optional[TickWriter] = None
        self._run: Optional[tuple[int, KnownRule]] = None
        self._interval_ms = 0
        self._rules: dict[Rule, KnownRule] = {}
        self._give_up = give_up
        self._make_ticks: Callable[[Session], TickWriter] = TickWriter
        self._store = self._take_store(machine_id)

    def known_devices(self) -> tuple[KnownDevice, ...]:
        """The cards this host's history expects to see, in the order they were first seen."""
        with self._errors(), self._database.atomic():
            return self._in_mind().known_devices()

    def begin_run(self, kind: str, interval_ms: int, rule: Rule, agent_version: str) -> None:
        """Begin one life of a collector: kind `daemon`, `sync-once` or `demo`. Ends a run that is under way."""
        self.end_run()
        with self._transaction() as ticks:
            known = self._known_rule(rule)
            boot = ticks.people.boot(self._boot_id)
            ticks.settle(self._store, boot, self._now_ms())
            newest = self._session.rows("SELECT max(0, coalesce(max(id), 0)) FROM run")[0][0]
            run = self._session.insert(
                "run",
                id=newest + 1,
                store=self._store,
                boot=boot,
                rule=known.id,
                kind=kind,
                hostname=self._hostname,
                interval_ms=interval_ms,
                agent_version=agent_version,
                started_ms=self._now_ms(),
                rev=self._session.rev,
            )
        self._run = (run, known)
        self._interval_ms = interval_ms

    def keep(self, retention: Retention) -> None:
        """From now on keep history for so long."""
        self._retention = retention

    def write_tick(self, tick: Tick) -> None:
        """Store one tick, in one transaction; it is on disk, or not at all. Call `begin_run` first.

        Raises DatabaseUnusable: disk full, database locked or gone. The next tick may then be tried.
        """
        self.write_ticks((tick,))
        self._tend()

    def write_ticks(self, ticks: Iterable[Tick]) -> None:
        """Store many ticks in one transaction, all or none."""
        if self._run is None:
            raise RuntimeError("begin_run comes before the first tick")
        run, rule = self._run

        def rule_of(card: CardTick) -> KnownRule:
            return rule if card.rule is None else self._known_rule(card.rule)

        with self._transaction() as writer:
            for number, tick in enumerate(ticks, start=1):
                writer.write(tick, run, rule_of)
                if number % _BULK_TICKS == 0:
                    writer.flush()

    @contextlib.contextmanager
    def transaction_with(
        self, make: Callable[[Session], Ticks]
    ) -> Iterator[tuple[Ticks, int, Callable[[Rule], KnownRule]]]:
        """A transaction by another kind of tick writer, with the store's id and a way to have a rule stored.

        What `make` gives is kept in mind between transactions, like our own.
        """
        if self._make_ticks is not make:
            self._make_ticks, self._ticks = make, None
        with self._transaction() as ticks:
            yield cast("Ticks", ticks), self._store, self._known_rule

    def has_run(self) -> bool:
        """Whether any run on this host was recorded, so that reports know its name."""
        with self._errors():
            return bool(self._session.rows("SELECT 1 FROM run WHERE store = ? AND id >= 0 LIMIT 1", (self._store,)))

    @contextlib.contextmanager
    def reading(self) -> Iterator[Session]:
        """To look around outside of a transaction."""
        with self._errors():
            yield self._session

    def begin_pause(self, now_ms: int, until_ms: Optional[int] = None) -> None:
        """From now on nobody looks, because somebody said so. Within a pause it changes that one's end. Needs a run.

        until_ms: its end where that is known, so that it is over then though the daemon may be gone; None: no end.
        """
        if self._run is None:
            raise RuntimeError("begin_run comes before a pause")
        run, _ = self._run
        with self._transaction():
            changed = self._session.connection.execute(
                f"UPDATE pause SET until_ms = ?, rev = ? WHERE {_GOES_ON}", (until_ms, self._session.rev, now_ms)
            )
            if not changed.rowcount:
                self._session.insert("pause", run=run, from_ms=now_ms, until_ms=until_ms, rev=self._session.rev)

    def end_pause(self, now_ms: int) -> None:
        """The pause is over, if there is one; one whose daemon died in it too."""
        with self._transaction():
            self._session.connection.execute(
                f"UPDATE pause SET until_ms = max(from_ms, ?), rev = ? WHERE {_GOES_ON}",
                (now_ms, self._session.rev, now_ms),
            )

    def retire_card(self, uuid: str, at_ms: int) -> bool:
        """Expect this card no longer than `at_ms`, unless it is met again. False: not known, or retired before."""
        with self._transaction() as ticks:
            return ticks.retire(uuid, at_ms)

    def end_run(self) -> None:
        """End the run, if one is under way."""
        if self._run is None:
            return
        with self._transaction():
            self._session.connection.execute(
                "UPDATE run SET ended_ms = ?, rev = ? WHERE id = ?", (self._now_ms(), self._session.rev, self._run[0])
            )
        self._run = None

    def close(self) -> None:
        """End the run and close the database."""
        with contextlib.suppress(DatabaseUnusable):
            self.end_run()
        self._database.close()

    def _tend(self) -> None:
        """A little housekeeping after each tick. What cannot be done now can be done later."""
        self._wal.look()
        if self._retention is None:
            return
        try:
            self._remove_old(self._retention)
        except DatabaseDamaged:
            raise
        except DatabaseUnusable as exc:
            logger.debug("old ticks stay for now: %s", exc)

    def _remove_old(self, retention: Retention) -> None:
        with self._errors():
            now_ms = believed_now_ms(self._session, self._now_ms(), self._interval_ms)
            ticks = [] if now_ms is None else old_ticks(self._session, now_ms - retention.raw_ms)
            slot = None if ticks or now_ms is None else old_slot(self._session, now_ms - retention.user_ms)
        if now_ms is not None:
            self._copies = drop_before(self._copies, now_ms - KEPT_MS)
        if ticks:
            with self._transaction():
                remove_ticks(self._session, ticks)
        elif slot is not None:
            with self._transaction():
                changed = expire_slot(self._session, slot)
            if changed:
                self._ticks = None  # it has people in mind that are no longer there

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[TickWriter]:
        with self._errors():
            try:
                with contextlib.ExitStack() as stack:
                    self._enter_immediate(stack)
                    writer = self._begin()
                    yield writer
                    writer.flush()
            except BaseException:
                self._ticks = None  # what is in mind is not what is stored
                self._rules.clear()
                raise

    def _enter_immediate(self, stack: contextlib.ExitStack) -> None:
        """Begin a transaction, once no other writer has one."""
        patiently(lambda: stack.enter_context(self._database.atomic("IMMEDIATE")), self._give_up)

    def _begin(self) -> TickWriter:
        """Take the next revision."""
        ticks = self._in_mind()
        self._session.rev += 1
        self._session.connection.execute("UPDATE store SET rev = ? WHERE id = ?", (self._session.rev, self._store))
        return ticks

    def _in_mind(self) -> TickWriter:
        """What is known of the database; read again unless the newest revision was ours."""
        rev = int(self._session.rows("SELECT rev FROM store WHERE id = ?", (self._store,))[0][0])
        if self._ticks is None or rev != self._session.rev:
            self._session.rev = rev
            self._ticks = self._make_ticks(self._session)
        return self._ticks

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        path = str(self._database.database)
        try:
            if _inode(path) != self._inode:
                raise DatabaseReplaced(f"{path} was removed or replaced while it was open")
            yield
        except (PeeweeException, sqlite3.Error) as exc:
            first = first_error(exc)
            kind = DatabaseDamaged if is_damage(first) else DatabaseUnusable
            raise kind(f"cannot write {path}: {first}") from exc

    def _take_store(self, machine_id: str) -> int:
        """The store in force on this machine; a database that came from another machine begins a new one."""
        with self._errors(), contextlib.ExitStack() as stack:
            self._enter_immediate(stack)
            newest = self._session.rows("SELECT id, machine_id, rev FROM store ORDER BY id DESC LIMIT 1")
            if newest and newest[0][1] == machine_id:
                return int(newest[0][0])
            return self._session.insert(
                "store",
                store_id=uuid.uuid4().hex,
                machine_id=machine_id,
                created_ms=self._now_ms(),
                rev=newest[0][2] if newest else 0,
                longest_cover_ms=0,
            )

    def _known_rule(self, rule: Rule) -> KnownRule:
        """The rule as stored, made where it is new. Within a transaction only."""
        known = self._rules.get(rule)
        if known is None:
            known = self._rules[rule] = KnownRule(self._rule_id(rule), rule.long_idle_s * 1000)
        return known

    def _rule_id(self, rule: Rule) -> int:
        values = astuple(rule)
        where = " AND ".join(f"{column} = ?" for column in _RULE_COLUMNS)
        rows = self._session.rows(f"SELECT id FROM rule WHERE {where}", values)
        if rows:
            return int(rows[0][0])
        columns: dict[str, Any] = dict(zip(_RULE_COLUMNS, values))
        return self._session.insert("rule", **columns, rev=self._session.rev)


def _inode(path: str) -> Optional[int]:
    """Which file is there now; None when there is none."""
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return None
