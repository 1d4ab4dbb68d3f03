"""The server itself: enrols, takes observations, and misbehaves as it is told."""

from __future__ import annotations

import contextlib
import enum
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Optional
from urllib.parse import urlsplit

from tests.board.contract import additions_in, faults_of

CLAIM = "/agent/v1/enrollments/claim"
OBSERVATIONS = "/agent/v1/observations"
SLOW_S = 0.1


class Misdeed(enum.Enum):
    """How a board may answer instead."""

    UNAUTHORIZED = 401
    FORBIDDEN = 403
    TOO_LARGE = 413
    UNPROCESSABLE = 422
    TOO_MANY = 429
    BROKEN = 500
    REDIRECT = 302
    LOGIN_PAGE = "a page with 200"
    NOT_JSON = "text with 200"
    RESET = "the connection is reset"
    NOT_HTTP = "another protocol"
    SILENCE = "nothing for ever"
    SLOW = "what is right, after a while"
    DRIBBLED_HEADER = "a letter at a time, for ever"
    DRIBBLED_BODY = "the same after the header"


class Board:
    """A board's state. Everything may be read and set by tests while it runs.

    one_time: enrolment tokens still good. agents: agent token -> host id. taken: accepted observations, in order.
    violations: what was sent against the contract. paths: of all requests, with the Authorization they bore.
    """

    def __init__(self) -> None:
        self.one_time: set[str] = set()
        self.agents: dict[str, str] = {}
        self.claims: list[dict[str, Any]] = []
        self.taken: list[dict[str, Any]] = []
        self.violations: list[dict[str, Any]] = []
        self.paths: list[tuple[str, Optional[str]]] = []
        self.revision = 2
        self.misdeed: Optional[Misdeed] = None
        self.next_misdeed: Callable[[], Optional[Misdeed]] = lambda: self.misdeed
        self.detail = "no, because of %s"
        self.location = ""  # where a redirect leads to; empty: to itself
        self.url = ""
        self.ended = threading.Event()

    def answer(self, path: str, authorization: Optional[str], body: Any) -> tuple[int, Any]:
        """Status and document for a request, by the contract."""
        if path == CLAIM:
            return self._claim(body)
        if path != OBSERVATIONS:
            return 404, {"detail": "Not Found"}
        scheme, _, token = (authorization or "").partition(" ")
        if scheme != "Bearer" or token not in self.agents:
            return 401, {"detail": f"unknown token {token}"}
        faults = faults_of(body)
        if faults:
            self.violations += faults if body else []  # an empty body only asks whether a board is there
            return 422, {"detail": faults}
        newer = list(additions_in(body)) if self.revision == 1 else []
        if newer:
            return 422, {"detail": newer}
        self.taken.append(body)
        return 202, {"status": "accepted"}

    def _claim(self, body: Any) -> tuple[int, Any]:
        token = body.get("enrollmentToken")
        if token not in self.one_time:
            return 401, {"detail": f"enrollment token {token} is not known, or was used"}
        self.one_time.discard(token)
        self.claims.append(body)
        host_id = f"host-{len(self.claims)}"
        agent_token = f"gua_agent_{len(self.claims)}_q7Rz2kXv9LmT4wPs"
        self.agents[agent_token] = host_id
        name = body.get("hostname", host_id)
        return 201, {"hostId": host_id, "displayName": name, "agentToken": agent_token, "tokenPrefix": "gua_a"}


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        board = self.server.board
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = urlsplit(self.path).path
        board.paths.append((self.path, self.headers.get("Authorization")))
        misdeed = board.next_misdeed()
        if misdeed is None:
            self._send(*board.answer(path, self.headers.get("Authorization"), json.loads(data)))
        else:
            self._misbehave(misdeed, board, data.decode())

    def _misbehave(self, misdeed: Misdeed, board: Board, data: str) -> None:
        if isinstance(misdeed.value, int):
            told = (self.headers.get("Authorization") or data)[-200:]
            detail = board.detail % told if "%s" in board.detail else board.detail
            self._send(misdeed.value, {"detail": detail}, location=board.location or f"{board.url}/elsewhere")
        elif misdeed is Misdeed.LOGIN_PAGE:
            self._send_raw(200, b"<html>sign in</html>", "text/html; charset=utf-8")
        elif misdeed is Misdeed.NOT_JSON:
            self._send_raw(200, b"welcome", "application/json")
        elif misdeed is Misdeed.RESET:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        elif misdeed is Misdeed.NOT_HTTP:
            self.wfile.write(b"220 mail.example.org ESMTP\r\n")
        elif misdeed is Misdeed.SILENCE:
            board.ended.wait()
        elif misdeed is Misdeed.SLOW:
            board.ended.wait(SLOW_S)
            self._send(*board.answer(urlsplit(self.path).path, self.headers.get("Authorization"), json.loads(data)))
        else:
            self._dribble(board, "Content-Length: 100000\r\n\r\n" if misdeed is Misdeed.DRIBBLED_BODY else "X-Slow: ")

    def _dribble(self, board: Board, last: str) -> None:
        self.wfile.write(f"HTTP/1.1 200 OK\r\n{last}".encode())
        while not board.ended.wait(0.02):
            self.wfile.write(b"a")

    def _send(self, status: int, document: Any, location: str = "") -> None:
        self._send_raw(status, json.dumps(document).encode(), "application/json", location)

    def _send_raw(self, status: int, body: bytes, kind: str, location: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if 300 <= status < 400:
            self.send_header("Location", location)
        if status == 429:
            self.send_header("Retry-After", "120")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the tests read what was taken."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, board: Board, context: Optional[ssl.SSLContext], address: str) -> None:
        self.board = board
        self._context = context
        super().__init__((address, 0), _Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        if self._context is None:
            return connection, address
        # The handshake is the handler's, so that a client that hangs in it stops nobody else
        return self._context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are what some tests are about."""


@contextlib.contextmanager
def running_board(
    board: Optional[Board] = None,
    context: Optional[ssl.SSLContext] = None,
    address: str = "127.0.0.1",
    name: str = "localhost",
) -> Iterator[Board]:
    """The board, answering on `address` at `board.url`: by TLS for `name` with a context, else plainly."""
    board = board or Board()
    server = _Server(board, context, address)
    scheme, host = ("http", address) if context is None else ("https", name)
    board.url = f"{scheme}://{host}:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield board
    finally:
        board.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
