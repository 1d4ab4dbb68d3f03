"""Servers that stall, each at another stage of an SSH conversation, and one that hangs up."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

import paramiko

Conversation = Callable[[socket.socket, threading.Event], None]
"""Speaks with one client until the event says that the test is over."""


@contextlib.contextmanager
def serving(conversation: Conversation) -> Iterator[int]:
    """A server on 127.0.0.1; gives its port."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_accept, args=(listener, conversation, over), daemon=True)
        thread.start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            over.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(5)


def _accept(listener: socket.socket, conversation: Conversation, over: threading.Event) -> None:
    while not over.is_set():
        try:
            client, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_speak, args=(client, conversation, over), daemon=True).start()


def _speak(client: socket.socket, conversation: Conversation, over: threading.Event) -> None:
    with client, contextlib.suppress(OSError, EOFError, paramiko.SSHException):
        conversation(client, over)


def silent(client: socket.socket, over: threading.Event) -> None:
    over.wait(300)


def endless_banner(client: socket.socket, over: threading.Event) -> None:
    while not over.wait(2):  # the library gives up after a hundred lines: not before any test's deadline
        client.sendall(b"please wait\r\n")


def banner_then_silence(client: socket.socket, over: threading.Event) -> None:
    client.sendall(b"SSH-2.0-Stalled\r\n")
    over.wait(300)


def hangs_up(client: socket.socket, over: threading.Event) -> None:
    client.recv(1)


def not_ssh(client: socket.socket, over: threading.Event) -> None:
    client.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")


class StallAt(paramiko.ServerInterface):
    """A real SSH server of the library that never answers at `stage`: auth, open, exec or output."""

    def __init__(self, stage: str, over: threading.Event, reached: threading.Event) -> None:
        self._stage = stage
        self._over = over
        self._reached = reached

    def _pass(self, stage: str) -> None:
        if stage == self._stage:
            self._reached.set()
            self._over.wait(300)

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        self._pass("auth")
        return paramiko.AUTH_SUCCESSFUL

    def check_channel_request(self, kind: str, chanid: int) -> int:
        self._pass("open")
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self._pass("exec")
        return True


class RefuseCommands(StallAt):
    """The same that stalls nowhere, and runs nothing."""

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        return False


class Leave(StallAt):
    """The same that hangs up when it is to run something, as a host that goes down just then."""

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        channel.get_transport().close()
        return False


def stalling(stage: str, host_key: paramiko.PKey, reached: threading.Event | None = None) -> Conversation:
    """The conversation of StallAt. reached: set once it stalls."""
    return _of_library(host_key, lambda over: StallAt(stage, over, reached or threading.Event()))


def refusing(host_key: paramiko.PKey) -> Conversation:
    """The conversation of RefuseCommands."""
    return _of_library(host_key, lambda over: RefuseCommands("", over, threading.Event()))


def leaving(host_key: paramiko.PKey) -> Conversation:
    """The conversation of Leave."""
    return _of_library(host_key, lambda over: Leave("", over, threading.Event()))


def _of_library(host_key: paramiko.PKey, make: Callable[[threading.Event], paramiko.ServerInterface]) -> Conversation:
    def converse(client: socket.socket, over: threading.Event) -> None:
        transport = paramiko.Transport(client)
        transport.add_server_key(host_key)
        transport.start_server(server=make(over))
        while transport.is_active() and not over.is_set():
            time.sleep(0.05)
        transport.close()

    return converse
