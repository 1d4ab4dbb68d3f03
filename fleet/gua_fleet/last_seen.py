"""What hosts said when they last answered, kept between runs, so that a silent host can be told and counted.

`last-seen.json` in `$XDG_STATE_HOME/gua-fleet` (else `~/.local/state/gua-fleet`), for this user alone:
{"version": 1, "hosts": {HOW IT IS ASKED: {"at": T, "cards": N, "models": {NAME: N}}}}
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gua.errors import GuaError
from gua.units import parse_time_ms
from gua_fleet.merge_parts import physical_cards
from gua_fleet.model import Document, Host, HostResult, Seen
from gua_fleet.write_file import write_atomically

_VERSION = 1


def state_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Where it is kept. A relative XDG_STATE_HOME does not count, as the XDG specification asks."""
    asked = environ.get("XDG_STATE_HOME", "")
    base = Path(asked) if os.path.isabs(asked) else Path("~/.local/state").expanduser()
    return base / "gua-fleet" / "last-seen.json"


def load_seen(path: Path, hosts: Iterable[Host]) -> dict[str, Seen]:
    """What is remembered of these hosts, by name; nothing where the file is missing or broken."""
    rows = _read(path)
    found = {host.name: _seen(rows.get(how_asked(host))) for host in hosts}
    return {name: seen for name, seen in found.items() if seen is not None}


def save_seen(path: Path, results: Iterable[HostResult]) -> None:
    """Remember every host that answered now; what is known of the others stays.

    Raises GuaError where it cannot be written: the report is as good without.
    """
    answered = {
        how_asked(result.host): _row(result.document)
        for result in results
        if result.document is not None and _tells_cards(result.document)
    }
    if not answered:
        return
    text = json.dumps({"version": _VERSION, "hosts": _read(path) | answered}, indent=1) + "\n"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(path, text.encode("ascii"), mode=0o600)
    except OSError as exc:
        raise GuaError(f"{path}: cannot be written, so hosts that answered are not remembered: {exc.strerror}") from exc


def how_asked(host: Host) -> str:
    """The host by how it is asked: two inventories may call different machines by one name."""
    return " ".join([host.name, host.connection, host.address, str(host.port or ""), *host.gua_command])


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    hosts = content.get("hosts") if isinstance(content, dict) and content.get("version") == _VERSION else None
    return hosts if isinstance(hosts, dict) else {}


def _tells_cards(document: Document) -> bool:
    """An observation that failed lists no cards, which does not mean that there are none."""
    return document.get("status") != "error"


def _row(document: Document) -> dict[str, Any]:
    """Of a `gua.report/1` or a `gua.observation/1`."""
    models: dict[str, int] = {}
    for card in document["cards"]:
        if card.get("retired_at") is None and card["mig"] is None and card["name"] is not None:
            models[card["name"]] = models.get(card["name"], 0) + 1
    return {
        "at": document.get("generated_at") or document["observed_at"],
        "cards": physical_cards(document),
        "models": models,
    }


def _seen(row: Any) -> Seen | None:
    try:
        parse_time_ms(row["at"])
        models = {str(name): _count(number) for name, number in row["models"].items()}
        return Seen(row["at"], _count(row["cards"]), models)
    except (TypeError, KeyError, AttributeError, ValueError, GuaError):
        return None


def _count(number: Any) -> int:
    if not isinstance(number, int) or not 0 <= number < 1_000_000:
        raise ValueError(number)
    return number
