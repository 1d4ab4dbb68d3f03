"""Which server URLs a token may be sent to. Pure."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from gua.errors import UsageError
from gua.text import shown

_WRITE = "write it like https://board.example.org"


def check_server_url(text: str, *, allow_http: bool) -> str:
    """The URL without a slash at its end. It may have a path, under which the board answers.

    allow_http: the token may travel unencrypted; to this machine itself it always may.
    Raises UsageError for anything but an absolute http(s) URL, or one with a name, password, query or fragment.
    """
    url = text.strip().rstrip("/")
    if "@" in url:  # not shown: a password may stand before it
        raise UsageError(f"the server URL holds a user name or password: leave it out; {_WRITE}")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise UsageError(f"not a server URL: {shown(url, 200)}; {_WRITE}") from None
    if parts.scheme not in ("http", "https") or not host or re.search(r"[^\x21-\x7e]|\\", url):
        raise UsageError(f"not an absolute http(s) URL: {shown(url, 200)}; {_WRITE}")
    if parts.query or parts.fragment or "?" in url or "#" in url:
        raise UsageError(f"the server URL holds more than an address and a path: {shown(url, 200)}; {_WRITE}")
    if parts.scheme == "http" and not allow_http and not is_loopback(host):
        raise UsageError(
            f"{shown(url, 200)} is not encrypted: everybody on the way could read the token; "
            "use https, or insist with --allow-http"
        )
    return url


def is_plain_http(url: str) -> bool:
    """Whether tokens would travel readable over a network."""
    parts = urlsplit(url)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")


def is_plain_loopback(url: str) -> bool:
    """Whether they would travel readable, but within this machine only, as long as no proxy is asked."""
    parts = urlsplit(url)
    return parts.scheme == "http" and is_loopback(parts.hostname or "")


def is_loopback(host: str) -> bool:
    """Whether a host name means this machine itself, whatever a name service says."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
