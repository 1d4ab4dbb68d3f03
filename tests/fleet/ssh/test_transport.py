from __future__ import annotations

import socket
import threading

import paramiko
import pytest

from gua_fleet.ssh.transport import SweepTransport


class _GoneWhenClosed(socket.socket):
    """As a jump host's channel: closing it says good-bye over a connection that is gone."""

    def close(self) -> None:
        super().close()
        raise EOFError


def test_transport_whose_way_is_gone_ends_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[object] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    ours, theirs = socket.socketpair()
    transport = SweepTransport(_GoneWhenClosed(fileno=ours.detach()), key_types_on_file=())
    theirs.close()
    with pytest.raises((EOFError, paramiko.SSHException)):
        transport.start_client(timeout=60)
    transport.join(60)
    assert not transport.is_alive()
    assert raised == []
