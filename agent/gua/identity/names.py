"""Names of user ids and ids of names, from whatever directory this host asks (NSS), without waiting long for it.

A directory service that hangs holds one helper thread, not the tick: until it answers nothing is known.
"""

from __future__ import annotations

import pwd
import queue
import threading
from collections.abc import Callable
from typing import Generic, Optional, TypeVar

from gua.clock import Clock
from gua.text import storable

# How long one lookup may hold up a tick; a healthy SSSD answers in milliseconds.
_WAIT_S = 0.5
# Names hardly change; a uid without one may be an account that is only just being made.
_KEEP_S = 3600.0
_KEEP_MISS_S = 300.0
# Containers choose which names of directories are looked up: neither answers nor questions may pile up.
_MOST_KEPT = 4096

K = TypeVar("K")
V = TypeVar("V")


def look_up_name(uid: int) -> Optional[str]:
    """The account name of a uid; None when no directory knows it. May block as long as NSS does."""
    try:
        return storable(pwd.getpwuid(uid).pw_name) or None
    except (KeyError, ValueError, OSError):
        return None


def look_up_uid(name: str) -> Optional[int]:
    """The uid of an account name; None when no directory knows it. May block as long as NSS does."""
    try:
        return pwd.getpwnam(name).pw_uid
    except (KeyError, ValueError, OSError):
        return None


class CachedLookup(Generic[K, V]):
    """key -> value by a function that may block; cached, misses too.

    An expired value is still used while a new answer is awaited.
    """

    def __init__(self, clock: Clock, look_up: Callable[[K], Optional[V]], wait_s: float = _WAIT_S) -> None:
        self._clock = clock
        self._look_up = look_up
        self._wait_s = wait_s
        self._answers: dict[K, tuple[Optional[V], float]] = {}  # value, monotonic second until which it is fresh
        self._pending: dict[K, threading.Event] = {}
        self._late = False
        self._requests: queue.SimpleQueue[K] = queue.SimpleQueue()
        self._helper: Optional[threading.Thread] = None

    def get(self, key: K) -> Optional[V]:
        """The value; None when there is none, or none yet."""
        cached = self._answers.get(key)
        if cached is None or cached[1] <= self._clock.monotonic_s():
            self._ask(key)
            cached = self._answers.get(key)
        return None if cached is None else cached[0]

    def _ask(self, key: K) -> None:
        answered = self._pending.get(key)
        if answered is None:
            if len(self._pending) >= _MOST_KEPT:
                return
            answered = self._pending[key] = threading.Event()
            self._requests.put(key)
            self._start_helper()
        # Once one answer was late the others queue behind it: waiting for each of them would add up.
        if not self._late and not answered.wait(self._wait_s):
            self._late = True

    def _start_helper(self) -> None:
        if self._helper is None:
            # A daemon thread, so that a lookup that never returns does not hold up the program's end.
            self._helper = threading.Thread(target=self._serve, name="gua-names", daemon=True)
            self._helper.start()

    def _serve(self) -> None:
        while True:
            key = self._requests.get()
            value = self._look_up(key)
            keep_s = _KEEP_MISS_S if value is None else _KEEP_S
            if len(self._answers) >= _MOST_KEPT:
                self._answers.clear()
            self._answers[key] = (value, self._clock.monotonic_s() + keep_s)
            self._pending.pop(key).set()
            self._late = self._late and bool(self._pending)
