"""Each host's latest state, as `gua-fleet sync-once` last brought it back, for this user alone.

`latest/HOST-KEY.json` in `$XDG_STATE_HOME/gua-fleet`: {"version": 1, "asked": HOW IT IS ASKED, "document": its own}.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from gua.errors import GuaError
from gua_fleet.last_seen import how_asked, state_path
from gua_fleet.model import Document, Host, HostResult
from gua_fleet.probes.shape import Misshapen, check_shape
from gua_fleet.probes.sync_once import SYNC_ONCE_PROBE
from gua_fleet.write_file import write_atomically

_VERSION = 1


def latest_folder() -> Path:
    return state_path().parent / "latest"


def save_latest(folder: Path, results: Iterable[HostResult]) -> None:
    """Keep what each host that answered said; what is kept of the others stays. Raises GuaError."""
    for result in results:
        if result.document is None:
            continue
        content = {"version": _VERSION, "asked": how_asked(result.host), "document": result.document}
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(_file(folder, result.host), (json.dumps(content) + "\n").encode("ascii"), mode=0o600)
        except OSError as exc:
            raise GuaError(f"{folder}: cannot be written, so the hosts' states are not kept: {exc.strerror}") from exc


def load_latest(folder: Path, hosts: Iterable[Host]) -> dict[str, Document]:
    """The kept state of these hosts, by name; none where there is no file, or one that is broken."""
    found = {host.name: _read(_file(folder, host), host) for host in hosts}
    return {name: document for name, document in found.items() if document is not None}


def _file(folder: Path, host: Host) -> Path:
    """The name is for people; the digest tells two machines of one name apart."""
    digest = hashlib.sha256(how_asked(host).encode("utf-8", "replace")).hexdigest()[:16]
    return folder / f"{quote(host.name, safe='')[:100]}-{digest}.json"


def _read(path: Path, host: Host) -> Document | None:
    try:
        content = json.loads(path.read_bytes())
        if content["version"] != _VERSION or content["asked"] != how_asked(host):
            return None
        document: Document = content["document"]
        check_shape(document, SYNC_ONCE_PROBE.schema)
    except (OSError, ValueError, RecursionError, KeyError, TypeError, Misshapen):
        return None
    return document
