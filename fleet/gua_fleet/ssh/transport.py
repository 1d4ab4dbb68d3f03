"""The library's transport, tuned for many short conversations, and silent when it ends."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from typing import Any

import paramiko
from paramiko.packet import Packetizer

from gua_fleet.ssh.trust import prefer_types

# Offered last by the library, and broken or weak: nobody should end up with them.
DISABLED_ALGORITHMS = {
    "ciphers": ["aes128-cbc", "aes192-cbc", "aes256-cbc", "3des-cbc"],
    "macs": ["hmac-sha1", "hmac-md5", "hmac-sha1-96", "hmac-md5-96"],
}
_LET_GO_S = 1.0


class SweepTransport(paramiko.Transport):
    """One conversation over a connected socket, or over a channel of a jump host."""

    def __init__(self, sock: Any, *, key_types_on_file: Sequence[str], **kwargs: Any) -> None:
        super().__init__(sock, packetizer_class=_UntimedPacketizer, **kwargs)
        options = self.get_security_options()
        options.key_types = prefer_types(tuple(options.key_types), key_types_on_file)
        # authenticated ones first: the library compares the other kind's MACs byte by byte in Python
        options.ciphers = sorted(options.ciphers, key=lambda name: "gcm" not in name)
        # The library would look ten times a second whether its thread was told to end. A closed socket wakes it at
        # once, so it need not, and every read costs one system call less.
        sock.settimeout(None)

    def run(self) -> None:
        """The library's thread. Its last act is to close a socket that may be gone (a jump host's channel says good-bye
        to a connection that hung up first): whoever waits was told before, and nobody else wants a traceback.
        """
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            super().run()

    def close(self) -> None:
        """End the conversation, and its thread before whatever it runs over is closed."""
        super().close()
        if self.is_alive() and self is not threading.current_thread():
            self.join(_LET_GO_S)

    def _parse_debug(self, m: paramiko.Message) -> None:
        """Read nothing: the library would clean up, letter by letter, what then goes to a log that nobody reads."""


class _UntimedPacketizer(Packetizer):
    """Leaves a silent hand-shake to the client's own limit.

    The library's timer beside it would be one more thread for each connection, that outlives a dead one by the whole
    time it was set for, and would call the host one that closed the connection.
    """

    def start_handshake(self, timeout: float) -> None:
        """Set no timer. timeout: seconds."""
