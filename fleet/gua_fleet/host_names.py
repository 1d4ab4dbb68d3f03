"""Names of hosts and groups of the inventory that was read last, kept so that a TAB need not read one.

`$XDG_CACHE_HOME/gua-fleet/names` (else `~/.cache/gua-fleet/names`): one name a line.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from gua_fleet.model import Host
from gua_fleet.write_file import write_atomically

# What takes part in an Ansible pattern, and what no shell need be shown.
_SEPARATORS = ",:"


def names_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Where they are kept. A relative XDG_CACHE_HOME does not count, as the XDG specification asks."""
    asked = environ.get("XDG_CACHE_HOME", "")
    base = Path(asked) if os.path.isabs(asked) else Path("~/.cache").expanduser()
    return base / "gua-fleet" / "names"


def remember_names(hosts: Iterable[Host], path: Path | None = None) -> None:
    """Keep the names; where that cannot be done nothing is lost but a TAB."""
    path = path or names_path()
    names = {name for host in hosts for name in (host.name, *host.groups)}
    text = "".join(f"{name}\n" for name in sorted(names) if _is_plain(name))
    with contextlib.suppress(OSError):
        if path.is_file() and path.read_text(encoding="utf-8", errors="replace") == text:
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(path, text.encode(), mode=0o600)


def complete_hosts(prefix: str, **_: object) -> list[str]:
    """Patterns that `prefix` may become: the last name in it completed, what stands before it kept."""
    cut = max(prefix.rfind(mark) for mark in _SEPARATORS) + 1
    before, begun = prefix[:cut], prefix[cut:]
    sign = begun[:1] if begun[:1] in ("!", "&") else ""
    try:
        names = names_path().read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [f"{before}{sign}{name}" for name in names if name.startswith(begun[len(sign) :])]


def _is_plain(name: str) -> bool:
    return name.isprintable() and not any(character.isspace() or character in _SEPARATORS for character in name)
