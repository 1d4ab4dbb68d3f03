"""SSH servers of the library that let nobody in, each for want of another method."""

from __future__ import annotations

import socket
import threading
import time

import paramiko

from tests.fleet.ssh.stalls import Conversation


class _TakesOnly(paramiko.ServerInterface):
    """Names `method` as the only one it takes. key_first: a key is right, but not enough."""

    def __init__(self, method: str, key_first: bool) -> None:
        self._method = method
        self._key_first = key_first

    def get_allowed_auths(self, username: str) -> str:
        return self._method

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return paramiko.AUTH_PARTIALLY_SUCCESSFUL if self._key_first else paramiko.AUTH_FAILED


def takes_only(method: str, host_key: paramiko.PKey, *, key_first: bool = False) -> Conversation:
    def converse(client: socket.socket, over: threading.Event) -> None:
        transport = paramiko.Transport(client)
        transport.add_server_key(host_key)
        transport.start_server(server=_TakesOnly(method, key_first))
        while transport.is_active() and not over.is_set():
            time.sleep(0.05)
        transport.close()

    return converse
