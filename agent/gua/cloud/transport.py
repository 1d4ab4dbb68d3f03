"""How a request leaves this machine: verified always, by the environment's proxies, by no password file."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from typing import Any, Optional, Union

import requests
from requests.adapters import HTTPAdapter
from requests.utils import get_environ_proxies

from gua.errors import ConfigError
from gua.text import shown


class Transport:
    """Sends bodies. Every request has a connection of its own: between two of them a server has often closed it."""

    def __init__(self) -> None:
        self._context: Optional[ssl.SSLContext] = None

    def post(self, url: str, data: bytes, headers: Mapping[str, str], timeout_s: float) -> requests.Response:
        """The answer, its body not read yet; to be closed. Raises requests.RequestException, OSError, ValueError."""
        with requests.Session() as session:
            # Else .netrc would replace our Authorization. What else it stands for is done here by hand.
            session.trust_env = False
            session.proxies = get_environ_proxies(url, no_proxy=None)
            session.verify = _own_bundle() or True
            if url.startswith("https:"):
                session.mount("https://", _VerifyingAdapter(self._trust()))
            return session.post(
                url, data=data, headers=dict(headers), timeout=timeout_s, allow_redirects=False, stream=True
            )

    def _trust(self) -> ssl.SSLContext:
        """What certificates are checked with; made once, because reading all authorities takes a while."""
        if self._context is None:
            self._context = _make_context(_own_bundle())
        return self._context


class _VerifyingAdapter(HTTPAdapter):
    """Uses a TLS context of ours, also behind a proxy."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options, ssl_context=self._context)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        return super().proxy_manager_for(proxy, **options, ssl_context=self._context)


def _own_bundle() -> Optional[str]:
    """The authorities that the environment names for such programs, and no others then; None: the usual ones.

    Raises ConfigError when they are not there: going on with others would be a surprise.
    """
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        path = os.environ.get(name)
        if path:
            if not os.path.exists(path):
                raise ConfigError(f"{name}: {shown(path, 200)} is not there")
            return path
    return None


def _make_context(bundle: Optional[str]) -> ssl.SSLContext:
    """Verifying, against the bundle, or else this system's authorities; the library adds those that it carries."""
    if bundle is None:
        return ssl.create_default_context()
    place: Mapping[str, Union[str, None]] = {"capath" if os.path.isdir(bundle) else "cafile": bundle}
    return ssl.create_default_context(**place)  # type: ignore[arg-type]
