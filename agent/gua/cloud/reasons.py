"""Why a board could not be reached, in plain words. Never the text of an exception that may hold more."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterator
from typing import Optional

import requests

from gua.text import shown

_WORDS = {
    errno.ECONNREFUSED: "connection refused",
    errno.ECONNRESET: "connection reset",
    errno.ENETUNREACH: "network unreachable",
    errno.EHOSTUNREACH: "no route to it",
    errno.EPIPE: "connection closed",
}
_CERTIFICATE_CURE = "have its authority installed here, or named in REQUESTS_CA_BUNDLE"


def why_unreachable(error: BaseException) -> str:
    """One phrase for what a request failed with."""
    chain = list(_causes(error))
    for cause in chain:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {shown(cause.verify_message, 200)}; {_CERTIFICATE_CURE}"
    behind_proxy = any(isinstance(cause, requests.exceptions.ProxyError) for cause in chain)
    reason = next((words for words in map(_words, chain) if words is not None), "the request failed")
    return f"the proxy: {reason}" if behind_proxy else reason


def _words(cause: BaseException) -> Optional[str]:
    """Words for one exception of the chain, innermost first; None when another one tells more."""
    if isinstance(cause, socket.gaierror):
        return f"its name is not known: {cause.strerror}"
    if isinstance(cause, ssl.SSLError):
        return f"TLS failed: {shown(cause.reason or 'no reason given', 100)}"
    if isinstance(cause, (TimeoutError, requests.exceptions.Timeout)):
        return "it does not answer in time"
    if isinstance(cause, OSError) and not isinstance(cause, requests.RequestException) and cause.errno:
        return _WORDS.get(cause.errno) or cause.strerror
    if isinstance(cause, requests.exceptions.InvalidSchema):
        return "the proxy is of a kind that cannot be used (SOCKS needs PySocks); name an HTTP proxy in https_proxy"
    if isinstance(cause, (requests.exceptions.InvalidURL, requests.exceptions.InvalidProxyURL, UnicodeError)):
        return "its address, or the proxy's, is not one"
    name = type(cause).__name__
    if name in ("RemoteDisconnected", "IncompleteRead", "BadStatusLine", "ProtocolError", "LineTooLong"):
        return "it closed the connection, or does not speak HTTP"
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The chain, innermost first: the libraries wrap what the system said, also as an argument or as `reason`."""
    seen: list[BaseException] = []
    todo = [error]
    while todo and len(seen) < 30:
        current = todo.pop()
        if any(current is known for known in seen):
            continue
        seen.append(current)
        inner = [current.__cause__, current.__context__, getattr(current, "reason", None), *current.args]
        todo += [found for found in inner if isinstance(found, BaseException)]
    return reversed(seen)
