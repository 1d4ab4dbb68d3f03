"""What of a daemon may change while it runs: who samples, by which rules, how often, and which board hears of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Optional

from gua.clock import Clock
from gua.collect import TickSource
from gua.config import Settings
from gua.daemon.notify import Notifier
from gua.daemon.orders import Orders
from gua.daemon.recorder import Outlet, Recorder
from gua.daemon.stop import SignalStop
from gua.errors import GuaError, NotEnrolled
from gua.model import KnownDevice, Tick
from gua.recording import open_source
from gua.rulebook import RuleBook

if TYPE_CHECKING:
    from gua.cloud.config import CloudConfig
    from gua.daemon.textfile import Textfile

logger = logging.getLogger(__name__)

# What a tick may take besides its sample: children to reap, other writers of the database to wait for, a slow disk.
_BESIDE_THE_SAMPLE_S = 30.0

# A board that does not answer must not hold up a stop, of which one second is promised in all.
_OUTLET_S = 0.7


def longest_tick_s(settings: Settings) -> float:
    """How long a tick may take, at the very worst."""
    return settings.nvml_deadline_ms / 1000 + _BESIDE_THE_SAMPLE_S


class LiveSource:
    """The `TickSource` under the settings in force, for a daemon's whole life.

    The sampling process goes on unless it is told something itself. Then another one begins at the next tick, or when
    the driver lets go of this one: there are never two.
    """

    def __init__(self, settings: Settings, clock: Clock, *, fake: bool) -> None:
        self._settings, self._clock, self._fake = settings, clock, fake
        self._source: TickSource = open_source(settings, clock, fake=fake)
        self._source_for = _for_sampling(settings)

    def take(self, settings: Settings) -> None:
        self._settings = settings
        self._source.judge_by(settings.rules)

    def collect(self, *, ts_ms: int, cover_ms: int, known: Sequence[KnownDevice]) -> Tick:
        wanted = _for_sampling(self._settings)
        if self._source_for != wanted and self._source.close():
            self._source, self._source_for = open_source(self._settings, self._clock, fake=self._fake), wanted
        return self._source.collect(ts_ms=ts_ms, cover_ms=cover_ms, known=known)

    def judge_by(self, rules: RuleBook) -> None:
        self._source.judge_by(rules)

    def close(self) -> bool:
        return self._source.close()


def _for_sampling(settings: Settings) -> tuple[object, ...]:
    return settings.nvml_deadline_ms, settings.trust_pid_namespace


class Outlets:
    """The board and the file of metrics, as far as they were asked for."""

    def __init__(self, orders: Orders, clock: Clock) -> None:
        self._orders, self._clock = orders, clock
        self._board: Optional[Outlet] = None
        self._board_as: Optional[tuple[CloudConfig, int]] = None
        self._textfile: Optional[Textfile] = None
        self._opened = False
        self._end_until_s: Optional[float] = None

    def open(self, settings: Settings) -> Sequence[Outlet]:
        """All of them, at work. Raises GuaError where a board was asked for and there is no enrolment.

        Those that were opened once stay as they are: another database is no reason to end over an enrolment.
        """
        if not self._opened:
            if self._orders.load_cloud is not None:
                self._push(settings, self._orders.load_cloud, self._orders.load_cloud())
            if self._orders.textfile is not None:
                from gua.daemon.textfile import Textfile

                self._textfile = Textfile(
                    self._orders.textfile,
                    self._orders.database,
                    self._clock,
                    settings,
                    self._orders.per_user,
                    self._orders.enrolment,
                )
        self._opened = True
        return self._all()

    def take(self, settings: Settings) -> Sequence[Outlet]:
        """The same under other settings, and with the enrolment that is there now, or none where there is none.

        Raises GuaError where it cannot be used; then the board stays as it was.
        """
        if self._textfile is not None:
            self._textfile.take(settings)
        load = self._orders.load_cloud
        if load is not None:
            try:
                self._push(settings, load, load())
            except NotEnrolled as exc:
                self._end_pushing()
                logger.warning("nothing is pushed from now on: %s", exc)
        return self._all()

    def _push(self, settings: Settings, load: Callable[[], CloudConfig], config: CloudConfig) -> None:
        if self._board_as == (config, settings.interval_ms):
            return
        from gua.cloud.push import open_pusher

        self._end_pushing()
        self._board = open_pusher(settings, config, self._clock, self._orders.database, load)
        self._board_as = config, settings.interval_ms

    def _end_pushing(self) -> None:
        """What it still has is older than what another one is given next."""
        if self._board is not None:
            self._board.close(0.0)
        self._board, self._board_as = None, None

    def _all(self) -> Sequence[Outlet]:
        return [outlet for outlet in (self._board, self._textfile) if outlet is not None]

    def begin_to_end(self) -> float:
        """Tell them all that this is the end, and until when (monotonic): they end while others do."""
        self._end_until_s = until_s = self._clock.monotonic_s() + _OUTLET_S
        for one in self._all():
            one.close(0.0)  # they end side by side
        return until_s

    def close(self) -> None:
        """End them all, within the time that one has."""
        until_s = self._end_until_s or self.begin_to_end()
        for outlet, name in ((self._board, "the board"), (self._textfile, "the file of metrics")):
            left_s = max(0.0, until_s - self._clock.monotonic_s())
            if outlet is not None and not outlet.close(left_s):
                logger.warning("%s does not take the last state in time: left", name)


class Reloader:
    """Answers SIGHUP: reads the settings and the enrolment again. What is wrong is told, and what was before stays.

    settings: those in force.
    """

    def __init__(
        self,
        orders: Orders,
        settings: Settings,
        stop: SignalStop,
        notify: Notifier,
        clock: Clock,
        source: LiveSource,
        recorder: Recorder,
        outlets: Outlets,
    ) -> None:
        self._orders, self.settings = orders, settings
        self._stop, self._notify, self._clock = stop, notify, clock
        self._source, self._recorder, self._outlets = source, recorder, outlets

    @property
    def requested(self) -> bool:
        return self._stop.reload_requested

    def take(self) -> int:
        """Take what is new. The interval from now on, in milliseconds."""
        self._stop.reload_requested = False
        self._notify.reloading(self._clock.monotonic_s())
        try:
            self._apply(self._orders.load_settings())
        except GuaError as exc:
            logger.error("the settings stay as they were: %s", exc)
        except Exception:  # as for ticks: no reload may end the daemon
            logger.exception("the settings may be in force in part; this is a defect of ours, please report it")
        finally:
            self._notify.ready()
        return self.settings.interval_ms

    def _apply(self, settings: Settings) -> None:
        if settings.store_path != self.settings.store_path:
            logger.warning("[store] path: another database is taken at the next start only")
        self.settings = settings
        self._notify.expect(longest_tick_s(settings))
        self._source.take(settings)
        self._recorder.take(settings)
        logger.info("settings read again: sampling every %g s", settings.interval_ms / 1000)
        try:
            self._recorder.tell(self._outlets.take(settings))
        except GuaError as exc:
            logger.error("the board stays as it was: %s", exc)
