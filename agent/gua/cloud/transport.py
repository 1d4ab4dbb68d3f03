"""How a request leaves this machine: verified always, by the environment's proxies, by no password file."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
from collections.abc import Mapping
from typing import Any, Optional, Union

import requests
from requests.adapters import HTTPAdapter
from requests.utils import get_environ_proxies

from gua.cloud.server_url import is_plain_loopback
from gua.errors import ConfigError
from gua.text import shown


class Transport:
    """Sends bodies. Every request has a connection of its own: between two of them a server has often closed it."""

    def __init__(self) -> None:
        self._context: Optional[ssl.SSLContext] = None

    def post(
        self, url: str, data: bytes, headers: Mapping[str, str], timeout_s: float, lines: Lines
    ) -> requests.Response:
        """The answer, its body not read yet; to be closed. Raises requests.RequestException, OSError, ValueError.

        lines: what can cut it short, from another thread.
        """
        with requests.Session() as session:
            # Else .netrc would replace our Authorization. What else it stands for is done here by hand.
            session.trust_env = False
            # Plain HTTP is allowed to this machine itself because nobody else reads it: no proxy may either
            session.proxies = {} if is_plain_loopback(url) else get_environ_proxies(url, no_proxy=None)
            session.verify = _own_bundle()[1] or True
            context = self._trust() if url.startswith("https:") else None
            session.mount(url, _Adapter(context, lines))
            return session.post(
                url, data=data, headers=dict(headers), timeout=timeout_s, allow_redirects=False, stream=True
            )

    def _trust(self) -> ssl.SSLContext:
        """What certificates are checked with; made once, because reading all authorities takes a while."""
        if self._context is None:
            self._context = _make_context(*_own_bundle())
        return self._context


class Lines:
    """The connections of one request. Timeouts end a read that brings nothing; this ends one that brings too little."""

    def __init__(self) -> None:
        self._opened: list[Any] = []
        self._is_cut = False

    def cut(self) -> None:
        """End what is under way, and begin nothing more: whoever reads finds the connection closed."""
        self._is_cut = True
        for connection in self._opened:
            line = getattr(connection, "sock", None)
            if isinstance(line, socket.socket):
                with contextlib.suppress(OSError):
                    # Not TLS's own, which would change the object under its reader's hands
                    socket.socket.shutdown(line, socket.SHUT_RDWR)

    def watch(self, manager: Any) -> None:
        """Note every connection that this manager of the library makes."""
        classes = manager.pool_classes_by_scheme
        manager.pool_classes_by_scheme = {scheme: self._watched(known) for scheme, known in classes.items()}

    def _watched(self, pool: Any) -> type:
        lines = self

        class Watched(pool):  # type: ignore[misc] # one of two classes, chosen above
            def _new_conn(self) -> Any:
                if lines._is_cut:
                    raise ConnectionAbortedError
                lines._opened.append(super()._new_conn())
                return lines._opened[-1]

        return Watched


class _Adapter(HTTPAdapter):
    """Uses a TLS context of ours and keeps the lines at hand, also behind a proxy. context: None for plain HTTP."""

    def __init__(self, context: Optional[ssl.SSLContext], lines: Lines) -> None:
        self._context, self._lines = context, lines
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        options.update(self._tls())
        super().init_poolmanager(*arguments, **options)
        self._lines.watch(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        options.update(self._tls())
        manager = super().proxy_manager_for(proxy, **options)
        self._lines.watch(manager)
        return manager

    def _tls(self) -> dict[str, Any]:
        return {} if self._context is None else {"ssl_context": self._context}


def _own_bundle() -> tuple[str, Optional[str]]:
    """The authorities that the environment names for such programs, and no others then; None: the usual ones.

    With the variable's name. Raises ConfigError when they are not there: going on with others would be a surprise.
    """
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        path = os.environ.get(name)
        if path:
            if not os.path.exists(path):
                raise ConfigError(f"{name}: {shown(path, 200)} is not there")
            return name, path
    return "", None


def _make_context(name: str, bundle: Optional[str]) -> ssl.SSLContext:
    """Verifying, against the bundle, or else this system's authorities; the library adds those that it carries.

    Raises ConfigError where the bundle, which the variable of this name names, is none.
    """
    if bundle is None:
        return ssl.create_default_context()
    place: Mapping[str, Union[str, None]] = {"capath" if os.path.isdir(bundle) else "cafile": bundle}
    try:
        return ssl.create_default_context(**place)  # type: ignore[arg-type]
    except ssl.SSLError as exc:
        raise ConfigError(f"{name}: {shown(bundle, 200)} holds no certificates in PEM form") from exc
    except OSError as exc:
        raise ConfigError(f"{name}: {shown(bundle, 200)} cannot be read: {exc.strerror}") from exc
