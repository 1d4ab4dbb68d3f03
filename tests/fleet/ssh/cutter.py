"""A cable between a client and an SSH server on loopback that is cut after so many bytes of what the server sends."""

from __future__ import annotations

import contextlib
import socket
import threading

_PIECE = 4096


class Cutter:
    """Listens on `port` and passes everything on to the server's. sent: bytes of the server's, over all connections."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.sent = 0
        self._left: int | None = None
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_after(self, left: int | None) -> None:
        """Cut the next connections after so many bytes, as if somebody had pulled the plug; None: never."""
        self._left, self.sent = left, 0

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed
                return
            server = socket.create_connection(("127.0.0.1", self._server_port))
            for way in (self._to_server, self._to_client):
                threading.Thread(target=way, args=(client, server), daemon=True).start()

    def _to_server(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(_PIECE):
                server.sendall(data)
        _hang_up(client, server)

    def _to_client(self, client: socket.socket, server: socket.socket) -> None:
        left = self._left
        with contextlib.suppress(OSError):
            while data := server.recv(_PIECE if left is None else min(_PIECE, left) or 1):
                if left is not None:
                    data = data[:left]
                    left -= len(data)
                client.sendall(data)
                self.sent += len(data)
                if left == 0:
                    break
        _hang_up(client, server)


def _hang_up(*ends: socket.socket) -> None:
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
