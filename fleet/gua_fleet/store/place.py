"""Where the fleet's history lies: a file, or a PostgreSQL database by its URL."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from gua_fleet.errors import StoreUnusable

_SCHEMES = ("postgresql", "postgres")
_HIDDEN = "***"
# PostgreSQL's other way to write it, and a URL without its slashes: neither is meant as the name of a file.
_NO_FILE = re.compile(
    r"(postgres(ql)?:(?!//)|(.*\s)?(host|hostaddr|port|user|password|passfile|dbname|service)\s*=)", re.S
)
# What ends a part of a URL. Not escaped in a password, a server library takes the rest of it for a host or a port.
_ENDS = re.compile(r"[/?#@:]")


@dataclass(frozen=True)
class Place:
    """path: of the SQLite file; None for PostgreSQL. url: of PostgreSQL, password and all; never to be shown."""

    path: Path | None = None
    url: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        """Fit to be shown."""
        return str(self.path) if self.url is None else without_password(self.url)

    def without_secret(self, text: str) -> str:
        """Another program's words about this place, fit to be shown."""
        whole = _secrets_of(self.url or "")
        parts = {part for secret in whole for part in _ENDS.split(secret) if part}
        for secret in whole:
            text = text.replace(secret, _HIDDEN)
        for part in parts:  # as a word of its own: within another one it would tell what it is
            text = re.sub(rf"(?<!\w){re.escape(part)}(?!\w)", _HIDDEN, text)
        return text


def is_url(text: str) -> bool:
    """Whether it names a database server and no file."""
    return "://" in text


def without_password(text: str) -> str:
    """The path as it is, or the URL with stars for its passwords."""
    for secret in _secrets_of(text):
        text = text.replace(secret, _HIDDEN)
    return text


def find_place(named: str | None, environ: Mapping[str, str] = os.environ) -> Place:
    """What `--store` or the settings name (None: the default file). Raises StoreUnusable."""
    if named is None:
        return Place(path=default_path(environ))
    if _NO_FILE.match(named):
        raise StoreUnusable("--store: write a PostgreSQL database as postgresql://USER@HOST/DATABASE")
    if not is_url(named):
        return Place(path=Path(named).expanduser())
    try:
        scheme = urlsplit(named).scheme
    except ValueError:
        scheme = ""
    if scheme not in _SCHEMES:
        raise StoreUnusable(f"{without_password(named)}: a store is a file, or postgresql://USER@HOST/DATABASE")
    return Place(url=named)


def default_path(environ: Mapping[str, str] = os.environ) -> Path:
    """A relative XDG_DATA_HOME does not count, as the XDG specification asks."""
    asked = environ.get("XDG_DATA_HOME", "")
    base = Path(asked) if os.path.isabs(asked) else Path("~/.local/share").expanduser()
    return base / "gua" / "fleet.db"


def _secrets_of(url: str) -> list[str]:
    """The passwords of a URL as they stand in it, and as they are meant; the longest first."""
    if not is_url(url):
        return []
    rest = url.split("://", 1)[1]
    user, _, password = rest.rpartition("@")[0].partition(":")
    # a password may hold a `?` or `/`, where its `:` comes before any of them
    found = set() if _ENDS.search(user) else {password}
    query = rest.partition("?")[2]
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if "password" in name.lower():
            found.add(value)
    found |= {unquote(one) for one in found} | {value for name, value in parse_qsl(query) if "password" in name.lower()}
    return sorted(filter(None, found), key=len, reverse=True)
