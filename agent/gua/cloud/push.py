"""The daemon's push: in a thread of its own, so that no board ever delays a tick. Only the newest state counts."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Optional

from gua.clock import Clock
from gua.cloud.backoff import LONGEST_S, backoff_s
from gua.cloud.config import CloudConfig
from gua.cloud.heard import HeardKeeper
from gua.cloud.sender import PayloadUnbuildable, StateSender, open_sender
from gua.config import Settings
from gua.errors import GuaError, PayloadRefused, TokenRefused
from gua.model import Tick
from gua.text import shown

logger = logging.getLogger(__name__)

# A failure that lasts, or comes and goes, is said again after this long.
_REPEAT_S = 600.0
# Boards that word every refusal anew must not fill the memory.
_MOST_REMEMBERED = 100


class Pusher:
    """Hands the newest state to the board whenever the board takes it; states in between are let go.

    `offer` and `close` never raise, and `offer` never waits.
    """

    def __init__(self, sender: StateSender, clock: Clock, first_backoff_s: float) -> None:
        """first_backoff_s: how long the board is left alone after a first failure."""
        self._sender = sender
        self._clock = clock
        self._first_backoff_s = first_backoff_s
        self._changed = threading.Condition()
        self._newest: Optional[Tick] = None
        self._closing = False
        self._not_before_s = 0.0
        self._failures = 0
        self._journal = _PushJournal()
        self._thread = threading.Thread(target=self._run, name="gua-push", daemon=True)
        self._thread.start()

    def offer(self, tick: Tick) -> None:
        """Make this the state to be pushed next. To be called after the tick was stored."""
        with self._changed:
            self._newest = tick
            self._changed.notify()

    def close(self, timeout_s: float) -> bool:
        """Push a state that is still waiting, at once and once only, and end; whether that was done in time.

        An attempt that takes longer is left behind, and ends with the program.
        """
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(max(0.0, timeout_s))
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            tick = self._await_turn()
            if tick is None:
                return
            self._push(tick)

    def _await_turn(self) -> Optional[Tick]:
        """The newest state as soon as it may be pushed; None when nothing is left to do."""
        with self._changed:
            while True:
                wait_s = self._not_before_s - self._clock.monotonic_s()
                if self._newest is not None and (wait_s <= 0 or self._closing):
                    tick, self._newest = self._newest, None
                    return tick
                if self._closing:
                    return None
                self._changed.wait(None if self._newest is None else wait_s)

    def _push(self, tick: Tick) -> None:
        now_s = self._clock.monotonic_s()
        try:
            self._sender.send(tick, broken=_saw_nothing(tick))
        except (PayloadRefused, PayloadUnbuildable) as exc:
            self._failed(exc, now_s, None)  # the same state would fare no better: dropped
        except TokenRefused as exc:
            self._failed(exc, now_s, LONGEST_S, again=tick)
        except GuaError as exc:
            self._failed(exc, now_s, self._first_backoff_s, again=tick)
        except Exception as exc:  # noqa: BLE001 - no defect of ours may end the pushing for the rest of a year
            self._failed(GuaError(f"the push failed: {type(exc).__name__}"), now_s, self._first_backoff_s)
        else:
            self._failures, self._not_before_s = 0, 0.0
            self._journal.pushed()

    def _failed(self, error: GuaError, now_s: float, first_s: Optional[float], again: Optional[Tick] = None) -> None:
        """first_s: how long to wait after a first failure, None: until the next state. again: what to keep for it."""
        self._failures += 1
        if first_s is not None:
            wait_s = backoff_s(self._failures, first_s, random.random())
            asked_s = float(getattr(error, "retry_after_s", None) or 0)
            self._not_before_s = self._clock.monotonic_s() + max(wait_s, min(asked_s, LONGEST_S))
        with self._changed:
            if self._newest is None and not self._closing:
                self._newest = again
        self._journal.failed(error, now_s)


def _saw_nothing(tick: Tick) -> bool:
    """Whether NVML lists no card though the bus has one: a host without any is not ticked."""
    return not (tick.cards or tick.strangers or tick.mig_parents)


class _PushJournal:
    """Says what becomes of the pushes: on change, and now and then while a failure lasts."""

    def __init__(self) -> None:
        self._said_s: dict[str, float] = {}
        self._failures = 0
        self._told = True  # whether somebody waits to hear that it works: at first, and after a failure that was told

    def pushed(self) -> None:
        if self._told:
            after = f", after {_pushes(self._failures)}" if self._failures else ""
            logger.info("the board has this host's newest state%s", after)
        self._failures, self._told = 0, False

    def failed(self, error: GuaError, now_s: float) -> None:
        self._failures += 1
        text = str(error)
        if now_s - self._said_s.get(text, -_REPEAT_S) < _REPEAT_S:
            return
        if len(self._said_s) >= _MOST_REMEMBERED:
            self._said_s.clear()
        loud = isinstance(error, (TokenRefused, PayloadRefused, PayloadUnbuildable))
        before = f" ({_pushes(self._failures)})" if self._failures > 1 else ""
        logger.log(logging.ERROR if loud else logging.WARNING, "not pushed: %s%s", text, before)
        self._said_s[text], self._told = now_s, True


def _pushes(failures: int) -> str:
    return "1 failed push" if failures == 1 else f"{failures} failed pushes"


def open_pusher(
    settings: Settings,
    cloud_config: CloudConfig,
    clock: Clock,
    database: Path,
    renew: Optional[Callable[[], CloudConfig]] = None,
) -> Pusher:
    """The pusher of a daemon, at work. Contacts nobody before the first state is offered.

    database: beside it is kept what the board took. renew: the enrolment there is now, for when the board refuses
    this one.
    """
    logger.info("pushing to %s as %s", cloud_config.server_url, shown(cloud_config.display_name))
    sender = open_sender(cloud_config, logger.warning, HeardKeeper(database, clock), renew)
    return Pusher(sender, clock, settings.interval_ms / 1000)
