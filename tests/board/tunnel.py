"""A web proxy that tunnels: `CONNECT host:port`, and then bytes both ways."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from collections.abc import Iterator


class Tunnel(socketserver.ThreadingTCPServer):
    """asked: where to, for each request. refuses: answers 403 instead."""

    daemon_threads = True

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.refuses = False
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Handler(socketserver.StreamRequestHandler):
    server: Tunnel

    def handle(self) -> None:
        target = self.rfile.readline().split()[1].decode()
        while self.rfile.readline().strip():
            pass
        self.server.asked.append(target)
        if self.server.refuses:
            self.wfile.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            return
        host, _, port = target.partition(":")
        with socket.create_connection((host, int(port))) as there:
            self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=_copy, args=(there, self.connection), daemon=True)
            back.start()
            _copy(self.connection, there)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Until either side ends."""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def running_tunnel() -> Iterator[Tunnel]:
    with Tunnel() as tunnel:
        thread = threading.Thread(target=tunnel.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield tunnel
        finally:
            tunnel.shutdown()
            thread.join()
