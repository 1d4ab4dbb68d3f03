"""Telling systemd how the daemon is: sd_notify(3), a datagram of `KEY=value` lines to NOTIFY_SOCKET."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping
from typing import Optional

from gua.text import shown

logger = logging.getLogger(__name__)


class Notifier:
    """Speaks to the service manager; does nothing where there is none.

    watchdog_s: how often it wants to hear of us at the latest, None when it does not watch.
    """

    def __init__(self, address: Optional[str], watchdog_s: Optional[float] = None) -> None:
        self._address = address
        self.watchdog_s = self._set_s = watchdog_s

    @property
    def is_heard(self) -> bool:
        """Whether there is a service manager."""
        return self._address is not None

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] = os.environ) -> Notifier:
        """The notifier that systemd's variables describe."""
        return cls(environ.get("NOTIFY_SOCKET") or None, _watchdog_s(environ))

    def ready(self) -> None:
        self._send("READY=1")

    def expect(self, longest_s: float) -> None:
        """From now on it may take so long: ask the watchdog for patience where it was set to less, and for no more."""
        if self._set_s is not None and self.watchdog_s != max(self._set_s, longest_s):
            self.watchdog_s = max(self._set_s, longest_s)
            self._send(f"WATCHDOG_USEC={round(self.watchdog_s * 1_000_000)}")

    def reloading(self, monotonic_s: float) -> None:
        """The settings are being read again; `ready` says that this is over."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={round(monotonic_s * 1_000_000)}")

    def alive(self, status: str) -> None:
        """Feed the watchdog, and say in one line what is going on."""
        self._send(f"WATCHDOG=1\nSTATUS={shown(status, 200)}")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def _send(self, message: str) -> None:
        if self._address is None:
            return
        # A leading @ stands for the NUL of an abstract socket
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
                # A manager that does not read must not hold up a tick
                channel.setblocking(False)
                channel.sendto(message.encode("utf-8"), address)
        except OSError as exc:
            logger.debug("service manager not told: %s", exc)


def _watchdog_s(environ: Mapping[str, str]) -> Optional[float]:
    usec, pid = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID")
    if not usec.isdigit() or int(usec) == 0 or (pid is not None and pid != str(os.getpid())):
        return None
    return int(usec) / 1_000_000
