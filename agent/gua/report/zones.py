"""Time zones by name, on hosts that may have no zone data at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timezone, tzinfo
from pathlib import Path
from typing import Optional

# Known without zone data, so that a minimal host can always answer in UTC.
UTC_NAMES = frozenset({"UTC", "Etc/UTC", "Z", "GMT", "Etc/GMT"})


def find_zone(name: str) -> Optional[tzinfo]:
    """The zone called `name` (`Europe/Berlin`, `UTC`); None when this host does not know it."""
    if name in UTC_NAMES:
        return timezone.utc
    from zoneinfo import ZoneInfo  # nobody in UTC needs it

    try:
        return ZoneInfo(name)
    # ZoneInfo answers a missing zone with ZoneInfoNotFoundError (a KeyError), a wrong key with ValueError,
    # and a directory or an unreadable file under the zone data with OSError.
    except (KeyError, ValueError, OSError):
        return None


def local_zone_name(environ: Mapping[str, str] = os.environ, localtime: Path = Path("/etc/localtime")) -> str:
    """The IANA name of this machine's zone, `UTC` where it has none: from `TZ`, else where /etc/localtime points."""
    asked = environ.get("TZ", "").lstrip(":")
    if asked and find_zone(asked):
        return asked
    _, found, name = os.path.realpath(localtime).partition("/zoneinfo/")
    return name if found and find_zone(name) else "UTC"
